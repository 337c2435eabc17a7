"""The database of this machine, for commands that do one thing with it and end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tertulia import settings
from tertulia.app import new_id, now_ms
from tertulia.store.database import Database


@contextmanager
def opened() -> Iterator[Database]:
    given = settings.read(os.environ)
    settings.make_home(given.home)
    db = Database.open(given.database_url, clock=now_ms, new_id=new_id)
    try:
        yield db
    finally:
        db.close()
