"""Files: project files and their versions, the blobs with their bytes, and the texts extracted from them."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"

TABLES = """
CREATE TABLE blobs (
    hash TEXT NOT NULL PRIMARY KEY,
    size_bytes BIGINT NOT NULL,
    keeping TEXT NOT NULL,
    used_at BIGINT NOT NULL,
    content BYTES
);
CREATE INDEX blobs_by_use ON blobs (used_at);

CREATE TABLE blob_pieces (
    hash TEXT NOT NULL REFERENCES blobs (hash) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    content BYTES NOT NULL,
    PRIMARY KEY (hash, number)
);

CREATE TABLE project_files (
    id TEXT NOT NULL PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    path TEXT BY_BYTES NOT NULL,
    mime_type TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    content_hash TEXT NOT NULL REFERENCES blobs (hash),
    version BIGINT NOT NULL,
    always_in_context BOOLEAN NOT NULL,
    retrieval_eligible BOOLEAN NOT NULL,
    tool_accessible BOOLEAN NOT NULL,
    tags TEXT NOT NULL,
    summary TEXT NOT NULL,
    index_state TEXT NOT NULL,
    index_chunks BIGINT NOT NULL,
    index_percent BIGINT NOT NULL,
    index_reason TEXT,
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (project_id, path)
);
CREATE INDEX project_files_by_hash ON project_files (content_hash);
CREATE INDEX project_files_always ON project_files (project_id) WHERE always_in_context;

CREATE TABLE file_versions (
    file_id TEXT NOT NULL REFERENCES project_files (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    content_hash TEXT NOT NULL REFERENCES blobs (hash),
    size_bytes BIGINT NOT NULL,
    mime_type TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (file_id, number)
);
CREATE INDEX file_versions_by_hash ON file_versions (content_hash);
CREATE INDEX file_versions_by_user ON file_versions (created_by, content_hash, size_bytes);

CREATE TABLE file_texts (
    content_hash TEXT NOT NULL REFERENCES blobs (hash) ON DELETE CASCADE,
    mime_type TEXT NOT NULL,
    extractor BIGINT NOT NULL,
    line_count BIGINT NOT NULL,
    reason TEXT,
    has_failed BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (content_hash, mime_type)
);

CREATE TABLE file_text_parts (
    content_hash TEXT NOT NULL,
    mime_type TEXT NOT NULL,
    number BIGINT NOT NULL,
    start_line BIGINT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (content_hash, mime_type, number),
    FOREIGN KEY (content_hash, mime_type) REFERENCES file_texts (content_hash, mime_type) ON DELETE CASCADE
)
"""

# The databases name the byte type differently; paths sort by their bytes on both.
TYPE_NAMES = {
    "sqlite": ((" BY_BYTES", ""), (" BYTES", " BLOB")),
    "postgresql": ((" BY_BYTES", ' COLLATE "C"'), (" BYTES", " BYTEA")),
}


def upgrade() -> None:
    tables = TABLES
    for placeholder, type_name in TYPE_NAMES[op.get_bind().dialect.name]:
        tables = tables.replace(placeholder, type_name)
    for statement in tables.split(";"):
        op.execute(statement)
