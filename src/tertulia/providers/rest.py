"""Rest: a provider that keeps failing is left alone for a while, and then tried again by itself.

well ──fails again and again──▶ resting ──time passes──▶ on trial ──fails──▶ resting, twice as long
  ▲                                                         │
  └───────────────────── says a first word ◀────────────────┘

Nobody waits for it meanwhile: who asks is told at once, and everyone else at the table is answered.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tertulia.providers.seam import ProviderFault

FAILURES = 3
"""So many calls in a row, each with its retries, before a provider rests."""
FIRST_REST_S = 15.0
LONGEST_REST_S = 120.0


class Rest:
    """How one provider is doing."""

    def __init__(self, name: str, now: Callable[[], float]) -> None:
        self._name = name
        self._now = now
        self._failures = 0
        self._rests = 0
        self._until = 0.0

    @property
    def is_resting(self) -> bool:
        return self._now() < self._until

    def check(self) -> None:
        """Raises while the provider rests."""
        left_s = self._until - self._now()
        if left_s > 0:
            raise ProviderFault(
                "unavailable",
                f"{self._name} failed {self._failures} times in a row and is paused. "
                f"It can be asked again in {math.ceil(left_s)} s.",
            )

    def answered(self) -> None:
        self._failures = self._rests = 0
        self._until = 0.0

    def failed(self, fault: ProviderFault) -> None:
        """A call is over without a word; only what is the provider's own trouble counts."""
        if not fault.is_outage or self.is_resting:
            return  # Calls that were under way when the rest began do not make it longer.
        self._failures += 1
        if self._failures >= FAILURES:
            self._until = self._now() + min(FIRST_REST_S * 2**self._rests, LONGEST_REST_S)
            self._rests += 1
