"""Receipts: the prompt segments that each reply was generated from.

Each distinct text is stored once per conversation, in the table `segments`, under its hash.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from typing import Any

from tertulia.core.jobs import RedactSearchReceipts
from tertulia.core.receipts import Layer, LeftOut, Receipt, Segment, SourceLocation, cached_segments
from tertulia.core.serialization import from_json, unfolded
from tertulia.core.text import storable
from tertulia.core.thinking import Effort
from tertulia.core.turns import Purpose
from tertulia.core.users import Actor
from tertulia.store import access, jobs, messages, personas
from tertulia.store.column_values import as_json
from tertulia.store.sql import Statement, sql
from tertulia.store.transactions import Row, Tx


def save(tx: Tx, message_id: str, conversation_id: str, receipt: Receipt) -> None:
    """Stores a receipt. Its message must be stored first."""
    hashed = [(_hash(segment.text), segment) for segment in receipt.segments]
    texts = {hash: segment.text for hash, segment in hashed}
    tx.execute_many(
        _SAVE_TEXT,
        [
            {"conversation_id": conversation_id, "hash": hash, "text": content}
            for hash, content in texts.items()
        ],
    )
    tx.execute(
        _SAVE,
        message_id=message_id,
        conversation_id=conversation_id,
        model=receipt.model,
        budget_tokens=receipt.budget_tokens,
        effort=receipt.effort.value if receipt.effort else None,
        segments=as_json([_stored(replace(segment, text=hash)) for hash, segment in hashed]),
        left_out=as_json(receipt.left_out),
    )


_SAVE_TEXT = sql("""
    INSERT INTO segments (conversation_id, hash, text) VALUES (:conversation_id, :hash, :text)
    ON CONFLICT (conversation_id, hash) DO NOTHING
""")

_SAVE = sql("""
    INSERT INTO receipts (message_id, conversation_id, model, budget_tokens, effort, segments, left_out)
    VALUES (:message_id, :conversation_id, :model, :budget_tokens, :effort, :segments, :left_out)
""")


def _stored(segment: Segment) -> dict[str, Any]:
    """The segment's fields without those that are None, which take much space and are the default."""
    stored = _set_fields(segment)
    if segment.location is not None:
        stored["location"] = _set_fields(segment.location)
    return stored


def _set_fields(value: Segment | SourceLocation) -> dict[str, Any]:
    return {name: field for name, field in unfolded(value).items() if field is not None}


def _hash(content: str) -> str:
    return sha256(storable(content).encode()).hexdigest()


def redact_source(tx: Tx, conversation_id: str, number: int | None, message_ids: Collection[str]) -> None:
    """Redacts deleted messages and their attachments from the receipts of a conversation.

    The receipts of the deleted messages are deleted. Other receipts keep the position and the size of each
    redacted segment and show that its text was deleted. `number` is the round of the messages; None if the
    conversation does not read that round, so that only segments that name the messages are redacted.
    """
    _redact_rows(
        tx, conversation_id, _find_mentions(tx, conversation_id, number, message_ids), number, message_ids
    )


def redact_branch(tx: Tx, conversation_id: str, message_ids: Collection[str]) -> None:
    """Redacts the messages of a deleted branch in the receipts of its summaries in this conversation."""
    rows = tx.execute(_SUMMARIES, conversation_id=conversation_id, summary=Purpose.SUMMARY.value)
    _redact_rows(tx, conversation_id, rows, None, message_ids)


_SUMMARIES = sql("""
    SELECT r.message_id, r.segments, r.left_out
    FROM receipts AS r JOIN conversation_messages AS m ON m.id = r.message_id
    WHERE r.conversation_id = :conversation_id AND m.round_number IN (
        SELECT round_number FROM turns
        WHERE conversation_id = :conversation_id AND purpose = :summary
    )
""")


def _redact_rows(
    tx: Tx, conversation_id: str, rows: Iterable[Row], number: int | None, message_ids: Collection[str]
) -> None:
    hashes: set[str] = set()
    for row in rows:
        segments = from_json(tuple[Segment, ...], row.segments)
        if row.message_id in message_ids:
            hashes |= {segment.text for segment in segments}
            tx.execute(_REMOVE, message_id=row.message_id)
            continue
        deleted_flags = [_is_deleted(segment, number, message_ids) for segment in segments]
        hashes |= {
            segment.text for segment, is_deleted in zip(segments, deleted_flags, strict=True) if is_deleted
        }
        redacted = [
            replace(segment, text=_DELETED_HASH, picture=None, location=None) if is_deleted else segment
            for segment, is_deleted in zip(segments, deleted_flags, strict=True)
        ]
        left_out = [
            replace(entry, location=None) if entry.source_id in message_ids else entry
            for entry in from_json(tuple[LeftOut, ...], row.left_out)
        ]
        tx.execute(_SAVE_TEXT, conversation_id=conversation_id, hash=_DELETED_HASH, text=DELETED_TEXT)
        tx.execute(
            _UPDATE,
            message_id=row.message_id,
            segments=as_json([_stored(segment) for segment in redacted]),
            left_out=as_json(left_out),
        )
    for hash in sorted(hashes - {_DELETED_HASH}):
        tx.execute(_REMOVE_TEXT, conversation_id=conversation_id, hash=hash)


def _find_mentions(
    tx: Tx, conversation_id: str, number: int | None, message_ids: Collection[str]
) -> list[Row]:
    """The receipts that mention one of the messages, or that show a retrieved passage of the round.

    A retrieved passage covers a whole round but names only one of its messages.
    """
    words = (*message_ids, *(() if number is None else (f'"round_number":{number}',)))
    by_message = {
        row.message_id: row
        for word in words
        for row in tx.execute(_MENTIONS, conversation_id=conversation_id, word=word)
    }
    return list(by_message.values())


def _is_deleted(segment: Segment, number: int | None, message_ids: Collection[str]) -> bool:
    is_recalled = segment.layer is Layer.RETRIEVED and number is not None and segment.round_number == number
    return segment.source_id in message_ids or is_recalled


# ── search results from other conversations and files


def redact_retrieved(tx: Tx, project_id: str, since: str) -> None:
    """Enqueues a job that redacts deleted messages and files from all receipts of the project.

    If turns are running in the project, a second job follows after they must have ended, because their
    prompts may hold the deleted text.
    """
    job = RedactSearchReceipts(project_id, since[:ABOUT])
    jobs.enqueue_once(tx, job)
    if tx.maybe(_ANSWERING, project_id=project_id) is not None:
        jobs.enqueue(tx, job, run_at=tx.now + REDACT_AGAIN_MS)


ABOUT = 5
"""This many leading characters of an id give its time to nine hours, so that deletions share one job."""
REDACT_AGAIN_MS = 3_600_000
"""Longer than any turn takes."""

_ANSWERING = sql("""
    SELECT 1 FROM turns AS t JOIN conversations AS c ON c.id = t.conversation_id
    WHERE c.project_id = :project_id AND t.state IN ('queued', 'running') LIMIT 1
""")


@dataclass(frozen=True, slots=True)
class StaleReceipt:
    """The sources that a receipt of a conversation still shows although they were deleted."""

    conversation_id: str
    source_ids: tuple[str, ...]


def next_stale(
    tx: Tx, job: RedactSearchReceipts, after: str | None
) -> tuple[tuple[StaleReceipt, ...], str | None]:
    """The stale receipts among the next receipts of a project, and the id to continue after.

    The id is None after the last receipt.
    """
    rows = tx.execute(_NEXT_RECEIPTS, project_id=job.project_id, after=after or job.since, limit=_BATCH)
    sources = [(row.conversation_id, _retrieved_ids(row)) for row in rows]
    existing = existing_sources(tx, {_source_id(id) for _, ids in sources for id in ids})
    deleted = (
        (conversation_id, tuple(id for id in ids if _source_id(id) not in existing))
        for conversation_id, ids in sources
    )
    stale = tuple(StaleReceipt(conversation_id, ids) for conversation_id, ids in deleted if ids)
    return stale, rows[-1].message_id if len(rows) == _BATCH else None


_BATCH = 200

_NEXT_RECEIPTS = sql("""
    SELECT r.message_id, r.conversation_id, r.segments, r.left_out
    FROM receipts AS r JOIN conversations AS c ON c.id = r.conversation_id
    WHERE c.project_id = :project_id AND r.message_id > :after ORDER BY r.message_id LIMIT :limit
""")


def _retrieved_ids(row: Row) -> tuple[str, ...]:
    segments = from_json(tuple[Segment, ...], row.segments)
    left_out = from_json(tuple[LeftOut, ...], row.left_out)
    sources = [(entry.layer, entry.source_id) for entry in segments if entry.text != _DELETED_HASH]
    sources += [(entry.layer, entry.source_id) for entry in left_out if entry.location]
    retrieved = (Layer.RETRIEVED, Layer.ALWAYS)
    return tuple(dict.fromkeys(id for layer, id in sources if id and layer in retrieved))


def _source_id(source_id: str) -> str:
    """The file's id in a source id that names lines of a file; message ids are returned as they are."""
    return source_id.partition(":")[0]


def existing_sources(tx: Tx, ids: Collection[str]) -> set[str]:
    """Which of these ids of messages and files still exist."""
    return {
        row.id
        for row in tx.execute(
            _select_existing(tx.text_index.in_list), ids=tx.text_index.list_param(sorted(ids))
        )
    }


@cache
def _select_existing(among: str) -> Statement:
    has_id = among.format(column="id", name="ids")
    return sql(f"""
        SELECT id FROM conversation_messages WHERE {has_id}
        UNION ALL SELECT id FROM project_files WHERE {has_id}
    """)


DELETED_TEXT = "(This was deleted.)"
_DELETED_HASH = _hash(DELETED_TEXT)

_MENTIONS = sql("""
    SELECT message_id, segments, left_out FROM receipts
    WHERE conversation_id = :conversation_id AND (
        message_id = :word OR segments LIKE '%' || CAST(:word AS TEXT) || '%'
        OR left_out LIKE '%' || CAST(:word AS TEXT) || '%'
    )
""")

_REMOVE = sql("DELETE FROM receipts WHERE message_id = :message_id")

_UPDATE = sql("UPDATE receipts SET segments = :segments, left_out = :left_out WHERE message_id = :message_id")

_REMOVE_TEXT = sql("""
    DELETE FROM segments WHERE conversation_id = :conversation_id AND hash = :hash AND NOT EXISTS (
        SELECT 1 FROM receipts AS r
        WHERE r.conversation_id = :conversation_id AND r.segments LIKE '%' || CAST(:hash AS TEXT) || '%'
    )
""")


def get(tx: Tx, actor: Actor, message_id: str) -> Receipt:
    """The receipt of a message as it was sent, without texts deleted since.

    The instructions of another user's private persona are withheld.
    """
    row = tx.one(_GET, actor_id=actor.user_id, message_id=message_id)
    segments = from_json(tuple[Segment, ...], row.segments)
    texts = _texts(tx, row.conversation_id, [segment.text for segment in segments])
    return Receipt(
        model=row.model,
        budget_tokens=row.budget_tokens,
        segments=tuple(
            replace(segment, text=WITHHELD_TEXT if _is_withheld(tx, actor, segment) else texts[segment.text])
            for segment in segments
        ),
        left_out=from_json(tuple[LeftOut, ...], row.left_out),
        effort=Effort(row.effort) if row.effort else None,
        cached_segments=cached_segments(segments, _cached_share(tx, actor, message_id)),
    )


def _cached_share(tx: Tx, actor: Actor, message_id: str) -> float:
    usage = messages.get(tx, actor, message_id).usage
    return usage.cached_tokens / usage.input_tokens if usage and usage.input_tokens else 0.0


WITHHELD_TEXT = "(Only the person who made this persona can read its instructions.)"


def _is_withheld(tx: Tx, actor: Actor, segment: Segment) -> bool:
    """Whether a segment holds instructions of a persona that the actor may not see.

    Among the system segments, only a persona's instructions have a source id: the persona's.
    """
    if segment.layer is not Layer.SYSTEM or segment.source_id is None:
        return False
    return not personas.was_seen(tx, actor, segment.source_id)


_GET = sql(f"""
    SELECT r.conversation_id, r.model, r.budget_tokens, r.effort, r.segments, r.left_out FROM receipts AS r
    JOIN conversations AS c ON c.id = r.conversation_id {access.MEMBER_OF_CONVERSATION}
    WHERE r.message_id = :message_id
""")


def _texts(tx: Tx, conversation_id: str, hashes: Sequence[str]) -> dict[str, str]:
    by_hash: dict[str, str] = {}
    for start in range(0, len(hashes), _TEXTS_PER_QUERY):
        batch = {f"hash_{i}": hash for i, hash in enumerate(hashes[start : start + _TEXTS_PER_QUERY])}
        rows = tx.execute(_TEXTS, conversation_id=conversation_id, **(_NO_HASHES | batch))
        by_hash |= {row.hash: row.text for row in rows}
    return by_hash


_TEXTS_PER_QUERY = 50
_NO_HASHES: dict[str, str] = {f"hash_{i}": "" for i in range(_TEXTS_PER_QUERY)}

_TEXTS = sql(f"""
    SELECT hash, text FROM segments
    WHERE conversation_id = :conversation_id AND hash IN ({", ".join(f":{name}" for name in _NO_HASHES)})
""")
