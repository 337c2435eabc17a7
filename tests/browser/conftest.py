"""Fixtures of browser tests: a Chromium, a server and an upstream per worker, and an account per test."""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tertulia.server.asgi import web_folder
from tests.browser.windows import PATIENCE_MS, Windows, chromium, program
from tests.upstream.scripted import Upstream, scripted
from tests.world import Person, World, endpoints, running

HERE = Path(__file__).parent
SHARED = pytest.mark.asyncio(loop_scope="session")

expect.set_options(timeout=PATIENCE_MS)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(SHARED, append=False)


@pytest.fixture(scope="session")
def chromium_available() -> None:
    """Skips the tests when Chromium is missing; in CI that is an error."""
    if program() is None:
        if os.environ.get("CI") == "true":
            pytest.fail("The browser tests need Chromium and CI may not skip them: install it.")
        pytest.skip(
            "NO CHROMIUM ON THIS MACHINE: the browser tests are skipped. Install the package chromium."
        )
    if web_folder() is None:
        pytest.fail("The browser tests need the built interface: run `make web`.")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(chromium_available: None) -> AsyncIterator[Browser]:
    async with chromium() as launched:
        yield launched


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_upstream() -> AsyncIterator[Upstream]:
    async with scripted() as server:
        yield server


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_world(
    chromium_available: None, tmp_path_factory: pytest.TempPathFactory, shared_upstream: Upstream
) -> AsyncIterator[World]:
    home = tmp_path_factory.mktemp("server")
    async with running(home, {"TERTULIA_ENDPOINTS": endpoints(shared_upstream)}) as world:
        yield world


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def administrator(shared_world: World) -> Person:
    return await shared_world.set_up("Ada")


@pytest.fixture
def upstream(shared_upstream: Upstream) -> Upstream:
    """The shared upstream, without scripts and requests of earlier tests."""
    shared_upstream.reset()
    return shared_upstream


@pytest.fixture
def world(shared_world: World) -> World:
    return shared_world


PEOPLE = itertools.count(1)


@pytest_asyncio.fixture(loop_scope="session")
async def sam(world: World, administrator: Person) -> Person:
    """A person with a new account."""
    return await world.create_account(administrator, f"Sam{next(PEOPLE)}")


@pytest_asyncio.fixture(loop_scope="session")
async def windows(browser: Browser, world: World) -> AsyncIterator[Windows]:
    opened = Windows(browser, world.url)
    yield opened
    await opened.close()
    opened.must_have_no_problems()


@pytest_asyncio.fixture(loop_scope="session")
async def page(windows: Windows, sam: Person, upstream: Upstream) -> Page:
    """A window of Sam on a new conversation."""
    return await windows.open(sam, "/new")
