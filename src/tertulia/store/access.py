"""Access control: the SQL that decides which projects and conversations an actor may see.

Members of a project see everything in it; owners and editors may also write in it. Administrators manage
accounts and settings, and see no more of other people's projects than anyone else.
"""

from __future__ import annotations

from tertulia.core.projects import ProjectRole
from tertulia.core.users import Actor
from tertulia.store.sql import sql
from tertulia.store.transactions import Tx

MEMBER_OF_PROJECT = "JOIN project_members AS seen ON seen.project_id = p.id AND seen.user_id = :actor_id"
"""Join it to `projects AS p` to keep only the projects the actor is a member of."""

MEMBER_OF_CONVERSATION = (
    "JOIN project_members AS seen ON seen.project_id = c.project_id AND seen.user_id = :actor_id"
)
"""Join it to `conversations AS c` to keep only conversations in projects the actor is a member of."""


def to_project(tx: Tx, actor: Actor, project_id: str) -> ProjectRole:
    """The actor's role in a project; raises NotFound for someone who is not a member."""
    return ProjectRole(tx.one(_TO_PROJECT, actor_id=actor.user_id, project_id=project_id).role)


_TO_PROJECT = sql("SELECT role FROM project_members WHERE project_id = :project_id AND user_id = :actor_id")


def to_conversation(tx: Tx, actor: Actor, conversation_id: str) -> ProjectRole:
    """The actor's role in the conversation's project; raises NotFound for someone who is not a member."""
    return ProjectRole(tx.one(_TO_CONVERSATION, actor_id=actor.user_id, conversation_id=conversation_id).role)


_TO_CONVERSATION = sql(f"""
    SELECT seen.role FROM conversations AS c {MEMBER_OF_CONVERSATION} WHERE c.id = :conversation_id
""")
