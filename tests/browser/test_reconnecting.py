"""A line that drops: it is said, nothing written is lost, and what waited is sent once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.browser.line import Line, line_to
from tests.browser.room import Room, in_parts
from tests.browser.windows import Windows
from tests.stories.waiting import stored_rounds
from tests.upstream.scripted import Upstream, says
from tests.world import Person, World, endpoints, running

NO_NETWORK = r"net::ERR_(INTERNET_DISCONNECTED|CONNECTION_\w+|EMPTY_RESPONSE|SOCKET_NOT_CONNECTED)"


async def test_a_question_asked_offline_waits_and_is_sent_once(
    page: Page, windows: Windows, sam: Person, upstream: Upstream
) -> None:
    windows.expect(NO_NETWORK)
    room = Room(page)
    upstream.plays(says("Yes."), says("Now I am."))
    await room.seat("Alpha")
    await room.ask("Are you there?")
    await expect(room.reply("Alpha", "finished")).to_be_visible()

    await page.context.set_offline(True)
    await expect(room.banner).to_contain_text("You are offline.")
    await room.field.fill("And now?")
    await expect(page.get_by_role("button", name="Queue message")).to_be_enabled()
    await room.field.press("Enter")
    await expect(room.rounds.last).to_contain_text("sends when you are back online")
    assert len(upstream.requests) == 1

    await page.context.set_offline(False)
    await expect(room.banner).to_be_hidden()
    await expect(room.rounds.last).to_contain_text("Now I am.")
    await expect(room.rounds.last).not_to_contain_text("sends when you are back online")
    await expect(room.rounds).to_have_count(2)
    assert len(upstream.requests) == 2
    assert len(await stored_rounds(sam, room.id)) == 2


async def test_a_question_waits_even_when_its_window_is_closed(
    page: Page, windows: Windows, sam: Person, upstream: Upstream
) -> None:
    windows.expect(NO_NETWORK)
    room = Room(page)
    await room.seat("Alpha")
    await expect(room.banner).to_be_hidden()
    await page.context.set_offline(True)
    await expect(room.banner).to_be_visible()
    await room.ask("Will you get this?")
    await expect(room.rounds).to_contain_text("sends when you are back online")
    address = page.url
    await page.close()

    await page.context.set_offline(False)
    room = Room(await windows.tab(page.context, address))
    await expect(room.words("Alpha")).to_have_text("alpha heard: Will you get this?")
    assert len(upstream.requests) == 1
    assert len(await stored_rounds(sam, room.id)) == 1


@pytest_asyncio.fixture(loop_scope="session")
async def line(world: World) -> AsyncIterator[Line]:
    async with line_to(world.url) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def far_away(browser: Browser, line: Line) -> AsyncIterator[Windows]:
    """Windows whose line can be cut."""
    made = Windows(browser, line.url)
    made.expect(NO_NETWORK, r"WebSocket connection to .* failed")
    yield made
    await made.close()
    made.must_be_untroubled()


async def test_words_said_while_the_line_was_down_are_there_when_it_is_back(
    far_away: Windows, line: Line, sam: Person, upstream: Upstream
) -> None:
    page = await far_away.open(sam, "/new")
    room, goes_on = Room(page), asyncio.Event()
    upstream.plays(in_parts("Before. ", goes_on, "Meanwhile."), model="alpha")
    upstream.plays(in_parts("Still ", ends := asyncio.Event(), "here."), model="beta")
    await room.seat("Alpha", "Beta")
    await room.ask("Say something.")
    await expect(room.words("Alpha")).to_have_text("Before.")
    await expect(room.words("Beta")).to_have_text("Still")

    line.cut()
    await expect(room.banner).to_contain_text(
        "Reconnecting. Replies that have started continue on the server."
    )
    goes_on.set()
    await upstream.requests[0].over.wait()
    line.mend()
    await room.banner.get_by_role("button", name="Try now").click()
    await expect(room.banner).to_be_hidden()
    await expect(room.reply("Alpha", "finished")).to_contain_text("Before. Meanwhile.")
    await expect(page.get_by_text("Back. 1 reply finished while you were away.")).to_be_visible()
    ends.set()
    await expect(room.reply("Beta", "finished")).to_contain_text("Still here.")


async def test_a_server_that_was_renewed_is_found_again_with_all_that_was_said(
    browser: Browser, upstream: Upstream, tmp_path: Path
) -> None:
    environ = {"TERTULIA_ENDPOINTS": endpoints(upstream)}
    upstream.plays(in_parts("Half a thought", asyncio.Event()), says(" and its end."), model="alpha")
    async with AsyncExitStack() as stack:
        async with running(tmp_path, environ) as first:
            line = await stack.enter_async_context(line_to(first.url))
            windows = Windows(browser, line.url)
            windows.expect(NO_NETWORK, r"WebSocket connection to .* failed")
            sam = await first.first("Sam")
            page = await windows.open(sam, "/new")
            room = Room(page)
            await room.seat("Alpha")
            await room.ask("Think.")
            await expect(room.words("Alpha")).to_have_text("Half a thought")
            line.cut()
        second = await stack.enter_async_context(running(tmp_path, environ))
        line.mend(second.url)
        broken = room.reply("Alpha", "interrupted")
        await expect(broken).to_contain_text("Half a thought")
        await expect(broken.get_by_role("alert")).to_contain_text("The server was restarted after 3 words.")
        await broken.get_by_role("button", name="Continue").click()
        await expect(room.reply("Alpha", "finished")).to_contain_text("Half a thought and its end.")
        await windows.close()
        windows.must_be_untroubled()
