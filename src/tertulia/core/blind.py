"""Blind rounds: who said what is told to nobody until somebody has voted.

Each voice of such a round is given a letter, in an order that nobody can guess. While the turn is blind, all
that leaves the house of it goes under that letter; the house itself knows the names, and needs them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from hashlib import sha256
from string import ascii_uppercase

from tertulia.core.messages import Failure, Message, Round, speaker_of
from tertulia.core.turns import Draft, Turn, Waiting
from tertulia.core.voices import Voice

_HIDDEN_FAILURE = "This voice did not finish. Who it was, and why, is shown after the vote."


def lettered(table: Sequence[Voice], secret: str) -> tuple[Voice, ...]:
    """In the order of their letters: those who are asked in the order of their seats could be told by it."""
    mixed = sorted(table, key=lambda voice: sha256(f"{secret}{voice.id}".encode()).digest())
    return tuple(replace(voice, letter=letter) for voice, letter in zip(mixed, ascii_uppercase, strict=False))


def veiled_turn(turn: Turn) -> Turn:
    """As it may be told; one that is not blind is as it is."""
    return replace(turn, table=tuple(map(_voice, turn.table))) if turn.is_blind else turn


def veiled_round(round_: Round, hidden: Collection[str]) -> Round:
    """`hidden` are the ids of the turns that are blind."""
    if not hidden:
        return round_
    return Round(
        round_.number,
        tuple(veiled_message(one) if one.turn_id in hidden else one for one in round_.messages),
    )


def veiled_message(message: Message) -> Message:
    """Price, time and the words of a provider would tell as much as a name."""
    if message.voice is None:
        return message
    failure = message.failure
    return replace(
        message,
        speaker=speaker_of(""),
        voice=_voice(message.voice),
        usage=None,
        read_replies=(),
        failure=Failure(failure.code, _HIDDEN_FAILURE) if failure else None,
    )


def veiled_draft(draft: Draft) -> Draft:
    waiting = veiled_waiting(draft.waiting) if draft.waiting else None
    return replace(draft, voice=_voice(draft.voice), waiting=waiting, read_replies=())


def veiled_waiting(waiting: Waiting) -> Waiting:
    return replace(waiting, reason="")


def _voice(voice: Voice) -> Voice:
    """One that came without a letter is nobody."""
    seat = ascii_uppercase.index(voice.letter) + 1 if voice.letter else voice.seat
    return Voice(f"mind:{voice.letter}", seat, f"Voice {voice.letter}".strip(), "", letter=voice.letter)
