"""A bag-of-words embedder for tests: the vector of a text is the sum of a fixed vector for each word."""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Sequence
from math import sqrt

from tertulia.library.embedders import EmbeddingFailed, OnCharge, not_charged

SAME = {"feline": "cat", "kitten": "cat", "automobile": "car", "vehicle": "car"}
"""Words that this embedder treats as synonyms."""


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
        self, texts: Sequence[str], *, is_query: bool = False, billed: OnCharge = not_charged
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
        for index, byte in enumerate(digest):
            sums[index] += byte - 127.5
    length = sqrt(sum(value * value for value in sums)) or 1.0
    return [value / length for value in sums]
