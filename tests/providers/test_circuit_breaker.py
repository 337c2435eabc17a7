"""Circuit breaker: a failing provider is not called for a while and then tried again (PF, rule 8)."""

import asyncio
from contextlib import aclosing

import pytest

from tertulia.providers.circuit_breaker import FAILURES, FIRST_PAUSE_S, LONGEST_PAUSE_S
from tertulia.providers.interface import TextDelta
from tertulia.providers.limits import Limits
from tests.providers.conftest import ANTHROPIC, CHAT, EVERY_DIALECT, RESPONSES, Caller, NewCaller, Reply
from tests.upstream.scripted import Bare, Cut, Head, Hold, Say, Script, Stall, Upstream, refuses, says

every_dialect = pytest.mark.parametrize("key", EVERY_DIALECT)
OUTAGE = refuses(503)
OPEN_MESSAGE = "OpenAI failed 3 times in a row and is paused. It can be asked again in 15 s."


async def fail(caller: Caller, key: str = CHAT, times: int = FAILURES) -> list[Reply]:
    return [await caller.ask(key) for _ in range(times)]


@every_dialect
async def test_after_three_failed_calls_the_next_one_fails_at_once(
    upstream: Upstream, caller: Caller, key: str
) -> None:
    upstream.plays(OUTAGE)
    await fail(caller, key)
    request_count, sleep_count = len(upstream.requests), len(caller.sleeps)
    reply = await caller.ask(key)
    assert reply.error is not None
    assert (reply.code, reply.retries) == ("unavailable", [])
    assert reply.error.message.endswith(" and is paused. It can be asked again in 15 s.")
    assert (len(upstream.requests), len(caller.sleeps)) == (request_count, sleep_count)


async def test_the_message_names_the_seconds_until_the_next_attempt(
    upstream: Upstream, caller: Caller
) -> None:
    upstream.plays(OUTAGE)
    await fail(caller)
    caller.clock.seconds += 12.4
    reply = await caller.ask()
    assert reply.error is not None
    assert reply.error.message == OPEN_MESSAGE.replace("15 s", "3 s")


async def test_a_success_after_the_pause_closes_the_circuit(upstream: Upstream, caller: Caller) -> None:
    upstream.plays(OUTAGE)
    await fail(caller)
    caller.clock.seconds += FIRST_PAUSE_S
    upstream.says("Back.")
    assert (await caller.ask()).text == "Back."
    upstream.plays(OUTAGE)
    await fail(caller, times=FAILURES - 1)
    upstream.says("Still here.")
    assert (await caller.ask()).text == "Still here."


async def test_a_failure_after_the_pause_doubles_the_next_pause(upstream: Upstream, caller: Caller) -> None:
    upstream.plays(OUTAGE)
    await fail(caller)
    pauses = []
    for _ in range(5):
        pauses.append(await pause_s(caller, upstream))
        await fail(caller, times=1)
    assert pauses == [15, 30, 60, 120, LONGEST_PAUSE_S]


async def pause_s(caller: Caller, upstream: Upstream) -> float:
    """Moves the clock until the provider is available again and returns the seconds."""
    start, request_count = caller.clock.seconds, len(upstream.requests)
    while not {model.key for model in caller.providers.available()} & {CHAT}:
        caller.clock.seconds += 1
    assert len(upstream.requests) == request_count
    return caller.clock.seconds - start


async def test_an_open_circuit_does_not_affect_other_providers(upstream: Upstream, caller: Caller) -> None:
    upstream.plays(OUTAGE, model="gpt-4o")
    upstream.says("Good evening.")
    await fail(caller)
    assert (await caller.ask(ANTHROPIC)).text == "Good evening."
    assert (await caller.ask(RESPONSES)).code == "unavailable"
    providers = {model.provider for model in caller.providers.available()}
    assert "openai" not in providers
    assert {"anthropic", "google"} <= providers


async def test_a_success_resets_the_failure_count(upstream: Upstream, caller: Caller) -> None:
    for _ in range(3):
        upstream.plays(OUTAGE)
        await fail(caller, times=FAILURES - 1)
        upstream.says("Here.")
        assert (await caller.ask()).text == "Here."


REQUEST_ERRORS = [refuses(401), refuses(404), refuses(429), refuses(400, "context_length_exceeded")]


@pytest.mark.parametrize("refusal", REQUEST_ERRORS)
async def test_errors_of_the_key_or_the_request_do_not_open_the_circuit(
    upstream: Upstream, caller: Caller, refusal: Script
) -> None:
    upstream.plays(refusal)
    replies = await fail(caller, times=FAILURES + 2)
    assert len({reply.error.message for reply in replies if reply.error}) == 1


NO_TIME = Limits(first_byte_s=0, idle_s=0)


@pytest.mark.parametrize(
    ("script", "limits"),
    [((Stall(),), NO_TIME), ((Head(), Stall()), NO_TIME), (refuses(504), Limits()), (refuses(524), Limits())],
    ids=["no head", "no word", "504", "524"],
)
async def test_timeouts_do_not_open_the_circuit(
    upstream: Upstream, new_caller: NewCaller, script: Script, limits: Limits
) -> None:
    """The model may be thinking, and the next prompt may be short."""
    caller = new_caller(limits)
    upstream.plays(script)
    await fail(caller, times=FAILURES + 2)
    assert caller.providers.is_ready(caller.model(CHAT))


@pytest.mark.parametrize("script", [(Head(), Cut()), (Bare(),)], ids=["cut", "empty"])
async def test_broken_connections_open_the_circuit(
    upstream: Upstream, caller: Caller, script: Script
) -> None:
    upstream.plays(script)
    await fail(caller)
    reply = await caller.ask()
    assert reply.error is not None
    assert reply.error.message == OPEN_MESSAGE


async def test_a_reply_lost_after_its_first_text_does_not_open_the_circuit(
    upstream: Upstream, caller: Caller
) -> None:
    upstream.plays((Say("Half a"), Cut()))
    replies = await fail(caller, times=FAILURES + 2)
    assert {reply.code for reply in replies} == {"cut"}


async def test_calls_that_fail_at_the_same_time_cause_a_single_pause(
    upstream: Upstream, caller: Caller
) -> None:
    upstream.plays(OUTAGE)
    replies = await asyncio.gather(*(caller.ask() for _ in range(8)))
    assert {reply.code for reply in replies} == {"unavailable"}
    caller.clock.seconds += FIRST_PAUSE_S
    upstream.says("Back.")
    assert (await caller.ask()).text == "Back."


async def test_text_from_a_call_already_running_closes_the_circuit(
    upstream: Upstream, caller: Caller
) -> None:
    gate = asyncio.Event()
    upstream.plays((Hold(gate), *says("Slow, and here.")), OUTAGE)
    async with aclosing(caller.providers.stream(caller.call())) as items:
        first_item = asyncio.create_task(anext(items))
        await upstream.wait_for_request()
        await fail(caller)
        assert (await caller.ask()).code == "unavailable"
        gate.set()
        assert isinstance(await first_item, TextDelta)
    upstream.says("Well again.")
    assert (await caller.ask()).text == "Well again."
