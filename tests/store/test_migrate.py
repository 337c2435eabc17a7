"""Migrations: all steps or none, a copy of the file first, and no database of a newer version."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import psycopg
import pytest
from alembic.script import ScriptDirectory

from tertulia.core.errors import CannotStart, DatabaseTooNew
from tertulia.store import config, migrate
from tertulia.store.database import Database
from tertulia.store.migrate import MigrationHistory
from tertulia.store.postgres import Postgres
from tertulia.store.sql import sql
from tertulia.store.sqlite import Sqlite
from tests.patience import PATIENCE_S
from tests.store_fixtures import Clock, Ids, new_postgres_database

Open = Callable[[MigrationHistory], Database]


@pytest.fixture(params=["sqlite", "postgres"])
def reopen(request: pytest.FixtureRequest, clock: Clock, ids: Ids) -> Open:
    """A function that opens a database, which already holds a row, with a given migration history."""
    kind: type[Sqlite] | type[Postgres] = Sqlite
    if request.param == "sqlite":
        address = request.getfixturevalue("sqlite_url").removeprefix("sqlite:///")
    else:
        kind, server = Postgres, request.getfixturevalue("postgres_server")
        address = new_postgres_database(server, f"steps_{request.node.originalname}")
    first = Database(kind(address, clock, ids))
    first.write_now(lambda tx: config.set(tx, "kept", "since the first version"))
    first.close()
    return lambda history: Database(kind(address, clock, ids, history))


def later_history(folder: Path, steps: str) -> MigrationHistory:
    """The migration history of a later version, which has one more step."""
    folder.mkdir()
    for step in (files("tertulia.store") / "migrations" / "versions").iterdir():
        if step.name.startswith("r"):
            (folder / step.name).write_text(step.read_text())
    (folder / "r9999_later.py").write_text(
        f"from alembic import op\nrevision = '9999'\ndown_revision = '{migrate.HISTORY.head}'\n\n"
        f"def upgrade():\n{steps}"
    )
    return MigrationHistory((*migrate.HISTORY.revisions, "9999"), folder)


def test_the_list_of_revisions_matches_the_migration_files() -> None:
    scripts = ScriptDirectory(str(files("tertulia.store") / "migrations"))
    assert migrate.HISTORY.revisions == tuple(step.revision for step in scripts.walk_revisions())[::-1]
    assert migrate.HISTORY.head == scripts.get_current_head()


def test_an_older_database_is_upgraded_once(reopen: Open, tmp_path: Path) -> None:
    history = later_history(tmp_path / "steps", "    op.execute(\"UPDATE config SET value = '2'\")\n")
    for _ in range(2):
        db = reopen(history)
        assert db.read_now(config.get_all) == {"kept": 2}
        db.close()


def test_a_step_that_fails_leaves_the_database_as_it_was(reopen: Open, tmp_path: Path) -> None:
    history = later_history(
        tmp_path / "steps",
        "    op.execute('CREATE TABLE half (done INT)')\n    op.execute('DELETE FROM config')\n"
        "    op.execute('SELECT * FROM nothing_like_it')\n",
    )
    for _ in range(2):
        with pytest.raises(Exception, match="nothing_like_it"):
            reopen(history)
    db = reopen(migrate.HISTORY)
    assert db.read_now(config.get_all) == {"kept": "since the first version"}
    db.close()


def test_a_newer_database_is_refused_and_the_error_names_both_revisions(reopen: Open, tmp_path: Path) -> None:
    reopen(later_history(tmp_path / "steps", "    pass\n")).close()
    before = {path: digest(path) for path in tmp_path.glob("tertulia.db*")}
    with pytest.raises(DatabaseTooNew, match=f"9999.*{migrate.HISTORY.head}"):
        reopen(migrate.HISTORY)
    assert {path: digest(path) for path in before} == before


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_file_is_copied_before_it_is_upgraded(
    sqlite_url: str, clock: Clock, ids: Ids, tmp_path: Path
) -> None:
    path = tmp_path / "tertulia.db"
    first = Database.open(sqlite_url, clock=clock, new_id=ids)
    first.write_now(lambda tx: config.set(tx, "kept", "before"))
    first.close()
    history = later_history(tmp_path / "steps", "    op.execute('DELETE FROM config')\n")
    Database(Sqlite(str(path), clock, ids, history)).close()
    copy = sqlite3.connect(tmp_path / "tertulia.db.before-9999")
    assert copy.execute("SELECT value FROM config").fetchall() == [('"before"',)]
    copy.close()
    assert (tmp_path / "tertulia.db.before-9999").stat().st_mode & 0o777 == 0o600


def test_a_new_database_is_not_copied(tmp_path: Path, clock: Clock, ids: Ids) -> None:
    Database.open(f"sqlite:///{tmp_path / 'new' / 'tertulia.db'}", clock=clock, new_id=ids).close()
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["tertulia.db", "tertulia.db.lock"]


def test_a_step_that_leaves_rows_without_parents_is_refused(
    sqlite_url: str, clock: Clock, ids: Ids, tmp_path: Path
) -> None:
    history = later_history(
        tmp_path / "steps",
        "    op.execute(\"INSERT INTO segments (conversation_id, hash, text) VALUES ('none', '', '')\")\n",
    )
    with pytest.raises(CannotStart, match="without their parents"):
        Sqlite(sqlite_url.removeprefix("sqlite:///"), clock, ids, history)


def test_three_nodes_that_start_at_once_all_open_a_new_database(
    postgres_server: str, clock: Clock, ids: Ids
) -> None:
    url = new_postgres_database(postgres_server, "three_nodes")
    barrier = threading.Barrier(3, timeout=PATIENCE_S)
    outcomes: list[object] = []

    def start() -> None:
        barrier.wait()
        try:
            Database.open(url, clock=clock, new_id=ids).close()
            outcomes.append("started")
        except Exception as error:  # noqa: BLE001  whatever it is, the test shows it
            outcomes.append(error)

    nodes = [threading.Thread(target=start) for _ in range(3)]
    for node in nodes:
        node.start()
    for node in nodes:
        node.join()
    assert outcomes == ["started"] * 3


def test_both_databases_have_the_same_columns(sqlite_url: str, postgres_database: str) -> None:
    file = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))
    columns = file.execute(
        'SELECT m.name, c.name, c."notnull" FROM sqlite_master AS m, pragma_table_info(m.name) AS c '
        "WHERE m.type = 'table'"
    ).fetchall()
    file.close()
    with psycopg.connect(postgres_database) as connection:
        postgres_columns = connection.execute(
            "SELECT c.table_name, c.column_name, CASE c.is_nullable WHEN 'NO' THEN 1 ELSE 0 END "
            "FROM information_schema.columns AS c JOIN information_schema.tables AS t USING (table_name) "
            "WHERE c.table_schema = 'public' AND t.table_type = 'BASE TABLE'"
        ).fetchall()
    # The full-text index and the vector index differ between the databases.
    different = {("content_chunks", "words"), ("chunk_vectors", "near")}
    columns = [column for column in columns if not column[0].startswith(("retrieval_index", "sqlite_"))]
    postgres_columns = [column for column in postgres_columns if column[:2] not in different]
    assert sorted(columns) == sorted(postgres_columns)


def test_waiting_jobs_and_due_chunks_get_their_queues_in_the_upgrade(
    tmp_path: Path, clock: Clock, ids: Ids
) -> None:
    folder = tmp_path / "steps"
    folder.mkdir()
    for step in (files("tertulia.store") / "migrations" / "versions").iterdir():
        if step.name.startswith("r") and step.name < "r0006":
            (folder / step.name).write_text(step.read_text())
    address = str(tmp_path / "before.db")
    Database(Sqlite(address, clock, ids, MigrationHistory(migrate.HISTORY.revisions[:5], folder))).close()
    with sqlite3.connect(address) as before:
        before.executescript("""
            INSERT INTO projects VALUES ('P', 'Home', '', '', '{}', 0, 0);
            INSERT INTO blobs (hash, size_bytes, keeping, content, used_at) VALUES ('00', 0, 'row', '', 0);
            INSERT INTO project_files VALUES
                ('F', 'P', 'a', '', 0, '00', 1, 0, 0, 0, '[]', '', 'queued', 0, 0, NULL, 'A', 0, 0);
            INSERT INTO jobs (id, kind, payload, state, run_at, attempts, created_at) VALUES
                ('1', 'index_file', 'F', 'waiting', 0, 0, 0),
                ('2', 'index_file', 'gone', 'waiting', 0, 0, 0),
                ('3', 'title', 'C', 'waiting', 0, 0, 0);
            INSERT INTO content_chunks VALUES
                (7, 'K', 'file', 'F', NULL, NULL, 'P', NULL, 0, 1, 0, '{}', '', '', 'text');
            INSERT INTO vectors_due VALUES (7);
        """)
    before.close()
    db = Database(Sqlite(address, clock, ids))
    rows = db.read_now(lambda tx: tx.execute(sql("SELECT id, queue FROM jobs ORDER BY id")))
    assert [tuple(row) for row in rows] == [("1", "P:A"), ("2", ""), ("3", "")]
    due = db.read_now(lambda tx: tx.execute(sql("SELECT number, project_id FROM vectors_due")))
    assert [tuple(row) for row in due] == [(7, "P")]
    db.close()
