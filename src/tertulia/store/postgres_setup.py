"""PostgreSQL setup at the start: upgrades the tables and installs the extension `vector` where it can."""

from __future__ import annotations

from typing import Any

import psycopg

from tertulia.store import migrate, vector_index
from tertulia.store.vector_index import NoVectorIndex, Pgvector, VectorIndex

Wire = psycopg.Connection[tuple[Any, ...]]


def tables(connection: Wire, history: migrate.MigrationHistory) -> None:
    """Creates the tables, or upgrades them to the schema that this program needs."""
    if migrate.needed(_revision(connection), history):
        _upgrade(connection, history)


def _upgrade(connection: Wire, history: migrate.MigrationHistory) -> None:
    """Runs the missing migrations under a lock: when several nodes start at once, the others wait for one."""
    with migrate.for_alembic(connection, "postgresql+psycopg://") as wrapped:
        connection.execute("BEGIN")
        try:
            connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('tertulia migrations', 0))")
            if migrate.needed(_revision(connection), history):
                migrate.upgrade(wrapped, history)
            connection.execute("COMMIT")
        except BaseException:
            connection.rollback()
            raise


def _revision(connection: Wire) -> str | None:
    exists = connection.execute("SELECT to_regclass('alembic_version') IS NOT NULL").fetchone()
    return migrate.revision_of(connection) if exists == (True,) else None


def vectors(connection: Wire) -> tuple[VectorIndex, str]:
    """The vector index to use, and a text for people that says where vectors are compared and why.

    The database compares vectors if the extension can be installed, otherwise the server does in memory.
    """
    try:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('tertulia migrations', 0))")
            version = _extension(connection)
            if version is None:
                return NoVectorIndex(), vector_index.NOT_INSTALLED
            if tuple(map(int, version.split(".")[:2])) < vector_index.OLDEST:
                return NoVectorIndex(), vector_index.TOO_OLD.format(version=version)
            if not _has_column(connection):
                for statement in vector_index.CREATE:
                    connection.execute(statement)
    except psycopg.errors.InsufficientPrivilege:
        return NoVectorIndex(), vector_index.NOT_ALLOWED
    except (psycopg.Error, ValueError) as error:
        return NoVectorIndex(), vector_index.NOT_USABLE.format(reason=str(error).strip())
    return Pgvector(), f"compared in the database by pgvector {version}"


def _extension(connection: Wire) -> str | None:
    """The version of the extension `vector`, which is created if missing; None where it is not available."""
    row = connection.execute(vector_index.EXTENSION).fetchone()
    if row is None:
        return None
    available, installed = row
    if installed is None:
        connection.execute("CREATE EXTENSION vector")
    return str(installed or available)


def _has_column(connection: Wire) -> bool:
    row = connection.execute("""
        SELECT EXISTS (
            SELECT 1 FROM pg_attribute
            WHERE attrelid = CAST('chunk_vectors' AS REGCLASS) AND attname = 'near' AND NOT attisdropped
        )
    """).fetchone()
    return row == (True,)
