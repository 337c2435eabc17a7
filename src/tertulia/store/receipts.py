"""Receipts: what each reply was shown. A text is kept once per conversation, however often it is shown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256

from sqlalchemy import TextClause, text

from tertulia.core.plain import from_json, unfolded
from tertulia.core.receipts import Layer, LeftOut, Receipt, Segment, cached_segments
from tertulia.core.text import storable
from tertulia.core.thinking import Effort
from tertulia.core.users import Actor
from tertulia.store import access, jobs, messages, personas
from tertulia.store.transactions import Row, Tx, as_json


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
        effort=receipt.effort.value if receipt.effort else None,
        segments=as_json([{**unfolded(segment), "text": hash} for hash, segment in hashed]),
        left_out=as_json(receipt.left_out),
    )


_KEEP = text("""
    INSERT INTO segments (conversation_id, hash, text) VALUES (:conversation_id, :hash, :text)
    ON CONFLICT (conversation_id, hash) DO NOTHING
""")

_SAVE = text("""
    INSERT INTO receipts (
        message_id, conversation_id, model, budget_tokens, cached_tokens, effort, segments, left_out
    )
    VALUES (
        :message_id, :conversation_id, :model, :budget_tokens, :cached_tokens, :effort, :segments, :left_out
    )
""")


def _hash(said: str) -> str:
    return sha256(storable(said).encode()).hexdigest()


def forget(tx: Tx, conversation_id: str, number: int | None, message_ids: Collection[str]) -> None:
    """Messages of a round and what they brought go, and with them what a conversation's receipts show of it.

    The receipts of other replies keep the place and the size of what was shown, and say that it is gone.
    Without a number the round is not one of the conversation's own, and only what names it is looked for.
    """
    _take_out(tx, conversation_id, _naming(tx, conversation_id, number, message_ids), number, message_ids)


def forget_brought(tx: Tx, conversation_id: str, message_ids: Collection[str]) -> None:
    """A branch that was brought back to this conversation goes, and with it what was shown of it here."""
    rows = tx.execute(_NAMING, conversation_id=conversation_id, word='"brought back"')
    _take_out(tx, conversation_id, rows, None, message_ids)


def _take_out(
    tx: Tx, conversation_id: str, rows: Iterable[Row], number: int | None, message_ids: Collection[str]
) -> None:
    gone: set[str] = set()
    for row in rows:
        segments = from_json(tuple[Segment, ...], row.segments)
        if row.message_id in message_ids:
            gone |= {segment.text for segment in segments}
            tx.execute(_REMOVE, message_id=row.message_id)
            continue
        shown = [_shows(segment, number, message_ids) for segment in segments]
        gone |= {segment.text for segment, is_gone in zip(segments, shown, strict=True) if is_gone}
        kept = [
            replace(one, text=_GONE, picture=None, name="") if is_gone else one
            for one, is_gone in zip(segments, shown, strict=True)
        ]
        left_out = [
            replace(one, name="") if one.source_id in message_ids else one
            for one in from_json(tuple[LeftOut, ...], row.left_out)
        ]
        tx.execute(_KEEP, conversation_id=conversation_id, hash=_GONE, text=GONE_TEXT)
        tx.execute(_REDACT, message_id=row.message_id, segments=as_json(kept), left_out=as_json(left_out))
    for hash in sorted(gone - {_GONE}):
        tx.execute(_LET_GO, conversation_id=conversation_id, hash=hash)


def _naming(tx: Tx, conversation_id: str, number: int | None, message_ids: Collection[str]) -> list[Row]:
    """The receipts that may show something of them; a round that was recalled names one of its messages."""
    words = (*message_ids, *(() if number is None else (f'"round_number":{number}',)))
    found = {
        row.message_id: row
        for word in words
        for row in tx.execute(_NAMING, conversation_id=conversation_id, word=word)
    }
    return list(found.values())


def _shows(segment: Segment, number: int | None, message_ids: Collection[str]) -> bool:
    is_recalled = segment.layer is Layer.RETRIEVED and number is not None and segment.round_number == number
    return segment.source_id in message_ids or is_recalled


# ── what was found elsewhere


@dataclass(frozen=True, slots=True)
class _Gone:
    """Something of a project was deleted that nothing can have found before a receipt of about this id."""

    project_id: str
    since: str


def project_of(payload: str) -> str:
    """Where something was deleted, as it was left to the job."""
    return from_json(_Gone, payload).project_id


def forget_found(tx: Tx, project_id: str, since: str) -> None:
    """Leaves it to a job to take out of the project's receipts what is not there any more.

    It looks once more when all is written that is being answered now: it may have been shown this.
    """
    payload = as_json(_Gone(project_id, since[:ABOUT]))
    jobs.add_once(tx, FOUND_JOB, payload)
    if tx.maybe(_ANSWERING, project_id=project_id) is not None:
        jobs.add(tx, FOUND_JOB, payload, run_at=tx.now + FORGET_AFTER_MS)


FOUND_JOB = "forget_found"
ABOUT = 5
"""So much of an id tells its time to nine hours, so that what is deleted together is looked for once."""
FORGET_AFTER_MS = 3_600_000
"""No turn takes as long."""

_ANSWERING = text("""
    SELECT 1 FROM turns AS t JOIN conversations AS c ON c.id = t.conversation_id
    WHERE c.project_id = :project_id AND t.state IN ('queued', 'running') LIMIT 1
""")


@dataclass(frozen=True, slots=True)
class Showing:
    """What the receipts of a conversation show, though it is gone."""

    conversation_id: str
    source_ids: tuple[str, ...]


def showing_what_is_gone(tx: Tx, payload: str, after: str | None) -> tuple[tuple[Showing, ...], str | None]:
    """Of the next receipts of a project; and after which to go on, None after the last."""
    gone = from_json(_Gone, payload)
    rows = tx.execute(_SINCE, project_id=gone.project_id, after=after or gone.since, limit=_SWEPT_AT_ONCE)
    named = [(row.conversation_id, _found_elsewhere(row)) for row in rows]
    there = still_there(tx, {_whole_of(id) for _, ids in named for id in ids})
    missing = ((at, tuple(id for id in ids if _whole_of(id) not in there)) for at, ids in named)
    showing = tuple(Showing(at, ids) for at, ids in missing if ids)
    return showing, rows[-1].message_id if len(rows) == _SWEPT_AT_ONCE else None


_SWEPT_AT_ONCE = 200

_SINCE = text("""
    SELECT r.message_id, r.conversation_id, r.segments, r.left_out
    FROM receipts AS r JOIN conversations AS c ON c.id = r.conversation_id
    WHERE c.project_id = :project_id AND r.message_id > :after ORDER BY r.message_id LIMIT :limit
""")


def _found_elsewhere(row: Row) -> tuple[str, ...]:
    segments = from_json(tuple[Segment, ...], row.segments)
    left_out = from_json(tuple[LeftOut, ...], row.left_out)
    named = [(one.layer, one.source_id) for one in segments if one.text != _GONE]
    named += [(one.layer, one.source_id) for one in left_out if one.name]
    found = (Layer.RETRIEVED, Layer.ALWAYS)
    return tuple(dict.fromkeys(id for layer, id in named if id and layer in found))


def _whole_of(source_id: str) -> str:
    """The file, for some of its lines."""
    return source_id.partition(":")[0]


def still_there(tx: Tx, ids: Collection[str]) -> set[str]:
    """Of messages and files, those that were not deleted."""
    return {row.id for row in tx.execute(_those_there(tx.words.among), ids=tx.words.many(sorted(ids)))}


@cache
def _those_there(among: str) -> TextClause:
    is_one = among.format(column="id", name="ids")
    return text(f"""
        SELECT id FROM conversation_messages WHERE {is_one}
        UNION ALL SELECT id FROM project_files WHERE {is_one}
    """)


GONE_TEXT = "(This was deleted.)"
_GONE = _hash(GONE_TEXT)

_NAMING = text("""
    SELECT message_id, segments, left_out FROM receipts
    WHERE conversation_id = :conversation_id AND (
        message_id = :word OR segments LIKE '%' || CAST(:word AS TEXT) || '%'
        OR left_out LIKE '%' || CAST(:word AS TEXT) || '%'
    )
""")

_REMOVE = text("DELETE FROM receipts WHERE message_id = :message_id")

_REDACT = text(
    "UPDATE receipts SET segments = :segments, left_out = :left_out WHERE message_id = :message_id"
)

_LET_GO = text("""
    DELETE FROM segments WHERE conversation_id = :conversation_id AND hash = :hash AND NOT EXISTS (
        SELECT 1 FROM receipts AS r
        WHERE r.conversation_id = :conversation_id AND r.segments LIKE '%' || CAST(:hash AS TEXT) || '%'
    )
""")


def get(tx: Tx, actor: Actor, message_id: str) -> Receipt:
    """As it was sent, but for what was deleted since and what a persona of somebody else was told."""
    row = tx.one(_GET, actor_id=actor.user_id, message_id=message_id)
    segments = from_json(tuple[Segment, ...], row.segments)
    texts = _texts(tx, row.conversation_id, [segment.text for segment in segments])
    return Receipt(
        model=row.model,
        budget_tokens=row.budget_tokens,
        segments=tuple(
            replace(segment, text=WITHHELD if _is_withheld(tx, actor, segment) else texts[segment.text])
            for segment in segments
        ),
        left_out=from_json(tuple[LeftOut, ...], row.left_out),
        effort=Effort(row.effort) if row.effort else None,
        cached_segments=cached_segments(segments, _cached_share(tx, actor, message_id)),
    )


def _cached_share(tx: Tx, actor: Actor, message_id: str) -> float:
    usage = messages.get(tx, actor, message_id).usage
    return usage.cached_tokens / usage.input_tokens if usage and usage.input_tokens else 0.0


WITHHELD = "(Only the person who made this persona can read its instructions.)"


def _is_withheld(tx: Tx, actor: Actor, segment: Segment) -> bool:
    """Of the system's segments, only what a persona was told has a source: the persona."""
    if segment.layer is not Layer.SYSTEM or segment.source_id is None:
        return False
    return not personas.was_seen(tx, actor, segment.source_id)


_GET = text(f"""
    SELECT r.conversation_id, r.model, r.budget_tokens, r.effort, r.segments, r.left_out FROM receipts AS r
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
