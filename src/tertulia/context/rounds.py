"""Rounds as one voice sees them: its own words as assistant, everyone else's as tagged user text."""

from __future__ import annotations

from collections.abc import Iterator

from tertulia.context.material import TAKEN_OUT, CountTokens, Material
from tertulia.context.references import references
from tertulia.core.conversations import Visibility
from tertulia.core.messages import Message, Round, Step, name_of
from tertulia.core.receipts import Layer, LeftOut, Segment


def as_seen(round_: Round, material: Material, count: CountTokens) -> tuple[Segment, ...]:
    """The question with what it refers to, one's own reply, then the others' as the visibility allows."""
    return tuple(_segments(round_, material, count))


def _segments(round_: Round, material: Material, count: CountTokens) -> Iterator[Segment]:
    yield from references(round_.question, Layer.ROUNDS, material, count)
    yield _segment(round_, round_.question, "user", round_.question.content, count)
    seen = seen_replies(round_, material)
    for reply in seen:
        if _is_own(reply, material):
            yield _segment(round_, reply, "assistant", reply.content, count)
    for reply in seen:
        if not _is_own(reply, material):
            yield _segment(round_, reply, "user", tagged(reply), count)


def seen_replies(round_: Round, material: Material) -> tuple[Message, ...]:
    """The replies of a round that this voice may see."""
    return tuple(reply for reply in _allowed(round_, material) if reply.id not in material.without)


def unseen_replies(round_: Round, material: Material, count: CountTokens) -> Iterator[LeftOut]:
    """What the visibility or a person keeps from this voice, for the receipt."""
    if material.visibility is Visibility.OPEN and not material.without:
        return
    allowed = {reply.id for reply in _allowed(round_, material)}
    seen = allowed - material.without
    for reply in round_.replies:
        if _is_for_others(reply) and reply.id not in seen:
            reason = TAKEN_OUT if reply.id in allowed else WHY_UNSEEN[material.visibility]
            name = f"round {round_.number}, {name_of(reply)}"
            yield LeftOut(Layer.ROUNDS, reason, count(reply.content), reply.id, round_.number, name)


WHY_UNSEEN = {
    Visibility.OWN_LANE: "visibility “Each sees only you”: a reply of another voice",
    Visibility.CHOSEN: "visibility “Only best replies”: another reply of this round was marked best",
}


def _allowed(round_: Round, material: Material) -> list[Message]:
    said = [reply for reply in round_.replies if _is_for_others(reply)]
    if material.visibility is Visibility.OWN_LANE:
        return [reply for reply in said if _is_own(reply, material)]
    if material.visibility is Visibility.CHOSEN:
        return [reply for reply in said if reply.id in material.chosen] or said
    return said


def retold(round_: Round, material: Material, count: CountTokens) -> tuple[Segment, ...]:
    """A round of a branch as someone reads it who was not there: every voice by its name."""
    asked, replies = round_.question, [reply for reply in round_.replies if _is_for_others(reply)]
    texts = [(asked, f"[User, round {round_.number} of the branch]: {asked.content}")]
    texts += [(reply, tagged(reply)) for reply in replies]
    told = tuple(
        Segment(
            Layer.QUESTION,
            "user",
            text,
            "brought back",
            count(text),
            said.id,
            round_.number,
            name=said.voice.name if said.voice else "",
        )
        for said, text in texts
    )
    return (*references(asked, Layer.QUESTION, material, count), *told)


def _is_for_others(reply: Message) -> bool:
    """Reviews and outlines serve their own round; what comes of them stands in the synthesis."""
    return bool(reply.content) and reply.step not in (Step.REVIEW, Step.OUTLINE)


def _segment(round_: Round, message: Message, role: str, text: str, count: CountTokens) -> Segment:
    return Segment(
        layer=Layer.ROUNDS,
        role="assistant" if role == "assistant" else "user",
        text=text,
        reason="recent",
        tokens=count(text),
        source_id=message.id,
        round_number=round_.number,
        name=message.voice.name if message.voice else "",
    )


def _is_own(reply: Message, material: Material) -> bool:
    return reply.voice is not None and reply.voice.id == material.voice.id


def tagged(message: Message) -> str:
    return f"[{name_of(message)}]: {message.content}"
