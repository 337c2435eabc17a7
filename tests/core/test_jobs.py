"""Job payloads: an encoded payload is decoded to an equal one."""

from __future__ import annotations

import pytest

from tertulia.core.jobs import (
    EmbedChunks,
    IndexFile,
    IndexRounds,
    JobPayload,
    RedactReceipts,
    RedactSearchReceipts,
    decode,
    encode,
)

PAYLOADS = [
    IndexFile("F"),
    IndexRounds("C", 1, 100, anew=True),
    RedactReceipts("C", None, ("M", "A")),
    RedactSearchReceipts("P", "01JD0"),
    EmbedChunks(),
]


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda payload: payload.kind)
def test_an_encoded_payload_is_decoded_to_an_equal_one(payload: JobPayload) -> None:
    assert decode(type(payload), encode(payload)) == payload


def test_an_empty_text_is_the_payload_of_a_job_without_fields() -> None:
    assert decode(EmbedChunks, "") == EmbedChunks()


def test_the_job_for_a_single_round_ends_where_it_begins() -> None:
    assert IndexRounds.single("C", 7) == IndexRounds("C", 7, 7)
