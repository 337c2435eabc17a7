"""Thinking effort: the setting of a persona, and the setting a reply was requested with."""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.execute("ALTER TABLE persona_versions ADD COLUMN effort TEXT")
    op.execute("ALTER TABLE receipts ADD COLUMN effort TEXT")
