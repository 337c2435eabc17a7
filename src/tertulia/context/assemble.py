"""Assembling: material in, prompt and receipt out; the same material always gives the same bytes.

system parts, files │ working rounds, oldest first │ looked up, where we are, what was attached, the question
stable ─────────────────────────────────────────────┘ volatile, last
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from tertulia.context.attached import DENSEST, Attached, Room, attached, shown_texts
from tertulia.context.briefing import in_step
from tertulia.context.budget import PER_MESSAGE, budget_step, budget_tokens, tier_for, window_start
from tertulia.context.instructions import Part, parts
from tertulia.context.material import OVER_BUDGET, TAKEN_OUT, CountTokens, Material
from tertulia.context.references import references, taken_out
from tertulia.context.retrieved import Shown, retrieve
from tertulia.context.rounds import as_seen, retold, unseen_replies
from tertulia.core.errors import Invalid
from tertulia.core.messages import Round
from tertulia.core.models import WORKING_ROUNDS
from tertulia.core.passages import Passage
from tertulia.core.prompts import Prompt, PromptMessage
from tertulia.core.receipts import Layer, LeftOut, Receipt, Segment

BETWEEN = "\n\n"
"""Joins the segments of one message."""

WITH_THE_OLDEST = "left out with the rounds before it, so that the provider's cache stays valid for longer"

_CONTINUE = "Go on exactly where you stopped, in the middle of the sentence if need be. Repeat nothing."


class DoesNotFit(Invalid):
    """The question alone is more than the model can hold."""


@dataclass(frozen=True, slots=True)
class Assembled:
    prompt: Prompt
    receipt: Receipt
    found: tuple[Passage, ...] = ()
    """What of it was found for the question."""


def assemble(material: Material, count: CountTokens) -> Assembled:
    """Everything that must be there, then as many of the last rounds as the window and the budget hold."""
    budget = budget_tokens(material.model, material.max_output_tokens, material.max_context_tokens)
    said = _system(material, budget, count)
    most_hidden = material.question.round_number - 1
    before, asked = _before_the_question(material, most_hidden, count), _asked(material, count)
    room = Room(budget - _size(_unconditional(said)) - _size(before) - _size(asked))
    if room.tokens < 0:
        raise DoesNotFit(_why_not(material, budget, budget - room.tokens, (*_unconditional(said), *asked)))
    along = attached(material.question, Layer.QUESTION, material, room, count)
    system, too_large = _with_room(said, room)
    brought, not_brought = _brought(material, room, count)
    rounds, left_out = _working_rounds(material, room, count)
    shown = frozenset(segment.round_number for segment in rounds if segment.round_number)
    anyway = Shown(shown, shown_texts((*along.segments, *rounds), material))
    found = retrieve(material, room.tokens, budget, anyway, count)
    before = _before_the_question(material, _hidden(material) + _without_room(left_out), count)
    ending = (*brought, *before, *along.segments, *asked)
    segments = _marked(_joined((*system, *rounds, *found.segments, *ending)))
    unseen = _unseen(material, shown, count)
    files = (*_not_whole(material), *too_large)
    left_out = (*along.left_out, *files, *_outside(material), *left_out, *unseen, *not_brought)
    effort = material.model.effort(material.voice.effort)
    receipt = Receipt(material.model.key, budget, segments, (*left_out, *found.left_out), effort)
    return Assembled(rebuild(receipt), receipt, found.passages)


def rebuild(receipt: Receipt) -> Prompt:
    """The request exactly as it was sent."""
    system = BETWEEN.join(segment.text for segment in receipt.segments if segment.role == "system")
    said = [segment for segment in receipt.segments if segment.role != "system"]
    starts = [place for place, segment in enumerate(said) if segment.starts_message]
    messages = (said[start:end] for start, end in pairwise([*starts, len(said)]))
    return Prompt(system, tuple(_message(segments) for segments in messages))


def _message(segments: Sequence[Segment]) -> PromptMessage:
    first, last = segments[0], segments[-1]
    assert first.role != "system"
    return PromptMessage(
        first.role,
        BETWEEN.join(segment.text for segment in segments),
        last.ends_cacheable,
        tuple(segment.picture for segment in segments if segment.picture is not None),
    )


def _system(material: Material, budget: int, count: CountTokens) -> tuple[Segment, ...]:
    """Everything that is said every time, files included; one that cannot fit is not even counted."""

    def size(part: Part) -> int:
        is_hopeless = part.layer is Layer.ALWAYS and len(part.text) > budget * DENSEST
        return len(part.text) // 4 if is_hopeless else count(part.text)

    return tuple(
        Segment(part.layer, "system", part.text, part.reason, size(part), part.source_id, name=part.name)
        for part in parts(material, budget, count)
    )


def _why_not(material: Material, budget: int, needed: int, pieces: Sequence[Segment]) -> str:
    """What does not fit, and what a person can do about the largest piece of it."""
    numbers = f"has room for {budget:,} tokens and this needs {needed:,}."
    in_window = budget_tokens(material.model, material.max_output_tokens, needed)
    if in_window >= needed:
        allowed = f"The project allows no more than {material.max_context_tokens:,}"
        allows = f"{allowed}: raise it under Instructions and models."
        return f"{material.model.display_name} {numbers} {allows}"
    largest = max(pieces, key=lambda piece: piece.tokens)
    shorten = _SHORTEN.get(largest.reason)
    advice = f"{shorten}, or ask" if shorten else "Ask"
    return f"{material.model.display_name} {numbers} {advice} a model with a larger window."


_SHORTEN = {
    "asked now": "Shorten the message",
    "quoted": "Quote less",
    "the project's instructions": "Most of it is the project's instructions: shorten them",
    "the persona's instructions": "Most of it is the persona's instructions: shorten them",
    "said in this round": "Most of it is the other replies of this round: ask fewer voices",
    "to be continued": "Most of it is the reply so far: regenerate it instead of continuing",
}


def _unconditional(said: tuple[Segment, ...]) -> tuple[Segment, ...]:
    return tuple(segment for segment in said if segment.layer is not Layer.ALWAYS)


def _with_room(said: tuple[Segment, ...], room: Room) -> tuple[tuple[Segment, ...], tuple[LeftOut, ...]]:
    """A file that is too large for this model is left out."""
    kept: list[Segment] = []
    left_out: list[LeftOut] = []
    for segment in said:
        if segment.layer is not Layer.ALWAYS or room.takes(segment):
            kept.append(segment)
        else:
            left_out.append(
                LeftOut(Layer.ALWAYS, OVER_BUDGET, segment.tokens, segment.source_id, name=segment.name)
            )
    return tuple(kept), tuple(left_out)


def _not_whole(material: Material) -> Iterator[LeftOut]:
    """The files that would be always included, if a person had not taken them out or they held a text."""
    for file in material.always:
        if file.id in material.without:
            yield LeftOut(Layer.ALWAYS, TAKEN_OUT, 0, file.id, name=file.path)
        elif not file.text:
            yield LeftOut(Layer.ALWAYS, file.reason or "it holds no text", 0, file.id, name=file.path)


def _without_room(left_out: Sequence[LeftOut]) -> int:
    """How many rounds of the window are not shown; what came along with one has a source."""
    return sum(left.source_id is None for left in left_out)


def _before_the_question(material: Material, hidden: int, count: CountTokens) -> tuple[Segment, ...]:
    """What changes every round: where we are."""
    note = _where_we_are(material, hidden)
    return (Segment(Layer.QUESTION, "user", note, "where we are", count(note)),) if note else ()


def _asked(material: Material, count: CountTokens) -> tuple[Segment, ...]:
    """The question with what it refers to, what the mode asks for, and what is to be continued."""
    question = material.question
    segments = [
        *references(question, Layer.QUESTION, material, count),
        Segment(
            Layer.QUESTION, "user", question.content, "asked now", count(question.content), question.id,
            question.round_number,
        ),
    ]  # fmt: skip
    segments += in_step(material, count)
    if material.partial:
        segments += [
            Segment(
                Layer.QUESTION, "assistant", material.partial, "to be continued", count(material.partial)
            ),
            Segment(Layer.QUESTION, "user", _CONTINUE, "how to go on", count(_CONTINUE)),
        ]
    return tuple(segments)


def _brought(
    material: Material, room: Room, count: CountTokens
) -> tuple[tuple[Segment, ...], tuple[LeftOut, ...]]:
    """The newest rounds of the branch that fit, whole; what is missing is said where it is missing."""
    if not material.brought:
        return (), ()
    spare = room.tokens - _size((_missing(len(material.brought), count),))
    told = _newest(material.brought, Room(spare), lambda round_: retold(round_, material, count))
    kept, left_out = _flat(told, Layer.QUESTION)
    if left_out and spare >= 0:
        kept = (_missing(len(left_out), count), *kept)
    room.tokens -= _size(kept)
    return kept, left_out


def _missing(number: int, count: CountTokens) -> Segment:
    text = f"(There is no room for the first {number} rounds of the branch.)"
    return Segment(Layer.QUESTION, "user", text, "what is missing", count(text))


def _where_we_are(material: Material, hidden: int) -> str:
    number = material.question.round_number
    if number == 1:
        return ""
    of = f' of "{material.conversation_title}"' if material.conversation_title else ""
    unseen = f" The first {hidden} are not shown here." if hidden else ""
    return f"(Round {number}{of}.{unseen})"


def _hidden(material: Material) -> int:
    """Rounds before the window."""
    history = material.question.round_number - 1
    return window_start(history, WORKING_ROUNDS[tier_for(material.model, material.context_strategy)])


def _outside(material: Material) -> tuple[LeftOut, ...]:
    hidden = _hidden(material)
    return (LeftOut(Layer.ROUNDS, f"the first {hidden} rounds are outside the window", 0),) if hidden else ()


def _in_window(material: Material) -> tuple[Round, ...]:
    """The rounds in the window, before the budget has its say."""
    hidden = _hidden(material)
    return tuple(round_ for round_ in material.rounds if round_.number > hidden)


def _working_rounds(
    material: Material, room: Room, count: CountTokens
) -> tuple[tuple[Segment, ...], tuple[LeftOut, ...]]:
    """What was said counts first, then what came along: a long file never takes its round with it."""
    told = _newest(
        _in_window(material),
        room,
        lambda round_: as_seen(round_, material, count),
        lambda round_: attached(round_.question, Layer.ROUNDS, material, room, count),
    )
    return _flat(_in_steps(told, room), Layer.ROUNDS)


def _unseen(material: Material, shown: frozenset[int], count: CountTokens) -> tuple[LeftOut, ...]:
    """Replies of the rounds that are shown which the visibility keeps back, and what a person took out."""
    rounds = [round_ for round_ in material.rounds if round_.number in shown]
    replies = (one for round_ in rounds for one in unseen_replies(round_, material, count))
    if not material.without:
        return tuple(replies)
    asked = [(round_.question, Layer.ROUNDS) for round_ in rounds]
    asked.append((material.question, Layer.QUESTION))
    return (*replies, *(one for said, layer in asked for one in taken_out(said, layer, material, count)))


@dataclass(frozen=True, slots=True)
class _Told:
    """A round for which there was room, or not."""

    number: int
    size: int
    """Of what is said in it."""
    segments: tuple[Segment, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    """Of what came along."""
    reason: str = ""
    """Why it is not shown."""


def _newest(
    rounds: Sequence[Round],
    room: Room,
    told: Callable[[Round], tuple[Segment, ...]],
    along: Callable[[Round], Attached] = lambda round_: Attached(),
) -> list[_Told]:
    """As many as there is room for, newest kept first; what is said in a round is in whole or not at all."""
    all_told: list[_Told] = []
    is_full = False
    for round_ in reversed(rounds):
        segments = told(round_)
        size = _size(segments)
        is_full = is_full or size > room.tokens
        if is_full:
            all_told.append(_Told(round_.number, size, reason=OVER_BUDGET))
            continue
        room.tokens -= size
        came_along = along(round_)
        shown = (*came_along.segments, *segments)
        all_told.append(_Told(round_.number, size, shown, came_along.left_out))
    return all_told[::-1]


def _in_steps(told: list[_Told], room: Room) -> list[_Told]:
    """Once rounds have to go, more go than must, so that the prompt begins alike for several turns."""
    gone = sum(bool(one.reason) for one in told)
    if gone in (0, len(told)):
        return told
    step = budget_step(len(told) - gone)
    going = gone
    while told[going].number % step and going < len(told) - 1:
        going += 1
    room.tokens += sum(_size(one.segments) for one in told[gone:going])
    with_them = [_Told(one.number, one.size, reason=WITH_THE_OLDEST) for one in told[gone:going]]
    return [*told[:gone], *with_them, *told[going:]]


def _flat(told: Sequence[_Told], layer: Layer) -> tuple[tuple[Segment, ...], tuple[LeftOut, ...]]:
    left_out: list[LeftOut] = []
    for one in told:
        if one.reason:
            name = f"round {one.number}"
            left_out.append(LeftOut(layer, one.reason, one.size, None, one.number, name))
        left_out += one.left_out
    return tuple(segment for one in told for segment in one.segments), tuple(left_out)


def _marked(segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """Marks the end of what the next turn sends again unchanged: the last message before the question's."""
    starts = [i for i, segment in enumerate(segments) if segment.role != "system" and segment.starts_message]
    ends = [i - 1 for i in starts[1:] if segments[i - 1].layer is Layer.ROUNDS]
    if not ends:
        return segments
    last = ends[-1]
    return (*segments[:last], replace(segments[last], ends_cacheable=True), *segments[last + 1 :])


def _joined(segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """Neighbours of one role become one message: some providers insist that roles alternate."""
    joined: list[Segment] = []
    for segment in segments:
        follows = bool(joined) and joined[-1].role == segment.role
        joined.append(segment.joined() if follows else segment)
    return tuple(joined)


def _size(segments: tuple[Segment, ...]) -> int:
    return sum(segment.tokens + PER_MESSAGE for segment in segments)
