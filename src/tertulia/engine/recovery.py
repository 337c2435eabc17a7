"""Recovery: after a crash every turn that was under way ends as interrupted, with the text it had.

Where a database has one server, whatever is unfinished at its start was left by a crash. Where several share
one, a turn is its node's for as long as that node's heart beats (heartbeat.py); then any other ends it.
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
"""A node that has not been heard of for so long is taken for dead."""


async def recover(db: Database) -> int:
    """Ends what a server that is no more left running; may itself be interrupted and run again."""
    if db.is_shared:
        return await _take_over(db)
    unfinished = await db.read(turns.unfinished)
    for turn in unfinished:
        await db.write(lambda tx, turn=turn: interrupt(tx, turn))  # type: ignore[misc]
    return len(unfinished)


async def _take_over(db: Database) -> int:
    abandoned = await db.read(lambda tx: turns.abandoned(tx, tx.now - SILENT_MS))
    taken = [await db.write(lambda tx, turn=turn: _taken_over(tx, turn)) for turn in abandoned]  # type: ignore[misc]
    return sum(taken)


def _taken_over(tx: Tx, turn: Turn) -> bool:
    """False: its node was only slow, or another was here first."""
    if not turns.take_over(tx, turn.id, tx.now - SILENT_MS):
        return False
    interrupt(tx, turn)
    return True


def interrupt(tx: Tx, turn: Turn) -> Turn:
    """One transaction per turn: its drafts become messages, voices never heard get one without new words."""
    here = messages.round(tx, turn.conversation_id, turn.round_number)
    written = {message.id for message in here.messages}
    # A checkpoint may have come after the last word: such a draft is a message already.
    kept = [draft for draft in drafts.of_turn(tx, turn.id) if draft.id not in written]
    for draft in (*kept, *_unwritten(tx, turn, here, kept)):
        messages.add(tx, _message(tx, turn, here, draft))
    drafts.remove_of_turn(tx, turn.id)
    ended = turns.set_state(tx, turn.id, TurnState.INTERRUPTED)
    conversations.changed(tx, turn.conversation_id)
    jobs.enqueue_once(tx, IndexRounds.single(turn.conversation_id, turn.round_number))
    return ended


def _unwritten(tx: Tx, turn: Turn, here: Round, kept: Sequence[Draft]) -> Iterator[Draft]:
    """A place for each voice that was waited for, so that it can be asked again from there."""
    heard = {message.voice.id for message in here.messages if message.voice and message.turn_id == turn.id}
    heard |= {draft.voice.id for draft in kept}
    if turn.purpose is not Purpose.ASK:
        for voice in (voice for voice in turn.table if voice.id not in heard):
            yield _empty(tx, turn, voice, _meant(turn, here))
        return
    mode = council.get(turn.mode)
    waited_for = turn.table if mode.asks_at_once else turn.table[: 0 if heard else 1]
    for voice in (voice for voice in waited_for if voice.id not in heard):
        yield _empty(tx, turn, voice)
    closing = {message.role for message in here.messages} | {draft.role for draft in kept}
    if mode.has_chair and Role.SYNTHESIS not in closing:
        yield replace(_empty(tx, turn, turn.chair or turn.table[0]), role=Role.SYNTHESIS, step=Step.SYNTHESIS)


def _meant(turn: Turn, here: Round) -> Message | None:
    return next((message for message in here.messages if message.id == turn.message_id), None)


def _empty(tx: Tx, turn: Turn, voice: Voice, meant: Message | None = None) -> Draft:
    """Nothing was written; a reply that was to be continued keeps what it had, or this would hide it."""
    is_synthesis = turn.purpose is Purpose.SYNTHESIS
    step = {Purpose.SYNTHESIS: Step.SYNTHESIS, Purpose.SUMMARY: Step.SUMMARY}.get(turn.purpose, Step.ANSWER)
    return Draft(
        id=tx.new_id(),
        turn_id=turn.id,
        conversation_id=turn.conversation_id,
        round_number=turn.round_number,
        voice=voice,
        role=meant.role if meant else Role.SYNTHESIS if is_synthesis else Role.ADVISOR,
        content=meant.content if meant and turn.purpose is Purpose.CONTINUE else "",
        thinking="",
        number=0,
        started_at=tx.now,
        replaces_id=turn.message_id,
        step=meant.step if meant else step,
        read_replies=meant.read_replies if meant and turn.purpose is Purpose.CONTINUE else (),
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
    """The answer a critic had before it."""
    answers = (reply for reply in here.replies if reply.step is Step.ANSWER and reply.content)
    return next((answer.id for answer in answers), None)
