"""Word pieces: text as the numbers a BERT model of uncased English reads.

Words are looked up whole, else by their longest known beginning, then the longest known continuation, and so
on. Only as much of a text is read as can be used: the cost is that of the tokens asked for.
"""

from __future__ import annotations

import json
import re
import unicodedata
from functools import lru_cache
from pathlib import Path

WORD_LIMIT = 100
"""Longer ones are unknown, as they were when the model learned."""
_TOKEN_CHARACTERS = 12
"""More characters than this to a token are rare enough to be left unread."""

_IDEOGRAPH = (
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f"
)
_WORD = re.compile(f"[{_IDEOGRAPH}]|[^\\W_{_IDEOGRAPH}]+|[^\\w\\s]|_")


class WordPieces:
    def __init__(self, path: Path) -> None:
        """From a tokenizer.json as published beside the weights."""
        vocabulary = json.loads(path.read_text("utf-8"))["model"]["vocab"]
        self._vocabulary: dict[str, int] = vocabulary
        self._unknown = vocabulary["[UNK]"]
        self._first, self._last = vocabulary["[CLS]"], vocabulary["[SEP]"]
        self._pieces = lru_cache(maxsize=50_000)(self._split)

    def encode(self, text: str, limit: int) -> list[int]:
        """At most so many tokens, with those that stand for the beginning and the end."""
        room = limit - 2
        found: list[int] = []
        for match in _WORD.finditer(_normal(text[: room * _TOKEN_CHARACTERS])):
            found += self._pieces(match[0])
            if len(found) >= room:
                break
        return [self._first, *found[:room], self._last]

    def _split(self, word: str) -> tuple[int, ...]:
        if len(word) > WORD_LIMIT:
            return (self._unknown,)
        pieces: list[int] = []
        start = 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = self._vocabulary.get(word[start:end] if start == 0 else "##" + word[start:end])
                if piece is not None:
                    pieces.append(piece)
                    start = end
                    break
            else:
                return (self._unknown,)
        return tuple(pieces)


def _normal(text: str) -> str:
    """Lower case, without accents and control characters."""
    lower = text.lower()
    if lower.isascii():
        return lower
    apart = unicodedata.normalize("NFD", lower)
    return "".join(c for c in apart if unicodedata.category(c) not in ("Mn", "Cc", "Cf") or c.isspace())
