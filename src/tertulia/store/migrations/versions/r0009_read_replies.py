"""Read replies: a draft keeps which replies of its round a model was shown, and so does recovery."""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.execute("ALTER TABLE drafts ADD COLUMN read_replies TEXT NOT NULL DEFAULT '[]'")
