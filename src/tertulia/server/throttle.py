"""Throttling of sign-ins: after ten failures in 15 minutes, an account or a client address must wait."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Callable

from tertulia.core.errors import TooManyAttempts

ATTEMPTS = 10
WINDOW_S = 15 * 60
REMEMBERED = 10_000


class Throttle:
    def __init__(
        self, monotonic: Callable[[], float], attempts: int = ATTEMPTS, window_s: float = WINDOW_S
    ) -> None:
        self._monotonic = monotonic
        self._attempts = attempts
        self._window_s = window_s
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()

    def must_be_open(self, *keys: str) -> None:
        """Raises TooManyAttempts while one of these keys is blocked."""
        waits = [wait for key in keys if (wait := self._wait(key)) > 0]
        if waits:
            seconds = math.ceil(max(waits))
            minutes = max(1, round(seconds / 60))
            raise TooManyAttempts(f"Too many attempts. Try again in {minutes} min.", retry_after_s=seconds)

    def record_failure(self, *keys: str) -> None:
        for key in keys:
            failures = self._failures.setdefault(key, deque(maxlen=self._attempts))
            failures.append(self._monotonic())
            self._failures.move_to_end(key)
        while len(self._failures) > REMEMBERED:
            self._failures.popitem(last=False)

    def record_success(self, *keys: str) -> None:
        for key in keys:
            self._failures.pop(key, None)

    def _wait(self, key: str) -> float:
        """The seconds until the key is no longer blocked; 0 or less if it is not."""
        failures = self._failures.get(key)
        if failures is None or len(failures) < self._attempts:
            return 0
        return failures[0] + self._window_s - self._monotonic()
