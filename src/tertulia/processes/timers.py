"""Timers: the clock of an event loop, and a timer that fires when something has not been used for a while."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    def cancel(self) -> None: ...


class TimerClock(Protocol):
    """The part of an event loop that a timer needs; an event loop is one."""

    def call_later(self, delay: float, callback: Callable[[], object]) -> Timer: ...


GetClock = Callable[[], TimerClock]
"""Returns the clock to use now. `asyncio.get_running_loop` is one."""


class IdleTimer:
    """Calls a function after a time without use."""

    def __init__(self, idle_s: float, on_idle: Callable[[], object], get_clock: GetClock) -> None:
        self._idle_s = idle_s
        self._on_idle = on_idle
        self._get_clock = get_clock
        self._timer: Timer | None = None

    def restart(self) -> None:
        """Called after each use."""
        self.cancel()
        self._timer = self._get_clock().call_later(self._idle_s, self._on_idle)

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
