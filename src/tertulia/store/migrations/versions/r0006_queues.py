"""Fair job queues: a queue per project and user, served in turn, with indexes to find the next job."""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"

# Index jobs for files have their own worker, so each worker has its own index. A payload can be longer than
# PostgreSQL allows in an index.
STATEMENTS = """
ALTER TABLE jobs ADD COLUMN queue TEXT NOT NULL DEFAULT '';
UPDATE jobs SET queue = COALESCE(
    (SELECT f.project_id || ':' || f.created_by FROM project_files AS f WHERE f.id = jobs.payload), ''
) WHERE kind = 'index_file' AND state = 'waiting';
DROP INDEX jobs_by_time;
CREATE INDEX jobs_of_files ON jobs (state, queue, run_at, id) WHERE kind = 'index_file';
CREATE INDEX jobs_of_others ON jobs (state, queue, run_at, id) WHERE kind <> 'index_file';
CREATE INDEX jobs_by_payload ON jobs (kind, SUBSTR(payload, 1, 64)) WHERE state = 'waiting'
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";"):
        op.execute(statement)
