"""Local database: opens the configured database for a command and closes it afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tertulia import settings
from tertulia.app import new_id, now_ms
from tertulia.store.database import Database


@contextmanager
def connect() -> Iterator[Database]:
    configured = settings.read(os.environ)
    settings.make_home(configured.home)
    db = Database.open(configured.database_url, clock=now_ms, new_id=new_id)
    try:
        yield db
    finally:
        db.close()
