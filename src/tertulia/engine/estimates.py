"""Cost estimates: the tokens and the price of a message for each voice, before it is sent.

Nothing is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tertulia import council
from tertulia.context.assemble import DoesNotFit, assemble
from tertulia.context.budget import cacheable_tokens, output_limit, request_tokens
from tertulia.core.conversations import Conversation, Visibility
from tertulia.core.errors import Invalid, NotFound
from tertulia.core.lengths import DEFAULT, RecentReplies, ReplyLength
from tertulia.core.messages import Message, Quote, Role, Status
from tertulia.core.models import TokenCount, cost_micros
from tertulia.core.passages import SearchScope
from tertulia.core.receipts import Layer, LeftOut
from tertulia.core.tables import VoiceRef
from tertulia.core.thinking import Effort
from tertulia.core.turns import Purpose, Turn, TurnState
from tertulia.core.users import Actor
from tertulia.core.voices import SEATS, Voice, assign_seats_once
from tertulia.engine import references
from tertulia.engine.context_retrieval import retrieve
from tertulia.engine.dependencies import Dependencies
from tertulia.engine.requests import check_attachments, check_lanes, check_quotes
from tertulia.engine.turn_inputs import TurnInputs
from tertulia.engine.turn_records import TurnRecords, read_question, title_for_prompt
from tertulia.engine.voice_resolution import ProjectScope, resolve_chair, resolve_voices
from tertulia.providers.registry import ProviderRegistry
from tertulia.store import attachments, branches, conversations, projects, usage
from tertulia.store.database import Tx

THINKING_TOKENS: dict[Effort | None, int] = {Effort.LOW: 500, Effort.MEDIUM: 2_000, Effort.HIGH: 6_000}
"""The extra output tokens for a thinking effort, until there are replies to take a mean from."""


@dataclass(frozen=True, slots=True)
class NewEstimate:
    text: str
    voices: tuple[VoiceRef, ...]
    conversation_id: str | None = None
    project_id: str | None = None
    visibility: Visibility = Visibility.OPEN
    reply_to_id: str | None = None
    attachments: tuple[str, ...] = ()
    quotes: tuple[Quote, ...] = ()
    mode: str = "parallel"
    chair: VoiceRef | None = None
    aside: bool = False
    """Whether only these voices of the table answer, and keep their seats."""
    lanes: tuple[str, ...] = ()
    """For an aside: the lane of each voice."""
    scope: SearchScope | None = None


@dataclass(frozen=True, slots=True)
class VoiceEstimate:
    voice: Voice
    input_tokens: int
    """The input of the first answer."""
    budget_tokens: int
    output_tokens: int
    """The expected output of each answer, with thinking."""
    cost_micros: int | None
    """The cost of all its asks, if the provider's cache is empty; None if the price is unknown."""
    problem: str | None
    """Why the voice cannot be asked with this message."""
    left_out: tuple[LeftOut, ...] = ()
    """The attachments and always-included files that it would not be shown."""
    always_tokens: int = 0
    """The part of the input that the always-included files take."""


@dataclass(frozen=True, slots=True)
class Estimate:
    items: tuple[VoiceEstimate, ...]
    cost_micros: int | None
    """The sum; None if one of the costs is unknown."""
    chair: VoiceEstimate | None = None
    """The synthesis, if the mode has one."""


async def estimate(
    dependencies: Dependencies, actor: Actor, request: NewEstimate, asked: Message | None = None
) -> Estimate:
    """`asked` is an earlier question to repeat: it keeps its round number and its attachments."""
    if not 1 <= len(request.voices) <= SEATS:
        raise Invalid(f"An estimate takes 1 to {SEATS} voices.")
    check_attachments(request.attachments)
    check_quotes(request.quotes)
    check_lanes(request.lanes, len(request.voices), is_aside=request.aside)

    def read(tx: Tx) -> tuple[TurnRecords, Mapping[usage.ModelEffort, RecentReplies]]:
        records = _records(tx, actor, request, dependencies.providers, asked)
        voices = _models_and_efforts(records.turn)
        return records, usage.recent_replies(tx, actor, records.project.id, voices)

    records, recent = await dependencies.db.read(read)
    inputs = await retrieve(dependencies, actor, records)
    mode, table = council.get(request.mode), inputs.turn.table
    lengths = _Lengths(recent, inputs)
    items = tuple(
        _estimate_voice(dependencies, inputs, voice, mode.reads(index, len(table)), lengths)
        for index, voice in enumerate(table)
    )
    chair = None
    if mode.has_chair:
        voice = inputs.turn.chair or table[0]
        chair = _estimate_voice(dependencies, inputs, voice, _read_by_chair(table), lengths)
    costs = [item.cost_micros for item in (*items, *filter(None, (chair,)))]
    total = None if None in costs else sum(cost for cost in costs if cost is not None)
    return Estimate(items, total, chair)


def _models_and_efforts(turn: Turn) -> tuple[usage.ModelEffort, ...]:
    voices = (*turn.table, turn.chair) if turn.chair else turn.table
    return tuple((voice.model, voice.effort) for voice in voices)


@dataclass(frozen=True, slots=True)
class _Lengths:
    """The expected lengths of the replies of the round."""

    recent: Mapping[usage.ModelEffort, RecentReplies]
    inputs: TurnInputs

    def of(self, voice: Voice) -> ReplyLength:
        """The usual length of the voice's replies, up to the model's limit."""
        limit = output_limit(self.inputs.models[voice.model])
        usual = self.recent[voice.model, voice.effort].usual() or _default_length(voice)
        return ReplyLength(min(usual.output_tokens, limit), min(usual.written_tokens, limit))

    @property
    def read_tokens(self) -> int:
        """The mean length of the replies of the table, as another voice reads them."""
        written = [self.of(voice).written_tokens for voice in self.inputs.turn.table]
        return -(-sum(written) // len(written))


def _default_length(voice: Voice) -> ReplyLength:
    thinking = THINKING_TOKENS.get(voice.effort, 0)
    return ReplyLength(DEFAULT.output_tokens + thinking, DEFAULT.written_tokens)


def _read_by_chair(table: Sequence[Voice]) -> tuple[int, ...]:
    """How many replies the chair reads: all of the table, and for the outline the synthesis too."""
    return (len(table), len(table) + 1)


def _records(
    tx: Tx, actor: Actor, request: NewEstimate, providers: ProviderRegistry, asked: Message | None
) -> TurnRecords:
    """The records that the turn would have if the message was sent now."""
    conversation = _conversation(tx, actor, request)
    scope = ProjectScope(request.conversation_id, request.project_id)
    project = projects.get(tx, actor, scope.find_project_id(tx, actor))
    table = resolve_voices(tx, actor, scope, request.voices, providers)
    if request.aside:
        at_table = conversation.table if conversation else ()
        held_seats = branches.seats(tx, conversation) if conversation else ()
        table = assign_seats_once(table, at_table, request.lanes, held_seats)
    chair = resolve_chair(tx, actor, scope, request.chair, table, providers)
    voices = (*table, chair) if chair else table
    models = {voice.model: model for voice in voices if (model := providers.find(voice.model))}
    number = asked.round_number if asked else conversation.round_count + 1 if conversation else 1
    turn = Turn(
        id="",
        conversation_id=conversation.id if conversation else "",
        round_number=number,
        purpose=Purpose.ASK,
        mode=request.mode,
        table=table,
        visibility=request.visibility,
        state=TurnState.RUNNING,
        created_by=actor.user_id,
        created_at=tx.now,
        chair=chair,
        scope=request.scope or (conversation.scope if conversation else None),
    )
    question = _question(tx, actor, request, turn, project.id, asked)
    title = title_for_prompt(tx, conversation) if conversation else ""
    return read_question(tx, actor, project, title, turn, question, models)


def _question(
    tx: Tx, actor: Actor, request: NewEstimate, turn: Turn, project_id: str, asked: Message | None
) -> Message:
    """The question with its references and attachments; those of an earlier question come first."""
    references.check(tx, actor, turn.conversation_id, request.reply_to_id, request.quotes)
    visible = references.visible_references(tx, actor, turn.conversation_id, asked) if asked else request
    unsent = attachments.unsent(tx, actor, project_id, request.attachments)
    return Message(
        id="",
        conversation_id=turn.conversation_id,
        round_number=turn.round_number,
        turn_id="",
        speaker="user",
        role=Role.USER,
        content=request.text,
        status=Status.COMPLETE,
        created_by=actor.user_id,
        created_at=tx.now,
        reply_to_id=visible.reply_to_id,
        quotes=visible.quotes,
        brings_id=asked.brings_id if asked else None,
        attachments=(*(asked.attachments if asked else ()), *unsent),
    )


def _conversation(tx: Tx, actor: Actor, request: NewEstimate) -> Conversation | None:
    """The conversation; None if the message would begin it."""
    if request.conversation_id is None:
        return None
    try:
        return conversations.get(tx, actor, request.conversation_id)
    except NotFound:
        if request.project_id is None:
            raise
        return None


def _estimate_voice(
    dependencies: Dependencies, inputs: TurnInputs, voice: Voice, reads: Sequence[int], lengths: _Lengths
) -> VoiceEstimate:
    """The estimate of one voice. Each ask sends the input of the first one, and the replies that it reads.

    The first ask is assumed to fill the provider's cache.
    """
    model = inputs.models[voice.model]
    output = lengths.of(voice).output_tokens
    try:
        receipt = assemble(
            inputs.prompt_inputs(voice, model, output_limit(model)), dependencies.counter(model)
        ).receipt
    except DoesNotFit as error:
        return VoiceEstimate(voice, 0, 0, 0, 0, error.message)
    sent = request_tokens(receipt)
    cacheable = cacheable_tokens(receipt)
    counts = (
        TokenCount(sent + read * lengths.read_tokens, 0, output, written_tokens=0 if nth else cacheable)
        for nth, read in enumerate(reads)
    )
    costs = [cost_micros(count, model.prices) for count in counts]
    total = None if None in costs else sum(cost for cost in costs if cost is not None)
    left_out = tuple(left for left in receipt.left_out if left.layer in (Layer.QUESTION, Layer.ALWAYS))
    always = sum(segment.tokens for segment in receipt.segments if segment.layer is Layer.ALWAYS)
    return VoiceEstimate(voice, sent, receipt.budget_tokens, output, total, None, left_out, always)
