"""Fair embedding order: the project of each chunk that waits for its vector, so that projects take turns."""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"

STATEMENTS = """
ALTER TABLE vectors_due ADD COLUMN project_id TEXT NOT NULL DEFAULT '';
UPDATE vectors_due SET project_id = (
    SELECT c.project_id FROM content_chunks AS c WHERE c.number = vectors_due.number
);
CREATE INDEX vectors_due_by_project ON vectors_due (project_id, number DESC)
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";"):
        op.execute(statement)
