"""Alembic environment: runs the migrations inside the transaction that store/migrate.py has opened."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
