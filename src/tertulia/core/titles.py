"""Titles without a model: the first thing that was asked, made short."""

from __future__ import annotations

import re

from tertulia.core.markdown import plain_text, shortened

LONGEST = 60
_SENTENCE = re.compile(r"(?<=[.!?。？！])\s")


def title_of(question: str) -> str:
    """The first sentence, without markup, cut between words."""
    sentence = _SENTENCE.split(plain_text(question), maxsplit=1)[0].rstrip(" .!。！:;,")
    return shortened(sentence or " ".join(question.split())[:LONGEST], LONGEST) or "Untitled"


def cleaned(answer: str) -> str:
    """A model's title: one line, no quotes, no full stop, not too long."""
    line = next((line for line in answer.splitlines() if line.strip()), "")
    text = re.sub(r"^(title|subject)\s*:\s*", "", plain_text(line), flags=re.IGNORECASE)
    return shortened(text.strip("\"'“”‘’«» .").strip(), LONGEST)
