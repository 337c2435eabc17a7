"""Passages and search scopes: the passages found for a turn, and the scope its search was limited to."""

from __future__ import annotations

from alembic import op

revision = "0014"
down_revision = "0013"

STATEMENTS = """
ALTER TABLE turns ADD COLUMN search_scope TEXT;
ALTER TABLE turns ADD COLUMN found TEXT NOT NULL DEFAULT '[]';
CREATE INDEX turns_with_found ON turns (conversation_id, id) WHERE found <> '[]';
ALTER TABLE conversations ADD COLUMN search_scope TEXT
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";"):
        op.execute(statement)
