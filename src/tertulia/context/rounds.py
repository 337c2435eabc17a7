"""Earlier rounds in prompts: the voice's own replies as the assistant, all other messages as user text with
names."""

from __future__ import annotations

from collections.abc import Iterator

from tertulia.context.prompt_inputs import CountTokens, PromptInputs
from tertulia.context.references import references
from tertulia.core.conversations import Visibility
from tertulia.core.messages import Message, Round, Step, name_of
from tertulia.core.receipts import Layer, LeftOut, LeftOutReason, Segment, SegmentReason, SourceLocation


def render_round(round_: Round, inputs: PromptInputs, count: CountTokens) -> tuple[Segment, ...]:
    """The question with its references, the voice's own reply, then the replies that the visibility
    allows."""
    return tuple(_segments(round_, inputs, count))


def _segments(round_: Round, inputs: PromptInputs, count: CountTokens) -> Iterator[Segment]:
    yield from references(round_.question, Layer.ROUNDS, inputs, count)
    yield _segment(round_, round_.question, "user", round_.question.content, count)
    replies = seen_replies(round_, inputs)
    for reply in replies:
        if _is_own(reply, inputs):
            yield _segment(round_, reply, "assistant", reply.content, count)
    for reply in replies:
        if not _is_own(reply, inputs):
            yield _segment(round_, reply, "user", with_speaker(reply), count)


def seen_replies(round_: Round, inputs: PromptInputs) -> tuple[Message, ...]:
    """The replies of a round that this voice may see."""
    return tuple(reply for reply in _allowed(round_, inputs) if reply.id not in inputs.excluded_ids)


def unseen_replies(round_: Round, inputs: PromptInputs, count: CountTokens) -> Iterator[LeftOut]:
    """The replies that the visibility or a person hides from this voice, for the receipt."""
    if inputs.conversation.visibility is Visibility.OPEN and not inputs.excluded_ids:
        return
    allowed = {reply.id for reply in _allowed(round_, inputs)}
    visible = allowed - inputs.excluded_ids
    for reply in round_.replies:
        if _is_shown_later(reply) and reply.id not in visible:
            is_removed = reply.id in allowed
            reason = (
                LeftOutReason.REMOVED_BY_USER if is_removed else HIDDEN_BY[inputs.conversation.visibility]
            )
            speaker = SourceLocation(speaker=name_of(reply))
            yield LeftOut(Layer.ROUNDS, reason, count(reply.content), reply.id, round_.number, speaker)


HIDDEN_BY = {
    Visibility.OWN_LANE: LeftOutReason.HIDDEN_BY_OWN_LANE,
    Visibility.CHOSEN: LeftOutReason.HIDDEN_BY_CHOSEN,
}


def _allowed(round_: Round, inputs: PromptInputs) -> list[Message]:
    replies = [reply for reply in round_.replies if _is_shown_later(reply)]
    if inputs.conversation.visibility is Visibility.OWN_LANE:
        return [reply for reply in replies if _is_own(reply, inputs)]
    if inputs.conversation.visibility is Visibility.CHOSEN:
        return [reply for reply in replies if reply.id in inputs.conversation.best_reply_ids] or replies
    return replies


def render_branch_round(round_: Round, inputs: PromptInputs, count: CountTokens) -> tuple[Segment, ...]:
    """A round of a branch for a reader outside the branch: every reply with its voice's name."""
    question = round_.question
    replies = [reply for reply in round_.replies if _is_shown_later(reply)]
    texts = [(question, f"[User, round {round_.number} of the branch]: {question.content}")]
    texts += [(reply, with_speaker(reply)) for reply in replies]
    segments = tuple(
        Segment(
            Layer.QUESTION,
            "user",
            text,
            SegmentReason.BRANCH_ROUND,
            count(text),
            message.id,
            round_.number,
            location=_speaker(message),
        )
        for message, text in texts
    )
    return (*references(question, Layer.QUESTION, inputs, count), *segments)


def _is_shown_later(reply: Message) -> bool:
    """Whether later prompts contain the reply. Reviews and outlines serve their own round; the synthesis has
    their results."""
    return bool(reply.content) and reply.step not in (Step.REVIEW, Step.OUTLINE)


def _segment(round_: Round, message: Message, role: str, text: str, count: CountTokens) -> Segment:
    return Segment(
        layer=Layer.ROUNDS,
        role="assistant" if role == "assistant" else "user",
        text=text,
        reason=SegmentReason.RECENT,
        tokens=count(text),
        source_id=message.id,
        round_number=round_.number,
        location=_speaker(message),
    )


def _speaker(message: Message) -> SourceLocation | None:
    return SourceLocation(speaker=message.voice.name) if message.voice else None


def _is_own(reply: Message, inputs: PromptInputs) -> bool:
    return reply.voice is not None and reply.voice.id == inputs.voice.id


def with_speaker(message: Message) -> str:
    return f"[{name_of(message)}]: {message.content}"
