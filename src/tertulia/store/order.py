"""The order of commits: what was written in one place is handed back in its order, whatever threads do."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

from tertulia.store.transactions import Tx, Work

HandBack = Callable[[Sequence[Work]], None]


class Order:
    """Hands work back in the order in which its places were written, however the threads come and go.

    Two transactions that write in one place commit one after the other, but their threads may return from the
    commit the other way round. So each stands in line for its places from the moment it holds them.
    """

    def __init__(self, hand_back: HandBack) -> None:
        self._hand_back = hand_back
        self._lines: dict[str, deque[Tx]] = {}
        self._places: dict[Tx, set[str]] = {}
        self._over: dict[Tx, Work | None] = {}
        self._lock = threading.Lock()

    def enter(self, tx: Tx, places: Sequence[str]) -> None:
        with self._lock:
            mine = self._places.setdefault(tx, set())
            for place in places:
                if place not in mine:
                    mine.add(place)
                    self._lines.setdefault(place, deque()).append(tx)

    def leave(self, tx: Tx, work: Work | None = None) -> None:
        """The transaction is over; its work, if any, goes back when those before it have gone."""
        with self._lock:
            self._over[tx] = work
            self._release(tx)

    def _release(self, tx: Tx) -> None:
        mine = self._places.get(tx, set())
        if tx not in self._over or any(self._lines[place][0] is not tx for place in mine):
            return
        work = self._over.pop(tx)
        self._places.pop(tx, None)
        behind = [line[0] for place in mine if (line := self._step(place))]
        if work is not None:
            self._hand_back((work,))
        for other in behind:
            self._release(other)

    def _step(self, place: str) -> deque[Tx]:
        line = self._lines[place]
        line.popleft()
        if not line:
            del self._lines[place]
        return line
