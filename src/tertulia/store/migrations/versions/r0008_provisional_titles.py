"""Provisional titles: marks a title that is only the beginning of the first question."""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.execute("ALTER TABLE conversations ADD COLUMN title_is_provisional BOOLEAN NOT NULL DEFAULT FALSE")
