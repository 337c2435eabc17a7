"""Titles: makes a short conversation title from the first question, or cleans a title that a model wrote."""

from __future__ import annotations

import re

from tertulia.core.markdown import plain_text, shortened

LONGEST = 60
_SENTENCE = re.compile(r"(?<=[.!?。？！])\s")


def title_of(question: str) -> str:
    """The first sentence without markup, cut between words at 60 characters."""
    texts = (plain_text(question), " ".join(question.split()))
    text = next(filter(_is_visible, texts), "Question")
    sentence = _SENTENCE.split(text, maxsplit=1)[0].rstrip(" .!。！:;,")
    return shortened(sentence if _is_visible(sentence) else text[:LONGEST], LONGEST)


def _is_visible(text: str) -> bool:
    return any(character.isprintable() and not character.isspace() for character in text)


def cleaned(answer: str) -> str:
    """Cleans a title that a model wrote: one line, no quotes, no full stop, not too long."""
    line = next((line for line in answer.splitlines() if line.strip()), "")
    text = re.sub(r"^(title|subject)\s*:\s*", "", plain_text(line), flags=re.IGNORECASE)
    return shortened(text.strip("\"'“”‘’«» .").strip(), LONGEST)
