"""A user who sends many searches and estimates at once does not delay other users (LO 5, SQ 3)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tertulia.server.concurrency_limit import AT_ONCE, WAITING, PerUserLimiter
from tests.patience import soon
from tests.world import Person, World


@asynccontextmanager
async def all_slots_taken(limiter: PerUserLimiter, user_id: str) -> AsyncIterator[list[int]]:
    """Takes every slot of a user until the block ends; yields the numbers of the requests that ran so far."""
    over, started = asyncio.Event(), []

    async def request(number: int) -> None:
        async with limiter.slot(user_id):
            started.append(number)
            await over.wait()

    async with asyncio.TaskGroup() as requests:
        for number in range(AT_ONCE + WAITING):
            requests.create_task(request(number))
        await asyncio.sleep(0)  # every request runs or waits now
        yield started
        over.set()


Question = Callable[[Person], tuple[str, Any]]

QUESTIONS: dict[str, Question] = {
    "search": lambda ada: (f"/api/projects/{ada.home}/search", {"query": "tea"}),
    "search everywhere": lambda ada: ("/api/search/global", {"query": "tea"}),
    "estimate": lambda ada: (
        "/api/estimate",
        {"text": "Tea?", "project_id": ada.home, "voices": [{"model": "voices:alpha"}]},
    ),
}


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS.keys())
async def test_a_user_with_too_many_requests_gets_429_and_other_users_are_served(
    world: World, ada: Person, bob: Person, question: Question
) -> None:
    async with all_slots_taken(world.app.state.server.limiter, ada.id):
        path, body = question(ada)
        answer = await ada.client.post(path, json=body)
        assert (answer.status_code, answer.json()["code"], answer.headers["retry-after"]) == (
            429,
            "too_many",
            "1",
        )
        path, body = question(bob)
        await bob.post(path, body)
    path, body = question(ada)
    await ada.post(path, body)


async def test_four_requests_of_a_user_run_at_once_and_the_rest_follow_in_order() -> None:
    limiter = PerUserLimiter()
    async with soon(), all_slots_taken(limiter, "ada") as started:
        assert started == list(range(AT_ONCE))
    assert started == list(range(AT_ONCE + WAITING))
