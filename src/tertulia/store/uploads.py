"""Cancelled uploads: what they brought is taken back, and what still arrives under their key is refused.

A client gives each upload a key of its own. It cannot know whether the server has saved an upload when a
person cancels it: both orders end with nothing saved. Saving and cancelling hold the same lock (`hold`), so
that one of them sees the other.
"""

from __future__ import annotations

from sqlalchemy import text

from tertulia.core.errors import Conflict
from tertulia.core.users import Actor
from tertulia.store import attachments, files
from tertulia.store.transactions import Tx


def hold(tx: Tx, user_id: str) -> None:
    """One of a person's uploads is saved or cancelled at a time: their room is counted, too."""
    tx.hold(f"quota:{user_id}")


def cancel(tx: Tx, actor: Actor, project_id: str, upload_key: str) -> tuple[str, ...]:
    """Returns the hashes of what was taken back."""
    hold(tx, actor.user_id)
    attachments.take_back(tx, actor, project_id, upload_key)
    gone = files.take_back(tx, actor, project_id, upload_key)
    tx.execute(_CANCEL, user_id=actor.user_id, upload_key=upload_key, now=tx.now)
    return gone


_CANCEL = text("""
    INSERT INTO cancelled_uploads (user_id, upload_key, cancelled_at) VALUES (:user_id, :upload_key, :now)
    ON CONFLICT (user_id, upload_key) DO NOTHING
""")


def must_not_be_cancelled(tx: Tx, user_id: str, upload_key: str) -> None:
    if tx.maybe(_IS_CANCELLED, user_id=user_id, upload_key=upload_key) is not None:
        raise Conflict("This upload was cancelled. Nothing of it was kept.")


_IS_CANCELLED = text("""
    SELECT 1 FROM cancelled_uploads WHERE user_id = :user_id AND upload_key = :upload_key
""")


def forget_cancelled(tx: Tx, before_ms: int) -> None:
    """No upload takes as long."""
    tx.execute(_FORGET, before=before_ms)


_FORGET = text("DELETE FROM cancelled_uploads WHERE cancelled_at < :before")
