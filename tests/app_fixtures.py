"""Fixtures of a whole server: a scripted upstream, the server, and two people."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.upstream.scripted import Upstream, scripted
from tests.world import Person, World, endpoints, running


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with scripted() as server:
        yield server


@pytest.fixture
async def world(tmp_path: Path, upstream: Upstream) -> AsyncIterator[World]:
    async with running(tmp_path, {"TERTULIA_ENDPOINTS": endpoints(upstream)}) as server:
        yield server


@pytest.fixture
async def ada(world: World) -> Person:
    """The administrator."""
    return await world.set_up("Ada")


@pytest.fixture
async def bob(world: World, ada: Person) -> Person:
    """A second person, not an administrator."""
    return await world.create_account(ada, "Bob")
