"""Password hashing with argon2id, in threads and a few at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

AT_ONCE = 2
"""Each hash takes 64 MiB and a core; more at once would slow all other requests."""


class Passwords:
    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or PasswordHasher()
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._dummy_hash: str | None = None

    async def hash(self, password: str) -> str:
        async with self._slots:
            return await asyncio.to_thread(self._hasher.hash, password)

    async def match(self, password: str, hashed: str | None, may_try: Callable[[], None]) -> bool:
        """False for a wrong password and for a missing account, after the same work.

        `may_try` raises to refuse an attempt. It is called just before the comparison, so that a thousand
        simultaneous attempts count like a thousand consecutive ones.
        """
        async with self._slots:
            may_try()
            return await asyncio.to_thread(self._verify, password, hashed)

    def _verify(self, password: str, hashed: str | None) -> bool:
        if self._dummy_hash is None:
            self._dummy_hash = self._hasher.hash("nobody has this password")
        try:
            return self._hasher.verify(hashed or self._dummy_hash, password) and hashed is not None
        except (VerificationError, InvalidHashError):
            return False
