"""A provider that keeps failing is taken out for a while and tried again by itself (PF, rule 8)."""

import asyncio
from contextlib import aclosing

import pytest

from tertulia.providers.limits import Limits
from tertulia.providers.rest import FAILURES, FIRST_REST_S, LONGEST_REST_S
from tertulia.providers.seam import Text
from tests.providers.conftest import ANTHROPIC, CHAT, EVERY_DIALECT, RESPONSES, Heard, Listener, NewListener
from tests.upstream.scripted import Bare, Cut, Head, Hold, Say, Script, Stall, Upstream, refuses, says

every_dialect = pytest.mark.parametrize("key", EVERY_DIALECT)
DOWN = refuses(503)
RESTING = "OpenAI failed 3 times in a row and is paused. It can be asked again in 15 s."


async def fail(listener: Listener, key: str = CHAT, times: int = FAILURES) -> list[Heard]:
    return [await listener.ask(key) for _ in range(times)]


@every_dialect
async def test_after_three_failed_calls_nobody_is_kept_waiting(
    upstream: Upstream, listener: Listener, key: str
) -> None:
    upstream.plays(DOWN)
    await fail(listener, key)
    asked, slept = len(upstream.requests), len(listener.slept)
    heard = await listener.ask(key)
    assert heard.fault is not None
    assert (heard.code, heard.waits) == ("unavailable", [])
    assert heard.fault.message.endswith(" and is paused. It can be asked again in 15 s.")
    assert (len(upstream.requests), len(listener.slept)) == (asked, slept)


async def test_it_says_how_long_it_still_rests(upstream: Upstream, listener: Listener) -> None:
    upstream.plays(DOWN)
    await fail(listener)
    listener.clock.seconds += 12.4
    heard = await listener.ask()
    assert heard.fault is not None
    assert heard.fault.message == RESTING.replace("15 s", "3 s")


async def test_after_its_rest_it_is_asked_again_and_is_well(upstream: Upstream, listener: Listener) -> None:
    upstream.plays(DOWN)
    await fail(listener)
    listener.clock.seconds += FIRST_REST_S
    upstream.says("Back.")
    assert (await listener.ask()).text == "Back."
    upstream.plays(DOWN)
    await fail(listener, times=FAILURES - 1)
    upstream.says("Still here.")
    assert (await listener.ask()).text == "Still here."


async def test_one_more_failure_after_a_rest_is_a_rest_twice_as_long(
    upstream: Upstream, listener: Listener
) -> None:
    upstream.plays(DOWN)
    await fail(listener)
    rests = []
    for _ in range(5):
        rests.append(await rested_s(listener, upstream))
        await fail(listener, times=1)
    assert rests == [15, 30, 60, 120, LONGEST_REST_S]


async def rested_s(listener: Listener, upstream: Upstream) -> float:
    """Moves the clock until the provider may be asked."""
    began, asked = listener.clock.seconds, len(upstream.requests)
    while not {model.key for model in listener.providers.available()} & {CHAT}:
        listener.clock.seconds += 1
    assert len(upstream.requests) == asked
    return listener.clock.seconds - began


async def test_one_that_rests_leaves_the_others_alone(upstream: Upstream, listener: Listener) -> None:
    upstream.plays(DOWN, model="gpt-4o")
    upstream.says("Good evening.")
    await fail(listener)
    assert (await listener.ask(ANTHROPIC)).text == "Good evening."
    assert (await listener.ask(RESPONSES)).code == "unavailable"
    providers = {model.provider for model in listener.providers.available()}
    assert "openai" not in providers
    assert {"anthropic", "google"} <= providers


async def test_an_answer_in_between_is_a_new_beginning(upstream: Upstream, listener: Listener) -> None:
    for _ in range(3):
        upstream.plays(DOWN)
        await fail(listener, times=FAILURES - 1)
        upstream.says("Here.")
        assert (await listener.ask()).text == "Here."


NOT_ITS_FAULT = [refuses(401), refuses(404), refuses(429), refuses(400, "context_length_exceeded")]


@pytest.mark.parametrize("refusal", NOT_ITS_FAULT)
async def test_what_lies_with_the_key_or_the_question_is_no_reason_to_rest(
    upstream: Upstream, listener: Listener, refusal: Script
) -> None:
    upstream.plays(refusal)
    told = await fail(listener, times=FAILURES + 2)
    assert len({heard.fault.message for heard in told if heard.fault}) == 1


NO_TIME = Limits(first_byte_s=0, idle_s=0)


@pytest.mark.parametrize(
    ("late", "limits"),
    [((Stall(),), NO_TIME), ((Head(), Stall()), NO_TIME), (refuses(504), Limits()), (refuses(524), Limits())],
    ids=["no head", "no word", "504", "524"],
)
async def test_a_provider_that_takes_too_long_is_not_in_trouble(
    upstream: Upstream, new_listener: NewListener, late: Script, limits: Limits
) -> None:
    """It may be thinking: the next question may be a short one."""
    listener = new_listener(limits)
    upstream.plays(late)
    await fail(listener, times=FAILURES + 2)
    assert listener.providers.can_answer(listener.model(CHAT))


@pytest.mark.parametrize("trouble", [(Head(), Cut()), (Bare(),)], ids=["cut", "empty"])
async def test_broken_connections_are(upstream: Upstream, listener: Listener, trouble: Script) -> None:
    upstream.plays(trouble)
    await fail(listener)
    heard = await listener.ask()
    assert heard.fault is not None
    assert heard.fault.message == RESTING


async def test_one_that_breaks_off_in_mid_sentence_did_answer(upstream: Upstream, listener: Listener) -> None:
    upstream.plays((Say("Half a"), Cut()))
    told = await fail(listener, times=FAILURES + 2)
    assert {heard.code for heard in told} == {"cut"}


async def test_calls_that_fail_together_are_one_rest(upstream: Upstream, listener: Listener) -> None:
    upstream.plays(DOWN)
    told = await asyncio.gather(*(listener.ask() for _ in range(8)))
    assert {heard.code for heard in told} == {"unavailable"}
    listener.clock.seconds += FIRST_REST_S
    upstream.says("Back.")
    assert (await listener.ask()).text == "Back."


async def test_a_word_from_a_call_under_way_ends_the_rest(upstream: Upstream, listener: Listener) -> None:
    gate = asyncio.Event()
    upstream.plays((Hold(gate), *says("Slow, and here.")), DOWN)
    async with aclosing(listener.providers.stream(listener.call())) as pieces:
        first = asyncio.create_task(anext(pieces))
        await upstream.heard()
        await fail(listener)
        assert (await listener.ask()).code == "unavailable"
        gate.set()
        assert isinstance(await first, Text)
    upstream.says("Well again.")
    assert (await listener.ask()).text == "Well again."
