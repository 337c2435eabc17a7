"""Fixtures of the store's tests: Ada is an administrator, Bob a member; they share no project."""

from __future__ import annotations

import pytest

from tertulia.core.users import Actor, ServerRole
from tertulia.store.database import Database
from tests.store.samples import home, person


@pytest.fixture
def ada(db: Database) -> Actor:
    return db.write_now(lambda tx: person(tx, "Ada", ServerRole.ADMIN))


@pytest.fixture
def bob(db: Database, ada: Actor) -> Actor:
    return db.write_now(lambda tx: person(tx, "Bob"))


@pytest.fixture
def adas_home(db: Database, ada: Actor) -> str:
    return db.read_now(lambda tx: home(tx, ada))
