"""Schema migrations: upgrade a database of an earlier version, all steps in one transaction.

Alembic and SQLAlchemy are imported only when a step is missing: they are slow to load, and nearly every start
needs no step. Nothing else in Tertulia uses SQLAlchemy.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tertulia.core.errors import DatabaseTooNew

if TYPE_CHECKING:
    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class MigrationHistory:
    """The migration steps that this program knows, oldest first, and their folder.

    None as the folder means the steps in this package.
    """

    revisions: tuple[str, ...]
    folder: Path | None = None

    @property
    def head(self) -> str:
        return self.revisions[-1]


HISTORY = MigrationHistory(
    revisions=(
        "0001",
        "0002",
        "0003",
        "0004",
        "0005",
        "0006",
        "0007",
        "0008",
        "0009",
        "0010",
        "0011",
        "0012",
        "0013",
        "0014",
        "0015",
        "0016",
    )  # fmt: skip
)


def needed(revision: str | None, history: MigrationHistory = HISTORY) -> bool:
    """Whether steps are missing. Raises DatabaseTooNew for a database that a newer version has written."""
    if revision is not None and revision not in history.revisions:
        raise DatabaseTooNew(
            f"This database is of revision {revision}, written by a newer Tertulia; this one knows revisions "
            f"up to {history.head}. Start the newer version, or restore the copy taken before the upgrade."
        )
    return revision != history.head


class Driver(Protocol):
    def execute(self, sql: Any, /) -> Any: ...


def revision_of(connection: Driver) -> str | None:
    """The revision in Alembic's table; None when the table is empty, as it is before the first step."""
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return row[0] if row else None


@contextmanager
def for_alembic(connection: Driver, url: str) -> Iterator[Connection]:
    """Wraps the driver's connection in an SQLAlchemy connection; the driver's one stays open afterwards.

    SQLAlchemy rolls back when the wrapper opens and when it closes, so our transaction runs in between.
    """
    from sqlalchemy import create_engine
    from sqlalchemy.pool import StaticPool

    engine = create_engine(
        url, creator=lambda: connection, poolclass=StaticPool, isolation_level="AUTOCOMMIT"
    )
    with engine.connect() as wrapped:
        yield wrapped


def upgrade(connection: Connection, history: MigrationHistory = HISTORY) -> None:
    """Runs every missing step inside the transaction that is open on the connection."""
    from alembic import command
    from alembic.config import Config

    connection.begin()  # Alembic neither commits nor rolls back a transaction that is already open
    with as_file(files("tertulia.store") / "migrations") as own_folder:
        config = Config()
        config.set_main_option("script_location", str(own_folder).replace("%", "%%"))
        config.set_main_option("path_separator", "newline")
        config.set_main_option(
            "version_locations", str(history.folder or own_folder / "versions").replace("%", "%%")
        )
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
