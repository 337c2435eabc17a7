"""The embedding model can change at any time: full-text search works meanwhile, and results say so."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tertulia.store.database import Tx
from tertulia.store.sql import sql
from tests.library.bags import numbers
from tests.patience import soon
from tests.timers import timers  # noqa: F401 - a fixture
from tests.upstream.scripted import Hold, Script, Upstream, refuses, vectors
from tests.world import Person, World, endpoints, running

pytestmark = pytest.mark.usefixtures("timers")
"""The clock of provider requests stands still, so no search times out."""

Start = Callable[[str, int], AbstractAsyncContextManager[World]]


@pytest.fixture
def start(tmp_path: Path, upstream: Upstream, database_url: str) -> Start:
    """Starts the server on the same database with an embedding model of this many dimensions."""
    upstream.embeds = numbers

    @asynccontextmanager
    async def started(model: str, dimensions: int = 64) -> AsyncIterator[World]:
        endpoint = {"base_url": f"{upstream.url}/v1", "model": model, "dimensions": dimensions}
        environ = {
            "TERTULIA_ENDPOINTS": endpoints(upstream),
            "TERTULIA_EMBEDDINGS": json.dumps(endpoint),
            "TERTULIA_DATABASE_URL": database_url,
        }
        async with running(tmp_path, environ) as world:
            yield world

    return started


async def search(person: Person, query: str) -> tuple[list[str], list[str], str | None]:
    """The titles of the hits, the ways they were found, and why vector search was not used."""
    answer: dict[str, Any] = await person.post(f"/api/projects/{person.home}/search", {"query": query})
    hits = answer["hits"]
    return [hit["title"] for hit in hits], hits[0]["found_by"] if hits else [], answer["without_meaning"]


async def at_rest(world: World) -> None:
    """Waits until no due job is left."""
    async with soon():
        while await world.tertulia.db.read(lambda tx: tx.maybe(_BUSY, now=tx.now)):
            pass


_BUSY = sql("SELECT id FROM jobs WHERE state = 'running' OR (state = 'waiting' AND run_at <= :now) LIMIT 1")


async def test_full_text_search_works_while_a_new_model_embeds_everything_again(
    start: Start, upstream: Upstream
) -> None:
    async with start("first", 64) as world:
        ada = await world.set_up("Ada")
        await ada.upload("pet.md", b"the kitten sleeps")
        await ada.upload("ride.md", b"an automobile")
        await at_rest(world)
        assert await search(ada, "cat") == (["pet.md"], ["meaning"], None)
    upstream.embeds = lambda embedded_text: numbers(embedded_text)[:32]
    release = asyncio.Event()
    upstream.plays((Hold(release), *vectors([[1.0] * 32] * 2)), model="second")
    async with start("second", 32) as world:
        ada = await world.sign_in("ada@example.org")
        titles, found_by, reason = await search(ada, "kitten")
        assert (titles, found_by) == (["pet.md"], ["keyword"])
        assert reason is not None
        assert "search uses words only" in reason
        upstream.plays(model="second")
        release.set()
        await at_rest(world)
        titles, found_by, reason = await search(ada, "the kitten sleeps")
        assert (titles[0], "meaning" in found_by, reason) == ("pet.md", True, None)


FAILING: dict[str, Script] = {
    "too much": refuses(429, retry_after="30"),
    "other dimensions": vectors([[1.0] * 8] * 2),
}


@pytest.mark.parametrize("how", FAILING)
async def test_full_text_search_works_while_the_embedding_endpoint_fails(
    start: Start, upstream: Upstream, how: str
) -> None:
    async with start("m", 64) as world:
        ada = await world.set_up("Ada")
        await ada.upload("pet.md", b"the kitten sleeps")
        await at_rest(world)
        upstream.plays(FAILING[how], model="m")
        await ada.upload("ride.md", b"an automobile")
        await at_rest(world)
        titles, found_by, reason = await search(ada, "automobile")
        assert (titles, found_by) == (["ride.md"], ["keyword"])
        assert reason is not None
        assert reason.startswith("The embedding endpoint")
        upstream.plays(model="m")
    async with start("m", 64) as world:
        ada = await world.sign_in("ada@example.org")
        await at_rest(world)
        assert (await search(ada, "vehicle"))[0][0] == "ride.md"


async def test_pgvector_installed_later_takes_over_the_existing_vectors(
    tmp_path: Path, upstream: Upstream, plain_postgres_url: str, postgres_server: str
) -> None:
    upstream.embeds = numbers
    endpoint = {"base_url": f"{upstream.url}/v1", "model": "m", "dimensions": 64}
    environ = {"TERTULIA_DATABASE_URL": plain_postgres_url, "TERTULIA_EMBEDDINGS": json.dumps(endpoint)}
    async with running(tmp_path, environ) as world:
        ada = await world.set_up("Ada")
        await ada.upload("pet.md", b"the kitten sleeps")
        await ada.upload("ride.md", b"an automobile")
        await at_rest(world)
        before = await search(ada, "cat")
        assert "memory" in world.tertulia.db.vectors
    name = plain_postgres_url.partition("?")[0].rpartition("/")[2]
    with psycopg.connect(postgres_server.format(name), autocommit=True) as superuser:
        superuser.execute("CREATE EXTENSION vector")
        try:
            request_count = len(upstream.requests)
            async with running(tmp_path, environ) as world:
                await at_rest(world)
                assert len(upstream.requests) == request_count
                assert "pgvector" in world.tertulia.db.vectors
                assert not await world.tertulia.db.read(_has_unplaced)
                ada = await world.sign_in("ada@example.org")
                assert await search(ada, "cat") == before == (["pet.md"], ["meaning"], None)
        finally:
            superuser.execute("DROP EXTENSION vector CASCADE")


def _has_unplaced(tx: Tx) -> bool:
    return tx.maybe(tx.vector_index.without_near, config=1, limit=1) is not None
