"""Briefing: what a voice reads of its own round, and what it is then asked to do.

question │ [Name]: what others said in this round … │ the task of this step │ how to differ from last time
"""

from __future__ import annotations

from collections.abc import Iterator

from tertulia.context.material import CountTokens, Material
from tertulia.core.briefs import Shown
from tertulia.core.receipts import Layer, Segment
from tertulia.core.turns import Style

_STYLES = {
    Style.CONCISE: "(Answer more briefly this time: what matters and nothing else.)",
    Style.DETAILED: "(Answer in more detail this time: the reasons, the steps, an example where it helps.)",
}


def in_step(material: Material, count: CountTokens) -> Iterator[Segment]:
    """Nothing for a plain answer: the question stands alone."""
    for shown in material.brief.shown:
        yield _said(shown, material, count)
    if task := material.brief.task:
        yield Segment(Layer.QUESTION, "user", task, f"what to do: {material.brief.step}", count(task))
    if style := _STYLES.get(material.style):
        yield Segment(Layer.QUESTION, "user", style, "how to differ", count(style))


def _said(shown: Shown, material: Material, count: CountTokens) -> Segment:
    """One's own words as one's own, unless the mode has taken the names off."""
    reply, voice = shown.message, shown.message.voice
    is_own = voice is not None and voice.id == material.voice.id and shown.name == voice.name
    text = reply.content if is_own else f"[{shown.name}]: {reply.content}"
    return Segment(
        Layer.QUESTION,
        "assistant" if is_own else "user",
        text,
        "said in this round",
        count(text),
        reply.id,
        reply.round_number,
    )
