"""An embedder of the tests: a text becomes the sum of the directions its words point in."""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Sequence
from math import sqrt

from tertulia.library.embed import Billed, EmbeddingFailed, for_nothing

SAME = {"feline": "cat", "kitten": "cat", "automobile": "car", "vehicle": "car"}
"""Words that mean the same here, though no letter says so."""


class Bags:
    dimensions = 64

    def __init__(self, model: str = "bags") -> None:
        self.model = model
        self.reason: str | None = None
        self.is_broken = False
        self.embedded: list[str] = []

    def unavailable_reason(self) -> str | None:
        return self.reason

    async def embed(
        self, texts: Sequence[str], *, is_query: bool = False, billed: Billed = for_nothing
    ) -> tuple[bytes, ...]:
        if self.is_broken:
            raise EmbeddingFailed("It broke.")
        self.embedded += texts
        return tuple(_vector(text) for text in texts)

    async def close(self) -> None:
        return None


def _vector(text: str) -> bytes:
    return struct.pack("<64e", *numbers(text))


def numbers(text: str) -> list[float]:
    sums = [0.0] * 64
    for word in re.findall(r"\w+", text.lower()):
        digest = hashlib.sha512(SAME.get(word, word).encode()).digest()
        for place, byte in enumerate(digest):
            sums[place] += byte - 127.5
    length = sqrt(sum(one * one for one in sums)) or 1.0
    return [one / length for one in sums]
