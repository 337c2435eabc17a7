"""One person who asks for everything at once keeps nobody else waiting (LO 5, SQ 3)."""

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
async def crowded(turnstile: PerUserLimiter, user_id: str) -> AsyncIterator[list[int]]:
    """As many as are let in, none of them done before the end; which of them have been at work."""
    over, at_work = asyncio.Event(), []

    async def one(number: int) -> None:
        async with turnstile.passed(user_id):
            at_work.append(number)
            await over.wait()

    async with asyncio.TaskGroup() as crowd:
        for number in range(AT_ONCE + WAITING):
            crowd.create_task(one(number))
        await asyncio.sleep(0)  # each has come as far as it comes
        yield at_work
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
async def test_whoever_asks_for_too_much_at_once_is_told_to_wait_and_the_others_are_not(
    world: World, ada: Person, bob: Person, question: Question
) -> None:
    async with crowded(world.app.state.door.turnstile, ada.id):
        path, body = question(ada)
        told = await ada.client.post(path, json=body)
        assert (told.status_code, told.json()["code"], told.headers["retry-after"]) == (429, "too_many", "1")
        path, body = question(bob)
        await bob.post(path, body)
    path, body = question(ada)
    await ada.post(path, body)


async def test_of_one_person_four_are_at_work_and_the_rest_come_in_turn() -> None:
    turnstile = PerUserLimiter()
    async with soon(), crowded(turnstile, "ada") as at_work:
        assert at_work == list(range(AT_ONCE))
    assert at_work == list(range(AT_ONCE + WAITING))
