"""WordPiece tokenizer: turns text into the token numbers of an uncased English BERT model.

A word is looked up as a whole, else by its longest prefix in the vocabulary, then the longest continuation,
and so on. Only as much of a text is read as can be used, so the cost depends on the token limit.
"""

from __future__ import annotations

import json
import re
import unicodedata
from functools import lru_cache
from pathlib import Path

WORD_LIMIT = 100
"""Longer words become the unknown token, as in the training of the model."""
_TOKEN_CHARACTERS = 12
"""Characters read per token of the limit; longer tokens are rare."""

_IDEOGRAPH = (
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f"
)
_WORD = re.compile(f"[{_IDEOGRAPH}]|[^\\W_{_IDEOGRAPH}]+|[^\\w\\s]|_")


class WordPieces:
    def __init__(self, path: Path) -> None:
        """Reads the vocabulary from the tokenizer.json that is published with the model weights."""
        vocabulary = json.loads(path.read_text("utf-8"))["model"]["vocab"]
        self._vocabulary: dict[str, int] = vocabulary
        self._unknown = vocabulary["[UNK]"]
        self._first, self._last = vocabulary["[CLS]"], vocabulary["[SEP]"]
        self._pieces = lru_cache(maxsize=50_000)(self._split)

    def encode(self, text: str, limit: int) -> list[int]:
        """At most `limit` tokens, including those for the beginning and the end of the text."""
        room = limit - 2
        tokens: list[int] = []
        for match in _WORD.finditer(_normal(text[: room * _TOKEN_CHARACTERS])):
            tokens += self._pieces(match[0])
            if len(tokens) >= room:
                break
        return [self._first, *tokens[:room], self._last]

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
    decomposed = unicodedata.normalize("NFD", lower)
    return "".join(c for c in decomposed if unicodedata.category(c) not in ("Mn", "Cc", "Cf") or c.isspace())
