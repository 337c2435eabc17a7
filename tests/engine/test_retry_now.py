"""Retry now: a person can end the wait before a retry, of one voice or of all."""

from __future__ import annotations

import asyncio

import pytest

from tertulia.core.errors import NotFound
from tertulia.core.messages import Status
from tertulia.core.turns import Turn, TurnState
from tertulia.engine.live_turn import LiveTurn
from tertulia.providers.limits import Limits
from tests.engine.conftest import Engine, engine_in
from tests.patience import soon
from tests.upstream.scripted import Say, Stall, Upstream, refuses, says

HOURS = "36000"
PATIENT = Limits(retries=2, longest_retry_wait_s=2 * float(HOURS))
"""Too long for a test: a reply that comes was retried by hand."""
BUSY = refuses(429, {"error": {"message": "Slow down"}}, retry_after=HOURS)


@pytest.fixture
async def patient(tmp_path, upstream):
    async with engine_in(tmp_path, upstream, PATIENT) as engine:
        yield engine


async def waiting(engine: Engine, turn: Turn, voices: int = 1) -> LiveTurn:
    """Waits until so many replies of the turn wait for their provider."""
    live = engine.dependencies.live.find(turn.id)
    assert live is not None
    woken = asyncio.Event()
    live.watchers.add(woken.set)
    async with soon():
        while sum(_is_far_off(engine, reply.waiting) for reply in live.replies.values()) < voices:
            woken.clear()
            await woken.wait()
    return live


def _is_far_off(engine: Engine, wait: object) -> bool:
    return wait is not None and wait.until > engine.dependencies.clock() + 3_600_000  # type: ignore[attr-defined]


async def test_retry_now_ends_the_wait_for_the_provider(patient: Engine, upstream: Upstream) -> None:
    upstream.plays(BUSY, says("Here."))
    opened = await patient.open("Anyone?")
    live = await waiting(patient, opened.turn)
    [reply_id] = live.replies
    await patient.turns.retry_now(patient.actor, opened.turn.id, reply_id)
    assert await patient.over(opened.turn) is TurnState.COMPLETE
    [reply] = await patient.replies(opened.turn)
    assert (reply.content, reply.status, len(upstream.requests)) == ("Here.", Status.COMPLETE, 2)


async def test_retry_now_ends_one_wait_and_not_the_next(patient: Engine, upstream: Upstream) -> None:
    upstream.plays(BUSY, BUSY, says("Here."))
    opened = await patient.open("Anyone?")
    for _ in range(2):
        await waiting(patient, opened.turn)
        await patient.turns.retry_now(patient.actor, opened.turn.id)
    assert await patient.over(opened.turn) is TurnState.COMPLETE


async def test_retry_now_for_one_voice_leaves_the_other_waiting(patient: Engine, upstream: Upstream) -> None:
    upstream.plays(BUSY, says("Here."), model="alpha")
    upstream.plays(BUSY, says("Never."), model="beta")
    opened = await patient.open("Anyone?", "alpha", "beta")
    live = await waiting(patient, opened.turn, 2)
    alpha = next(id for id, reply in live.replies.items() if reply.draft().voice.model == "voices:alpha")
    await patient.turns.retry_now(patient.actor, opened.turn.id, alpha)
    await patient_until(live, 1)
    assert [reply.waiting is not None for reply in live.replies.values()] == [True]
    assert [seen.model for seen in upstream.requests].count("beta") == 1
    await patient.turns.stop(patient.actor, opened.turn.id)
    await patient.over(opened.turn)


async def patient_until(live: LiveTurn, running: int) -> None:
    woken = asyncio.Event()
    live.watchers.add(woken.set)
    async with soon():
        while len(live.replies) > running:
            woken.clear()
            await woken.wait()


async def test_watchers_learn_that_the_wait_is_over(patient: Engine, upstream: Upstream) -> None:
    upstream.plays(BUSY, (Stall(),))
    opened = await patient.open("Anyone?")
    live = await waiting(patient, opened.turn)
    await patient.turns.retry_now(patient.actor, opened.turn.id)
    await upstream.wait_for_request(2)
    [reply] = live.replies.values()
    assert reply.waiting is not None
    assert reply.waiting.until <= patient.dependencies.clock()
    await patient.turns.stop(patient.actor, opened.turn.id)
    await patient.over(opened.turn)


async def test_retry_now_leaves_a_writing_voice_alone(patient: Engine, upstream: Upstream) -> None:
    upstream.plays((Say("Once upon"), Stall()))
    opened = await patient.open("Tell me")
    await patient.said(opened.turn, "Once upon")
    await patient.turns.retry_now(patient.actor, opened.turn.id)
    await patient.turns.stop(patient.actor, opened.turn.id)
    await patient.over(opened.turn)
    assert len(upstream.requests) == 1


async def test_retry_now_leaves_a_finished_turn_as_it_is(patient: Engine, upstream: Upstream) -> None:
    upstream.says("Done.")
    opened = await patient.open("Quick")
    await patient.over(opened.turn)
    assert (await patient.turns.retry_now(patient.actor, opened.turn.id)).state is TurnState.COMPLETE
    with pytest.raises(NotFound):
        await patient.turns.retry_now(patient.actor, opened.turn.id, "01JJJJJJJJJJJJJJJJJJJJJJJJ")


async def test_a_wait_that_is_too_long_fails_with_the_time_of_its_end(tmp_path, upstream) -> None:
    upstream.plays(refuses(429, {"error": {"message": "Slow down"}}, x_ratelimit_reset="4000000000"))
    async with engine_in(tmp_path, upstream, Limits()) as engine:
        opened = await engine.open("Anyone?")
        await engine.over(opened.turn)
        [reply] = await engine.replies(opened.turn)
    assert reply.failure is not None
    assert (reply.failure.code, reply.failure.retry_at) == ("rate_limited", 4_000_000_000_000)
