"""Attachments: files uploaded for one message. Unsent ones expire; sent ones belong to their message.

An unsent attachment is visible to its uploader alone and causes no events. Once it is sent, the message's
event carries it.
"""

from __future__ import annotations

from collections.abc import Sequence

from tertulia.core.attachments import UNSENT_KEPT_MS, Attachment, clean_file_name
from tertulia.core.errors import Conflict
from tertulia.core.files import Content
from tertulia.core.jobs import SweepAttachments
from tertulia.core.messages import Message
from tertulia.core.users import Actor
from tertulia.store import access, blob_cleanup, jobs
from tertulia.store.sql import sql
from tertulia.store.transactions import Row, Tx

_HOUR_MS = 3_600_000
_SENT = "This file was already sent with a message. Attach it again to send it once more."

_COLUMNS = "a.id, a.name, a.mime_type, a.size_bytes, a.content_hash, a.width, a.height"


# ── adding


def add(
    tx: Tx,
    actor: Actor,
    project_id: str,
    name: str,
    content: Content,
    pixels: tuple[int, int] | None = None,
    upload_key: str | None = None,
) -> Attachment:
    """Adds an unsent attachment. A job removes it later if no message is sent with it."""
    access.to_project(tx, actor, project_id).must_write()
    width, height = pixels or (None, None)
    attachment = Attachment(
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
        id=attachment.id,
        project_id=project_id,
        name=attachment.name,
        mime_type=attachment.mime_type,
        size_bytes=attachment.size_bytes,
        content_hash=attachment.content_hash,
        width=width,
        height=height,
        created_by=actor.user_id,
        now=tx.now,
        upload_key=upload_key,
    )
    _schedule_sweep(tx)
    return attachment


_ADD = sql("""
    INSERT INTO attachments (
        id, project_id, name, mime_type, size_bytes, content_hash, width, height, created_by, created_at,
        upload_key
    )
    VALUES (
        :id, :project_id, :name, :mime_type, :size_bytes, :content_hash, :width, :height, :created_by, :now,
        :upload_key
    )
""")


def _schedule_sweep(tx: Tx) -> None:
    """Schedules one clean-up job for all attachments that are added within the same hour."""
    due = tx.now + UNSENT_KEPT_MS + _HOUR_MS
    jobs.enqueue(tx, SweepAttachments(), key=f"{SweepAttachments.kind}:{due // _HOUR_MS}", run_at=due)


def again(tx: Tx, actor: Actor, project_id: str, message: Message, ids: Sequence[str]) -> tuple[str, ...]:
    """Copies the attachments of an edited question for the actor; returns `ids` with the copies' ids."""
    sent_by_id = {attachment.id: attachment for attachment in message.attachments}
    unique_ids = dict.fromkeys(ids)
    return tuple(
        _copy(tx, actor, project_id, sent_by_id[id]) if id in sent_by_id else id for id in unique_ids
    )


def _copy(tx: Tx, actor: Actor, project_id: str, original: Attachment) -> str:
    content = Content(original.content_hash, original.size_bytes, original.mime_type)
    pixels = (
        (original.width, original.height)
        if original.width is not None and original.height is not None
        else None
    )
    return add(tx, actor, project_id, original.name, content, pixels).id


# ── reading


def get(tx: Tx, actor: Actor, attachment_id: str) -> Attachment:
    """A sent attachment for every member of its project, an unsent one for its uploader only."""
    return _attachment(tx.one(_GET, actor_id=actor.user_id, id=attachment_id))


_GET = sql(f"""
    SELECT {_COLUMNS} FROM attachments AS a JOIN projects AS p ON p.id = a.project_id
    {access.MEMBER_OF_PROJECT}
    WHERE a.id = :id AND (a.message_id IS NOT NULL OR a.created_by = :actor_id)
""")


def _attachment(row: Row) -> Attachment:
    return Attachment(
        row.id, row.name, row.mime_type, row.size_bytes, row.content_hash, row.width, row.height
    )


def unsent(tx: Tx, actor: Actor, project_id: str, ids: Sequence[str]) -> tuple[Attachment, ...]:
    """The actor's own attachments in this project, in the order of ids; Conflict if one was sent already."""
    access.to_project(tx, actor, project_id)
    rows = [tx.one(_OWN, actor_id=actor.user_id, project_id=project_id, id=id) for id in dict.fromkeys(ids)]
    if any(row.message_id is not None for row in rows):
        raise Conflict(_SENT)
    return tuple(_attachment(row) for row in rows)


_OWN = sql(f"""
    SELECT {_COLUMNS}, a.message_id FROM attachments AS a
    WHERE a.id = :id AND a.project_id = :project_id AND a.created_by = :actor_id
""")


# ── sending and removing


def send(tx: Tx, attachments: Sequence[Attachment], message_id: str) -> None:
    """Assigns the attachments to a message; raises Conflict if another message already has one of them."""
    for attachment in attachments:
        if tx.maybe(_SEND, id=attachment.id, message_id=message_id) is None:
            raise Conflict(_SENT)


_SEND = sql("""
    UPDATE attachments SET message_id = :message_id WHERE id = :id AND message_id IS NULL RETURNING id
""")


def remove(tx: Tx, actor: Actor, attachment_id: str) -> None:
    """Removes an unsent attachment. A sent one stays with its message: Conflict."""
    attachment = tx.one(_GET, actor_id=actor.user_id, id=attachment_id)
    if tx.maybe(_REMOVE, id=attachment_id) is None:
        raise Conflict("This file was sent with a message. Delete the message to delete it.")
    _release(tx, [attachment.content_hash])


_REMOVE = sql("DELETE FROM attachments WHERE id = :id AND message_id IS NULL RETURNING id")


def take_back(tx: Tx, actor: Actor, project_id: str, upload_key: str) -> None:
    """Removes the unsent attachments of one of the actor's uploads."""
    access.to_project(tx, actor, project_id).must_write()
    upload = {"project_id": project_id, "upload_key": upload_key, "user_id": actor.user_id}
    _release(tx, [row.content_hash for row in tx.execute(_REMOVE_UPLOAD, **upload)])


_REMOVE_UPLOAD = sql("""
    DELETE FROM attachments
    WHERE project_id = :project_id AND upload_key = :upload_key AND created_by = :user_id
        AND message_id IS NULL
    RETURNING content_hash
""")


def sweep(tx: Tx, before_ms: int) -> None:
    """Removes the attachments that were added before this time and never sent."""
    _release(tx, [row.content_hash for row in tx.execute(_SWEEP, before=before_ms)])


_SWEEP = sql("""
    DELETE FROM attachments WHERE message_id IS NULL AND created_at < :before RETURNING content_hash
""")


def release_conversation(tx: Tx, conversation_id: str) -> None:
    """Releases the blobs of all attachments in a conversation that is about to be deleted."""
    _release(
        tx, [row.content_hash for row in tx.execute(_HASHES_OF_CONVERSATION, conversation_id=conversation_id)]
    )


_HASHES_OF_CONVERSATION = sql("""
    SELECT DISTINCT a.content_hash
    FROM attachments AS a JOIN conversation_messages AS m ON m.id = a.message_id
    WHERE m.conversation_id = :conversation_id
""")


def release_message(tx: Tx, message_id: str) -> None:
    """Releases the blobs of the attachments of a message that is about to be deleted."""
    _release(tx, [row.content_hash for row in tx.execute(_HASHES_OF_MESSAGE, message_id=message_id)])


_HASHES_OF_MESSAGE = sql("SELECT DISTINCT content_hash FROM attachments WHERE message_id = :message_id")


def release_project(tx: Tx, project_id: str) -> None:
    """Releases the blobs of all attachments, sent or not, in a project that is about to be deleted."""
    _release(tx, [row.content_hash for row in tx.execute(_HASHES_OF_PROJECT, project_id=project_id)])


_HASHES_OF_PROJECT = sql("SELECT DISTINCT content_hash FROM attachments WHERE project_id = :project_id")


def _release(tx: Tx, hashes: Sequence[str]) -> None:
    """Restarts the grace period of these blobs and schedules the job that deletes unreferenced blobs."""
    for hash in hashes:
        tx.execute(_TOUCH_BLOB, hash=hash, now=tx.now)
    if hashes:
        blob_cleanup.later(tx)


_TOUCH_BLOB = sql("UPDATE blobs SET used_at = :now WHERE hash = :hash")
