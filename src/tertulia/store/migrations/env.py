"""How Alembic runs our steps: inside the transaction that store/migrate.py has opened."""

from __future__ import annotations

from alembic import context

# Alembic is told to manage no transaction: ours is open already and holds all steps and the new revision.
context.configure(connection=context.config.attributes["connection"], transactional_ddl=False)
context.run_migrations()
