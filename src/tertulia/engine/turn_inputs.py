"""Gathering: one read of all that the voices of a turn may be shown, and of what there is to look up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tertulia.context.attachments import DENSEST
from tertulia.context.budget import (
    budget_tokens,
    output_limit,
    picture_tokens,
    tier_for,
    widest_window,
    window_start,
)
from tertulia.context.prompt_inputs import AttachedText, IncludedFile, PromptInputs
from tertulia.context.references import QUOTE_LIMIT
from tertulia.core.attachments import Attachment
from tertulia.core.chunks import Hit
from tertulia.core.conversations import Conversation, Visibility
from tertulia.core.errors import NotFound
from tertulia.core.files import Extracted, FileListing, ProjectFile
from tertulia.core.messages import Message, Role, Round
from tertulia.core.models import WORKING_ROUNDS, Model
from tertulia.core.passages import SearchScope
from tertulia.core.personas import PersonaProfile
from tertulia.core.projects import Project
from tertulia.core.receipts import LeftOutReason
from tertulia.core.step_instructions import ANSWER, StepInstructions
from tertulia.core.turns import Purpose, Turn
from tertulia.core.users import Actor
from tertulia.core.voices import Voice
from tertulia.engine.files import readable_within, texts_kept
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

SYSTEM_CHARACTERS = 3_000
"""What every system prompt takes at most, besides what people wrote for it."""
BYTES_OF_A_CHARACTER = 4
MARK_CHARACTERS = 200
"""What stands around the words of a message that is replied to or quoted, at most: a name, and what it is."""
BROUGHT_ROUNDS = 200
"""The last rounds of a branch that can be brought back; the budget takes fewer of them."""


@dataclass(frozen=True, slots=True)
class ProjectContext:
    """What the project holds, before anything in it is searched."""

    always: tuple[ProjectFile, ...] = ()
    """The files that are shown whole."""
    kept: tuple[Extracted | None, ...] = ()
    """The text of each of them, where it was read before."""
    shelf: FileListing = FileListing()
    is_worth_searching: bool = False
    """Whether something could be found that is not shown anyway."""
    kin: TreeMembership = TreeMembership()
    """Looked for only where something is searched."""


@dataclass(frozen=True, slots=True)
class SearchResults:
    """What the library had for the question."""

    always: tuple[IncludedFile, ...] = ()
    shelf: FileListing = FileListing()
    hits: tuple[Hit, ...] = ()
    recalled: tuple[Round, ...] = ()
    chosen: frozenset[str] = frozenset()
    """Ids of the replies marked best in the recalled rounds."""
    cited: tuple[Message, ...] = ()
    """What the questions of the recalled rounds reply to and quote."""
    has_failed: bool = False
    """Something went wrong while searching, and there are no hits for that reason."""


@dataclass(frozen=True, slots=True)
class TurnInputs:
    project: Project
    title: str
    """The conversation's."""
    rounds: tuple[Round, ...]
    question: Message
    turn: Turn
    models: Mapping[str, Model]
    cited: tuple[Message, ...] = ()
    """What the question and those of the rounds reply to and quote."""
    brought: tuple[Round, ...] = ()
    """What was said in the branch that the question brings back."""
    replaced: Message | None = None
    """The reply that this turn retries or continues."""
    here: Round | None = None
    """The round as it is so far."""
    asked: Turn | None = None
    """The turn that opened the round, when this is a later one."""
    has_company: bool = False
    """Whether other turns are answering the round at the same time."""
    attached: tuple[AttachedText, ...] = ()
    """What was read of what the question and the rounds brought along."""
    at_hand: ProjectContext = ProjectContext()
    looked_up: SearchResults = SearchResults()
    without: frozenset[str] = frozenset()
    """What a person took out before asking again."""
    characters: Mapping[str, PersonaProfile] = field(default_factory=dict)
    """By the id of the voice, what each persona at the table is."""
    chosen: frozenset[str] = frozenset()
    """Ids of the replies marked best; looked for only where that decides what is seen."""

    @property
    def project_id(self) -> str:
        return self.project.id

    @property
    def scope(self) -> SearchScope:
        """What is searched for the question."""
        return self.turn.scope or self.project.settings.retrieval_config.scope

    @property
    def began(self) -> Turn:
        """The turn whose mode this one follows."""
        return self.asked or self.turn

    @property
    def shown_to_all(self) -> tuple[Round, ...]:
        """The rounds that every voice is sure to be shown; what only may be shown is searched as well."""
        strategy = self.project.settings.context_strategy
        working = min(WORKING_ROUNDS[tier_for(model, strategy)] for model in self.models.values())
        first = window_start(self.turn.round_number - 1, working) + 1
        window = [round_ for round_ in self.rounds if round_.number >= first]
        return _sure_to_fit(window, self._least_room)

    @property
    def _least_room(self) -> int:
        """For the rounds, with the model that has the least, in characters: no token is shorter than one."""
        most = self.project.settings.max_context_tokens
        least = min(budget_tokens(model, output_limit(model), most) for model in self.models.values())
        always = sum(file.size_bytes for file in self.at_hand.always)
        told = max((len(one.instructions) for one in self.characters.values()), default=0)
        said = len(self.project.instructions) + told + always + _length(self.question)
        return least - SYSTEM_CHARACTERS - said

    @property
    def most_bytes(self) -> int:
        """Of texts that the model with the most room could be shown; more than that is not even read."""
        most = self.project.settings.max_context_tokens
        budgets = (budget_tokens(model, output_limit(model), most) for model in self.models.values())
        return max(budgets, default=0) * DENSEST * BYTES_OF_A_CHARACTER

    def persona_instructions(self, voice: Voice) -> str:
        character = self.characters.get(voice.id)
        return character.instructions if character else ""

    def material(
        self,
        voice: Voice,
        model: Model,
        max_output_tokens: int,
        brief: StepInstructions = ANSWER,
        partial: str = "",
    ) -> PromptInputs:
        settings = self.project.settings
        return PromptInputs(
            voice=voice,
            model=model,
            project_name=self.project.name,
            instructions=self.project.instructions,
            conversation_title=self.title,
            rounds=self.rounds,
            question=self.question,
            visibility=self.turn.visibility,
            context_strategy=settings.context_strategy,
            max_context_tokens=settings.max_context_tokens,
            max_output_tokens=max_output_tokens,
            cited=self.cited + self.looked_up.cited,
            brought=self.brought,
            partial=partial,
            brief=brief,
            style=self.turn.style,
            attached=self.attached,
            always=self.looked_up.always,
            shelf=self.looked_up.shelf,
            hits=self.looked_up.hits,
            recalled=self.looked_up.recalled,
            search_failed=self.looked_up.has_failed,
            is_searching=settings.retrieval_config.enabled,
            scope=self.scope,
            max_results=settings.retrieval_config.max_results,
            without=self.without,
            chosen=self.chosen | self.looked_up.chosen,
            persona_instructions=self.persona_instructions(voice),
        )


def _sure_to_fit(window: Sequence[Round], room: int) -> tuple[Round, ...]:
    """All of them, or so many of the newest as are kept when the oldest have to go."""
    sizes = [sum(map(_length, round_.messages)) for round_ in window]
    if sum(sizes) <= room:
        return tuple(window)
    kept = [sum(sizes[place:]) <= room // 2 for place in range(len(window))]
    return tuple(round_ for round_, is_kept in zip(window, kept, strict=True) if is_kept)


def _length(message: Message) -> int:
    attached = sum(map(_length_of_attached, message.attachments))
    return len(message.content) + attached + _length_of_references(message)


def _length_of_references(message: Message) -> int:
    replied = QUOTE_LIMIT + MARK_CHARACTERS if message.reply_to_id else 0
    return replied + sum(len(quote.text) + MARK_CHARACTERS for quote in message.quotes)


def _length_of_attached(attachment: Attachment) -> int:
    if attachment.is_picture:
        return picture_tokens(attachment.width, attachment.height)
    return attachment.size_bytes


def gather(tx: Tx, actor: Actor, turn: Turn, find: Callable[[str], Model | None]) -> TurnInputs:
    """For a turn that was opened. A voice whose model is not found says so itself."""
    conversation = conversations.get(tx, actor, turn.conversation_id)
    project = projects.get(tx, actor, conversation.project_id)
    asked = _asked(tx, actor, turn)
    voices = (*_seated(turn), *(_seated(asked) if asked else ()))
    models = {voice.model: model for voice in voices if (model := find(voice.model))}
    *rounds, here = _rounds_with(tx, turn, models)
    replies = (m for m in here.messages if m.id == turn.message_id and m.role is not Role.USER)
    title = title_told(tx, conversation)
    gathered = _gathered(tx, actor, project, title, turn, here.question, models, rounds)
    others = personas.characters(tx, _seated(asked)) if asked else {}
    return replace(
        gathered,
        without=_taken_out(tx, actor, turn),
        replaced=next(replies, None),
        here=here,
        asked=asked,
        has_company=turns.has_company(tx, turn) if turn.purpose.starts_at_once else False,
        characters={**others, **gathered.characters},
    )


def title_told(tx: Tx, conversation: Conversation) -> str:
    """What models are told of its name: nothing while that only repeats the first question."""
    return "" if conversations.needs_name(tx, conversation.id) else conversation.title


def _asked(tx: Tx, actor: Actor, turn: Turn) -> Turn | None:
    """The turn that opened the round, when this is a later one: its mode may ask others of its table too."""
    if turn.purpose is Purpose.ASK:
        return None
    question = messages.round(tx, turn.conversation_id, turn.round_number).question
    return turns.get(tx, actor, question.turn_id)


def gather_for(
    tx: Tx,
    actor: Actor,
    project: Project,
    title: str,
    turn: Turn,
    question: Message,
    models: Mapping[str, Model],
) -> TurnInputs:
    """For any question, sent or not."""
    before = messages.history(
        tx, turn.conversation_id, before_round=turn.round_number, rounds=_widest(models)
    )
    return _gathered(tx, actor, project, title, turn, question, models, before)


def _taken_out(tx: Tx, actor: Actor, turn: Turn) -> frozenset[str]:
    """What the beginning of a reply was not shown, its end is not shown either."""
    if turn.purpose is not Purpose.CONTINUE or turn.message_id is None:
        return frozenset()
    try:
        left_out = receipts.get(tx, actor, turn.message_id).left_out
    except NotFound:  # a crash took it
        return frozenset()
    removed = LeftOutReason.REMOVED_BY_USER
    return frozenset(left.source_id for left in left_out if left.source_id and left.reason is removed)


def _rounds_with(tx: Tx, turn: Turn, models: Mapping[str, Model]) -> tuple[Round, ...]:
    """The rounds before the turn's own, and that one last."""
    number = turn.round_number
    rounds = messages.history(tx, turn.conversation_id, before_round=number + 1, rounds=_widest(models) + 1)
    if not rounds or rounds[-1].number != number:
        raise NotFound(GONE)
    return rounds


def _widest(models: Mapping[str, Model]) -> int:
    return max(map(widest_window, models.values()), default=0)


def _gathered(
    tx: Tx,
    actor: Actor,
    project: Project,
    title: str,
    turn: Turn,
    question: Message,
    models: Mapping[str, Model],
    rounds: Sequence[Round],
) -> TurnInputs:
    brought = _brought(tx, actor, question)
    gathered = TurnInputs(
        project=project,
        title=title,
        rounds=tuple(rounds),
        question=question,
        turn=turn,
        models=models,
        cited=cited(tx, actor, (*(round_.question for round_ in (*rounds, *brought)), question)),
        brought=brought,
        characters=personas.characters(tx, _seated(turn)),
        chosen=chosen_in(tx, turn, rounds),
    )
    return replace(gathered, at_hand=_at_hand(tx, gathered))


def _at_hand(tx: Tx, gathered: TurnInputs) -> ProjectContext:
    conversation_id, project_id = gathered.turn.conversation_id, gathered.project_id
    shelf = file_listing.of_project(tx, project_id)
    always = file_listing.always_included(tx, project_id) if shelf.count else ()
    by_size = sorted(always, key=lambda file: file.size_bytes)
    readable = readable_within(gathered.most_bytes, by_size)
    at_hand = ProjectContext(always, texts_kept(tx, always, readable), shelf)
    if not _is_worth_searching(tx, replace(gathered, at_hand=at_hand)):
        return at_hand
    return replace(at_hand, is_worth_searching=True, kin=branches.tree_membership(tx, conversation_id))


def _is_worth_searching(tx: Tx, gathered: TurnInputs) -> bool:
    config = gathered.project.settings.retrieval_config
    if not (config.enabled and config.max_results and gathered.models):
        return False
    number = gathered.turn.round_number
    first = min((round_.number for round_ in gathered.shown_to_all), default=number)
    return chunks.has_outside(tx, gathered.project_id, gathered.turn.conversation_id, first, gathered.scope)


def chosen_in(tx: Tx, turn: Turn, rounds: Sequence[Round]) -> frozenset[str]:
    """The replies marked best, where the turn's voices are to see no others."""
    return votes.chosen(tx, rounds) if turn.visibility is Visibility.CHOSEN else frozenset()


def _seated(turn: Turn) -> tuple[Voice, ...]:
    return (*turn.table, turn.chair) if turn.chair else turn.table


def cited(tx: Tx, actor: Actor, questions: Iterable[Message]) -> tuple[Message, ...]:
    """What these reply to and quote, as far as it is still there."""
    return messages.find_many(tx, actor, {id for question in questions for id in question.refers_to})


def _brought(tx: Tx, actor: Actor, question: Message) -> tuple[Round, ...]:
    """Nothing any more once the branch is gone: what was made of it is kept.

    A round that has become blind there since is told of as people know it.
    """
    if question.brings_id is None:
        return ()
    branch = conversations.find(tx, actor, question.brings_id)
    return blind.as_told(tx, messages.own(tx, branch.id, limit=BROUGHT_ROUNDS)) if branch else ()
