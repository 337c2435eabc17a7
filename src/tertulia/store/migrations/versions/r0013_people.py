"""People of a project: everyone who is or was a member, so that their messages keep an author's name."""

from __future__ import annotations

from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.execute(_PEOPLE)
    op.execute(_BY_USER)
    op.execute(_BEFORE)


_PEOPLE = """
CREATE TABLE project_people (
    project_id TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (project_id, user_id)
)
"""

_BY_USER = "CREATE INDEX project_people_by_user ON project_people (user_id, project_id)"

_BEFORE = """
INSERT INTO project_people (project_id, user_id, created_at)
SELECT seen.project_id, seen.user_id, MIN(seen.created_at) FROM (
    SELECT project_id, user_id, created_at FROM project_members
    UNION ALL
    SELECT project_id, owner_id, created_at FROM conversations
    UNION ALL
    SELECT c.project_id, m.created_by, m.created_at
    FROM conversation_messages AS m JOIN conversations AS c ON c.id = m.conversation_id
    UNION ALL
    SELECT f.project_id, v.created_by, v.created_at
    FROM file_versions AS v JOIN project_files AS f ON f.id = v.file_id
) AS seen JOIN users AS u ON u.id = seen.user_id
GROUP BY seen.project_id, seen.user_id
"""
