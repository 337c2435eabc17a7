"""Reply lengths: the thinking effort of each call, and indexes that find a model's latest replies."""

from __future__ import annotations

from alembic import op

revision = "0015"
down_revision = "0014"

STATEMENTS = """
ALTER TABLE usage ADD COLUMN effort TEXT NOT NULL DEFAULT '';
CREATE INDEX usage_of_replies ON usage (provider, model, effort, id)
    WHERE purpose = 'reply' AND output_tokens > 0;
CREATE INDEX usage_of_replies_by_project ON usage (project_id, provider, model, effort, id)
    WHERE purpose = 'reply' AND output_tokens > 0
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";"):
        op.execute(statement)
