"""Initial schema: accounts, projects, conversations, turns, receipts, usage, events and jobs."""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None

TABLES = """
CREATE TABLE users (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    email TEXT NOT NULL UNIQUE,
    password_hash TEXT NOT NULL,
    role TEXT NOT NULL,
    suspended BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE config (
    key TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE TABLE credentials (
    id TEXT NOT NULL PRIMARY KEY,
    user_id TEXT REFERENCES users (id) ON DELETE CASCADE,
    provider TEXT NOT NULL,
    sealed TEXT NOT NULL,
    endpoint TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX credentials_one_each ON credentials (provider, COALESCE(user_id, ''));

CREATE TABLE projects (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    instructions TEXT NOT NULL,
    settings TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE TABLE project_members (
    project_id TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    role TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (project_id, user_id)
);
CREATE INDEX project_members_by_user ON project_members (user_id, project_id);

CREATE TABLE conversations (
    id TEXT NOT NULL PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    owner_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    title TEXT NOT NULL,
    summary TEXT NOT NULL,
    round_count BIGINT NOT NULL,
    parent_id TEXT REFERENCES conversations (id) ON DELETE CASCADE,
    branch_round BIGINT,
    branch_message_id TEXT,
    mode TEXT NOT NULL,
    voices TEXT NOT NULL,
    visibility TEXT NOT NULL,
    context_state TEXT,
    pinned BOOLEAN NOT NULL,
    archived BOOLEAN NOT NULL,
    external_key TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX conversations_listed ON conversations (project_id, archived, pinned, updated_at DESC, id DESC);
CREATE INDEX conversations_by_parent ON conversations (parent_id);
CREATE INDEX conversations_by_owner ON conversations (owner_id);
CREATE UNIQUE INDEX conversations_by_external_key ON conversations (owner_id, external_key);

CREATE TABLE sessions (
    id TEXT NOT NULL PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    token_hash TEXT NOT NULL UNIQUE,
    client_info TEXT NOT NULL,
    project_id TEXT REFERENCES projects (id) ON DELETE SET NULL,
    conversation_id TEXT REFERENCES conversations (id) ON DELETE SET NULL,
    created_at BIGINT NOT NULL,
    last_active_at BIGINT NOT NULL
);
CREATE INDEX sessions_by_user ON sessions (user_id);
CREATE INDEX sessions_by_project ON sessions (project_id);
CREATE INDEX sessions_by_conversation ON sessions (conversation_id);

CREATE TABLE api_keys (
    id TEXT NOT NULL PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    key_hash TEXT NOT NULL UNIQUE,
    scopes TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    last_used_at BIGINT
);
CREATE INDEX api_keys_by_user ON api_keys (user_id);

CREATE TABLE conversation_messages (
    id TEXT NOT NULL PRIMARY KEY,
    conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    round_number BIGINT NOT NULL,
    turn_id TEXT NOT NULL,
    speaker TEXT NOT NULL,
    role TEXT NOT NULL,
    content TEXT NOT NULL,
    parts TEXT,
    voice TEXT,
    persona_id TEXT,
    model_id TEXT,
    reply_to_id TEXT,
    critique_of_id TEXT,
    replaces_id TEXT,
    status TEXT NOT NULL,
    metadata TEXT,
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX conversation_messages_by_round ON conversation_messages (conversation_id, round_number);

CREATE TABLE turns (
    id TEXT NOT NULL PRIMARY KEY,
    conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    round_number BIGINT NOT NULL,
    purpose TEXT NOT NULL,
    mode TEXT NOT NULL,
    voices TEXT NOT NULL,
    visibility TEXT NOT NULL,
    state TEXT NOT NULL,
    message_id TEXT,
    fingerprint TEXT NOT NULL,
    node TEXT,
    heartbeat_at BIGINT,
    created_by TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    finished_at BIGINT
);
CREATE INDEX turns_by_conversation ON turns (conversation_id, state);
CREATE INDEX turns_by_user ON turns (created_by);
CREATE INDEX turns_unfinished ON turns (created_by) WHERE state IN ('queued', 'running');

CREATE TABLE drafts (
    id TEXT NOT NULL PRIMARY KEY,
    turn_id TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    round_number BIGINT NOT NULL,
    voice TEXT NOT NULL,
    role TEXT NOT NULL,
    content TEXT NOT NULL,
    thinking TEXT NOT NULL,
    number BIGINT NOT NULL,
    replaces_id TEXT,
    started_at BIGINT NOT NULL
);
CREATE INDEX drafts_by_turn ON drafts (turn_id);
CREATE INDEX drafts_by_conversation ON drafts (conversation_id);

CREATE TABLE receipts (
    message_id TEXT NOT NULL PRIMARY KEY REFERENCES conversation_messages (id) ON DELETE CASCADE,
    conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    model TEXT NOT NULL,
    budget_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    segments TEXT NOT NULL,
    left_out TEXT NOT NULL
);
CREATE INDEX receipts_by_conversation ON receipts (conversation_id);

CREATE TABLE segments (
    conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    hash TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (conversation_id, hash)
);

CREATE TABLE usage (
    id TEXT NOT NULL PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    project_id TEXT,
    conversation_id TEXT,
    message_id TEXT,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    purpose TEXT NOT NULL,
    input_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    reasoning_tokens BIGINT NOT NULL,
    cost_micros BIGINT,
    latency_ms BIGINT NOT NULL,
    first_token_ms BIGINT,
    created_at BIGINT NOT NULL
);
CREATE INDEX usage_by_user ON usage (user_id, created_at);
CREATE INDEX usage_by_project ON usage (project_id, created_at);
CREATE INDEX usage_by_conversation ON usage (conversation_id, created_at);

CREATE TABLE model_metadata (
    provider TEXT NOT NULL,
    model_id TEXT NOT NULL,
    display_name TEXT NOT NULL,
    context_window BIGINT NOT NULL,
    max_output_tokens BIGINT NOT NULL,
    input_micros BIGINT,
    cached_micros BIGINT,
    output_micros BIGINT,
    tier TEXT NOT NULL,
    abilities TEXT NOT NULL,
    is_local BOOLEAN NOT NULL,
    is_demo BOOLEAN NOT NULL,
    vocabulary TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (provider, model_id)
);

CREATE TABLE places (
    place TEXT NOT NULL PRIMARY KEY,
    number BIGINT NOT NULL
);

CREATE TABLE events (
    place TEXT NOT NULL,
    number BIGINT NOT NULL,
    kind TEXT NOT NULL,
    noun TEXT NOT NULL,
    id TEXT NOT NULL,
    value TEXT,
    at BIGINT NOT NULL,
    PRIMARY KEY (place, number)
);
CREATE INDEX events_by_time ON events (at);

CREATE TABLE jobs (
    id TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    payload TEXT NOT NULL,
    key TEXT UNIQUE,
    state TEXT NOT NULL,
    run_at BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    node TEXT,
    error TEXT,
    created_at BIGINT NOT NULL
);
CREATE INDEX jobs_by_time ON jobs (state, run_at)
"""

# The databases have different JSON functions; the view gives the same rows on both.
VIEWS = {
    "sqlite": """
        CREATE VIEW conversation_rounds AS
        SELECT conversation_id, round_number, json_group_array(json(message)) AS messages
        FROM (
            SELECT conversation_id, round_number, json_object(
                'id', id, 'turn_id', turn_id, 'speaker', speaker, 'role', role, 'content', content,
                'parts', json(parts), 'voice', json(voice), 'persona_id', persona_id, 'model_id', model_id,
                'reply_to_id', reply_to_id, 'critique_of_id', critique_of_id, 'replaces_id', replaces_id,
                'status', status, 'metadata', json(metadata), 'created_by', created_by,
                'created_at', created_at
            ) AS message
            FROM conversation_messages
            ORDER BY conversation_id, round_number, CASE role WHEN 'user' THEN 0 ELSE 1 END, id
        )
        GROUP BY conversation_id, round_number
    """,
    "postgresql": """
        CREATE VIEW conversation_rounds AS
        SELECT conversation_id, round_number, CAST(json_agg(json_build_object(
                'id', id, 'turn_id', turn_id, 'speaker', speaker, 'role', role, 'content', content,
                'parts', CAST(parts AS json), 'voice', CAST(voice AS json), 'persona_id', persona_id,
                'model_id', model_id, 'reply_to_id', reply_to_id, 'critique_of_id', critique_of_id,
                'replaces_id', replaces_id, 'status', status, 'metadata', CAST(metadata AS json),
                'created_by', created_by, 'created_at', created_at
            ) ORDER BY CASE role WHEN 'user' THEN 0 ELSE 1 END, id) AS TEXT) AS messages
        FROM conversation_messages
        GROUP BY conversation_id, round_number
    """,
}


def upgrade() -> None:
    for statement in TABLES.split(";"):
        op.execute(statement)
    op.execute(VIEWS[op.get_bind().dialect.name])
