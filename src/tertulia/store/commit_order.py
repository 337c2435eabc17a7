"""Commit order: returns finished transactions in the order in which they wrote to each topic."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

from tertulia.store.transaction_task import TransactionTask
from tertulia.store.transactions import Tx

DeliverTasks = Callable[[Sequence[TransactionTask]], None]


class CommitOrder:
    """A queue of transactions per topic: a task is returned once it is first in the queues of all its topics.

    Two transactions that write to one topic commit one after the other, but their threads may return from the
    commit in the opposite order. So each transaction enters the queues of its topics while it holds their
    locks.
    """

    def __init__(self, hand_back: DeliverTasks) -> None:
        self._hand_back = hand_back
        self._queues: dict[str, deque[Tx]] = {}
        self._topics: dict[Tx, set[str]] = {}
        self._finished: dict[Tx, TransactionTask | None] = {}
        self._lock = threading.Lock()

    def enter(self, tx: Tx, topics: Sequence[str]) -> None:
        with self._lock:
            own_topics = self._topics.setdefault(tx, set())
            for topic in topics:
                if topic not in own_topics:
                    own_topics.add(topic)
                    self._queues.setdefault(topic, deque()).append(tx)

    def leave(self, tx: Tx, task: TransactionTask | None = None) -> None:
        """Ends a transaction. Its task, if any, is returned once the transactions before it have ended."""
        with self._lock:
            self._finished[tx] = task
            self._release(tx)

    def _release(self, tx: Tx) -> None:
        own_topics = self._topics.get(tx, set())
        if tx not in self._finished or any(self._queues[topic][0] is not tx for topic in own_topics):
            return
        task = self._finished.pop(tx)
        self._topics.pop(tx, None)
        followers = [queue[0] for topic in own_topics if (queue := self._step(topic))]
        if task is not None:
            self._hand_back((task,))
        for follower in followers:
            self._release(follower)

    def _step(self, topic: str) -> deque[Tx]:
        queue = self._queues[topic]
        queue.popleft()
        if not queue:
            del self._queues[topic]
        return queue
