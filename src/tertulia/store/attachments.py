"""Attachments: kept unsent for a while by who brought them, then with the message that took them.

Nothing is told while they are unsent: only the one who brought them knows. The message's event carries them.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import text

from tertulia.core.attachments import UNSENT_KEPT_MS, Attachment, clean_file_name
from tertulia.core.errors import Conflict
from tertulia.core.files import Content
from tertulia.core.messages import Message
from tertulia.core.users import Actor
from tertulia.store import access, jobs, sweeps
from tertulia.store.transactions import Row, Tx

SWEEP_JOB = "sweep_attachments"
_HOUR_MS = 3_600_000
_SENT = "This file was already sent with a message. Attach it again to send it once more."

_COLUMNS = "a.id, a.name, a.mime_type, a.size_bytes, a.content_hash, a.width, a.height"


# ── bringing along


def add(
    tx: Tx,
    actor: Actor,
    project_id: str,
    name: str,
    content: Content,
    pixels: tuple[int, int] | None = None,
    upload_key: str | None = None,
) -> Attachment:
    """One that waits for its message; a job looks after it should none come."""
    access.to_project(tx, actor, project_id).must_write()
    width, height = pixels or (None, None)
    made = Attachment(
        tx.new_id(),
        clean_file_name(name),
        content.mime_type,
        content.size_bytes,
        content.hash,
        width,
        height,
    )
    tx.execute(
        _ADD,
        id=made.id,
        project_id=project_id,
        name=made.name,
        mime_type=made.mime_type,
        size_bytes=made.size_bytes,
        content_hash=made.content_hash,
        width=width,
        height=height,
        created_by=actor.user_id,
        now=tx.now,
        upload_key=upload_key,
    )
    _sweep_later(tx)
    return made


_ADD = text("""
    INSERT INTO attachments (
        id, project_id, name, mime_type, size_bytes, content_hash, width, height, created_by, created_at,
        upload_key
    )
    VALUES (
        :id, :project_id, :name, :mime_type, :size_bytes, :content_hash, :width, :height, :created_by, :now,
        :upload_key
    )
""")


def _sweep_later(tx: Tx) -> None:
    """Once for all that were brought within the same hour."""
    due = tx.now + UNSENT_KEPT_MS + _HOUR_MS
    jobs.add(tx, SWEEP_JOB, "", key=f"{SWEEP_JOB}:{due // _HOUR_MS}", run_at=due)


def again(tx: Tx, actor: Actor, project_id: str, message: Message, ids: Sequence[str]) -> tuple[str, ...]:
    """For a question asked differently: what the first one brought along comes once more, as one's own."""
    sent = {one.id: one for one in message.attachments}
    once = dict.fromkeys(ids)
    return tuple(_copied(tx, actor, project_id, sent[id]) if id in sent else id for id in once)


def _copied(tx: Tx, actor: Actor, project_id: str, sent: Attachment) -> str:
    content = Content(sent.content_hash, sent.size_bytes, sent.mime_type)
    pixels = (sent.width, sent.height) if sent.width is not None and sent.height is not None else None
    return add(tx, actor, project_id, sent.name, content, pixels).id


# ── reading


def get(tx: Tx, actor: Actor, attachment_id: str) -> Attachment:
    """For who may see its message; while it is unsent, for who brought it."""
    return _attachment(tx.one(_GET, actor_id=actor.user_id, id=attachment_id))


_GET = text(f"""
    SELECT {_COLUMNS} FROM attachments AS a JOIN projects AS p ON p.id = a.project_id
    {access.MEMBER_OF_PROJECT}
    WHERE a.id = :id AND (a.message_id IS NOT NULL OR a.created_by = :actor_id)
""")


def _attachment(row: Row) -> Attachment:
    return Attachment(
        row.id, row.name, row.mime_type, row.size_bytes, row.content_hash, row.width, row.height
    )


def unsent(tx: Tx, actor: Actor, project_id: str, ids: Sequence[str]) -> tuple[Attachment, ...]:
    """The actor's own of this project, in the order named; refused when one was already sent."""
    access.to_project(tx, actor, project_id)
    rows = [tx.one(_OWN, actor_id=actor.user_id, project_id=project_id, id=id) for id in dict.fromkeys(ids)]
    if any(row.message_id is not None for row in rows):
        raise Conflict(_SENT)
    return tuple(_attachment(row) for row in rows)


_OWN = text(f"""
    SELECT {_COLUMNS}, a.message_id FROM attachments AS a
    WHERE a.id = :id AND a.project_id = :project_id AND a.created_by = :actor_id
""")


# ── going with a message, or not


def send(tx: Tx, attachments: Sequence[Attachment], message_id: str) -> None:
    """They belong to this message from now on; of two messages that want one, the second is refused."""
    for attachment in attachments:
        if tx.maybe(_SEND, id=attachment.id, message_id=message_id) is None:
            raise Conflict(_SENT)


_SEND = text("""
    UPDATE attachments SET message_id = :message_id WHERE id = :id AND message_id IS NULL RETURNING id
""")


def remove(tx: Tx, actor: Actor, attachment_id: str) -> None:
    """One that was not sent; what was said with a message stays with it."""
    found = tx.one(_GET, actor_id=actor.user_id, id=attachment_id)
    gone = tx.maybe(_REMOVE, id=attachment_id)
    if gone is None:
        raise Conflict("This file was sent with a message. Delete the message to delete it.")
    _release(tx, [found.content_hash])


_REMOVE = text("DELETE FROM attachments WHERE id = :id AND message_id IS NULL RETURNING id")


def take_back(tx: Tx, actor: Actor, project_id: str, upload_key: str) -> None:
    """Removes what this person's upload brought, unless a message has taken it."""
    access.to_project(tx, actor, project_id).must_write()
    brought = {"project_id": project_id, "upload_key": upload_key, "user_id": actor.user_id}
    _release(tx, [row.content_hash for row in tx.execute(_TAKE_BACK, **brought)])


_TAKE_BACK = text("""
    DELETE FROM attachments
    WHERE project_id = :project_id AND upload_key = :upload_key AND created_by = :user_id
        AND message_id IS NULL
    RETURNING content_hash
""")


def sweep(tx: Tx, before_ms: int) -> None:
    """What waited since before then for a message that did not come."""
    _release(tx, [row.content_hash for row in tx.execute(_SWEEP, before=before_ms)])


_SWEEP = text("""
    DELETE FROM attachments WHERE message_id IS NULL AND created_at < :before RETURNING content_hash
""")


def release_conversation(tx: Tx, conversation_id: str) -> None:
    """The conversation is about to go, and with its messages what they brought along."""
    _release(tx, [row.content_hash for row in tx.execute(_OF_CONVERSATION, conversation_id=conversation_id)])


_OF_CONVERSATION = text("""
    SELECT DISTINCT a.content_hash
    FROM attachments AS a JOIN conversation_messages AS m ON m.id = a.message_id
    WHERE m.conversation_id = :conversation_id
""")


def release_message(tx: Tx, message_id: str) -> None:
    """The message is about to go, and with it what it brought along."""
    _release(tx, [row.content_hash for row in tx.execute(_OF_MESSAGE, message_id=message_id)])


_OF_MESSAGE = text("SELECT DISTINCT content_hash FROM attachments WHERE message_id = :message_id")


def release_project(tx: Tx, project_id: str) -> None:
    """The project is about to go, and with it what still waits for a message."""
    _release(tx, [row.content_hash for row in tx.execute(_OF_PROJECT, project_id=project_id)])


_OF_PROJECT = text("SELECT DISTINCT content_hash FROM attachments WHERE project_id = :project_id")


def _release(tx: Tx, hashes: Sequence[str]) -> None:
    """The bytes are swept some time after the last who refers to them is gone."""
    for hash in hashes:
        tx.execute(_LET_GO, hash=hash, now=tx.now)
    if hashes:
        sweeps.later(tx)


_LET_GO = text("UPDATE blobs SET used_at = :now WHERE hash = :hash")
