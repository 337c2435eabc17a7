"""Anonymisation of blind rounds: hides which model wrote which reply until somebody has voted.

Each voice of a blind round gets a letter, in an order that nobody can guess. While the turn is blind, the
server sends everything about it under that letter; the server itself works with the names.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from hashlib import sha256
from string import ascii_uppercase

from tertulia.core.messages import Failure, Message, Round, speaker_of
from tertulia.core.turns import Draft, RetryNotice, Turn
from tertulia.core.voices import Voice

_HIDDEN_FAILURE = "This voice did not finish. Who it was, and why, is shown after the vote."


def assign_letters(table: Sequence[Voice], secret: str) -> tuple[Voice, ...]:
    """Assigns the letters and sorts the voices by them. The order depends on the secret, because the order
    of the seats would give the names away."""
    shuffled = sorted(table, key=lambda voice: sha256(f"{secret}{voice.id}".encode()).digest())
    return tuple(
        replace(voice, letter=letter) for voice, letter in zip(shuffled, ascii_uppercase, strict=False)
    )


def anonymised_turn(turn: Turn) -> Turn:
    """The turn without names if it is blind, else the turn itself."""
    return replace(turn, table=tuple(map(_anonymous_voice, turn.table))) if turn.is_blind else turn


def anonymised_round(round_: Round, hidden: Collection[str]) -> Round:
    """The round without the names of blind turns; `hidden` holds the ids of these turns."""
    if not hidden:
        return round_
    return Round(
        round_.number,
        tuple(
            anonymised_message(message) if message.turn_id in hidden else message
            for message in round_.messages
        ),
    )


def anonymised_message(message: Message) -> Message:
    """The message without its voice's name, and without price, time and the provider's error text, which
    would identify the model."""
    if message.voice is None:
        return message
    failure = message.failure
    return replace(
        message,
        speaker=speaker_of(""),
        voice=_anonymous_voice(message.voice),
        usage=None,
        read_replies=(),
        failure=Failure(failure.code, _HIDDEN_FAILURE) if failure else None,
    )


def anonymised_draft(draft: Draft) -> Draft:
    waiting = anonymised_retry_notice(draft.waiting) if draft.waiting else None
    return replace(draft, voice=_anonymous_voice(draft.voice), waiting=waiting, read_replies=())


def anonymised_retry_notice(waiting: RetryNotice) -> RetryNotice:
    return replace(waiting, reason="")


def _anonymous_voice(voice: Voice) -> Voice:
    """An anonymous stand-in for the voice; a voice without a letter gets no name at all."""
    seat = ascii_uppercase.index(voice.letter) + 1 if voice.letter else voice.seat
    return Voice(f"mind:{voice.letter}", seat, f"Voice {voice.letter}".strip(), "", letter=voice.letter)
