"""Receipts: what each reply was shown. A text is kept once per conversation, however often it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

from sqlalchemy import text

from tertulia.core.plain import from_json
from tertulia.core.receipts import LeftOut, Receipt, Segment
from tertulia.core.text import storable
from tertulia.core.users import Actor
from tertulia.store import access
from tertulia.store.transactions import Tx, as_json


def save(tx: Tx, message_id: str, conversation_id: str, receipt: Receipt, cached_tokens: int) -> None:
    """Keeps a receipt; the message it belongs to is added first."""
    hashed = [(_hash(segment.text), segment) for segment in receipt.segments]
    texts = {hash: segment.text for hash, segment in hashed}
    tx.execute_many(
        _KEEP,
        [{"conversation_id": conversation_id, "hash": hash, "text": said} for hash, said in texts.items()],
    )
    tx.execute(
        _SAVE,
        message_id=message_id,
        conversation_id=conversation_id,
        model=receipt.model,
        budget_tokens=receipt.budget_tokens,
        cached_tokens=cached_tokens,
        segments=as_json([replace(segment, text=hash) for hash, segment in hashed]),
        left_out=as_json(receipt.left_out),
    )


_KEEP = text("""
    INSERT INTO segments (conversation_id, hash, text) VALUES (:conversation_id, :hash, :text)
    ON CONFLICT (conversation_id, hash) DO NOTHING
""")

_SAVE = text("""
    INSERT INTO receipts (
        message_id, conversation_id, model, budget_tokens, cached_tokens, segments, left_out
    )
    VALUES (:message_id, :conversation_id, :model, :budget_tokens, :cached_tokens, :segments, :left_out)
""")


def _hash(said: str) -> str:
    return sha256(storable(said).encode()).hexdigest()


def get(tx: Tx, actor: Actor, message_id: str) -> Receipt:
    row = tx.one(_GET, actor_id=actor.user_id, message_id=message_id)
    segments = from_json(tuple[Segment, ...], row.segments)
    texts = _texts(tx, row.conversation_id, [segment.text for segment in segments])
    return Receipt(
        model=row.model,
        budget_tokens=row.budget_tokens,
        segments=tuple(replace(segment, text=texts[segment.text]) for segment in segments),
        left_out=from_json(tuple[LeftOut, ...], row.left_out),
    )


_GET = text(f"""
    SELECT r.conversation_id, r.model, r.budget_tokens, r.segments, r.left_out FROM receipts AS r
    JOIN conversations AS c ON c.id = r.conversation_id {access.MEMBER_OF_CONVERSATION}
    WHERE r.message_id = :message_id
""")


def _texts(tx: Tx, conversation_id: str, hashes: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for begin in range(0, len(hashes), _AT_ONCE):
        some = {f"hash_{i}": hash for i, hash in enumerate(hashes[begin : begin + _AT_ONCE])}
        rows = tx.execute(_TEXTS, conversation_id=conversation_id, **(_NONE | some))
        found |= {row.hash: row.text for row in rows}
    return found


_AT_ONCE = 50
_NONE: dict[str, str] = {f"hash_{i}": "" for i in range(_AT_ONCE)}

_TEXTS = text(f"""
    SELECT hash, text FROM segments
    WHERE conversation_id = :conversation_id AND hash IN ({", ".join(f":{name}" for name in _NONE)})
""")
