"""Opening a turn: round, question, turn and their events in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count

from tertulia.core.attachments import Attachment
from tertulia.core.blind import anonymised_turn, assign_letters
from tertulia.core.conversations import Conversation
from tertulia.core.errors import Conflict, Invalid, NotFound, NothingToContinue, TooManyTurns, TurnReused
from tertulia.core.events import conversation_topic
from tertulia.core.messages import Message, Role, Round, Status
from tertulia.core.titles import title_of
from tertulia.core.turns import RUNNING_PER_USER, Purpose, Turn, TurnState
from tertulia.core.users import Actor
from tertulia.core.voices import SeatRequest, Voice, assign_seats_once
from tertulia.engine import references
from tertulia.engine.requests import NewSynthesis, NewTurn, RetryRequest
from tertulia.engine.voice_resolution import first_project
from tertulia.store import access, attachments, branches, conversations, messages, sessions, turns
from tertulia.store.database import Tx

VoiceFor = Callable[[Message, Sequence[Voice]], Voice]
"""Who answers, given the reply that is tried again and the voices in the other seats of its round."""


@dataclass(frozen=True, slots=True)
class OpenedTurn:
    turn: Turn
    conversation: Conversation
    message: Message
    """The question."""

    def as_told(self) -> OpenedTurn:
        return replace(self, turn=anonymised_turn(self.turn))


@dataclass(frozen=True, slots=True)
class OpenResult:
    opened: OpenedTurn
    is_new: bool
    """False: this id was sent before and nothing was written again."""


def open_round(
    tx: Tx,
    actor: Actor,
    request: NewTurn,
    table: tuple[Voice, ...],
    fingerprint: str,
    chair: Voice | None = None,
) -> OpenResult:
    """A person says something: a new round."""
    if before := find_duplicate(tx, actor, request.id, fingerprint):
        return before
    check_running_limit(tx, actor)
    conversation = _conversation(tx, actor, request, table)
    tx.lock(conversation_topic(conversation.id))  # of two turns at once, one sees that it must wait
    if request.aside:
        table = assign_seats_once(table, conversation.table, request.lanes, branches.seats(tx, conversation))
    references.check(tx, actor, conversation.id, request.reply_to_id, request.quotes)
    brought = _brought(tx, actor, request, conversation)
    seated = assign_letters(table, tx.new_id()) if request.is_blind else table
    turn = _turn(tx, actor, request, conversation, seated, chair)
    message = _question(tx, actor, request, turn, brought)
    turns.open(tx, turn, fingerprint)
    messages.add(tx, message)
    attachments.send(tx, brought, message.id)
    _name(tx, conversation)
    if not request.aside:
        conversations.set_table(
            tx, conversation.id, request.mode, table, request.visibility, chair, turn.scope
        )
    conversations.hold_seats(tx, conversation, (*table, chair) if chair else table)
    if actor.session_id:
        sessions.set_location(tx, actor.session_id, conversation.project_id, conversation.id)
    return OpenResult(OpenedTurn(turn, conversations.changed(tx, conversation.id), message), is_new=True)


def open_again(
    tx: Tx,
    actor: Actor,
    message_id: str,
    request: RetryRequest,
    purpose: Purpose,
    voice_for: VoiceFor,
    fingerprint: str,
) -> OpenResult:
    """One voice is asked again: a turn in the round it already belongs to."""
    if before := find_duplicate(tx, actor, request.id, fingerprint):
        return before
    conversation, here, reply = _prepare_retry(tx, actor, message_id, request)
    if purpose is Purpose.CONTINUE and not can_continue(reply):
        raise NothingToContinue("This reply ended by itself; there is nothing to continue.")
    check_running_limit(tx, actor)
    asked = turns.get(tx, actor, here.question.turn_id)
    voice = voice_for(reply, _others(tx, conversation, here, asked, reply))
    turn = _turn_in(tx, actor, conversation, asked, request.id, purpose, voice)
    wish = turns.get(tx, actor, reply.turn_id).brief
    turn = replace(turn, message_id=reply.id, style=request.style, brief=wish)
    return _opened(tx, turn, fingerprint, here.question)


def open_synthesis(
    tx: Tx,
    actor: Actor,
    conversation_id: str,
    number: int,
    request: NewSynthesis,
    chair: Voice | None,
    fingerprint: str,
) -> OpenResult:
    """Someone takes the chair of a round that was answered before."""
    if before := find_duplicate(tx, actor, request.id, fingerprint):
        return before
    conversation = _target_for_synthesis(tx, actor, conversation_id, number)
    tx.lock(conversation_topic(conversation.id))
    here = messages.round(tx, conversation.id, number)
    asked = turns.get(tx, actor, here.question.turn_id)
    if not any(reply.content for reply in here.replies):
        raise Conflict("Nobody has answered in this round yet, so there is nothing to summarise.")
    if asked.is_blind:
        raise Conflict("The names of this round are hidden. Vote first; then it can be summarised.")
    check_running_limit(tx, actor)
    heard = {reply.voice for reply in here.replies if reply.content}
    seated = chair or asked.chair or next((one for one in asked.table if one in heard), asked.table[0])
    turn = _turn_in(tx, actor, conversation, asked, request.id, Purpose.SYNTHESIS, seated)
    turn = replace(turn, chair=seated, brief=request.brief.strip())
    return _opened(tx, turn, fingerprint, here.question)


def _turn_in(
    tx: Tx, actor: Actor, conversation: Conversation, asked: Turn, id: str, purpose: Purpose, voice: Voice
) -> Turn:
    """One more turn in a round, for one voice, under the rules of the turn that asked its question."""
    return Turn(
        id=id,
        conversation_id=conversation.id,
        round_number=asked.round_number,
        purpose=purpose,
        mode=asked.mode,
        table=(voice,),
        visibility=asked.visibility,
        state=TurnState.RUNNING if purpose.starts_at_once else first_state(tx, conversation),
        created_by=actor.user_id,
        created_at=tx.now,
        is_blind=asked.is_blind,
        scope=asked.scope,
    )


def _opened(tx: Tx, turn: Turn, fingerprint: str, question: Message) -> OpenResult:
    turns.open(tx, turn, fingerprint)
    return OpenResult(
        OpenedTurn(turn, conversations.changed(tx, turn.conversation_id), question), is_new=True
    )


# ── where a round goes on


def _prepare_retry(
    tx: Tx, actor: Actor, message_id: str, request: RetryRequest
) -> tuple[Conversation, Round, Message]:
    """Where a reply is asked for again, the round as it is read there, and the version to be replaced."""
    meant = messages.get(tx, actor, message_id)
    if meant.voice is None:
        raise Invalid("Only a reply can be tried again; edit the question instead.")
    seen_in = request.conversation_id or meant.conversation_id
    conversation = _tried_in(tx, actor, meant, seen_in, request.branch_id)
    tx.lock(conversation_topic(conversation.id))  # two tries at once see each other
    here = messages.round(tx, conversation.id, meant.round_number)
    reply = _newest(here, meant)
    _must_be_idle(tx, conversation, reply)
    _must_have_branch(tx, actor, here.question)
    return conversation, here, reply


def _target_for_synthesis(tx: Tx, actor: Actor, conversation_id: str, number: int) -> Conversation:
    """Where a branch that shares the round has closed it already, the next synthesis is a branch too."""
    here = writable(tx, actor, conversation_id)
    question = messages.round(tx, here.id, number).question
    new = replace(question, id="", conversation_id=here.id, role=Role.SYNTHESIS)
    for heir in messages.inheriting_branches(tx, new):
        said = messages.of_round(tx, heir.id, number)
        awaited = turns.waiting_or_running(tx, heir.id)
        if any(m.role is Role.SYNTHESIS for m in said) or any(t.round_number == number for t in awaited):
            return branches.add(tx, actor, here.id, at_round=number)
    return here


def _newest(here: Round, reply: Message) -> Message:
    """The latest version of a reply: what a new version replaces."""
    by_replaced = {message.replaces_id: message for message in here.messages if message.replaces_id}
    while reply.id in by_replaced:
        reply = by_replaced[reply.id]
    return reply


def _tried_in(tx: Tx, actor: Actor, meant: Message, seen_in: str, branch_id: str | None) -> Conversation:
    """What broke off is mended where it stands. What is complete is part of all that came after it: its new
    version stands in the last round itself, and for an earlier one in a branch that goes on from there."""
    here = writable(tx, actor, seen_in)
    if not messages.is_shown(tx, here.id, meant):
        raise Conflict("This reply is not part of that conversation.")
    newest = _newest(messages.round(tx, here.id, meant.round_number), meant)
    if newest.status is not Status.COMPLETE:
        return writable(tx, actor, newest.conversation_id)
    if newest.round_number == here.round_count and not _has_version_below(tx, here, newest):
        return here
    return branches.add(tx, actor, here.id, at_round=newest.round_number, id=branch_id)


def _has_version_below(tx: Tx, here: Conversation, reply: Message) -> bool:
    """Whether a branch that would read what comes now has a version of its own; two must not stand there."""
    new = replace(reply, id="", conversation_id=here.id)
    for heir in messages.inheriting_branches(tx, new):
        said = messages.of_round(tx, heir.id, reply.round_number)
        awaited = turns.waiting_or_running(tx, heir.id)
        if any(one.replaces_id == reply.id for one in said) or any(t.message_id == reply.id for t in awaited):
            return True
    return False


def _must_be_idle(tx: Tx, conversation: Conversation, reply: Message) -> None:
    """Two new versions at once would both replace the same one, and both would stand in the round."""
    for turn in turns.waiting_or_running(tx, conversation.id):
        if turn.message_id == reply.id:
            raise Conflict("This reply is being tried again already. Wait for it, or stop it.")


def _must_have_branch(tx: Tx, actor: Actor, question: Message) -> None:
    """Whoever tells what came of a branch has to have read it."""
    if question.brings_id is not None and conversations.find(tx, actor, question.brings_id) is None:
        raise Conflict("The branch that was summarised here is deleted, so it cannot be summarised again.")


def can_continue(reply: Message) -> bool:
    return reply.status in (Status.STOPPED, Status.INTERRUPTED) and bool(reply.content)


def find_duplicate(tx: Tx, actor: Actor, turn_id: str, fingerprint: str) -> OpenResult | None:
    found = turns.find_opened(tx, actor.user_id, turn_id)
    if found is None:
        return None
    turn, first = found
    if first != fingerprint:
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


def _name(tx: Tx, conversation: Conversation) -> None:
    """A conversation is called by its first question from the moment it is asked, until a round is over."""
    if not conversation.title and (asked := messages.first_asked(tx, conversation.id)):
        conversations.set_title_if_unnamed(tx, conversation.id, title_of(asked.content), provisional=True)


def _conversation(tx: Tx, actor: Actor, request: NewTurn, table: tuple[Voice, ...]) -> Conversation:
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
            request.project_id or first_project(tx, actor),
            id=request.conversation_id,
            mode=request.mode,
            table=table,
            visibility=request.visibility,
        )
    except Conflict:
        # Made just now by another of their devices; or someone else's, which they are told is not there.
        return writable(tx, actor, request.conversation_id or "")


def writable(tx: Tx, actor: Actor, conversation_id: str) -> Conversation:
    conversation = conversations.get(tx, actor, conversation_id)
    access.to_project(tx, actor, conversation.project_id).must_write()
    return conversation


def _brought(tx: Tx, actor: Actor, request: NewTurn, conversation: Conversation) -> tuple[Attachment, ...]:
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


def first_state(tx: Tx, conversation: Conversation) -> TurnState:
    """A question that finds the conversation free starts at once; the others wait in line.

    A branch is not free before all is said that it goes on from. Its place is held by now: on another server
    somebody may be looking for the same.
    """
    if turns.waiting_or_running(tx, conversation.id):
        return TurnState.QUEUED
    is_inheriting = conversation.parent_id is not None and turns.is_inheriting(tx, conversation.id)
    return TurnState.QUEUED if is_inheriting else TurnState.RUNNING


def _question(tx: Tx, actor: Actor, request: NewTurn, turn: Turn, brought: tuple[Attachment, ...]) -> Message:
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
        attachments=brought,
        quotes=request.quotes,
    )


def _others(
    tx: Tx, conversation: Conversation, here: Round, asked: Turn, reply: Message
) -> tuple[Voice, ...]:
    """The voices in the other seats of a round: those that have answered and those that still may."""
    assert reply.voice is not None
    running = [
        turn for turn in turns.waiting_or_running(tx, conversation.id) if turn.round_number == here.number
    ]
    if not asked.state.is_over:
        running.append(asked)
    answered = [one.voice for one in here.replies if one.voice]
    voices = (*answered, *(voice for turn in running for voice in turn.table))
    return tuple(voice for voice in voices if voice.seat != reply.voice.seat)


def with_model(voice: Voice, model: SeatRequest, others: Sequence[Voice]) -> Voice:
    """The same seat, another model; where that model sits already, a voice of its own beside it.

    A persona stays who it is and speaks through the other model.
    """
    if voice.persona_id is not None:
        return replace(voice, model=model.model, effort=model.effort)
    taken = {other.id for other in others}
    nth = next(n for n in count() if f"{model.model}:{n}" not in taken)
    name = model.name if nth == 0 else f"{model.name} {nth + 1}"
    return replace(voice, id=f"{model.model}:{nth}", model=model.model, name=name, effort=model.effort)
