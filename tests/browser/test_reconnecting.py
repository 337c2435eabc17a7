"""A lost connection is shown, no text is lost, and a queued question is sent once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.browser.conversation_page import ConversationPage, reply_in_parts
from tests.browser.proxy import Proxy, proxy_to
from tests.browser.windows import Windows
from tests.stories.waiting import stored_rounds
from tests.upstream.scripted import Upstream, says
from tests.world import Person, World, endpoints, running

NO_NETWORK = r"net::ERR_(INTERNET_DISCONNECTED|CONNECTION_\w+|EMPTY_RESPONSE|SOCKET_NOT_CONNECTED)"


async def test_a_question_asked_offline_is_queued_and_sent_once(
    page: Page, windows: Windows, sam: Person, upstream: Upstream
) -> None:
    windows.allow(NO_NETWORK)
    conversation = ConversationPage(page)
    upstream.plays(says("Yes."), says("Now I am."))
    await conversation.seat("Alpha")
    await conversation.ask("Are you there?")
    await expect(conversation.reply("Alpha", "finished")).to_be_visible()

    await page.context.set_offline(True)
    await expect(conversation.banner).to_contain_text("You are offline.")
    await conversation.field.fill("And now?")
    await expect(page.get_by_role("button", name="Queue message")).to_be_enabled()
    await conversation.field.press("Enter")
    await expect(conversation.rounds.last).to_contain_text("sends when you are back online")
    assert len(upstream.requests) == 1

    await page.context.set_offline(False)
    await expect(conversation.banner).to_be_hidden()
    await expect(conversation.rounds.last).to_contain_text("Now I am.")
    await expect(conversation.rounds.last).not_to_contain_text("sends when you are back online")
    await expect(conversation.rounds).to_have_count(2)
    assert len(upstream.requests) == 2
    assert len(await stored_rounds(sam, conversation.id)) == 2


async def test_a_queued_question_survives_closing_the_window(
    page: Page, windows: Windows, sam: Person, upstream: Upstream
) -> None:
    windows.allow(NO_NETWORK)
    conversation = ConversationPage(page)
    await conversation.seat("Alpha")
    await expect(conversation.banner).to_be_hidden()
    await page.context.set_offline(True)
    await expect(conversation.banner).to_be_visible()
    await conversation.ask("Will you get this?")
    await expect(conversation.rounds).to_contain_text("sends when you are back online")
    address = page.url
    await page.close()

    await page.context.set_offline(False)
    conversation = ConversationPage(await windows.tab(page.context, address))
    await expect(conversation.reply_text("Alpha")).to_have_text("alpha heard: Will you get this?")
    assert len(upstream.requests) == 1
    assert len(await stored_rounds(sam, conversation.id)) == 1


@pytest_asyncio.fixture(loop_scope="session")
async def proxy(world: World) -> AsyncIterator[Proxy]:
    async with proxy_to(world.url) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="session")
async def proxied_windows(browser: Browser, proxy: Proxy) -> AsyncIterator[Windows]:
    """Windows that are connected through the proxy."""
    opened = Windows(browser, proxy.url)
    opened.allow(NO_NETWORK, r"WebSocket connection to .* failed")
    yield opened
    await opened.close()
    opened.must_have_no_problems()


async def test_text_written_while_disconnected_appears_after_reconnecting(
    proxied_windows: Windows, proxy: Proxy, sam: Person, upstream: Upstream
) -> None:
    page = await proxied_windows.open(sam, "/new")
    conversation, continue_alpha = ConversationPage(page), asyncio.Event()
    upstream.plays(reply_in_parts("Before. ", continue_alpha, "Meanwhile."), model="alpha")
    upstream.plays(reply_in_parts("Still ", finish_beta := asyncio.Event(), "here."), model="beta")
    await conversation.seat("Alpha", "Beta")
    await conversation.ask("Say something.")
    await expect(conversation.reply_text("Alpha")).to_have_text("Before.")
    await expect(conversation.reply_text("Beta")).to_have_text("Still")

    proxy.cut()
    await expect(conversation.banner).to_contain_text(
        "Reconnecting. Replies that have started continue on the server."
    )
    continue_alpha.set()
    await upstream.requests[0].over.wait()
    proxy.restore()
    await conversation.banner.get_by_role("button", name="Try now").click()
    await expect(conversation.banner).to_be_hidden()
    await expect(conversation.reply("Alpha", "finished")).to_contain_text("Before. Meanwhile.")
    await expect(page.get_by_text("Back. 1 reply finished while you were away.")).to_be_visible()
    finish_beta.set()
    await expect(conversation.reply("Beta", "finished")).to_contain_text("Still here.")


async def test_a_window_reconnects_to_a_restarted_server_without_losing_text(
    browser: Browser, upstream: Upstream, tmp_path: Path
) -> None:
    environ = {"TERTULIA_ENDPOINTS": endpoints(upstream)}
    upstream.plays(reply_in_parts("Half a thought", asyncio.Event()), says(" and its end."), model="alpha")
    async with AsyncExitStack() as stack:
        async with running(tmp_path, environ) as first_server:
            proxy = await stack.enter_async_context(proxy_to(first_server.url))
            windows = Windows(browser, proxy.url)
            windows.allow(NO_NETWORK, r"WebSocket connection to .* failed")
            sam = await first_server.set_up("Sam")
            page = await windows.open(sam, "/new")
            conversation = ConversationPage(page)
            await conversation.seat("Alpha")
            await conversation.ask("Think.")
            await expect(conversation.reply_text("Alpha")).to_have_text("Half a thought")
            proxy.cut()
        second_server = await stack.enter_async_context(running(tmp_path, environ))
        proxy.restore(second_server.url)
        interrupted = conversation.reply("Alpha", "interrupted")
        await expect(interrupted).to_contain_text("Half a thought")
        await expect(interrupted.get_by_role("alert")).to_contain_text(
            "The server was restarted after 3 words."
        )
        await interrupted.get_by_role("button", name="Continue").click()
        await expect(conversation.reply("Alpha", "finished")).to_contain_text("Half a thought and its end.")
        await windows.close()
        windows.must_have_no_problems()
