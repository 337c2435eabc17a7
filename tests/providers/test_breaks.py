"""An answer without a last word is never complete, and what was said is kept (PF 5, PF 6, PF 8)."""

import asyncio
from contextlib import aclosing

import pytest

from tertulia.providers.limits import Limits
from tests.providers.conftest import (
    ANTHROPIC,
    CHAT,
    EVERY_DIALECT,
    GOOGLE,
    RESPONSES,
    Listener,
    NewListener,
)
from tests.upstream.scripted import (
    Bare,
    Cut,
    Finish,
    Flood,
    Head,
    Hold,
    KeepAlives,
    Pause,
    Raw,
    Reset,
    Say,
    Script,
    Stall,
    Step,
    Think,
    Upstream,
    says,
)

every_dialect = pytest.mark.parametrize("key", EVERY_DIALECT)
TEN: tuple[Step, ...] = tuple(Say(f"{number} ") for number in range(10))
TOLD = "0 1 2 3 4 5 6 7 8 9 "
NO_ANSWER = Limits(first_byte_s=0.3, idle_s=60, total_s=60, farewell_s=0.2)
NO_WORD = Limits(first_byte_s=60, idle_s=0.5, keep_alive_times=1, total_s=60, farewell_s=0.2)
PATIENT = Limits(first_byte_s=60, idle_s=1.2, total_s=60, farewell_s=0.2)


@pytest.mark.parametrize("end", [Bare(), Cut(), Reset()], ids=["bare", "cut", "reset"])
@every_dialect
async def test_a_stream_that_just_ends_is_cut(
    upstream: Upstream, listener: Listener, key: str, end: Step
) -> None:
    upstream.plays((*TEN, Pause(0.02), end), says("Whole."))
    heard = await listener.ask(key)
    assert (heard.text, heard.code, heard.end) == (TOLD, "cut", None)
    assert len(upstream.requests) == 1
    assert (await listener.ask(key)).text == "Whole."


@every_dialect
async def test_a_line_cut_inside_an_event_is_cut_there(
    upstream: Upstream, listener: Listener, key: str
) -> None:
    upstream.plays((*TEN, Raw(b'data: {"choices":[{"delta":{"cont'), Pause(0.02), Cut()))
    heard = await listener.ask(key)
    assert (heard.text, heard.code) == (TOLD, "cut")


@every_dialect
async def test_a_line_cut_before_the_first_word_is_tried_again(
    upstream: Upstream, listener: Listener, key: str
) -> None:
    upstream.plays((Head(), Cut()), (Head(), Reset()), says("Here."))
    heard = await listener.ask(key)
    assert (heard.text, heard.code, len(heard.waits)) == ("Here.", None, 2)


@every_dialect
async def test_nothing_is_heard_after_the_last_word(upstream: Upstream, listener: Listener, key: str) -> None:
    upstream.plays((Say("The end."), Finish(is_last=False), Say(" And another thing"), Bare()))
    heard = await listener.ask(key)
    assert heard.end is not None
    assert (heard.text, heard.code, heard.pieces[-1]) == ("The end.", None, heard.end)


@every_dialect
async def test_an_event_that_cannot_be_read_ends_the_answer(
    upstream: Upstream, listener: Listener, key: str
) -> None:
    upstream.plays((*TEN, Raw(b'data: {"broken": \n\n'), Say("never heard"), Finish()))
    heard = await listener.ask(key)
    assert (heard.text, heard.code) == (TOLD, "malformed")
    assert len(upstream.requests) == 1


@pytest.mark.parametrize("nonsense", [b"[]", b'"text"', b"17", b"null", b"[" * 100_000])
@every_dialect
async def test_events_of_another_shape_are_not_believed(
    upstream: Upstream, listener: Listener, key: str, nonsense: bytes
) -> None:
    upstream.plays((*TEN, Raw(b"data: " + nonsense + b"\n\n"), Finish()))
    heard = await listener.ask(key)
    assert (heard.text, heard.code) == (TOLD, "malformed")


# --- time --------------------------------------------------------------------------------------------------


@every_dialect
async def test_a_provider_that_never_answers_is_left(
    upstream: Upstream, new_listener: NewListener, key: str
) -> None:
    upstream.plays((Stall(),))
    heard = await new_listener(NO_ANSWER).ask(key)
    assert heard.code == "timeout_first_byte"
    assert heard.fault is not None
    assert heard.fault.message.endswith("did not answer in 0.3 s.")
    assert len(upstream.requests) == 1
    await upstream.last.over.wait()
    assert upstream.last.closed.is_set()


@pytest.mark.parametrize("rest", [Stall(), KeepAlives()], ids=["silence", "comments"])
@every_dialect
async def test_a_provider_that_falls_silent_is_left(
    upstream: Upstream, new_listener: NewListener, key: str, rest: Step
) -> None:
    upstream.plays((*TEN, rest))
    heard = await new_listener(NO_WORD).ask(key)
    assert (heard.text, heard.code) == (TOLD, "timeout_idle")
    await upstream.last.over.wait()
    assert upstream.last.closed.is_set()


pinging = pytest.mark.parametrize(("key", "ping"), [(ANTHROPIC, b"ping"), (RESPONSES, b"keepalive")])


def pinged(ping: bytes) -> bytes:
    return b'event: %b\ndata: {"type": "%b"}\n\n' % (ping, ping)


@pinging
async def test_pings_do_not_keep_a_sentence_open(
    upstream: Upstream, new_listener: NewListener, key: str, ping: bytes
) -> None:
    upstream.plays((*TEN, KeepAlives(0.05, pinged(ping))))
    heard = await new_listener(NO_WORD).ask(key)
    assert (heard.text, heard.code) == (TOLD, "timeout_idle")


PROCESSING = b": OPENROUTER PROCESSING\n\n"


@every_dialect
async def test_a_provider_that_is_silent_after_its_head_did_not_answer(
    upstream: Upstream, new_listener: NewListener, key: str
) -> None:
    upstream.plays((Head(), Raw(PROCESSING), Stall()))
    heard = await new_listener(Limits(first_byte_s=0.3, idle_s=0.1)).ask(key)
    assert heard.code == "timeout_first_byte"


@pytest.mark.parametrize("before", [(), TEN], ids=["before the first word", "in mid-sentence"])
@every_dialect
async def test_comments_alone_do_not_keep_a_reply_open_beyond_its_total_time(
    upstream: Upstream, new_listener: NewListener, key: str, before: Script
) -> None:
    upstream.plays((*before, KeepAlives(0.02, PROCESSING)))
    heard = await new_listener(Limits(first_byte_s=60, idle_s=60, total_s=0.5)).ask(key)
    assert heard.code == "timeout_total"
    await upstream.last.over.wait()
    assert upstream.last.closed.is_set()


async def test_thinking_counts_as_progress(upstream: Upstream, new_listener: NewListener) -> None:
    slow: list[Step] = []
    for _ in range(7):
        slow += [Think("hm "), Pause(0.2)]
    upstream.plays((*slow, *says("Done.")))
    heard = await new_listener(PATIENT).ask(CHAT)
    assert (heard.thinking, heard.text, heard.code) == ("hm " * 7, "Done.", None)


async def test_a_slow_reader_is_not_taken_for_a_silent_provider(
    upstream: Upstream, new_listener: NewListener
) -> None:
    listener = new_listener(NO_WORD)
    read = asyncio.Event()
    upstream.plays((Say("One"), Hold(read), *says(" two.")))
    heard = ""
    async with aclosing(listener.providers.stream(listener.call())) as pieces:
        async for piece in pieces:
            heard += getattr(piece, "text", "")
            read.set()
            await asyncio.sleep(0.7)  # Longer than the provider may be silent.
    assert heard == "One two."


@every_dialect
async def test_an_answer_without_end_is_stopped(
    upstream: Upstream, new_listener: NewListener, key: str
) -> None:
    slow: list[Step] = []
    for _ in range(100):
        slow += [Say("on "), Pause(0.05)]
    upstream.plays(tuple(slow))
    heard = await new_listener(Limits(idle_s=60, total_s=1)).ask(key)
    assert heard.code == "timeout_total"
    assert heard.text.startswith("on ")
    await upstream.last.over.wait()
    assert upstream.last.closed.is_set()


LAST_WORDS = {
    CHAT: b'{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
    RESPONSES: b'{"type":"response.completed","response":{}}',
    ANTHROPIC: b'{"type":"message_delta","delta":{"stop_reason":"end_turn"}}',
    GOOGLE: b'{"candidates":[{"finishReason":"STOP"}]}',
}


@every_dialect
async def test_a_last_word_ends_the_answer_even_when_the_line_stays_open(
    upstream: Upstream, new_listener: NewListener, key: str
) -> None:
    upstream.plays((*TEN, Raw(b"data: " + LAST_WORDS[key] + b"\n\n"), Stall()))
    heard = await new_listener(NO_WORD).ask(key)
    assert heard.end is not None
    assert (heard.text, heard.code, heard.end.finish) == (TOLD, None, "stop")
    assert heard.end.count.is_estimated


# --- size --------------------------------------------------------------------------------------------------


@every_dialect
async def test_a_line_too_long_to_be_true_ends_the_answer(
    upstream: Upstream, new_listener: NewListener, key: str
) -> None:
    upstream.plays((*TEN, Pause(0.02), Raw(b'data: {"x": "'), Flood(b"a" * (1 << 20), 64)))
    heard = await new_listener().ask(key)
    assert (heard.text, heard.code) == (TOLD, "too_large")
    await upstream.last.over.wait()
    assert upstream.last.closed.is_set()


async def test_a_single_delta_too_long_to_be_true_ends_the_answer(
    upstream: Upstream, listener: Listener
) -> None:
    upstream.plays((*TEN, Pause(0.02), Say("a" * (10 << 20)), Finish()))
    heard = await listener.ask()
    assert (heard.text, heard.code) == (TOLD, "too_large")


@every_dialect
async def test_an_answer_too_long_to_be_true_is_stopped(
    upstream: Upstream, new_listener: NewListener, key: str
) -> None:
    upstream.plays((*TEN, Pause(0.1), Flood(b": " + b"x" * 1000 + b"\n\n", 200), Stall()))
    heard = await new_listener(Limits(answer_bytes=100_000)).ask(key)
    assert (heard.text, heard.code) == (TOLD, "too_large")


async def test_an_object_without_end_is_not_read_to_its_end(
    upstream: Upstream, new_listener: NewListener
) -> None:
    upstream.plays((Raw(b'{"x": "'), Flood(b"a" * (1 << 20), 64)))
    heard = await new_listener().ask()
    assert heard.code == "too_large"
