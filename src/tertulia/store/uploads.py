"""Upload cancellation: removes what an upload has saved, and rejects what still arrives under its key.

A client gives each upload its own key. When a person cancels, the client cannot know whether the server has
saved the upload yet; in both orders nothing stays saved. Saving and cancelling take the same lock
(`lock_quota`), so that the second sees the first.
"""

from __future__ import annotations

from tertulia.core.errors import Conflict
from tertulia.core.users import Actor
from tertulia.store import attachments, files
from tertulia.store.sql import sql
from tertulia.store.transactions import Tx


def lock_quota(tx: Tx, user_id: str) -> None:
    """Serialises saving and cancelling a user's uploads, so that the quota check is exact as well."""
    tx.lock(f"quota:{user_id}")


def cancel(tx: Tx, actor: Actor, project_id: str, upload_key: str) -> tuple[str, ...]:
    """Cancels an upload. Returns the content hashes of the files that were removed."""
    lock_quota(tx, actor.user_id)
    attachments.take_back(tx, actor, project_id, upload_key)
    hashes = files.take_back(tx, actor, project_id, upload_key)
    tx.execute(_CANCEL, user_id=actor.user_id, upload_key=upload_key, now=tx.now)
    return hashes


_CANCEL = sql("""
    INSERT INTO cancelled_uploads (user_id, upload_key, cancelled_at) VALUES (:user_id, :upload_key, :now)
    ON CONFLICT (user_id, upload_key) DO NOTHING
""")


def must_not_be_cancelled(tx: Tx, user_id: str, upload_key: str) -> None:
    if tx.maybe(_IS_CANCELLED, user_id=user_id, upload_key=upload_key) is not None:
        raise Conflict("This upload was cancelled. Nothing of it was kept.")


_IS_CANCELLED = sql("""
    SELECT 1 FROM cancelled_uploads WHERE user_id = :user_id AND upload_key = :upload_key
""")


def forget_cancelled(tx: Tx, before_ms: int) -> None:
    """Deletes old cancellations; `before_ms` must lie further back than any upload lasts."""
    tx.execute(_FORGET, before=before_ms)


_FORGET = sql("DELETE FROM cancelled_uploads WHERE cancelled_at < :before")
