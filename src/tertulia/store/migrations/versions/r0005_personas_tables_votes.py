"""Council: personas, saved tables, votes and replays; and columns for the mode of a turn."""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"

STATEMENTS = """
ALTER TABLE turns ADD COLUMN chair TEXT;
ALTER TABLE turns ADD COLUMN brief TEXT NOT NULL DEFAULT '';
ALTER TABLE turns ADD COLUMN is_blind BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE turns ADD COLUMN style TEXT NOT NULL DEFAULT 'again';
ALTER TABLE conversations ADD COLUMN chair TEXT;
ALTER TABLE drafts ADD COLUMN step TEXT NOT NULL DEFAULT 'answer';
ALTER TABLE users ADD COLUMN defaults TEXT;

CREATE TABLE personas (
    id TEXT NOT NULL PRIMARY KEY,
    scope TEXT NOT NULL,
    owner_id TEXT REFERENCES users (id) ON DELETE CASCADE,
    project_id TEXT REFERENCES projects (id) ON DELETE CASCADE,
    version BIGINT NOT NULL,
    removed_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX personas_by_owner ON personas (owner_id);
CREATE INDEX personas_by_project ON personas (project_id);

CREATE TABLE persona_versions (
    persona_id TEXT NOT NULL REFERENCES personas (id) ON DELETE CASCADE,
    version BIGINT NOT NULL,
    name TEXT NOT NULL,
    glyph TEXT NOT NULL,
    hue BIGINT NOT NULL,
    instructions TEXT NOT NULL,
    model TEXT NOT NULL,
    tools BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (persona_id, version)
);

CREATE TABLE saved_tables (
    id TEXT NOT NULL PRIMARY KEY,
    scope TEXT NOT NULL,
    owner_id TEXT REFERENCES users (id) ON DELETE CASCADE,
    project_id TEXT REFERENCES projects (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    mode TEXT NOT NULL,
    visibility TEXT NOT NULL,
    voices TEXT NOT NULL,
    chair TEXT,
    brief TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX saved_tables_by_owner ON saved_tables (owner_id);
CREATE INDEX saved_tables_by_project ON saved_tables (project_id);

CREATE TABLE votes (
    id TEXT NOT NULL PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    round_number BIGINT NOT NULL,
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    verdict TEXT NOT NULL,
    message_id TEXT REFERENCES conversation_messages (id) ON DELETE CASCADE,
    contenders TEXT NOT NULL,
    is_blind BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (conversation_id, round_number, user_id)
);
CREATE INDEX votes_by_project ON votes (project_id);
CREATE INDEX votes_by_message ON votes (message_id);
CREATE INDEX votes_by_user ON votes (user_id);

CREATE TABLE replays (
    id TEXT NOT NULL PRIMARY KEY REFERENCES conversations (id) ON DELETE CASCADE,
    source_id TEXT NOT NULL,
    from_round BIGINT NOT NULL,
    to_round BIGINT NOT NULL,
    done_round BIGINT NOT NULL,
    request TEXT NOT NULL,
    cap_micros BIGINT,
    spent_micros BIGINT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    created_by TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL
)
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";"):
        op.execute(statement)
