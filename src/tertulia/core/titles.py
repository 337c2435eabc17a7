"""Titles without a model: the first thing that was asked, made short."""

from __future__ import annotations

import re

LONGEST = 60
_FENCE = re.compile(r"```.*?(```|\Z)", re.DOTALL)
_EMPHASIS = re.compile(r"[*_`~]+")
_MARKS = re.compile(r"[#>|\[\]]+")
_SENTENCE = re.compile(r"(?<=[.!?。？！])\s")


def title_of(question: str) -> str:
    """The first sentence, without markup, cut between words."""
    text = _plain(_FENCE.sub(" ", question[:4000]))
    sentence = _SENTENCE.split(text, maxsplit=1)[0].rstrip(" .!。！:;,")
    return _shortened(sentence or " ".join(question.split())[:LONGEST]) or "Untitled"


def _shortened(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    cut = text[: LONGEST + 1].rsplit(" ", 1)[0]
    return (cut if len(cut) > LONGEST // 2 else text[:LONGEST]).rstrip(" ,;:") + "…"


def cleaned(answer: str) -> str:
    """A model's title: one line, no quotes, no full stop, not too long."""
    line = next((line for line in answer.splitlines() if line.strip()), "")
    text = re.sub(r"^(title|subject)\s*:\s*", "", _plain(line), flags=re.IGNORECASE)
    return _shortened(text.strip("\"'“”‘’«» .").strip())


def _plain(text: str) -> str:
    """Without Markdown's marks, on one line."""
    return " ".join(_MARKS.sub(" ", _EMPHASIS.sub("", text)).split())
