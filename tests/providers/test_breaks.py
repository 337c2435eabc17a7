"""An answer without a last word is never complete, and what was said is kept (PF 5, PF 6, PF 8)."""

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
    Heard,
    Listener,
    NewListener,
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
TEN: tuple[Step, ...] = tuple(Say(f"{number} ") for number in range(10))
TOLD = "0 1 2 3 4 5 6 7 8 9 "
NO_ANSWER = Limits(first_byte_s=300, idle_s=0, total_s=AGES)
NO_WORD = Limits(first_byte_s=AGES, total_s=AGES)
NO_END = Limits(first_byte_s=AGES, idle_s=AGES, total_s=HOUR / 2)


async def ask_and_hear(listener: Listener, key: str, text: str = TOLD) -> asyncio.Task[Heard]:
    """Asks, and waits until so much of the reply was heard."""
    asking = asyncio.create_task(listener.ask(key))
    await until(lambda: asking.done() or listener.hearing.text.startswith(text))
    return asking


async def ask_with_a_hold(listener: Listener, key: str, held: asyncio.Event) -> Heard:
    """The upstream goes on once what it said so far was heard."""
    asking = await ask_and_hear(listener, key)
    held.set()
    return await asking


@pytest.mark.parametrize("end", [Bare(), Cut(), Reset()], ids=["bare", "cut", "reset"])
@every_dialect
async def test_a_stream_that_just_ends_is_cut(
    upstream: Upstream, listener: Listener, key: str, end: Step
) -> None:
    held = asyncio.Event()
    upstream.plays((*TEN, Hold(held), end), says("Whole."))
    heard = await ask_with_a_hold(listener, key, held)
    assert (heard.text, heard.code, heard.end) == (TOLD, "cut", None)
    assert len(upstream.requests) == 1
    assert (await listener.ask(key)).text == "Whole."


@every_dialect
async def test_a_line_cut_inside_an_event_is_cut_there(
    upstream: Upstream, listener: Listener, key: str
) -> None:
    upstream.plays((*TEN, Raw(b'data: {"choices":[{"delta":{"cont'), Cut()))
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
    upstream: Upstream, new_listener: NewListener, timers: Timers, key: str
) -> None:
    upstream.plays((Stall(),))
    asking = asyncio.create_task(new_listener(NO_ANSWER).ask(key))
    await upstream.heard()
    heard = await timers.move_until_done(asking)
    assert heard.code == "timeout_first_byte"
    assert heard.fault is not None
    assert heard.fault.message.endswith("did not answer in 5 minutes.")
    assert len(upstream.requests) == 1
    await upstream.last.over.wait()
    assert upstream.last.closed.is_set()


@pytest.mark.parametrize("rest", [Stall(), KeepAlives()], ids=["silence", "comments"])
@every_dialect
async def test_a_provider_that_falls_silent_is_left(
    upstream: Upstream, new_listener: NewListener, timers: Timers, key: str, rest: Step
) -> None:
    upstream.plays((*TEN, rest))
    heard = await timers.move_until_done(await ask_and_hear(new_listener(NO_WORD), key))
    assert (heard.text, heard.code) == (TOLD, "timeout_idle")
    await upstream.last.over.wait()
    assert upstream.last.closed.is_set()


pinging = pytest.mark.parametrize(("key", "ping"), [(ANTHROPIC, b"ping"), (RESPONSES, b"keepalive")])


def pinged(ping: bytes) -> bytes:
    return b'event: %b\ndata: {"type": "%b"}\n\n' % (ping, ping)


@pinging
async def test_pings_do_not_keep_a_sentence_open(
    upstream: Upstream, new_listener: NewListener, timers: Timers, key: str, ping: bytes
) -> None:
    upstream.plays((*TEN, KeepAlives(0.05, pinged(ping))))
    heard = await timers.move_until_done(await ask_and_hear(new_listener(NO_WORD), key))
    assert (heard.text, heard.code) == (TOLD, "timeout_idle")


PROCESSING = b": OPENROUTER PROCESSING\n\n"


@every_dialect
async def test_a_provider_that_is_silent_after_its_head_did_not_answer(
    upstream: Upstream, new_listener: NewListener, timers: Timers, key: str
) -> None:
    upstream.plays((Head(), Raw(PROCESSING), Stall()))
    asking = asyncio.create_task(new_listener(NO_ANSWER).ask(key))
    await until(lambda: timers.set >= 2)  # One for the head, one for what follows it.
    heard = await timers.move_until_done(asking)
    assert heard.code == "timeout_first_byte"


@pytest.mark.parametrize("before", [(), TEN], ids=["before the first word", "in mid-sentence"])
@every_dialect
async def test_comments_alone_do_not_keep_a_reply_open_beyond_its_total_time(
    upstream: Upstream, new_listener: NewListener, timers: Timers, key: str, before: Script
) -> None:
    upstream.plays((*before, KeepAlives(0.02, PROCESSING)))
    asking = await ask_and_hear(new_listener(NO_END), key, TOLD if before else "")
    await upstream.heard()
    heard = await timers.move_until_done(asking)
    assert heard.code == "timeout_total"
    await upstream.last.over.wait()
    assert upstream.last.closed.is_set()


async def test_thinking_counts_as_progress(
    upstream: Upstream, new_listener: NewListener, timers: Timers
) -> None:
    held = [asyncio.Event() for _ in range(7)]
    thoughts = [step for hold in held for step in (Think("hm "), Hold(hold))]
    upstream.plays((*thoughts, *says("Done.")))
    listener = new_listener(Limits(first_byte_s=300, total_s=AGES))
    asking = asyncio.create_task(listener.ask(CHAT))
    for number, hold in enumerate(held, 1):
        await until(lambda number=number: len(listener.hearing.thinking) == 3 * number)
        timers.move(80)  # More than five minutes in all.
        hold.set()
    heard = await asking
    assert (heard.thinking, heard.text, heard.code) == ("hm " * 7, "Done.", None)


async def test_a_slow_reader_is_not_taken_for_a_silent_provider(
    upstream: Upstream, new_listener: NewListener, timers: Timers
) -> None:
    listener = new_listener(NO_WORD)
    read = asyncio.Event()
    upstream.plays((Say("One"), Hold(read), *says(" two.")))
    heard = ""
    async with aclosing(listener.providers.stream(listener.call())) as pieces:
        async for piece in pieces:
            heard += getattr(piece, "text", "")
            read.set()
            timers.move(HOUR)
    assert heard == "One two."


@every_dialect
async def test_an_answer_without_end_is_stopped(
    upstream: Upstream, new_listener: NewListener, timers: Timers, key: str
) -> None:
    upstream.plays((Say("on "), Pause(0.05)) * 10_000)
    heard = await timers.move_until_done(await ask_and_hear(new_listener(NO_END), key, "on on "))
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
    heard = await new_listener(Limits(farewell_s=0)).ask(key)
    assert heard.end is not None
    assert (heard.text, heard.code, heard.end.finish) == (TOLD, None, "stop")
    assert heard.end.count.is_estimated


# --- size --------------------------------------------------------------------------------------------------


@every_dialect
async def test_a_line_too_long_to_be_true_ends_the_answer(
    upstream: Upstream, new_listener: NewListener, key: str
) -> None:
    held = asyncio.Event()
    upstream.plays((*TEN, Hold(held), Raw(b'data: {"x": "'), Flood(b"a" * (1 << 20), 64)))
    heard = await ask_with_a_hold(new_listener(), key, held)
    assert (heard.text, heard.code) == (TOLD, "too_large")
    await upstream.last.over.wait()
    assert upstream.last.closed.is_set()


async def test_a_single_delta_too_long_to_be_true_ends_the_answer(
    upstream: Upstream, listener: Listener
) -> None:
    held = asyncio.Event()
    upstream.plays((*TEN, Hold(held), Say("a" * (10 << 20)), Finish()))
    heard = await ask_with_a_hold(listener, CHAT, held)
    assert (heard.text, heard.code) == (TOLD, "too_large")


@every_dialect
async def test_an_answer_too_long_to_be_true_is_stopped(
    upstream: Upstream, new_listener: NewListener, key: str
) -> None:
    held = asyncio.Event()
    upstream.plays((*TEN, Hold(held), Flood(b": " + b"x" * 1000 + b"\n\n", 200), Stall()))
    heard = await ask_with_a_hold(new_listener(Limits(answer_bytes=100_000)), key, held)
    assert (heard.text, heard.code) == (TOLD, "too_large")


async def test_an_object_without_end_is_not_read_to_its_end(
    upstream: Upstream, new_listener: NewListener
) -> None:
    upstream.plays((Raw(b'{"x": "'), Flood(b"a" * (1 << 20), 64)))
    heard = await new_listener().ask()
    assert heard.code == "too_large"
