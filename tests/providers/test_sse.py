"""SSE decoder: events are the same wherever the bytes are split and however lines end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.providers.sse import LineTooLong, SseDecoder, SseEvent

words = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=12)
events = st.lists(
    st.tuples(st.sampled_from(["", "message", "ping"]), st.lists(words, min_size=1, max_size=3))
)
line_ends = st.sampled_from(["\n", "\r\n", "\r"])


def decode(chunks: list[bytes], limit: int = 1000) -> list[SseEvent]:
    reader = SseDecoder(limit)
    return [event for chunk in chunks for event in reader.feed(chunk)] + reader.close()


def encode(sent_events: list[tuple[str, list[str]]], line_end: str) -> bytes:
    lines = []
    for name, data in sent_events:
        lines += [f"event: {name}"] if name else []
        lines += [f"data: {line}" for line in data] + [": a comment", ""]
    return line_end.join([*lines, ""]).encode() if lines else b""


@given(events, line_ends, st.integers(1, 7), st.booleans())
def test_events_are_decoded_with_any_split_and_any_line_end(
    sent_events: list[tuple[str, list[str]]], line_end: str, size: int, has_bom: bool
) -> None:
    stream = (b"\xef\xbb\xbf" if has_bom else b"") + encode(sent_events, line_end)
    chunks = [stream[start : start + size] for start in range(0, len(stream), size)]
    assert decode(chunks) == [SseEvent(name, "\n".join(data)) for name, data in sent_events]


@given(st.binary(max_size=200), st.integers(1, 9))
def test_arbitrary_bytes_give_valid_text_and_no_error(stream: bytes, size: int) -> None:
    chunks = [stream[start : start + size] for start in range(0, len(stream), size)]
    for event in decode(chunks):
        assert event.data.encode("utf-8").decode("utf-8") == event.data


def test_an_oversized_line_is_refused_before_it_ends() -> None:
    reader = SseDecoder(100)
    reader.feed(b"data: " + b"x" * 90)
    with pytest.raises(LineTooLong):
        reader.feed(b"x" * 90)


def test_an_event_of_many_lines_has_the_same_size_limit() -> None:
    reader = SseDecoder(100)
    with pytest.raises(LineTooLong):
        reader.feed(b"data: 123456789\n" * 20)


def test_invalid_utf8_becomes_replacement_characters() -> None:
    assert decode([b"data: a\xff\xfeb\n\n"]) == [SseEvent("", "a\ufffd\ufffdb")]
