"""References: the messages that a question replies to or quotes come right before it.

Their bytes are the same when the question is asked and when it is part of an earlier round.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tertulia.context.prompt_inputs import CountTokens, PromptInputs
from tertulia.core.messages import Message, name_of
from tertulia.core.receipts import Layer, LeftOut, LeftOutReason, Segment, SegmentReason

QUOTE_LIMIT = 300
"""The most characters of a message that is replied to."""

_VERBS = {SegmentReason.REPLIED_TO: "Replies to", SegmentReason.QUOTED: "Quotes"}


def references(
    question: Message, layer: Layer, inputs: PromptInputs, count: CountTokens
) -> tuple[Segment, ...]:
    """The reference segments of a question, without messages that a person removed."""
    return tuple(
        Segment(
            layer,
            "user",
            reference.text,
            reference.reason,
            count(reference.text),
            reference.message_id,
            question.round_number,
        )
        for reference in _references_of(question, inputs)
        if reference.message_id not in inputs.excluded_ids
    )


def removed_references(
    question: Message, layer: Layer, inputs: PromptInputs, count: CountTokens
) -> Iterator[LeftOut]:
    """The references that are left out because a person removed the message they are from."""
    for reference in _references_of(question, inputs):
        if reference.message_id in inputs.excluded_ids:
            yield LeftOut(
                layer,
                LeftOutReason.REMOVED_BY_USER,
                count(reference.text),
                reference.message_id,
                question.round_number,
                reference=reference.reason,
            )


def named_only(question: Message, inputs: PromptInputs) -> Iterator[str]:
    """Notes without the referenced text, for a recalled round: that is a single segment, and the referenced
    message may be deleted before it."""
    for reference in _references_of(question, inputs):
        message = reference.message
        if message is not None and reference.message_id not in inputs.excluded_ids:
            yield f"({_VERBS[reference.reason]} {name_of(message)}, round {message.round_number}.)"


@dataclass(frozen=True, slots=True)
class _Reference:
    message_id: str
    reason: SegmentReason
    """`replied_to` or `quoted`."""
    text: str
    message: Message | None
    """None if the message was deleted."""


def _references_of(question: Message, inputs: PromptInputs) -> Iterator[_Reference]:
    """The references of a question. A quotation stays with the question even when its message was deleted."""
    if question.reply_to_id is not None and (message := _find(question.reply_to_id, inputs)):
        text = f'[Replying to {name_of(message)}: "{_beginning(message.content)}"]'
        yield _Reference(message.id, SegmentReason.REPLIED_TO, text, message)
    for quote in question.quotes:
        message = _find(quote.message_id, inputs)
        name = f" {name_of(message)}" if message else ""
        text = f'[Quoting{name}: "{quote.text}"]'
        yield _Reference(quote.message_id, SegmentReason.QUOTED, text, message)


def _beginning(content: str) -> str:
    """The first characters of a message, with an ellipsis if it was cut."""
    return content if len(content) <= QUOTE_LIMIT else f"{content[:QUOTE_LIMIT]}…"


def _find(message_id: str, inputs: PromptInputs) -> Message | None:
    return next(
        (message for message in inputs.conversation.referenced_messages if message.id == message_id), None
    )
