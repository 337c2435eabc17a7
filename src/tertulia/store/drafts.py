"""Drafts: the text of running replies, saved often so that a crash loses little."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tertulia.core.messages import ReadReply, Role, Step
from tertulia.core.serialization import from_json
from tertulia.core.turns import Draft
from tertulia.store.column_values import as_json
from tertulia.store.messages import voice
from tertulia.store.sql import sql
from tertulia.store.transactions import Row, Tx

_COLUMNS = """
    d.id, d.turn_id, d.conversation_id, d.round_number, d.voice, d.role, d.content, d.thinking, d.number,
    d.replaces_id, d.started_at, d.step, d.read_replies
"""


def begin(tx: Tx, drafts: Sequence[Draft]) -> None:
    tx.execute_many(_BEGIN, [_row(draft) for draft in drafts])


_BEGIN = sql("""
    INSERT INTO drafts (
        id, turn_id, conversation_id, round_number, voice, role, content, thinking, number,
        replaces_id, started_at, step, read_replies
    )
    VALUES (
        :id, :turn_id, :conversation_id, :round_number, :voice, :role, :content, :thinking, :number,
        :replaces_id, :started_at, :step, :read_replies
    )
""")


def _row(draft: Draft) -> dict[str, object]:
    return {
        "id": draft.id,
        "turn_id": draft.turn_id,
        "conversation_id": draft.conversation_id,
        "round_number": draft.round_number,
        "voice": as_json(draft.voice),
        "role": draft.role,
        "content": draft.content,
        "thinking": draft.thinking,
        "number": draft.number,
        "replaces_id": draft.replaces_id,
        "started_at": draft.started_at,
        "step": draft.step,
        "read_replies": as_json(draft.read_replies),
    }


def checkpoint(tx: Tx, changes: Iterable[tuple[str, str, str, int]]) -> None:
    """Saves drafts that have grown, each given as (id, content, thinking, number of deltas)."""
    tx.execute_many(
        _CHECKPOINT,
        [
            {"id": id, "content": content, "thinking": thinking, "number": number}
            for id, content, thinking, number in changes
        ],
    )


_CHECKPOINT = sql("""
    UPDATE drafts SET content = :content, thinking = :thinking, number = :number WHERE id = :id
""")


def of_turn(tx: Tx, turn_id: str) -> tuple[Draft, ...]:
    return tuple(_draft(row) for row in tx.execute(_OF_TURN, turn_id=turn_id))


_OF_TURN = sql(f"SELECT {_COLUMNS} FROM drafts AS d WHERE d.turn_id = :turn_id ORDER BY d.id")


def _draft(row: Row) -> Draft:
    return Draft(
        id=row.id,
        turn_id=row.turn_id,
        conversation_id=row.conversation_id,
        round_number=row.round_number,
        voice=voice(row.voice),
        role=Role(row.role),
        content=row.content,
        thinking=row.thinking,
        number=row.number,
        started_at=row.started_at,
        replaces_id=row.replaces_id,
        step=Step(row.step),
        read_replies=from_json(tuple[ReadReply, ...], row.read_replies),
    )


def remove(tx: Tx, draft_id: str) -> None:
    """Removes a draft whose reply is now a message. Does nothing if the draft was never written."""
    tx.execute(_REMOVE, id=draft_id)


_REMOVE = sql("DELETE FROM drafts WHERE id = :id")


def remove_of_turn(tx: Tx, turn_id: str) -> None:
    tx.execute(_REMOVE_OF_TURN, turn_id=turn_id)


_REMOVE_OF_TURN = sql("DELETE FROM drafts WHERE turn_id = :turn_id")
