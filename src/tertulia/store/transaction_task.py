"""Transaction task: a function that waits to be run in its own transaction, with its result or its error."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tertulia.core.errors import Busy
from tertulia.core.events import Event
from tertulia.store.transactions import Dialect, Tx

WAITING_LIMIT = 10_000
"""The most tasks that may wait in one queue. More are refused: their clients would give up waiting."""


@dataclass(slots=True, eq=False)
class TransactionTask:
    """A function to run in its own transaction, and the future that waits for its result."""

    run: Callable[[Tx], Any]
    future: asyncio.Future[Any] | concurrent.futures.Future[Any]
    loop: asyncio.AbstractEventLoop | None
    """The event loop of the future; None when a thread waits."""
    result: Any = None
    error: Exception | None = None
    events: tuple[Event, ...] = ()

    def perform(self, tx: Tx, dialect: Dialect) -> None:
        """Runs the function and numbers its events, without committing; stores an error for the future."""
        try:
            self.result = self.run(tx)
            tx.number_events()
        except dialect.error as error:
            self.fail(to_app_error(error, dialect))
        except Exception as error:  # noqa: BLE001  raised in the waiting code
            self.error = error
        else:
            self.error, self.events = None, tx.events

    def fail(self, error: Exception) -> None:
        self.error, self.result, self.events = error, None, ()

    def settle(self) -> None:
        """Sets the result or the error in the future, unless it was cancelled."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


def to_app_error(error: Exception, dialect: Dialect) -> Exception:
    """The error for people, or the driver's error itself if it shows a bug in this program."""
    translated = dialect.translate(error)
    if translated is None:
        return error
    translated.__cause__ = error
    return translated


def check_capacity(is_closed: bool, waiting: int) -> None:
    """Raises Busy if the database is closing or too many tasks are waiting."""
    if is_closed:
        raise Busy("The server is stopping. Try again when it is back.")
    if waiting >= WAITING_LIMIT:
        raise Busy("The database has more to do than it can keep up with. Try again in a few seconds.", 5)
