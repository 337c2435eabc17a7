"""Who may see what: the one place that says it in SQL.

A person sees a project as its member, and with it everything inside; owners and editors may write in it.
Administrators look after accounts and settings, and see no more of other people's projects than anyone else.
"""

from __future__ import annotations

from sqlalchemy import text

from tertulia.core.projects import Membership
from tertulia.core.users import Actor
from tertulia.store.transactions import Tx

MEMBER_OF_PROJECT = "JOIN project_members AS seen ON seen.project_id = p.id AND seen.user_id = :actor_id"
"""Beside `projects AS p`: only those the actor is a member of."""

MEMBER_OF_CONVERSATION = (
    "JOIN project_members AS seen ON seen.project_id = c.project_id AND seen.user_id = :actor_id"
)
"""Beside `conversations AS c`: only those in a project the actor is a member of."""


def to_project(tx: Tx, actor: Actor, project_id: str) -> Membership:
    """What the actor may do in a project; raises NotFound when that is nothing."""
    return Membership(tx.one(_TO_PROJECT, actor_id=actor.user_id, project_id=project_id).role)


_TO_PROJECT = text("SELECT role FROM project_members WHERE project_id = :project_id AND user_id = :actor_id")


def to_conversation(tx: Tx, actor: Actor, conversation_id: str) -> Membership:
    """What the actor may do in a conversation; raises NotFound when that is nothing."""
    return Membership(tx.one(_TO_CONVERSATION, actor_id=actor.user_id, conversation_id=conversation_id).role)


_TO_CONVERSATION = text(f"""
    SELECT seen.role FROM conversations AS c {MEMBER_OF_CONVERSATION} WHERE c.id = :conversation_id
""")
