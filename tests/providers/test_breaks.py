"""Broken streams: a reply without a finish reason is never complete; its text is kept (PF 5, PF 6, PF 8)."""

import asyncio
from contextlib import aclosing

import pytest

from tertulia.providers.limits import Limits
from tests.patience import until
from tests.providers.conftest import (
    ANTHROPIC,
    CHAT,
    EVERY_DIALECT,
    GOOGLE,
    RESPONSES,
    Caller,
    NewCaller,
    Reply,
)
from tests.timers import AGES, HOUR, Timers
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
TEN_DELTAS: tuple[Step, ...] = tuple(Say(f"{number} ") for number in range(10))
TEN_DELTAS_TEXT = "0 1 2 3 4 5 6 7 8 9 "
FIRST_BYTE_LIMITS = Limits(first_byte_s=300, idle_s=0, total_s=AGES)
IDLE_LIMITS = Limits(first_byte_s=AGES, total_s=AGES)
TOTAL_LIMITS = Limits(first_byte_s=AGES, idle_s=AGES, total_s=HOUR / 2)


async def ask_until(caller: Caller, key: str, text: str = TEN_DELTAS_TEXT) -> asyncio.Task[Reply]:
    """Sends a request and waits until this much of the reply has arrived."""
    asking = asyncio.create_task(caller.ask(key))
    await until(lambda: asking.done() or caller.last_reply.text.startswith(text))
    return asking


async def ask_and_release(caller: Caller, key: str, released: asyncio.Event) -> Reply:
    """Lets the upstream continue when its first deltas have arrived."""
    asking = await ask_until(caller, key)
    released.set()
    return await asking


@pytest.mark.parametrize("end", [Bare(), Cut(), Reset()], ids=["bare", "cut", "reset"])
@every_dialect
async def test_a_stream_without_a_finish_reason_ends_with_code_cut(
    upstream: Upstream, caller: Caller, key: str, end: Step
) -> None:
    released = asyncio.Event()
    upstream.plays((*TEN_DELTAS, Hold(released), end), says("Whole."))
    reply = await ask_and_release(caller, key, released)
    assert (reply.text, reply.code, reply.end) == (TEN_DELTAS_TEXT, "cut", None)
    assert len(upstream.requests) == 1
    assert (await caller.ask(key)).text == "Whole."


@every_dialect
async def test_a_connection_lost_inside_an_event_keeps_the_text_before_it(
    upstream: Upstream, caller: Caller, key: str
) -> None:
    upstream.plays((*TEN_DELTAS, Raw(b'data: {"choices":[{"delta":{"cont'), Cut()))
    reply = await caller.ask(key)
    assert (reply.text, reply.code) == (TEN_DELTAS_TEXT, "cut")


@every_dialect
async def test_a_connection_lost_before_the_first_text_is_retried(
    upstream: Upstream, caller: Caller, key: str
) -> None:
    upstream.plays((Head(), Cut()), (Head(), Reset()), says("Here."))
    reply = await caller.ask(key)
    assert (reply.text, reply.code, len(reply.retries)) == ("Here.", None, 2)


@every_dialect
async def test_deltas_after_the_finish_reason_are_ignored(
    upstream: Upstream, caller: Caller, key: str
) -> None:
    upstream.plays((Say("The end."), Finish(is_last=False), Say(" And another thing"), Bare()))
    reply = await caller.ask(key)
    assert reply.end is not None
    assert (reply.text, reply.code, reply.items[-1]) == ("The end.", None, reply.end)


@every_dialect
async def test_invalid_json_ends_the_reply_as_malformed(upstream: Upstream, caller: Caller, key: str) -> None:
    upstream.plays((*TEN_DELTAS, Raw(b'data: {"broken": \n\n'), Say("never heard"), Finish()))
    reply = await caller.ask(key)
    assert (reply.text, reply.code) == (TEN_DELTAS_TEXT, "malformed")
    assert len(upstream.requests) == 1


@pytest.mark.parametrize("nonsense", [b"[]", b'"text"', b"17", b"null", b"[" * 100_000])
@every_dialect
async def test_an_event_that_is_no_json_object_ends_the_reply_as_malformed(
    upstream: Upstream, caller: Caller, key: str, nonsense: bytes
) -> None:
    upstream.plays((*TEN_DELTAS, Raw(b"data: " + nonsense + b"\n\n"), Finish()))
    reply = await caller.ask(key)
    assert (reply.text, reply.code) == (TEN_DELTAS_TEXT, "malformed")


# --- time --------------------------------------------------------------------------------------------------


@every_dialect
async def test_a_provider_that_sends_nothing_times_out(
    upstream: Upstream, new_caller: NewCaller, timers: Timers, key: str
) -> None:
    upstream.plays((Stall(),))
    asking = asyncio.create_task(new_caller(FIRST_BYTE_LIMITS).ask(key))
    await upstream.wait_for_request()
    reply = await timers.move_until_done(asking)
    assert reply.code == "timeout_first_byte"
    assert reply.error is not None
    assert reply.error.message.endswith("did not answer in 5 minutes.")
    assert len(upstream.requests) == 1
    await upstream.last.over.wait()
    assert upstream.last.closed.is_set()


@pytest.mark.parametrize("ending", [Stall(), KeepAlives()], ids=["silence", "comments"])
@every_dialect
async def test_a_provider_that_stops_sending_text_times_out(
    upstream: Upstream, new_caller: NewCaller, timers: Timers, key: str, ending: Step
) -> None:
    upstream.plays((*TEN_DELTAS, ending))
    reply = await timers.move_until_done(await ask_until(new_caller(IDLE_LIMITS), key))
    assert (reply.text, reply.code) == (TEN_DELTAS_TEXT, "timeout_idle")
    await upstream.last.over.wait()
    assert upstream.last.closed.is_set()


with_pings = pytest.mark.parametrize(("key", "ping"), [(ANTHROPIC, b"ping"), (RESPONSES, b"keepalive")])


def ping_event(ping: bytes) -> bytes:
    return b'event: %b\ndata: {"type": "%b"}\n\n' % (ping, ping)


@with_pings
async def test_pings_in_mid_reply_do_not_prevent_the_idle_timeout(
    upstream: Upstream, new_caller: NewCaller, timers: Timers, key: str, ping: bytes
) -> None:
    upstream.plays((*TEN_DELTAS, KeepAlives(0.05, ping_event(ping))))
    reply = await timers.move_until_done(await ask_until(new_caller(IDLE_LIMITS), key))
    assert (reply.text, reply.code) == (TEN_DELTAS_TEXT, "timeout_idle")


PROCESSING = b": OPENROUTER PROCESSING\n\n"


@every_dialect
async def test_silence_after_the_headers_is_a_first_byte_timeout(
    upstream: Upstream, new_caller: NewCaller, timers: Timers, key: str
) -> None:
    upstream.plays((Head(), Raw(PROCESSING), Stall()))
    asking = asyncio.create_task(new_caller(FIRST_BYTE_LIMITS).ask(key))
    await until(lambda: timers.set >= 2)  # One timer for the headers, one for the body.
    reply = await timers.move_until_done(asking)
    assert reply.code == "timeout_first_byte"


@pytest.mark.parametrize("before", [(), TEN_DELTAS], ids=["before the first text", "in mid-reply"])
@every_dialect
async def test_comments_do_not_extend_the_total_time_of_a_reply(
    upstream: Upstream, new_caller: NewCaller, timers: Timers, key: str, before: Script
) -> None:
    upstream.plays((*before, KeepAlives(0.02, PROCESSING)))
    asking = await ask_until(new_caller(TOTAL_LIMITS), key, TEN_DELTAS_TEXT if before else "")
    await upstream.wait_for_request()
    reply = await timers.move_until_done(asking)
    assert reply.code == "timeout_total"
    await upstream.last.over.wait()
    assert upstream.last.closed.is_set()


async def test_thinking_restarts_the_time_for_the_first_text(
    upstream: Upstream, new_caller: NewCaller, timers: Timers
) -> None:
    releases = [asyncio.Event() for _ in range(7)]
    thoughts = [step for release in releases for step in (Think("hm "), Hold(release))]
    upstream.plays((*thoughts, *says("Done.")))
    caller = new_caller(Limits(first_byte_s=300, total_s=AGES))
    asking = asyncio.create_task(caller.ask(CHAT))
    for number, release in enumerate(releases, 1):
        await until(lambda number=number: len(caller.last_reply.thinking) == 3 * number)
        timers.move(80)  # More than five minutes in all.
        release.set()
    reply = await asking
    assert (reply.thinking, reply.text, reply.code) == ("hm " * 7, "Done.", None)


async def test_a_slow_consumer_does_not_cause_a_timeout(
    upstream: Upstream, new_caller: NewCaller, timers: Timers
) -> None:
    caller = new_caller(IDLE_LIMITS)
    received = asyncio.Event()
    upstream.plays((Say("One"), Hold(received), *says(" two.")))
    text = ""
    async with aclosing(caller.providers.stream(caller.call())) as items:
        async for item in items:
            text += getattr(item, "text", "")
            received.set()
            timers.move(HOUR)
    assert text == "One two."


@every_dialect
async def test_an_endless_reply_is_stopped_at_the_total_time(
    upstream: Upstream, new_caller: NewCaller, timers: Timers, key: str
) -> None:
    upstream.plays((Say("on "), Pause(0.05)) * 10_000)
    reply = await timers.move_until_done(await ask_until(new_caller(TOTAL_LIMITS), key, "on on "))
    assert reply.code == "timeout_total"
    assert reply.text.startswith("on ")
    await upstream.last.over.wait()
    assert upstream.last.closed.is_set()


FINISH_EVENTS = {
    CHAT: b'{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
    RESPONSES: b'{"type":"response.completed","response":{}}',
    ANTHROPIC: b'{"type":"message_delta","delta":{"stop_reason":"end_turn"}}',
    GOOGLE: b'{"candidates":[{"finishReason":"STOP"}]}',
}


@every_dialect
async def test_a_finish_reason_completes_the_reply_even_when_the_connection_stays_open(
    upstream: Upstream, new_caller: NewCaller, key: str
) -> None:
    upstream.plays((*TEN_DELTAS, Raw(b"data: " + FINISH_EVENTS[key] + b"\n\n"), Stall()))
    reply = await new_caller(Limits(after_finish_s=0)).ask(key)
    assert reply.end is not None
    assert (reply.text, reply.code, reply.end.finish) == (TEN_DELTAS_TEXT, None, "stop")
    assert reply.end.count.is_estimated


# --- size --------------------------------------------------------------------------------------------------


@every_dialect
async def test_an_oversized_line_ends_the_reply(upstream: Upstream, new_caller: NewCaller, key: str) -> None:
    released = asyncio.Event()
    upstream.plays((*TEN_DELTAS, Hold(released), Raw(b'data: {"x": "'), Flood(b"a" * (1 << 20), 64)))
    reply = await ask_and_release(new_caller(), key, released)
    assert (reply.text, reply.code) == (TEN_DELTAS_TEXT, "too_large")
    await upstream.last.over.wait()
    assert upstream.last.closed.is_set()


async def test_an_oversized_delta_ends_the_reply(upstream: Upstream, caller: Caller) -> None:
    released = asyncio.Event()
    upstream.plays((*TEN_DELTAS, Hold(released), Say("a" * (10 << 20)), Finish()))
    reply = await ask_and_release(caller, CHAT, released)
    assert (reply.text, reply.code) == (TEN_DELTAS_TEXT, "too_large")


@every_dialect
async def test_an_oversized_reply_is_stopped(upstream: Upstream, new_caller: NewCaller, key: str) -> None:
    released = asyncio.Event()
    upstream.plays((*TEN_DELTAS, Hold(released), Flood(b": " + b"x" * 1000 + b"\n\n", 200), Stall()))
    reply = await ask_and_release(new_caller(Limits(reply_bytes=100_000)), key, released)
    assert (reply.text, reply.code) == (TEN_DELTAS_TEXT, "too_large")


async def test_an_oversized_json_object_is_not_read_to_its_end(
    upstream: Upstream, new_caller: NewCaller
) -> None:
    upstream.plays((Raw(b'{"x": "'), Flood(b"a" * (1 << 20), 64)))
    reply = await new_caller().ask()
    assert reply.code == "too_large"
