"""Prompt assembly: builds the prompt and its receipt from the inputs; the same inputs always give the same
bytes.

system parts, files │ working rounds, oldest first │ search results, round note, attachments, the question
stable ─────────────────────────────────────────────┘ volatile, last
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from tertulia.context.attachments import (
    DENSEST,
    AttachedSegments,
    TokenAllowance,
    attached,
    shown_texts,
    why_no_text,
)
from tertulia.context.budget import PER_MESSAGE, budget_step, budget_tokens, tier_for, window_start
from tertulia.context.instructions import PromptPart, parts
from tertulia.context.prompt_inputs import CountTokens, PromptInputs
from tertulia.context.references import references, removed_references
from tertulia.context.retrieved import AlreadyShown, retrieve
from tertulia.context.rounds import render_branch_round, render_round, unseen_replies
from tertulia.context.step_instructions import step_segments
from tertulia.core.errors import Invalid
from tertulia.core.messages import Round
from tertulia.core.models import WORKING_ROUNDS
from tertulia.core.passages import Passage
from tertulia.core.prompts import Prompt, PromptMessage
from tertulia.core.receipts import (
    Layer,
    LeftOut,
    LeftOutReason,
    Receipt,
    Segment,
    SegmentReason,
    SourceLocation,
)

SEPARATOR = "\n\n"
"""Joins the segments of one message."""

_CONTINUE = "Go on exactly where you stopped, in the middle of the sentence if need be. Repeat nothing."


class DoesNotFit(Invalid):
    """The question and the fixed parts of the prompt are larger than the model's budget."""


@dataclass(frozen=True, slots=True)
class Assembled:
    prompt: Prompt
    receipt: Receipt
    found: tuple[Passage, ...] = ()
    """The search results that the prompt contains."""


def assemble(inputs: PromptInputs, count: CountTokens) -> Assembled:
    """Adds the parts that must be there, then as many of the last rounds as the window and the budget
    allow."""
    budget = budget_tokens(inputs.model, inputs.max_output_tokens, inputs.project.max_context_tokens)
    system_parts = _system_segments(inputs, budget, count)
    earlier_rounds = inputs.conversation.question.round_number - 1
    round_note, question = _round_note(inputs, earlier_rounds, count), _question_segments(inputs, count)
    allowance = TokenAllowance(
        budget - _size(_without_files(system_parts)) - _size(round_note) - _size(question)
    )
    if allowance.tokens < 0:
        raise DoesNotFit(
            _refusal(inputs, budget, budget - allowance.tokens, (*_without_files(system_parts), *question))
        )
    attachments = attached(inputs.conversation.question, Layer.QUESTION, inputs, allowance, count)
    system, files_left_out = _fitting_files(system_parts, allowance)
    branch, branch_left_out = _branch_segments(inputs, allowance, count)
    rounds, left_out = _working_rounds(inputs, allowance, count)
    shown_rounds = frozenset(segment.round_number for segment in rounds if segment.round_number)
    already_shown = AlreadyShown(shown_rounds, shown_texts((*attachments.segments, *rounds), inputs))
    retrieved = retrieve(inputs, allowance.tokens, budget, already_shown, count)
    round_note = _round_note(inputs, _rounds_before_window(inputs) + _rounds_without_room(left_out), count)
    last_message = (*branch, *round_note, *attachments.segments, *question)
    segments = _mark_cacheable(_join_neighbours((*system, *rounds, *retrieved.segments, *last_message)))
    hidden_replies = _hidden_replies(inputs, shown_rounds, count)
    files = (*_unusable_files(inputs), *files_left_out)
    left_out = (
        *attachments.left_out,
        *files,
        *_outside_window(inputs),
        *left_out,
        *hidden_replies,
        *branch_left_out,
    )
    effort = inputs.model.effort(inputs.voice.effort)
    receipt = Receipt(inputs.model.key, budget, segments, (*left_out, *retrieved.left_out), effort)
    return Assembled(rebuild(receipt), receipt, retrieved.passages)


def rebuild(receipt: Receipt) -> Prompt:
    """The prompt exactly as it was sent, rebuilt from the receipt."""
    system = SEPARATOR.join(segment.text for segment in receipt.segments if segment.role == "system")
    others = [segment for segment in receipt.segments if segment.role != "system"]
    starts = [index for index, segment in enumerate(others) if segment.starts_message]
    messages = (others[start:end] for start, end in pairwise([*starts, len(others)]))
    return Prompt(system, tuple(_message(segments) for segments in messages))


def _message(segments: Sequence[Segment]) -> PromptMessage:
    first, last = segments[0], segments[-1]
    assert first.role != "system"
    return PromptMessage(
        first.role,
        SEPARATOR.join(segment.text for segment in segments),
        last.ends_cacheable,
        tuple(segment.picture for segment in segments if segment.picture is not None),
    )


def _system_segments(inputs: PromptInputs, budget: int, count: CountTokens) -> tuple[Segment, ...]:
    """The system prompt, always-included files among it. A file that can never fit is estimated, because
    counting its tokens is slow."""

    def size(part: PromptPart) -> int:
        cannot_fit = part.layer is Layer.ALWAYS and len(part.text) > budget * DENSEST
        return len(part.text) // 4 if cannot_fit else count(part.text)

    return tuple(
        Segment(
            part.layer,
            "system",
            part.text,
            part.reason,
            size(part),
            part.source_id,
            location=part.location,
        )
        for part in parts(inputs, budget, count)
    )


def _refusal(inputs: PromptInputs, budget: int, needed: int, segments: Sequence[Segment]) -> str:
    """The error message: the two token counts, and what a person can do about the largest part."""
    numbers = f"has room for {budget:,} tokens and this needs {needed:,}."
    window_tokens = budget_tokens(inputs.model, inputs.max_output_tokens, needed)
    if window_tokens >= needed:
        limit = f"The project allows no more than {inputs.project.max_context_tokens:,}"
        advice = f"{limit}: raise it under Instructions and models."
        return f"{inputs.model.display_name} {numbers} {advice}"
    largest = max(segments, key=lambda segment: segment.tokens)
    shorten = _ADVICE.get(largest.reason)
    advice = f"{shorten}, or ask" if shorten else "Ask"
    return f"{inputs.model.display_name} {numbers} {advice} a model with a larger window."


_ADVICE = {
    SegmentReason.ASKED_NOW: "Shorten the message",
    SegmentReason.QUOTED: "Quote less",
    SegmentReason.PROJECT_INSTRUCTIONS: "Most of it is the project's instructions: shorten them",
    SegmentReason.PERSONA_INSTRUCTIONS: "Most of it is the persona's instructions: shorten them",
    SegmentReason.SAME_ROUND: "Most of it is the other replies of this round: ask fewer voices",
    SegmentReason.REPLY_SO_FAR: "Most of it is the reply so far: regenerate it instead of continuing",
}


def _without_files(segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    return tuple(segment for segment in segments if segment.layer is not Layer.ALWAYS)


def _fitting_files(
    segments: tuple[Segment, ...], allowance: TokenAllowance
) -> tuple[tuple[Segment, ...], tuple[LeftOut, ...]]:
    """The segments that fit, and the always-included files that are too large for this model."""
    fitting: list[Segment] = []
    left_out: list[LeftOut] = []
    for segment in segments:
        if segment.layer is not Layer.ALWAYS or allowance.takes(segment):
            fitting.append(segment)
        else:
            left_out.append(
                LeftOut(
                    Layer.ALWAYS,
                    LeftOutReason.OVER_BUDGET,
                    segment.tokens,
                    segment.source_id,
                    location=segment.location,
                )
            )
    return tuple(fitting), tuple(left_out)


def _unusable_files(inputs: PromptInputs) -> Iterator[LeftOut]:
    """The always-included files that a person removed or that have no text."""
    for file in inputs.files.always_included:
        location = SourceLocation(path=file.path)
        if file.id in inputs.excluded_ids:
            yield LeftOut(Layer.ALWAYS, LeftOutReason.REMOVED_BY_USER, 0, file.id, location=location)
        elif not file.text:
            reason, note = why_no_text(file), file.reason or ""
            yield LeftOut(Layer.ALWAYS, reason, 0, file.id, location=location, note=note)


def _rounds_without_room(left_out: Sequence[LeftOut]) -> int:
    """How many rounds of the window did not fit; attachments that were left out have a source id."""
    return sum(item.source_id is None for item in left_out)


def _round_note(inputs: PromptInputs, hidden: int, count: CountTokens) -> tuple[Segment, ...]:
    """The note with the round's number; it changes every round."""
    note = _round_note_text(inputs, hidden)
    return (Segment(Layer.QUESTION, "user", note, SegmentReason.ROUND_NOTE, count(note)),) if note else ()


def _question_segments(inputs: PromptInputs, count: CountTokens) -> tuple[Segment, ...]:
    """The question with its references, the step's instructions, and the beginning of a reply that is
    continued."""
    question = inputs.conversation.question
    segments = [
        *references(question, Layer.QUESTION, inputs, count),
        Segment(
            Layer.QUESTION,
            "user",
            question.content,
            SegmentReason.ASKED_NOW,
            count(question.content),
            question.id,
            question.round_number,
        ),
    ]
    segments += step_segments(inputs, count)
    if partial := inputs.partial_reply:
        segments += [
            Segment(Layer.QUESTION, "assistant", partial, SegmentReason.REPLY_SO_FAR, count(partial)),
            Segment(Layer.QUESTION, "user", _CONTINUE, SegmentReason.CONTINUE, count(_CONTINUE)),
        ]
    return tuple(segments)


def _branch_segments(
    inputs: PromptInputs, allowance: TokenAllowance, count: CountTokens
) -> tuple[tuple[Segment, ...], tuple[LeftOut, ...]]:
    """The newest whole rounds of the branch that fit, with a note in place of the missing ones."""
    if not inputs.conversation.branch_rounds:
        return (), ()
    spare = allowance.tokens - _size((_missing_rounds_note(len(inputs.conversation.branch_rounds), count),))
    rounds = _newest_fitting(
        inputs.conversation.branch_rounds,
        TokenAllowance(spare),
        lambda round_: render_branch_round(round_, inputs, count),
    )
    segments, left_out = _flatten(rounds, Layer.QUESTION)
    if left_out and spare >= 0:
        segments = (_missing_rounds_note(len(left_out), count), *segments)
    allowance.tokens -= _size(segments)
    return segments, left_out


def _missing_rounds_note(number: int, count: CountTokens) -> Segment:
    text = f"(There is no room for the first {number} rounds of the branch.)"
    return Segment(Layer.QUESTION, "user", text, SegmentReason.BRANCH_GAP, count(text))


def _round_note_text(inputs: PromptInputs, hidden: int) -> str:
    number = inputs.conversation.question.round_number
    if number == 1:
        return ""
    of_title = f' of "{inputs.conversation.title}"' if inputs.conversation.title else ""
    hidden_note = f" The first {hidden} are not shown here." if hidden else ""
    return f"(Round {number}{of_title}.{hidden_note})"


def _rounds_before_window(inputs: PromptInputs) -> int:
    """How many of the oldest rounds are outside the window of working rounds."""
    history = inputs.conversation.question.round_number - 1
    return window_start(history, WORKING_ROUNDS[tier_for(inputs.model, inputs.project.context_strategy)])


def _outside_window(inputs: PromptInputs) -> tuple[LeftOut, ...]:
    hidden = _rounds_before_window(inputs)
    reason = LeftOutReason.OUTSIDE_WINDOW
    return (LeftOut(Layer.ROUNDS, reason, 0, round_number=hidden),) if hidden else ()


def _in_window(inputs: PromptInputs) -> tuple[Round, ...]:
    """The rounds in the window, before the budget is applied."""
    hidden = _rounds_before_window(inputs)
    return tuple(round_ for round_ in inputs.conversation.rounds if round_.number > hidden)


def _working_rounds(
    inputs: PromptInputs, allowance: TokenAllowance, count: CountTokens
) -> tuple[tuple[Segment, ...], tuple[LeftOut, ...]]:
    """The rounds of the window that fit. A round's messages are counted first, then its attachments, so that
    a long file never displaces its round."""
    rounds = _newest_fitting(
        _in_window(inputs),
        allowance,
        lambda round_: render_round(round_, inputs, count),
        lambda round_: attached(round_.question, Layer.ROUNDS, inputs, allowance, count),
    )
    return _flatten(_drop_in_steps(rounds, allowance), Layer.ROUNDS)


def _hidden_replies(
    inputs: PromptInputs, shown_rounds: frozenset[int], count: CountTokens
) -> tuple[LeftOut, ...]:
    """The replies of the shown rounds that the visibility hides, and the messages that a person removed."""
    rounds = [round_ for round_ in inputs.conversation.rounds if round_.number in shown_rounds]
    replies = (reply for round_ in rounds for reply in unseen_replies(round_, inputs, count))
    if not inputs.excluded_ids:
        return tuple(replies)
    questions = [(round_.question, Layer.ROUNDS) for round_ in rounds]
    questions.append((inputs.conversation.question, Layer.QUESTION))
    removed = (
        item for question, layer in questions for item in removed_references(question, layer, inputs, count)
    )
    return (*replies, *removed)


@dataclass(frozen=True, slots=True)
class _RoundSegments:
    """The segments of one round, or the reason why it is left out."""

    number: int
    size: int
    """Tokens of this round's messages, attachments excluded."""
    segments: tuple[Segment, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    """The attachments that were left out."""
    reason: LeftOutReason | None = None
    """Why the round is left out; None if it is shown."""


def _newest_fitting(
    rounds: Sequence[Round],
    allowance: TokenAllowance,
    render: Callable[[Round], tuple[Segment, ...]],
    attach: Callable[[Round], AttachedSegments] = lambda round_: AttachedSegments(),
) -> list[_RoundSegments]:
    """As many rounds as fit, the newest first; a round's messages are shown all or not at all."""
    rendered: list[_RoundSegments] = []
    is_full = False
    for round_ in reversed(rounds):
        segments = render(round_)
        size = _size(segments)
        is_full = is_full or size > allowance.tokens
        if is_full:
            rendered.append(_RoundSegments(round_.number, size, reason=LeftOutReason.OVER_BUDGET))
            continue
        allowance.tokens -= size
        attachments = attach(round_)
        round_segments = (*attachments.segments, *segments)
        rendered.append(_RoundSegments(round_.number, size, round_segments, attachments.left_out))
    return rendered[::-1]


def _drop_in_steps(rounds: list[_RoundSegments], allowance: TokenAllowance) -> list[_RoundSegments]:
    """Leaves out a few more rounds than necessary, so that the prompt begins with the same round for several
    turns and stays cached."""
    dropped = sum(bool(round_.reason) for round_ in rounds)
    if dropped in (0, len(rounds)):
        return rounds
    step = budget_step(len(rounds) - dropped)
    first = dropped
    while rounds[first].number % step and first < len(rounds) - 1:
        first += 1
    extra = rounds[dropped:first]
    allowance.tokens += sum(_size(round_.segments) for round_ in extra)
    reason = LeftOutReason.WITH_OLDER_ROUNDS
    dropped_too = [_RoundSegments(round_.number, round_.size, reason=reason) for round_ in extra]
    return [*rounds[:dropped], *dropped_too, *rounds[first:]]


def _flatten(
    rounds: Sequence[_RoundSegments], layer: Layer
) -> tuple[tuple[Segment, ...], tuple[LeftOut, ...]]:
    left_out: list[LeftOut] = []
    for round_ in rounds:
        if round_.reason:
            left_out.append(LeftOut(layer, round_.reason, round_.size, round_number=round_.number))
        left_out += round_.left_out
    return tuple(segment for round_ in rounds for segment in round_.segments), tuple(left_out)


def _mark_cacheable(segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """Marks the last message before the question's as cacheable: the next turn sends everything up to there
    again, unchanged."""
    starts = [i for i, segment in enumerate(segments) if segment.role != "system" and segment.starts_message]
    ends = [i - 1 for i in starts[1:] if segments[i - 1].layer is Layer.ROUNDS]
    if not ends:
        return segments
    last = ends[-1]
    return (*segments[:last], replace(segments[last], ends_cacheable=True), *segments[last + 1 :])


def _join_neighbours(segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """Joins neighbouring segments of one role into one message, because some providers require alternating
    roles."""
    joined: list[Segment] = []
    for segment in segments:
        follows = bool(joined) and joined[-1].role == segment.role
        joined.append(segment.joined() if follows else segment)
    return tuple(joined)


def _size(segments: tuple[Segment, ...]) -> int:
    return sum(segment.tokens + PER_MESSAGE for segment in segments)
