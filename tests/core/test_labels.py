"""Answer labels: people read names where a reviewer wrote "Answer A"."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.core.labels import with_names
from tertulia.core.messages import ReadReply

VECTOR = json.loads((Path(__file__).parents[1] / "vectors" / "labels" / "reviews.json").read_text("utf-8"))
READ = tuple(
    ReadReply(f"M{letter}", seat, name, f"Answer {letter}")
    for seat, (letter, name) in enumerate(VECTOR["names"].items(), start=1)
)


@pytest.mark.parametrize(("written", "read"), VECTOR["texts"])
def test_labels_in_a_review_are_replaced_by_names(written, read):
    assert with_names(written, READ) == read


@given(st.text())
def test_a_text_stays_unchanged_if_no_reply_had_a_label(text):
    assert with_names(text, (ReadReply("M1", 1, "Ada"),)) == text


@given(st.lists(st.sampled_from(["Answer A", "B", "then", "C", ">", "\n", "a clear case", "**"])))
def test_replacing_labels_a_second_time_changes_nothing(parts):
    once = with_names(" ".join(parts), READ)
    assert with_names(once, READ) == once
