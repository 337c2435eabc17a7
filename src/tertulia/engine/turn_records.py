"""Turn records: everything in the store that the prompts of a turn are built from, read in one transaction.

context_retrieval.py makes the turn's inputs of them (turn_inputs.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tertulia.context.attachments import DENSEST
from tertulia.context.budget import budget_tokens, output_limit, widest_window
from tertulia.core.conversations import Conversation, Visibility
from tertulia.core.errors import NotFound
from tertulia.core.files import Extracted, FileListing, ProjectFile
from tertulia.core.messages import Message, Role, Round
from tertulia.core.models import Model
from tertulia.core.passages import SearchScope
from tertulia.core.personas import PersonaProfile
from tertulia.core.projects import Project
from tertulia.core.receipts import LeftOutReason
from tertulia.core.turns import Purpose, Turn
from tertulia.core.users import Actor
from tertulia.core.voices import Voice
from tertulia.council.plan import TurnPlan
from tertulia.engine.certain_rounds import certain_rounds
from tertulia.engine.files import readable_within, stored_texts
from tertulia.store import (
    blind,
    branches,
    chunks,
    conversations,
    file_listing,
    messages,
    personas,
    projects,
    receipts,
    turns,
    votes,
)
from tertulia.store.branches import TreeMembership
from tertulia.store.database import Tx
from tertulia.store.transactions import GONE

BYTES_PER_CHARACTER = 4
BRANCH_ROUNDS_LIMIT = 200
"""The most rounds of a branch that can be brought back, the newest first; the budget may allow fewer."""


@dataclass(frozen=True, slots=True)
class ConversationRecords:
    title: str
    """The title that the models are told."""
    rounds: tuple[Round, ...]
    """The rounds before the question, oldest first, as many as the widest window holds."""
    question: Message
    referenced_messages: tuple[Message, ...] = ()
    """The messages that the question and the rounds reply to and quote."""
    branch_rounds: tuple[Round, ...] = ()
    """The rounds of the branch that the question brings back."""
    best_reply_ids: frozenset[str] = frozenset()
    """Ids of the replies voted best, if the visibility depends on them."""


@dataclass(frozen=True, slots=True)
class FileRecords:
    listing: FileListing = FileListing()
    always_included: tuple[ProjectFile, ...] = ()
    texts: tuple[Extracted | None, ...] = ()
    """The text of each always-included file; None if it has not been extracted yet."""


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """The limits of the search for the question."""

    certain_rounds: tuple[Round, ...]
    """The rounds that every prompt shows anyway."""
    tree: TreeMembership


@dataclass(frozen=True, slots=True)
class TurnRecords:
    turn: Turn
    project: Project
    models: Mapping[str, Model]
    """The models of the voices, by key; a model that no longer exists is missing."""
    personas: Mapping[str, PersonaProfile]
    """The profiles of the personas at the table, by the id of the voice."""
    plan: TurnPlan
    conversation: ConversationRecords
    files: FileRecords
    search: SearchPlan | None
    """None if there is nothing to find that the prompts do not show anyway."""
    excluded_ids: frozenset[str]
    """Ids of what a person removed before asking again."""

    @property
    def scope(self) -> SearchScope:
        """The sources that are searched for the question."""
        return self.turn.scope or self.project.settings.retrieval_config.scope

    @property
    def text_limit_bytes(self) -> int:
        return text_limit_bytes(self.project, self.models.values())


# ── reading


def read_turn(
    tx: Tx,
    actor: Actor,
    turn: Turn,
    find_model: Callable[[str], Model | None],
    excluded_ids: frozenset[str] = frozenset(),
) -> TurnRecords:
    """The records of a turn that was opened. A voice whose model is not found fails when it is asked."""
    conversation = conversations.get(tx, actor, turn.conversation_id)
    project = projects.get(tx, actor, conversation.project_id)
    opening_turn = _opening_turn(tx, actor, turn)
    voices = (*_voices(turn), *(_voices(opening_turn) if opening_turn else ()))
    models = {voice.model: model for voice in voices if (model := find_model(voice.model))}
    *rounds, here = _rounds_up_to(tx, turn, models)
    replies = (message for message in here.messages if message.role is not Role.USER)
    plan = TurnPlan(
        turn,
        opening_turn,
        here,
        target=next((reply for reply in replies if reply.id == turn.message_id), None),
        has_company=turns.has_company(tx, turn) if turn.purpose.starts_at_once else False,
    )
    title = title_for_prompt(tx, conversation)
    excluded_ids |= _excluded_before(tx, actor, turn)
    return _read(tx, actor, project, title, plan, here.question, models, rounds, excluded_ids)


def read_question(
    tx: Tx,
    actor: Actor,
    project: Project,
    title: str,
    turn: Turn,
    question: Message,
    models: Mapping[str, Model],
) -> TurnRecords:
    """The records of a question that need not be sent yet."""
    rounds = messages.history(
        tx, turn.conversation_id, before_round=turn.round_number, rounds=_widest_window(models)
    )
    return _read(tx, actor, project, title, TurnPlan(turn), question, models, rounds)


def title_for_prompt(tx: Tx, conversation: Conversation) -> str:
    """The conversation's title; empty while it only repeats the first question."""
    return "" if conversations.needs_name(tx, conversation.id) else conversation.title


def _read(
    tx: Tx,
    actor: Actor,
    project: Project,
    title: str,
    plan: TurnPlan,
    question: Message,
    models: Mapping[str, Model],
    rounds: Sequence[Round],
    excluded_ids: frozenset[str] = frozenset(),
) -> TurnRecords:
    turn = plan.turn
    conversation = _conversation_records(tx, actor, title, turn, question, rounds)
    files = _file_records(tx, project, models.values())
    profiles = _persona_profiles(tx, plan)
    return TurnRecords(
        turn=turn,
        project=project,
        models=models,
        personas=profiles,
        plan=plan,
        conversation=conversation,
        files=files,
        search=_search_plan(tx, turn, project, models, profiles, conversation, files),
        excluded_ids=excluded_ids,
    )


def _conversation_records(
    tx: Tx, actor: Actor, title: str, turn: Turn, question: Message, rounds: Sequence[Round]
) -> ConversationRecords:
    branch_rounds = _branch_rounds(tx, actor, question)
    questions = (*(round_.question for round_ in (*rounds, *branch_rounds)), question)
    return ConversationRecords(
        title,
        tuple(rounds),
        question,
        referenced_messages(tx, actor, questions),
        branch_rounds,
        best_reply_ids(tx, turn, rounds),
    )


def _file_records(tx: Tx, project: Project, models: Iterable[Model]) -> FileRecords:
    listing = file_listing.of_project(tx, project.id)
    always = file_listing.always_included(tx, project.id) if listing.count else ()
    by_size = sorted(always, key=lambda file: file.size_bytes)
    readable = readable_within(text_limit_bytes(project, models), by_size)
    return FileRecords(listing, always, stored_texts(tx, always, readable))


def _search_plan(
    tx: Tx,
    turn: Turn,
    project: Project,
    models: Mapping[str, Model],
    profiles: Mapping[str, PersonaProfile],
    conversation: ConversationRecords,
    files: FileRecords,
) -> SearchPlan | None:
    config = project.settings.retrieval_config
    if not (config.enabled and config.max_results and models):
        return None
    shown = certain_rounds(
        project,
        tuple(models.values()),
        tuple(profiles.values()),
        files.always_included,
        conversation.rounds,
        conversation.question,
    )
    first = min((round_.number for round_ in shown), default=turn.round_number)
    if not chunks.has_outside(tx, project.id, turn.conversation_id, first, turn.scope or config.scope):
        return None
    return SearchPlan(shown, branches.tree_membership(tx, turn.conversation_id))


def _persona_profiles(tx: Tx, plan: TurnPlan) -> dict[str, PersonaProfile]:
    opened = personas.characters(tx, _voices(plan.opening_turn)) if plan.opening_turn else {}
    return {**opened, **personas.characters(tx, _voices(plan.turn))}


def _opening_turn(tx: Tx, actor: Actor, turn: Turn) -> Turn | None:
    """The turn that opened the round, if this is a later one; its mode may ask others of its table too."""
    if turn.purpose is Purpose.ASK:
        return None
    question = messages.round(tx, turn.conversation_id, turn.round_number).question
    return turns.get(tx, actor, question.turn_id)


def _excluded_before(tx: Tx, actor: Actor, turn: Turn) -> frozenset[str]:
    """Ids of what the beginning of a reply excluded; a continued reply excludes the same."""
    if turn.purpose is not Purpose.CONTINUE or turn.message_id is None:
        return frozenset()
    try:
        left_out = receipts.get(tx, actor, turn.message_id).left_out
    except NotFound:  # A crash came before the receipt.
        return frozenset()
    removed = LeftOutReason.REMOVED_BY_USER
    return frozenset(item.source_id for item in left_out if item.source_id and item.reason is removed)


def _rounds_up_to(tx: Tx, turn: Turn, models: Mapping[str, Model]) -> tuple[Round, ...]:
    """The rounds before the turn's own, and its own last."""
    number = turn.round_number
    rounds = messages.history(
        tx, turn.conversation_id, before_round=number + 1, rounds=_widest_window(models) + 1
    )
    if not rounds or rounds[-1].number != number:
        raise NotFound(GONE)
    return rounds


def _widest_window(models: Mapping[str, Model]) -> int:
    return max(map(widest_window, models.values()), default=0)


def best_reply_ids(tx: Tx, turn: Turn, rounds: Sequence[Round]) -> frozenset[str]:
    """The replies voted best, if the turn's voices see no others."""
    return votes.chosen(tx, rounds) if turn.visibility is Visibility.CHOSEN else frozenset()


def referenced_messages(tx: Tx, actor: Actor, questions: Iterable[Message]) -> tuple[Message, ...]:
    """The messages that these questions reply to and quote, if they still exist."""
    return messages.find_many(tx, actor, {id for question in questions for id in question.refers_to})


def _branch_rounds(tx: Tx, actor: Actor, question: Message) -> tuple[Round, ...]:
    """The rounds of the branch that the question brings back; none if the branch was deleted.

    The names stay hidden in a round that is blind by now.
    """
    if question.brings_id is None:
        return ()
    branch = conversations.find(tx, actor, question.brings_id)
    return blind.as_told(tx, messages.own(tx, branch.id, limit=BRANCH_ROUNDS_LIMIT)) if branch else ()


def _voices(turn: Turn) -> tuple[Voice, ...]:
    return (*turn.table, turn.chair) if turn.chair else turn.table


def text_limit_bytes(project: Project, models: Iterable[Model]) -> int:
    """The most text that the model with the largest budget could be shown; a longer one is not read."""
    limit = project.settings.max_context_tokens
    budgets = (budget_tokens(model, output_limit(model), limit) for model in models)
    return max(budgets, default=0) * DENSEST * BYTES_PER_CHARACTER
