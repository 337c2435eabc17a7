"""Circuit breaker: stops calling a provider that keeps failing, and tries it again after a pause.

closed ──repeated failures──▶ open ──pause ends──▶ half-open ──failure──▶ open, twice as long
  ▲                                                    │
  └──────────────── first stream item ◀────────────────┘

While the circuit is open a call fails at once instead of waiting, and the other models still reply.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tertulia.providers.interface import ProviderError

FAILURES = 3
"""How many calls in a row must fail, each with its retries, before the circuit opens."""
FIRST_PAUSE_S = 15.0
LONGEST_PAUSE_S = 120.0


class CircuitBreaker:
    """The failure count and the pause of one provider."""

    def __init__(self, name: str, now: Callable[[], float]) -> None:
        self._name = name
        self._now = now
        self._failures = 0
        self._pauses = 0
        self._open_until = 0.0

    @property
    def is_open(self) -> bool:
        return self._now() < self._open_until

    def raise_if_open(self) -> None:
        """Raises ProviderError while the circuit is open."""
        remaining_s = self._open_until - self._now()
        if remaining_s > 0:
            raise ProviderError(
                "unavailable",
                f"{self._name} failed {self._failures} times in a row and is paused. "
                f"It can be asked again in {math.ceil(remaining_s)} s.",
            )

    def record_success(self) -> None:
        self._failures = self._pauses = 0
        self._open_until = 0.0

    def record_failure(self, error: ProviderError) -> None:
        """Records a call that failed before its first text. Only outages of the provider count."""
        if not error.is_outage or self.is_open:
            return  # Calls that were running when the circuit opened do not make the pause longer.
        self._failures += 1
        if self._failures >= FAILURES:
            self._open_until = self._now() + min(FIRST_PAUSE_S * 2**self._pauses, LONGEST_PAUSE_S)
            self._pauses += 1
