"""Read replies: a draft lists the replies of its round that its model was shown, so recovery knows them."""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.execute("ALTER TABLE drafts ADD COLUMN read_replies TEXT NOT NULL DEFAULT '[]'")
