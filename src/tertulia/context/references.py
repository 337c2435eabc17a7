"""References: what a question replies to and quotes stands right before it.

It stands there in the same bytes when the question is asked and when it has become history.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tertulia.context.material import TAKEN_OUT, CountTokens, Material
from tertulia.core.messages import Message, name_of
from tertulia.core.receipts import Layer, LeftOut, Segment

QUOTE_LIMIT = 300
"""Characters of a message that is replied to."""

_VERBS = {"replied to": "replies to", "quoted": "quotes"}


def references(
    question: Message, layer: Layer, material: Material, count: CountTokens
) -> tuple[Segment, ...]:
    """What a model reads before the question; nothing of a message that a person took out."""
    return tuple(
        Segment(layer, "user", one.text, one.reason, count(one.text), one.said_id, question.round_number)
        for one in _named(question, material)
        if one.said_id not in material.without
    )


def taken_out(question: Message, layer: Layer, material: Material, count: CountTokens) -> Iterator[LeftOut]:
    """What would stand before the question, if a person had not taken out where it is from."""
    for one in _named(question, material):
        if one.said_id in material.without:
            name = f"what round {question.round_number} {_VERBS[one.reason]}"
            yield LeftOut(layer, TAKEN_OUT, count(one.text), one.said_id, question.round_number, name)


def named_only(question: Message, material: Material) -> Iterator[str]:
    """For a round that is told in one piece: no words of another message, which may be deleted before it."""
    for one in _named(question, material):
        if one.said is not None and one.said_id not in material.without:
            yield f"({_VERBS[one.reason].capitalize()} {name_of(one.said)}, round {one.said.round_number}.)"


@dataclass(frozen=True, slots=True)
class _Reference:
    said_id: str
    reason: str
    text: str
    said: Message | None
    """None when the message is gone."""


def _named(question: Message, material: Material) -> Iterator[_Reference]:
    """The words that are quoted stay with the question, also when the message they are from was deleted."""
    if question.reply_to_id is not None and (said := _find(question.reply_to_id, material)):
        text = f'[Replying to {name_of(said)}: "{_beginning(said.content)}"]'
        yield _Reference(said.id, "replied to", text, said)
    for quote in question.quotes:
        said = _find(quote.message_id, material)
        name = f" {name_of(said)}" if said else ""
        yield _Reference(quote.message_id, "quoted", f'[Quoting{name}: "{quote.text}"]', said)


def _beginning(content: str) -> str:
    """What was cut shows that it was."""
    return content if len(content) <= QUOTE_LIMIT else f"{content[:QUOTE_LIMIT]}…"


def _find(message_id: str, material: Material) -> Message | None:
    return next((said for said in material.cited if said.id == message_id), None)
