"""Lineage: the SQL that finds which rounds of its ancestors a branch inherits.

Each ancestor counts up to the lowest branch point below it (last_round). If that branch point names a reply,
only that reply of the round is inherited (only_id; '' if two branch points in one round name different ones).
Ancestors whose inherited rounds end before :first_round are skipped.
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
