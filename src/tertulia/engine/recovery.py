"""Recovery: after a crash, every unfinished turn is ended as interrupted, with the text that was stored.

A single node does this at its start, where every unfinished turn was left by a crash. Where several nodes
share a database, a turn belongs to its node while that node sends heartbeats (heartbeat.py); after that, any
other node ends it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tertulia import council
from tertulia.core.jobs import IndexRounds
from tertulia.core.messages import Failure, Message, Role, Round, Status, Step, Thinking, speaker_of
from tertulia.core.turns import Draft, Purpose, Turn, TurnState
from tertulia.core.voices import Voice
from tertulia.store import conversations, drafts, jobs, messages, turns
from tertulia.store.database import Database, Tx

_RESTARTED = Failure(
    "restarted", "The server stopped while this was being written. What had arrived is kept."
)

SILENT_MS = 15_000
"""A node without a heartbeat for this long is considered dead."""


async def recover(db: Database) -> int:
    """Ends the turns that a crash left unfinished, and returns how many. It may be run again at any time."""
    if db.is_shared:
        return await _end_all_abandoned(db)
    unfinished = await db.read(turns.unfinished)
    for turn in unfinished:
        await db.write(lambda tx, turn=turn: interrupt(tx, turn))  # type: ignore[misc]
    return len(unfinished)


async def _end_all_abandoned(db: Database) -> int:
    abandoned = await db.read(lambda tx: turns.abandoned(tx, tx.now - SILENT_MS))
    ended = [await db.write(lambda tx, turn=turn: _end_abandoned(tx, turn)) for turn in abandoned]  # type: ignore[misc]
    return sum(ended)


def _end_abandoned(tx: Tx, turn: Turn) -> bool:
    """False if the node was only slow, or if another node has ended the turn already."""
    if not turns.take_over(tx, turn.id, tx.now - SILENT_MS):
        return False
    interrupt(tx, turn)
    return True


def interrupt(tx: Tx, turn: Turn) -> Turn:
    """Ends one turn: its drafts become messages, and voices without a draft get an empty message."""
    here = messages.round(tx, turn.conversation_id, turn.round_number)
    written = {message.id for message in here.messages}
    # A draft may have been stored once more after its reply: it is a message already.
    remaining = [draft for draft in drafts.of_turn(tx, turn.id) if draft.id not in written]
    for draft in (*remaining, *_unwritten(tx, turn, here, remaining)):
        messages.add(tx, _message(tx, turn, here, draft))
    drafts.remove_of_turn(tx, turn.id)
    ended = turns.set_state(tx, turn.id, TurnState.INTERRUPTED)
    conversations.changed(tx, turn.conversation_id)
    jobs.enqueue_once(tx, IndexRounds.single(turn.conversation_id, turn.round_number))
    return ended


def _unwritten(tx: Tx, turn: Turn, here: Round, remaining: Sequence[Draft]) -> Iterator[Draft]:
    """An empty draft for each voice that had not begun, so that a person can retry it."""
    answered_ids = {
        message.voice.id for message in here.messages if message.voice and message.turn_id == turn.id
    }
    answered_ids |= {draft.voice.id for draft in remaining}
    if turn.purpose is not Purpose.ASK:
        for voice in (voice for voice in turn.table if voice.id not in answered_ids):
            yield _empty(tx, turn, voice, _target(turn, here))
        return
    mode = council.get(turn.mode)
    expected = turn.table if mode.asks_at_once else turn.table[: 0 if answered_ids else 1]
    for voice in (voice for voice in expected if voice.id not in answered_ids):
        yield _empty(tx, turn, voice)
    closing = {message.role for message in here.messages} | {draft.role for draft in remaining}
    if mode.has_chair and Role.SYNTHESIS not in closing:
        yield replace(_empty(tx, turn, turn.chair or turn.table[0]), role=Role.SYNTHESIS, step=Step.SYNTHESIS)


def _target(turn: Turn, here: Round) -> Message | None:
    return next((message for message in here.messages if message.id == turn.message_id), None)


def _empty(tx: Tx, turn: Turn, voice: Voice, target: Message | None = None) -> Draft:
    """A draft without new text. One that continues a reply keeps the reply's text, since it replaces it."""
    is_synthesis = turn.purpose is Purpose.SYNTHESIS
    step = {Purpose.SYNTHESIS: Step.SYNTHESIS, Purpose.SUMMARY: Step.SUMMARY}.get(turn.purpose, Step.ANSWER)
    return Draft(
        id=tx.new_id(),
        turn_id=turn.id,
        conversation_id=turn.conversation_id,
        round_number=turn.round_number,
        voice=voice,
        role=target.role if target else Role.SYNTHESIS if is_synthesis else Role.ADVISOR,
        content=target.content if target and turn.purpose is Purpose.CONTINUE else "",
        thinking="",
        number=0,
        started_at=tx.now,
        replaces_id=turn.message_id,
        step=target.step if target else step,
        read_replies=target.read_replies if target and turn.purpose is Purpose.CONTINUE else (),
    )


def _message(tx: Tx, turn: Turn, here: Round, draft: Draft) -> Message:
    seconds = round((tx.now - draft.started_at) / 1000, 1)
    return Message(
        id=draft.id,
        conversation_id=turn.conversation_id,
        round_number=turn.round_number,
        turn_id=turn.id,
        speaker=speaker_of(draft.voice.model),
        role=draft.role,
        content=draft.content,
        status=Status.INTERRUPTED,
        created_by=turn.created_by,
        created_at=tx.now,
        voice=draft.voice,
        thinking=Thinking(draft.thinking, seconds) if draft.thinking else None,
        failure=_RESTARTED,
        critique_of_id=_criticised(here) if draft.step is Step.CRITIQUE else None,
        replaces_id=draft.replaces_id,
        step=draft.step,
        read_replies=draft.read_replies,
    )


def _criticised(here: Round) -> str | None:
    """Id of the answer that the critiques of the round are about."""
    answers = (reply for reply in here.replies if reply.step is Step.ANSWER and reply.content)
    return next((answer.id for answer in answers), None)
