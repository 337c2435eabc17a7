"""Extracted texts of files, and ranges of their lines."""

from __future__ import annotations

import pytest

from tertulia.core.files import Extracted
from tertulia.core.users import Actor
from tertulia.store import extracted_texts
from tertulia.store.database import Database, Tx
from tertulia.store.extracted_texts import PART, TextLines
from tests.store.samples import file

LIMIT = 1 << 20


@pytest.fixture
def hash(db: Database, ada: Actor) -> str:
    return db.write_now(lambda tx: file(tx, ada)).content_hash


def store(db: Database, hash: str, content: str, extractor: int = 1) -> None:
    db.write_now(lambda tx: extracted_texts.save(tx, hash, extractor, Extracted(content, "text/plain")))


def lines(db: Database, hash: str, start: int, end: int, limit: int = LIMIT) -> TextLines | None:
    return db.read_now(lambda tx: extracted_texts.lines(tx, hash, "text/plain", 1, start, end, limit))


@pytest.mark.parametrize(
    "content", ["", "one", "one\n", "\n\n", "one\n" * PART, "x" * 3 * PART, "a\x0cb\u2028c\nd"]
)
def test_a_text_reads_back_as_it_was_stored(db: Database, hash: str, content: str) -> None:
    store(db, hash, content)
    assert db.read_now(lambda tx: extracted_texts.find(tx, hash, "text/plain", 1)) == Extracted(
        content, "text/plain"
    )


def test_the_text_of_another_extractor_version_is_not_found(db: Database, hash: str) -> None:
    store(db, hash, "old", extractor=1)
    assert db.read_now(lambda tx: extracted_texts.find(tx, hash, "text/plain", 2)) is None
    store(db, hash, "new", extractor=2)
    assert db.read_now(lambda tx: extracted_texts.find(tx, hash, "text/plain", 2)) == Extracted(
        "new", "text/plain"
    )


def test_the_reason_for_a_missing_text_is_stored(db: Database, hash: str) -> None:
    extracted = Extracted("", "application/pdf", "It is locked with a password.", has_failed=True)
    db.write_now(lambda tx: extracted_texts.save(tx, hash, 1, extracted))
    assert db.read_now(lambda tx: extracted_texts.find(tx, hash, "application/pdf", 1)) == extracted


def test_lines_are_numbered_from_one_and_end_only_at_newlines(db: Database, hash: str) -> None:
    store(db, hash, "one\ntwo\x0ctwo\u2028two\n\nfour")
    assert lines(db, hash, 1, 2) == TextLines("one\ntwo\x0ctwo\u2028two\n", 1, 2, 4)
    assert lines(db, hash, 3, 3) == TextLines("\n", 3, 3, 4)
    assert lines(db, hash, 4, 99) == TextLines("four", 4, 4, 4)
    assert lines(db, hash, 5, 9) == TextLines("", 5, 4, 4)


def test_lines_far_into_a_long_text_are_found(db: Database, hash: str) -> None:
    all_lines = [f"line {n}\n" for n in range(1, 200_001)]
    store(db, hash, "".join(all_lines))
    for start, end in ((1, 3), (29_000, 61_000), (123_456, 123_460), (199_999, 200_005)):
        range_lines = lines(db, hash, start, end)
        assert range_lines == TextLines(
            "".join(all_lines[start - 1 : end]), start, min(end, 200_000), 200_000
        )


def test_lines_are_cut_to_the_limit(db: Database, hash: str) -> None:
    store(db, hash, "12345\n" * 10)
    assert lines(db, hash, 2, 9, limit=15) == TextLines("12345\n12345\n", 2, 3, 10)
    assert lines(db, hash, 2, 9, limit=3) == TextLines("123", 2, 2, 10)


def test_a_text_that_was_not_extracted_has_no_lines(db: Database, hash: str) -> None:
    assert lines(db, hash, 1, 9) is None


def test_a_text_is_deleted_with_its_blob(db: Database, hash: str) -> None:
    store(db, hash, "one\n")

    def remove_and_count(tx: Tx) -> object:
        from tertulia.store.sql import sql

        for table in ("file_versions", "project_files", "blobs"):
            tx.execute(sql(f"DELETE FROM {table}"))
        return tx.one(sql("SELECT COUNT(*) AS n FROM file_text_parts")).n

    assert db.write_now(remove_and_count) == 0
