"""ULIDs: ids of 26 characters, from 48 bits of milliseconds and 80 random bits; they sort by time."""

from __future__ import annotations

from collections.abc import Callable

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
LENGTH = 26
_VALUES = frozenset(ALPHABET)
_PAIRS = tuple(first + second for first in ALPHABET for second in ALPHABET)

Clock = Callable[[], int]
"""Returns milliseconds since 1970."""

NewId = Callable[[], str]
"""Returns a new id."""


def ulid(at_ms: int, random_bytes: bytes) -> str:
    """The id for a time and ten random bytes."""
    number = (at_ms & ((1 << 48) - 1)) << 80 | int.from_bytes(random_bytes[:10].rjust(10, b"\0"), "big")
    return "".join([_PAIRS[(number >> shift) & 1023] for shift in range(120, -1, -10)])


def is_ulid(text: str) -> bool:
    return len(text) == LENGTH and text[0] <= "7" and _VALUES.issuperset(text)
