"""Lineage: which rounds of which ancestors a conversation reads.

Each ancestor is read up to the lowest branch point below it (last_round). Where that point names a reply,
only that reply is taken of its round (only_id; '' when two points in one round name different ones).
Ancestors that end before the first round asked for are not visited.
"""

from __future__ import annotations

LINEAGE = """
    WITH RECURSIVE lineage (id, parent_id, branch_round, branch_message_id, last_round, only_id) AS (
        SELECT c.id, c.parent_id, c.branch_round, c.branch_message_id,
            CAST(:last_round AS BIGINT), CAST(NULL AS TEXT)
        FROM conversations AS c WHERE c.id = :id
        UNION ALL
        SELECT p.id, p.parent_id, p.branch_round, p.branch_message_id,
            CASE WHEN l.branch_round < l.last_round THEN l.branch_round ELSE l.last_round END,
            CASE
                WHEN l.branch_round < l.last_round THEN l.branch_message_id
                WHEN l.branch_round > l.last_round THEN l.only_id
                WHEN l.only_id IS NULL THEN l.branch_message_id
                WHEN l.branch_message_id IS NULL OR l.branch_message_id = l.only_id THEN l.only_id
                ELSE ''
            END
        FROM lineage AS l JOIN conversations AS p ON p.id = l.parent_id
        WHERE l.branch_round >= :first_round
    )
"""
