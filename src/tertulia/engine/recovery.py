"""Recovery: after a crash every turn that was under way ends as interrupted, with the text it had."""

from __future__ import annotations

from tertulia.core.messages import Failure, Message, Role, Round, Status, Thinking, speaker_of
from tertulia.core.turns import Draft, Purpose, State, Turn
from tertulia.core.voices import Voice
from tertulia.store import conversations, drafts, jobs, messages, turns
from tertulia.store.database import Database, Tx

_RESTARTED = Failure(
    "restarted", "The server stopped while this was being written. What had arrived is kept."
)


async def recover(db: Database) -> int:
    """Ends what a stopped server left running; may itself be interrupted and run again."""
    unfinished = await db.read(turns.unfinished)
    for turn in unfinished:
        await db.write(lambda tx, turn=turn: interrupt(tx, turn))  # type: ignore[misc]
    return len(unfinished)


def interrupt(tx: Tx, turn: Turn) -> Turn:
    """One transaction per turn: its drafts become messages, voices never heard get one without new words."""
    here = messages.round(tx, turn.conversation_id, turn.round_number)
    written = {message.id for message in here.messages}
    # A checkpoint may have come after the last word: such a draft is a message already.
    kept = [draft for draft in drafts.of_turn(tx, turn.id) if draft.id not in written]
    for draft in kept:
        messages.add(tx, _from_draft(tx, turn, draft))
    for voice in _unheard(turn, here, kept):
        messages.add(tx, _message(tx, turn, voice, tx.new_id(), content=_beginning(turn, here)))
    drafts.remove_of_turn(tx, turn.id)
    ended = turns.set_state(tx, turn.id, State.INTERRUPTED)
    conversations.changed(tx, turn.conversation_id)
    jobs.add_once(tx, "index_round", f"{turn.conversation_id}:{turn.round_number}")
    return ended


def _unheard(turn: Turn, here: Round, kept: list[Draft]) -> list[Voice]:
    heard = {message.voice.id for message in here.messages if message.voice and message.turn_id == turn.id}
    heard |= {draft.voice.id for draft in kept}
    return [voice for voice in turn.table if voice.id not in heard]


def _beginning(turn: Turn, here: Round) -> str:
    """A reply that was to be continued keeps what it had, or its next version would hide it."""
    if turn.purpose is not Purpose.CONTINUE:
        return ""
    return next((message.content for message in here.messages if message.id == turn.message_id), "")


def _from_draft(tx: Tx, turn: Turn, draft: Draft) -> Message:
    thinking = (
        Thinking(draft.thinking, round((tx.now - draft.started_at) / 1000, 1)) if draft.thinking else None
    )
    return _message(tx, turn, draft.voice, draft.id, Role(draft.role), draft.content, thinking)


def _message(
    tx: Tx,
    turn: Turn,
    voice: Voice,
    message_id: str,
    role: Role = Role.ADVISOR,
    content: str = "",
    thinking: Thinking | None = None,
) -> Message:
    return Message(
        id=message_id,
        conversation_id=turn.conversation_id,
        round_number=turn.round_number,
        turn_id=turn.id,
        speaker=speaker_of(voice.model),
        role=role,
        content=content,
        status=Status.INTERRUPTED,
        created_by=turn.created_by,
        created_at=tx.now,
        voice=voice,
        thinking=thinking,
        failure=_RESTARTED,
        replaces_id=turn.message_id,
    )
