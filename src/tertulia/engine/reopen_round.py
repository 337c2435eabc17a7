"""Reopening a round: the turns that retry a reply, continue one, or add a synthesis.

A complete reply belongs to everything that was said after it. Its new version is therefore written in the
last round itself, and for an earlier round in a branch that starts there.
"""

from __future__ import annotations

from dataclasses import replace

from tertulia.core.conversations import Conversation
from tertulia.core.errors import Conflict, Invalid, NothingToContinue
from tertulia.core.events import conversation_topic
from tertulia.core.messages import Message, Role, Round, Status
from tertulia.core.turns import Purpose, Turn, TurnState
from tertulia.core.users import Actor
from tertulia.core.voices import Voice
from tertulia.engine.open_turn import (
    OpenedTurn,
    OpenResult,
    check_running_limit,
    find_duplicate,
    first_state,
    writable,
)
from tertulia.engine.requests import NewSynthesis, RetryRequest
from tertulia.engine.voice_resolution import VoiceFor
from tertulia.store import branches, conversations, messages, turns
from tertulia.store.database import Tx


def open_retry(
    tx: Tx,
    actor: Actor,
    message_id: str,
    request: RetryRequest,
    purpose: Purpose,
    voice_for: VoiceFor,
    fingerprint: str,
) -> OpenResult:
    """Opens a turn that retries or continues a reply, in the round of that reply."""
    if duplicate := find_duplicate(tx, actor, request.id, fingerprint):
        return duplicate
    conversation, here, reply = _prepare_retry(tx, actor, message_id, request)
    if purpose is Purpose.CONTINUE and not _can_continue(reply):
        raise NothingToContinue("This reply ended by itself; there is nothing to continue.")
    check_running_limit(tx, actor)
    opening_turn = turns.get(tx, actor, here.question.turn_id)
    voice = voice_for(reply, _voices_in_other_seats(tx, conversation, here, opening_turn, reply))
    turn = _turn(tx, actor, conversation, opening_turn, request.id, purpose, voice)
    brief = turns.get(tx, actor, reply.turn_id).brief
    turn = replace(turn, message_id=reply.id, style=request.style, brief=brief)
    return _open(tx, turn, fingerprint, here.question)


def open_synthesis(
    tx: Tx,
    actor: Actor,
    conversation_id: str,
    number: int,
    request: NewSynthesis,
    chair: Voice | None,
    fingerprint: str,
) -> OpenResult:
    """Opens a turn that adds a synthesis to a round that was answered before."""
    if duplicate := find_duplicate(tx, actor, request.id, fingerprint):
        return duplicate
    conversation = _target_for_synthesis(tx, actor, conversation_id, number)
    tx.lock(conversation_topic(conversation.id))
    here = messages.round(tx, conversation.id, number)
    opening_turn = turns.get(tx, actor, here.question.turn_id)
    if not any(reply.content for reply in here.replies):
        raise Conflict("Nobody has answered in this round yet, so there is nothing to summarise.")
    if opening_turn.is_blind:
        raise Conflict("The names of this round are hidden. Vote first; then it can be summarised.")
    check_running_limit(tx, actor)
    voice = chair or opening_turn.chair or _first_that_answered(opening_turn, here)
    turn = _turn(tx, actor, conversation, opening_turn, request.id, Purpose.SYNTHESIS, voice)
    turn = replace(turn, chair=voice, brief=request.brief.strip())
    return _open(tx, turn, fingerprint, here.question)


def _first_that_answered(opening_turn: Turn, here: Round) -> Voice:
    """The first voice of the table whose reply has text."""
    voices = {reply.voice for reply in here.replies if reply.content}
    return next((voice for voice in opening_turn.table if voice in voices), opening_turn.table[0])


def _turn(
    tx: Tx,
    actor: Actor,
    conversation: Conversation,
    opening_turn: Turn,
    id: str,
    purpose: Purpose,
    voice: Voice,
) -> Turn:
    """A further turn in a round, for one voice, with the settings of the turn that opened the round."""
    return Turn(
        id=id,
        conversation_id=conversation.id,
        round_number=opening_turn.round_number,
        purpose=purpose,
        mode=opening_turn.mode,
        table=(voice,),
        visibility=opening_turn.visibility,
        state=TurnState.RUNNING if purpose.starts_at_once else first_state(tx, conversation),
        created_by=actor.user_id,
        created_at=tx.now,
        is_blind=opening_turn.is_blind,
        scope=opening_turn.scope,
    )


def _open(tx: Tx, turn: Turn, fingerprint: str, question: Message) -> OpenResult:
    turns.open(tx, turn, fingerprint)
    conversation = conversations.changed(tx, turn.conversation_id)
    return OpenResult(OpenedTurn(turn, conversation, question), is_new=True)


# ── the conversation that the turn belongs to


def _prepare_retry(
    tx: Tx, actor: Actor, message_id: str, request: RetryRequest
) -> tuple[Conversation, Round, Message]:
    """The conversation for the new version, the round as that conversation shows it, and the version that is
    replaced."""
    message = messages.get(tx, actor, message_id)
    if message.voice is None:
        raise Invalid("Only a reply can be tried again; edit the question instead.")
    shown_in_id = request.conversation_id or message.conversation_id
    conversation = _target_for_retry(tx, actor, message, shown_in_id, request.branch_id)
    tx.lock(conversation_topic(conversation.id))  # Two retries at once see each other.
    here = messages.round(tx, conversation.id, message.round_number)
    reply = _newest_version(here, message)
    _must_be_idle(tx, conversation, reply)
    _must_have_branch(tx, actor, here.question)
    return conversation, here, reply


def _target_for_retry(
    tx: Tx, actor: Actor, message: Message, shown_in_id: str, branch_id: str | None
) -> Conversation:
    """The conversation for the new version of a reply.

    A reply that broke off is replaced in its own conversation. A complete one is replaced where it is shown
    if that is the last round, and otherwise in a new branch.
    """
    here = writable(tx, actor, shown_in_id)
    if not messages.is_shown(tx, here.id, message):
        raise Conflict("This reply is not part of that conversation.")
    newest = _newest_version(messages.round(tx, here.id, message.round_number), message)
    if newest.status is not Status.COMPLETE:
        return writable(tx, actor, newest.conversation_id)
    if newest.round_number == here.round_count and not _has_version_in_branch(tx, here, newest):
        return here
    return branches.add(tx, actor, here.id, at_round=newest.round_number, id=branch_id)


def _target_for_synthesis(tx: Tx, actor: Actor, conversation_id: str, number: int) -> Conversation:
    """If a branch that inherits this round already has a synthesis, write the next one in a new branch."""
    here = writable(tx, actor, conversation_id)
    question = messages.round(tx, here.id, number).question
    synthesis = replace(question, id="", conversation_id=here.id, role=Role.SYNTHESIS)
    for heir in messages.inheriting_branches(tx, synthesis):
        written = messages.of_round(tx, heir.id, number)
        unfinished = turns.waiting_or_running(tx, heir.id)
        if any(message.role is Role.SYNTHESIS for message in written) or any(
            turn.round_number == number for turn in unfinished
        ):
            return branches.add(tx, actor, here.id, at_round=number)
    return here


def _newest_version(here: Round, reply: Message) -> Message:
    """The newest version of a reply, which a further version replaces."""
    by_replaced_id = {message.replaces_id: message for message in here.messages if message.replaces_id}
    while reply.id in by_replaced_id:
        reply = by_replaced_id[reply.id]
    return reply


def _has_version_in_branch(tx: Tx, here: Conversation, reply: Message) -> bool:
    """Whether a branch that would inherit the new version has one of its own, or is writing one."""
    new_version = replace(reply, id="", conversation_id=here.id)
    for heir in messages.inheriting_branches(tx, new_version):
        written = messages.of_round(tx, heir.id, reply.round_number)
        unfinished = turns.waiting_or_running(tx, heir.id)
        if any(message.replaces_id == reply.id for message in written) or any(
            turn.message_id == reply.id for turn in unfinished
        ):
            return True
    return False


def _must_be_idle(tx: Tx, conversation: Conversation, reply: Message) -> None:
    """Refuses a second retry of the same reply, since both versions would be shown in the round."""
    for turn in turns.waiting_or_running(tx, conversation.id):
        if turn.message_id == reply.id:
            raise Conflict("This reply is being tried again already. Wait for it, or stop it.")


def _must_have_branch(tx: Tx, actor: Actor, question: Message) -> None:
    """Refuses to repeat the summary of a branch that was deleted."""
    if question.brings_id is not None and conversations.find(tx, actor, question.brings_id) is None:
        raise Conflict("The branch that was summarised here is deleted, so it cannot be summarised again.")


def _can_continue(reply: Message) -> bool:
    return reply.status in (Status.STOPPED, Status.INTERRUPTED) and bool(reply.content)


def _voices_in_other_seats(
    tx: Tx, conversation: Conversation, here: Round, opening_turn: Turn, reply: Message
) -> tuple[Voice, ...]:
    """The voices of the round that have answered, or still may, in other seats than the reply's."""
    assert reply.voice is not None
    running = [
        turn for turn in turns.waiting_or_running(tx, conversation.id) if turn.round_number == here.number
    ]
    if not opening_turn.state.is_over:
        running.append(opening_turn)
    answered = [other.voice for other in here.replies if other.voice]
    voices = (*answered, *(voice for turn in running for voice in turn.table))
    return tuple(voice for voice in voices if voice.seat != reply.voice.seat)
