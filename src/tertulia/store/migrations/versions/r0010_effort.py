"""Effort: how much a persona's model thinks, and how much the model of a reply was told to."""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.execute("ALTER TABLE persona_versions ADD COLUMN effort TEXT")
    op.execute("ALTER TABLE receipts ADD COLUMN effort TEXT")
