"""Attachments: files sent with one message; message_id is NULL until the message is sent."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"

TABLES = """
CREATE TABLE attachments (
    id TEXT NOT NULL PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    message_id TEXT REFERENCES conversation_messages (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    mime_type TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    content_hash TEXT NOT NULL REFERENCES blobs (hash),
    width BIGINT,
    height BIGINT,
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX attachments_by_project ON attachments (project_id);
CREATE INDEX attachments_by_message ON attachments (message_id);
CREATE INDEX attachments_by_hash ON attachments (content_hash);
CREATE INDEX attachments_by_user ON attachments (created_by, content_hash, size_bytes);
CREATE INDEX attachments_unsent ON attachments (created_at) WHERE message_id IS NULL
"""


def upgrade() -> None:
    for statement in TABLES.split(";"):
        op.execute(statement)
