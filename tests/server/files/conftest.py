"""A server with a small quota, Ada, and a new project for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.world import Person, World, running


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    limits = {"TERTULIA_UPLOAD_LIMIT_MIB": "2", "TERTULIA_QUOTA_MIB": "40"}
    async with running(tmp_path_factory.mktemp("home"), limits) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def ada(world: World) -> Person:
    return await world.set_up("Ada")


@pytest_asyncio.fixture(loop_scope="module")
async def project(ada: Person) -> str:
    made = await ada.post("/api/projects", {"name": "Files"}, expect=201)
    return str(made["id"])
