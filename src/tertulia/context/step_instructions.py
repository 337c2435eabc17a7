"""Step instructions in prompts: the replies of this round that a voice reads, and its task in this step.

question │ [Name]: replies of this round … │ the task of this step │ how to differ from the last version
"""

from __future__ import annotations

from collections.abc import Iterator

from tertulia.context.prompt_inputs import CountTokens, PromptInputs
from tertulia.core.receipts import Layer, Segment, SegmentReason
from tertulia.core.step_instructions import ShownReply
from tertulia.core.turns import Style

_STYLES = {
    Style.CONCISE: "(Answer more briefly this time: what matters and nothing else.)",
    Style.DETAILED: "(Answer in more detail this time: the reasons, the steps, an example where it helps.)",
}


def step_segments(inputs: PromptInputs, count: CountTokens) -> Iterator[Segment]:
    """The segments after the question; none for a plain answer."""
    for reply in inputs.step.shown:
        yield _reply_segment(reply, inputs, count)
    if task := inputs.step.task:
        step = inputs.step.step
        yield Segment(Layer.QUESTION, "user", task, SegmentReason.TASK, count(task), step=step)
    if style := _STYLES.get(inputs.style):
        yield Segment(Layer.QUESTION, "user", style, SegmentReason.STYLE, count(style))


def _reply_segment(shown_reply: ShownReply, inputs: PromptInputs, count: CountTokens) -> Segment:
    """A reply of this round; the voice's own reply has the assistant role, unless the mode hides the
    names."""
    reply, voice = shown_reply.message, shown_reply.message.voice
    is_own = voice is not None and voice.id == inputs.voice.id and shown_reply.name == voice.name
    text = reply.content if is_own else f"[{shown_reply.name}]: {reply.content}"
    return Segment(
        Layer.QUESTION,
        "assistant" if is_own else "user",
        text,
        SegmentReason.SAME_ROUND,
        count(text),
        reply.id,
        reply.round_number,
    )
