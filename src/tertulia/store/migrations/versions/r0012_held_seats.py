"""Held seats: a conversation keeps which seat each lane has had in it, so that its colour stays."""

from __future__ import annotations

from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.execute("ALTER TABLE conversations ADD COLUMN seats TEXT NOT NULL DEFAULT '[]'")
