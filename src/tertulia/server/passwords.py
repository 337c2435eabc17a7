"""Passwords: argon2id, hashed off the event loop, a few at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

AT_ONCE = 2
"""Each hash takes 64 MiB and a core; more at once would starve everyone else."""


class Passwords:
    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or PasswordHasher()
        self._gate = asyncio.Semaphore(AT_ONCE)
        self._nobodys: str | None = None

    async def hash(self, password: str) -> str:
        async with self._gate:
            return await asyncio.to_thread(self._hasher.hash, password)

    async def match(self, password: str, hashed: str | None, may_try: Callable[[], None]) -> bool:
        """False for a wrong password and for no account at all, after the same work.

        `may_try` refuses by raising. It is asked when the turn has come, so that a thousand tries sent at
        once count like a thousand sent one after the other.
        """
        async with self._gate:
            may_try()
            return await asyncio.to_thread(self._verify, password, hashed)

    def _verify(self, password: str, hashed: str | None) -> bool:
        if self._nobodys is None:
            self._nobodys = self._hasher.hash("nobody has this password")
        try:
            return self._hasher.verify(hashed or self._nobodys, password) and hashed is not None
        except (VerificationError, InvalidHashError):
            return False
