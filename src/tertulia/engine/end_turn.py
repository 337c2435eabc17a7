"""Ending a turn: its final state and the jobs that follow it, written in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tertulia.core.errors import NotFound
from tertulia.core.jobs import IndexRounds, NameConversation
from tertulia.core.messages import Message, Status
from tertulia.core.turns import Turn, TurnState
from tertulia.store import conversations, drafts, jobs, turns
from tertulia.store.database import Tx


@dataclass(frozen=True, slots=True)
class EndedTurn:
    turn: Turn
    has_added_jobs: bool


def final_state(replies: Sequence[Message], *, is_stopped: bool, is_closing: bool) -> TurnState:
    """The state of a turn whose mode has run, from how its replies ended."""
    if is_stopped:
        return TurnState.STOPPED
    if is_closing and any(reply.status is Status.INTERRUPTED for reply in replies):
        return TurnState.INTERRUPTED
    if replies and all(reply.status is Status.FAILED for reply in replies):
        return TurnState.FAILED
    return TurnState.COMPLETE


def end_turn(tx: Tx, turn: Turn, state: TurnState) -> EndedTurn:
    """Writes the end of a turn. If its conversation was deleted, nothing is written."""
    try:
        ended = turns.set_state(tx, turn.id, state)
    except NotFound:
        return EndedTurn(replace(turn, state=state), has_added_jobs=False)
    drafts.remove_of_turn(tx, turn.id)
    conversation = conversations.changed(tx, turn.conversation_id)
    if state is TurnState.COMPLETE and conversations.needs_name(tx, conversation.id):
        jobs.enqueue(tx, NameConversation(conversation.id), key=f"{NameConversation.kind}:{conversation.id}")
    jobs.enqueue_once(tx, IndexRounds.single(turn.conversation_id, turn.round_number))
    return EndedTurn(ended, has_added_jobs=True)
