"""Opening a turn: writes a new round, its question and its turn in one transaction."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tertulia.core.attachments import Attachment
from tertulia.core.blind import anonymised_turn, assign_letters
from tertulia.core.conversations import Conversation
from tertulia.core.errors import Conflict, NotFound, TooManyTurns, TurnReused
from tertulia.core.events import conversation_topic
from tertulia.core.messages import Message, Role, Status
from tertulia.core.titles import title_of
from tertulia.core.turns import RUNNING_PER_USER, Purpose, Turn, TurnState
from tertulia.core.users import Actor
from tertulia.core.voices import Voice, assign_seats_once
from tertulia.engine import references
from tertulia.engine.requests import NewTurn
from tertulia.engine.voice_resolution import first_project_id
from tertulia.store import access, attachments, branches, conversations, messages, sessions, turns
from tertulia.store.database import Tx


@dataclass(frozen=True, slots=True)
class OpenedTurn:
    turn: Turn
    conversation: Conversation
    message: Message
    """The question."""

    def as_told(self) -> OpenedTurn:
        """The same without the names of a blind turn."""
        return replace(self, turn=anonymised_turn(self.turn))


@dataclass(frozen=True, slots=True)
class OpenResult:
    opened: OpenedTurn
    is_new: bool
    """False if the same request was sent before, so that nothing was written."""


def open_round(
    tx: Tx,
    actor: Actor,
    request: NewTurn,
    table: tuple[Voice, ...],
    fingerprint: str,
    chair: Voice | None = None,
) -> OpenResult:
    """Adds a round with the person's question, and the turn that answers it."""
    if duplicate := find_duplicate(tx, actor, request.id, fingerprint):
        return duplicate
    check_running_limit(tx, actor)
    conversation = _find_or_add_conversation(tx, actor, request, table)
    tx.lock(conversation_topic(conversation.id))  # Of two turns at once, one sees that it must wait.
    if request.aside:
        table = assign_seats_once(table, conversation.table, request.lanes, branches.seats(tx, conversation))
    references.check(tx, actor, conversation.id, request.reply_to_id, request.quotes)
    attached = _attachments(tx, actor, request, conversation)
    voices = assign_letters(table, tx.new_id()) if request.is_blind else table
    turn = _turn(tx, actor, request, conversation, voices, chair)
    question = _question(tx, actor, request, turn, attached)
    turns.open(tx, turn, fingerprint)
    messages.add(tx, question)
    attachments.send(tx, attached, question.id)
    _set_provisional_title(tx, conversation)
    if not request.aside:
        conversations.set_table(
            tx, conversation.id, request.mode, table, request.visibility, chair, turn.scope
        )
    conversations.hold_seats(tx, conversation, (*table, chair) if chair else table)
    if actor.session_id:
        sessions.set_location(tx, actor.session_id, conversation.project_id, conversation.id)
    return OpenResult(OpenedTurn(turn, conversations.changed(tx, conversation.id), question), is_new=True)


def find_duplicate(tx: Tx, actor: Actor, turn_id: str, fingerprint: str) -> OpenResult | None:
    """The turn that the same request has opened before."""
    opened = turns.find_opened(tx, actor.user_id, turn_id)
    if opened is None:
        return None
    turn, first_fingerprint = opened
    if first_fingerprint != fingerprint:
        raise TurnReused("This turn id was already used for another message. Make a new id and send again.")
    conversation = conversations.get(tx, actor, turn.conversation_id)
    question = messages.round(tx, conversation.id, turn.round_number).question
    return OpenResult(OpenedTurn(turn, conversation, question), is_new=False)


def check_running_limit(tx: Tx, actor: Actor) -> None:
    if turns.count_unfinished(tx, actor.user_id) >= RUNNING_PER_USER:
        raise TooManyTurns(
            f"You have {RUNNING_PER_USER} rounds being answered. Wait for one to finish, or stop one.",
            retry_after_s=5,
        )


def writable(tx: Tx, actor: Actor, conversation_id: str) -> Conversation:
    conversation = conversations.get(tx, actor, conversation_id)
    access.to_project(tx, actor, conversation.project_id).must_write()
    return conversation


def first_state(tx: Tx, conversation: Conversation) -> TurnState:
    """Running if the conversation is free; otherwise queued.

    A branch is not free while a round that it inherits is unfinished. The caller holds the conversation's
    lock, since another node may be deciding the same.
    """
    if turns.waiting_or_running(tx, conversation.id):
        return TurnState.QUEUED
    is_inheriting = conversation.parent_id is not None and turns.is_inheriting(tx, conversation.id)
    return TurnState.QUEUED if is_inheriting else TurnState.RUNNING


def _find_or_add_conversation(
    tx: Tx, actor: Actor, request: NewTurn, table: tuple[Voice, ...]
) -> Conversation:
    if request.conversation_id is not None:
        try:
            return writable(tx, actor, request.conversation_id)
        except NotFound:
            if request.project_id is None:
                raise
    try:
        return conversations.add(
            tx,
            actor,
            request.project_id or first_project_id(tx, actor),
            id=request.conversation_id,
            mode=request.mode,
            table=table,
            visibility=request.visibility,
        )
    except Conflict:
        # Another device of theirs has just added it; somebody else's conversation raises NotFound here.
        return writable(tx, actor, request.conversation_id or "")


def _set_provisional_title(tx: Tx, conversation: Conversation) -> None:
    """Names a conversation after its first question, until the first round is complete."""
    if not conversation.title and (first := messages.first_asked(tx, conversation.id)):
        conversations.set_title_if_unnamed(tx, conversation.id, title_of(first.content), provisional=True)


def _attachments(
    tx: Tx, actor: Actor, request: NewTurn, conversation: Conversation
) -> tuple[Attachment, ...]:
    if not request.attachments:
        return ()
    return attachments.unsent(tx, actor, conversation.project_id, request.attachments)


def _turn(
    tx: Tx,
    actor: Actor,
    request: NewTurn,
    conversation: Conversation,
    table: tuple[Voice, ...],
    chair: Voice | None,
) -> Turn:
    return Turn(
        id=request.id,
        conversation_id=conversation.id,
        round_number=turns.next_round(tx, conversation.id),
        purpose=Purpose.ASK,
        mode=request.mode,
        table=table,
        visibility=request.visibility,
        state=first_state(tx, conversation),
        created_by=actor.user_id,
        created_at=tx.now,
        chair=chair,
        brief=request.brief.strip(),
        is_blind=request.is_blind,
        scope=request.scope or conversation.scope,
    )


def _question(
    tx: Tx, actor: Actor, request: NewTurn, turn: Turn, attached: tuple[Attachment, ...]
) -> Message:
    return Message(
        id=tx.new_id(),
        conversation_id=turn.conversation_id,
        round_number=turn.round_number,
        turn_id=turn.id,
        speaker="user",
        role=Role.USER,
        content=request.text,
        status=Status.COMPLETE,
        created_by=actor.user_id,
        created_at=tx.now,
        reply_to_id=request.reply_to_id,
        attachments=attached,
        quotes=request.quotes,
    )
