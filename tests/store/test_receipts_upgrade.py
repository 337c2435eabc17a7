"""The upgrade of receipts: sentences of earlier versions become enum values with structured locations."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tertulia.core.chunks import Match
from tertulia.core.messages import Step
from tertulia.core.receipts import (
    Layer,
    LeftOut,
    LeftOutReason,
    MatchQuality,
    Receipt,
    SegmentReason,
    SourceLocation,
)
from tertulia.core.users import Actor
from tertulia.store import messages, migrate, receipts
from tertulia.store.database import Database, Tx
from tertulia.store.migrate import MigrationHistory
from tertulia.store.postgres import Postgres
from tertulia.store.sql import sql
from tertulia.store.sqlite import Sqlite
from tests.store.samples import conversation, opened, person, reply
from tests.store_fixtures import Clock, Ids, new_postgres_database

BEFORE = MigrationHistory(migrate.HISTORY.revisions[:15])


class Upgrade:
    """Stores a receipt in the form before the upgrade, and reads it after."""

    def __init__(self, kind: type[Sqlite] | type[Postgres], address: str, clock: Clock, ids: Ids) -> None:
        self._open = lambda history: Database(kind(address, clock, ids, history))
        self._address = address

    def of(self, folder: Path, segments: list[Json], left_out: list[Json]) -> Receipt:
        before = self._open(MigrationHistory(BEFORE.revisions, folder))
        actor, message_id = before.write_now(lambda tx: store_old_receipt(tx, segments, left_out))
        before.close()
        after = self._open(migrate.HISTORY)
        receipt = after.read_now(lambda tx: receipts.get(tx, actor, message_id))
        after.close()
        return receipt


Json = dict[str, Any]


@pytest.fixture(params=["sqlite", "postgres"])
def upgrade(
    request: pytest.FixtureRequest, tmp_path: Path, clock: Clock, ids: Ids, steps_before: Path
) -> Any:
    kind: type[Sqlite] | type[Postgres] = Sqlite
    address = str(tmp_path / "before.db")
    if request.param == "postgres":
        kind = Postgres
        server = request.getfixturevalue("postgres_server")
        address = new_postgres_database(server, f"receipts_{request.node.originalname}"[:60])
    store = Upgrade(kind, address, clock, ids)
    return lambda segments, left_out: store.of(steps_before, segments, left_out)


@pytest.fixture
def steps_before(tmp_path: Path) -> Path:
    """A folder with the migration steps of the version before."""
    folder = tmp_path / "steps"
    folder.mkdir()
    for step in (files("tertulia.store") / "migrations" / "versions").iterdir():
        if step.name.startswith("r") and step.name < "r0016":
            (folder / step.name).write_text(step.read_text())
    return folder


def store_old_receipt(tx: Tx, segments: list[Json], left_out: list[Json]) -> tuple[Actor, str]:
    actor = person(tx, "Ada")
    chat = conversation(tx, actor)
    message = reply(tx, opened(tx, actor, chat.id))
    messages.add(tx, message)
    for number, segment in enumerate(segments):
        tx.execute(_ADD_TEXT, conversation_id=chat.id, hash=f"hash {number}", text=segment["text"])
    hashed = [{**segment, "text": f"hash {number}"} for number, segment in enumerate(segments)]
    tx.execute(
        _ADD_RECEIPT,
        message_id=message.id,
        conversation_id=chat.id,
        segments=json.dumps(hashed),
        left_out=json.dumps(left_out),
    )
    return actor, message.id


_ADD_TEXT = sql("INSERT INTO segments (conversation_id, hash, text) VALUES (:conversation_id, :hash, :text)")

_ADD_RECEIPT = sql("""
    INSERT INTO receipts (
        message_id, conversation_id, model, budget_tokens, cached_tokens, segments, left_out
    )
    VALUES (:message_id, :conversation_id, 'openai:gpt-4o', 8000, 5, :segments, :left_out)
""")


def segment(layer: str, reason: str, name: str = "", content: str = "text", **more: Any) -> Json:
    return {
        "layer": layer,
        "role": "user",
        "text": content,
        "reason": reason,
        "tokens": 3,
        "source_id": "id",
        "round_number": None,
        "ends_cacheable": False,
        "starts_message": True,
        "picture": None,
        "name": name,
        **more,
    }


def left_out(layer: str, reason: str, name: str = "", **more: Any) -> Json:
    item = {"layer": layer, "reason": reason, "tokens": 3, "source_id": "id", "round_number": None}
    return {**item, "name": name, **more}


def test_the_reasons_and_names_of_segments_are_converted(upgrade: Any) -> None:
    receipt = upgrade(
        [
            segment("system", "who it is and how the table talks", source_id=None),
            segment("system", "the persona's instructions", "The Baker"),
            segment("always", "always included", "docs/plan.md"),
            segment("rounds", "recent", round_number=1),
            segment("rounds", "recent", "Beta", round_number=1),
            segment("rounds", "attached", "photo.png", round_number=1),
            segment("rounds", "quoted", round_number=1),
            segment("retrieved", "what follows", source_id=None),
            segment("retrieved", "strong match · 3 of 4 words", "docs/a b.md:4-9"),
            segment("retrieved", "weak match", "Trains, early, round 2"),
            segment("retrieved", "match", "round 3"),
            segment("retrieved", "match", "round 4", round_number=4),
            segment("question", "brought back", "Beta", round_number=2),
            segment("question", "what to do: critique", source_id=None),
            segment("question", "asked now", round_number=5),
        ],
        [],
    )
    assert [(s.reason, s.location) for s in receipt.segments] == [
        (SegmentReason.INTRODUCTION, None),
        (SegmentReason.PERSONA_INSTRUCTIONS, SourceLocation(speaker="The Baker")),
        (SegmentReason.ALWAYS_INCLUDED, SourceLocation("docs/plan.md")),
        (SegmentReason.RECENT, None),
        (SegmentReason.RECENT, SourceLocation(speaker="Beta")),
        (SegmentReason.ATTACHED, SourceLocation(file_name="photo.png")),
        (SegmentReason.QUOTED, None),
        (SegmentReason.SEARCH_INTRODUCTION, None),
        (SegmentReason.RETRIEVED, SourceLocation("docs/a b.md", 4, 9)),
        (SegmentReason.RETRIEVED, SourceLocation(conversation_title="Trains, early", round_number=2)),
        (SegmentReason.RETRIEVED, SourceLocation(conversation_title="", round_number=3)),
        (SegmentReason.RETRIEVED, None),
        (SegmentReason.BRANCH_ROUND, SourceLocation(speaker="Beta")),
        (SegmentReason.TASK, None),
        (SegmentReason.ASKED_NOW, None),
    ]
    assert receipt.segments[8].match == MatchQuality(Match.STRONG, None, "3 of 4 words")
    assert receipt.segments[9].match == MatchQuality(Match.WEAK, None, "")
    assert receipt.segments[13].step is Step.CRITIQUE


def test_receipts_without_names_get_their_locations_from_the_text(upgrade: Any) -> None:
    receipt = upgrade(
        [
            segment("always", "always included", content="The file docs/plan.md, whole:\nA plan"),
            segment("rounds", "recent", content="[odd]: a question", round_number=1),
            segment("rounds", "recent", content="[own]: words", role="assistant", round_number=1),
            segment("rounds", "recent", content="[Beta]: no", round_number=1),
            segment("retrieved", "hit 0.83: 3 of 4 words", content="From docs/plan.md, lines 4 to 9:\n…"),
            segment("retrieved", "hit 0.50", content="From docs/a b.md [docs/a b.md:3]:\n…"),
            segment("retrieved", "hit 0.50", content='From the conversation "Tea", round 2, beta:\n…'),
            segment("retrieved", "hit 0.50", content="(This was deleted.)"),
        ],
        [],
    )
    assert [s.location for s in receipt.segments] == [
        SourceLocation("docs/plan.md"),
        None,
        None,
        SourceLocation(speaker="Beta"),
        SourceLocation("docs/plan.md", 4, 9),
        SourceLocation("docs/a b.md", 3, 3),
        SourceLocation(conversation_title="Tea", round_number=2),
        None,
    ]
    assert receipt.segments[4].match == MatchQuality(None, 0.83, "3 of 4 words")


def test_the_reasons_and_names_of_left_out_parts_are_converted(upgrade: Any) -> None:
    receipt = upgrade(
        [],
        [
            left_out("rounds", "the first 20 rounds are outside the window", source_id=None),
            left_out("rounds", "over the budget", "round 21", source_id=None, round_number=21),
            left_out("rounds", "visibility own lane: someone else said it", "round 3, Bert", round_number=3),
            left_out("rounds", "taken out before it was asked again", "what round 2 quotes", round_number=2),
            left_out("question", "this model cannot see images", "photo.png", round_number=4),
            left_out("retrieved", "not among the 3 best", "a.py:1-2"),
            left_out("retrieved", "it failed, so nothing was looked up", "the search", source_id=None),
            left_out("always", "It is protected by a password.", "locked.pdf"),
        ],
    )
    rounds, retrieved = Layer.ROUNDS, Layer.RETRIEVED
    bert, search = SourceLocation(speaker="Bert"), LeftOutReason.SEARCH_FAILED
    assert list(receipt.left_out) == [
        LeftOut(rounds, LeftOutReason.OUTSIDE_WINDOW, 3, round_number=20),
        LeftOut(rounds, LeftOutReason.OVER_BUDGET, 3, round_number=21),
        LeftOut(rounds, LeftOutReason.HIDDEN_BY_OWN_LANE, 3, "id", 3, bert),
        LeftOut(rounds, LeftOutReason.REMOVED_BY_USER, 3, "id", 2, reference=SegmentReason.QUOTED),
        LeftOut(Layer.QUESTION, LeftOutReason.NO_VISION, 3, "id", 4, SourceLocation(file_name="photo.png")),
        LeftOut(
            retrieved, LeftOutReason.NOT_AMONG_BEST, 3, "id", None, SourceLocation("a.py", 1, 2), limit=3
        ),
        LeftOut(retrieved, search, 3),
        LeftOut(
            Layer.ALWAYS,
            LeftOutReason.OTHER,
            3,
            "id",
            location=SourceLocation("locked.pdf"),
            note="It is protected by a password.",
        ),
    ]


def test_an_unknown_reason_is_kept_as_a_note(upgrade: Any) -> None:
    receipt = upgrade([segment("question", "what to do: juggle")], [left_out("rounds", "nobody knows")])
    [shown], [missing] = receipt.segments, receipt.left_out
    assert (shown.reason, shown.note) == (SegmentReason.OTHER, "what to do: juggle")
    assert (missing.reason, missing.note) == (LeftOutReason.OTHER, "nobody knows")


@pytest.mark.parametrize(
    ("table", "column"), [("receipts", "cached_tokens"), ("conversations", "context_state")]
)
async def test_columns_that_nothing_reads_are_gone(db: Database, table: str, column: str) -> None:
    with pytest.raises(Exception, match=column):
        await db.read(lambda tx: list(tx.execute(sql(f"SELECT {column} FROM {table}"))))
