"""Branching: opens the turns that edit a question in a new branch, and that summarise a branch."""

from __future__ import annotations

from dataclasses import replace

from tertulia.core.conversations import Conversation
from tertulia.core.errors import Conflict
from tertulia.core.events import conversation_topic
from tertulia.core.messages import Message, Role, Status
from tertulia.core.turns import Purpose, Turn
from tertulia.core.users import Actor
from tertulia.core.voices import Voice
from tertulia.engine.open_turn import (
    OpenedTurn,
    OpenResult,
    check_running_limit,
    find_duplicate,
    first_state,
    open_round,
    writable,
)
from tertulia.engine.requests import BringBackRequest, NewEdit
from tertulia.engine.turn_records import BRANCH_ROUNDS_LIMIT
from tertulia.store import attachments, blind, branches, conversations, messages, turns
from tertulia.store.database import Tx


def open_edit(
    tx: Tx,
    actor: Actor,
    conversation_id: str,
    number: int,
    request: NewEdit,
    table: tuple[Voice, ...],
    fingerprint: str,
    chair: Voice | None,
) -> OpenResult:
    """Opens an edited question in a new branch that starts at the round before."""
    if duplicate := find_duplicate(tx, actor, request.id, fingerprint):
        return duplicate
    conversation = writable(tx, actor, conversation_id)
    asked = messages.round(tx, conversation.id, number).question
    attached = attachments.again(tx, actor, conversation.project_id, asked, request.attachments)
    branch = branches.add(tx, actor, conversation.id, at_round=number - 1, id=request.branch_id)
    turn = replace(request, attachments=attached).turn_in(branch.id)
    return open_round(tx, actor, turn, table, fingerprint, chair)


def open_return(
    tx: Tx, actor: Actor, conversation_id: str, request: BringBackRequest, voice: Voice, fingerprint: str
) -> OpenResult:
    """Opens a round in the parent conversation, in which one voice summarises the branch."""
    if duplicate := find_duplicate(tx, actor, request.id, fingerprint):
        return duplicate
    branch = writable(tx, actor, conversation_id)
    if branch.parent_id is None:
        raise Conflict("This conversation is not a branch, so there is nowhere to add its summary.")
    if not messages.own(tx, branch.id, limit=1):
        raise Conflict("This branch is empty, so there is nothing to summarise.")
    parent = conversations.get(tx, actor, branch.parent_id)
    return _open_summary(tx, actor, request.id, parent, branch, voice, fingerprint)


def open_return_again(
    tx: Tx, actor: Actor, into_id: str, asked: Message, turn_id: str, voice: Voice, fingerprint: str
) -> OpenResult:
    """Summarises a branch again, in a conversation that repeats the questions of the first summary's."""
    if duplicate := find_duplicate(tx, actor, turn_id, fingerprint):
        return duplicate
    branch = conversations.get(tx, actor, asked.brings_id or "")
    return _open_summary(tx, actor, turn_id, writable(tx, actor, into_id), branch, voice, fingerprint)


def _open_summary(
    tx: Tx,
    actor: Actor,
    turn_id: str,
    into: Conversation,
    branch: Conversation,
    voice: Voice,
    fingerprint: str,
) -> OpenResult:
    _must_be_finished(tx, branch)
    check_running_limit(tx, actor)
    tx.lock(conversation_topic(into.id))
    turn = Turn(
        id=turn_id,
        conversation_id=into.id,
        round_number=turns.next_round(tx, into.id),
        purpose=Purpose.SUMMARY,
        mode="quick",
        table=(voice,),
        visibility=into.visibility,
        scope=into.scope,
        state=first_state(tx, into),
        created_by=actor.user_id,
        created_at=tx.now,
    )
    question = _question(tx, actor, turn, branch)
    turns.open(tx, turn, fingerprint)
    messages.add(tx, question)
    conversations.hold_seats(tx, into, (voice,))
    return OpenResult(OpenedTurn(turn, conversations.changed(tx, into.id), question), is_new=True)


def _must_be_finished(tx: Tx, branch: Conversation) -> None:
    """Refuses a branch that is being answered, or in which names are hidden."""
    if turns.waiting_or_running(tx, branch.id):
        raise Conflict("This branch is being answered. Summarise it after its last reply, or stop it first.")
    for turn in blind.hidden_in(tx, messages.own(tx, branch.id, limit=BRANCH_ROUNDS_LIMIT)):
        where = f"In round {turn.round_number} of this branch"
        raise Conflict(f"{where} the names are hidden, and a summary would reveal them. Vote there first.")


def _question(tx: Tx, actor: Actor, turn: Turn, branch: Conversation) -> Message:
    name = f'"{branch.title}"' if branch.title else f"at round {branch.branch_round}"
    return Message(
        id=tx.new_id(),
        conversation_id=turn.conversation_id,
        round_number=turn.round_number,
        turn_id=turn.id,
        speaker="user",
        role=Role.USER,
        content=f"Summary of branch {name}.",
        status=Status.COMPLETE,
        created_by=actor.user_id,
        created_at=tx.now,
        brings_id=branch.id,
    )
