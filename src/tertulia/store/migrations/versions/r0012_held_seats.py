"""Held seats: a conversation stores the seat of each lane, so that the lane keeps its colour."""

from __future__ import annotations

from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.execute("ALTER TABLE conversations ADD COLUMN seats TEXT NOT NULL DEFAULT '[]'")
