"""Cancelled uploads: the upload key of each file and attachment, so that a cancelled one is removed."""

from __future__ import annotations

from alembic import op

revision = "0011"
down_revision = "0010"

STATEMENTS = """
ALTER TABLE project_files ADD COLUMN upload_key TEXT;
ALTER TABLE file_versions ADD COLUMN upload_key TEXT;
ALTER TABLE attachments ADD COLUMN upload_key TEXT;
CREATE INDEX project_files_by_upload ON project_files (upload_key) WHERE upload_key IS NOT NULL;
CREATE INDEX attachments_by_upload ON attachments (upload_key) WHERE upload_key IS NOT NULL;
CREATE TABLE cancelled_uploads (
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    upload_key TEXT NOT NULL,
    cancelled_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, upload_key)
);
CREATE INDEX cancelled_uploads_by_time ON cancelled_uploads (cancelled_at)
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";"):
        op.execute(statement)
