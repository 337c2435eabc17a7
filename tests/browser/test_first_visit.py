"""The first visitor sets up the server, signs out and signs in again."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from playwright.async_api import Browser, Page, Route, expect

from tests.browser.conversation_page import ConversationPage
from tests.browser.windows import Windows
from tests.upstream.scripted import Upstream
from tests.world import PASSWORD, World, endpoints, running


@pytest_asyncio.fixture(loop_scope="session")
async def world(tmp_path: Path, upstream: Upstream) -> AsyncIterator[World]:
    """A server without accounts."""
    async with running(tmp_path, {"TERTULIA_ENDPOINTS": endpoints(upstream)}) as world:
        yield world


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser: Browser, windows: Windows) -> Page:
    return await windows.open()


async def test_the_setup_has_three_steps_and_opens_a_new_conversation(page: Page, upstream: Upstream) -> None:
    await expect(page.get_by_role("heading", name="Create your account")).to_be_visible()
    await expect(page.get_by_role("contentinfo")).to_have_text("Step 1 of 3")
    await page.get_by_label("Your name").fill("Sam")
    await page.get_by_label("Email").fill("sam@example.org")
    await page.get_by_label("Password", exact=True).fill(PASSWORD)
    await page.get_by_role("button", name="Continue").click()

    await expect(page.get_by_role("heading", name="Connect your models")).to_be_visible()
    await expect(page.get_by_role("listitem").filter(has_text="voices")).to_contain_text("3 models are ready")
    await page.get_by_role("button", name="Continue").click()

    await expect(page.get_by_role("heading", name="Which models should answer?")).to_be_visible()
    await page.get_by_role("checkbox", name="Gamma").uncheck()
    await page.get_by_role("button", name="Start").click()

    await expect(page.get_by_role("heading", name="What would you like to ask?")).to_be_visible()
    conversation = ConversationPage(page)
    await expect(conversation.table.get_by_role("button", name="Remove")).to_have_count(2)
    await conversation.ask("Is anybody here?")
    await expect(conversation.reply_text("Alpha")).to_have_text("alpha heard: Is anybody here?")
    await expect(conversation.reply_text("Beta")).to_have_text("beta heard: Is anybody here?")


async def test_the_demo_model_is_no_default_and_templates_need_two_models(
    page: Page, upstream: Upstream
) -> None:
    """Alpha is the demo model and at first the only available one; then the others become available."""
    only_demo_is_ready = True

    async def models(route: Route) -> None:
        answer = await route.fetch()
        items = (await answer.json())["items"]
        for model in items:
            model["is_demo"] = model["key"] == "voices:alpha"
            model["is_available"] = model["is_demo"] or (model["is_available"] and not only_demo_is_ready)
        await route.fulfill(response=answer, json={"items": items})

    await page.route("**/api/models", models)
    await page.reload()
    await page.get_by_label("Your name").fill("Sam")
    await page.get_by_label("Email").fill("sam@example.org")
    await page.get_by_label("Password", exact=True).fill(PASSWORD)
    await page.get_by_role("button", name="Continue").click()
    await expect(page.get_by_role("listitem").filter(has_text="voices")).to_contain_text("1 model is ready")
    await page.get_by_role("button", name="Continue").click()
    await page.get_by_role("button", name="Start").click()
    conversation = ConversationPage(page)
    await expect(conversation.table.get_by_role("button", name="Remove")).to_have_count(1)
    template = page.get_by_role("button", name="Ask a brain trust")
    await expect(template).to_be_disabled()
    await expect(template).to_have_accessible_description(re.compile("^Templates need two"))
    await conversation.ask("Is anybody here?")
    await expect(conversation.reply_text("Alpha")).to_have_text("alpha heard: Is anybody here?")

    me = await page.evaluate("async () => (await fetch('/api/me')).json()")
    assert me["projects"][0]["settings"]["default_models"] == []
    only_demo_is_ready = False
    await page.goto("/new")
    await expect(conversation.table.get_by_role("button", name="Remove")).to_have_count(3)
    await expect(conversation.table.get_by_role("button", name="Remove Alpha")).to_have_count(0)
    upstream.says("Buy the bakery.")
    await expect(template.locator("svg[data-seat]")).to_have_count(3)
    await template.click()
    await conversation.field.press("End")
    await conversation.field.press("Enter")
    for name in ("The Sage", "The Skeptic", "The Strategist"):
        await expect(conversation.reply(name, "finished").first).to_be_visible()


async def test_a_weak_password_is_refused_at_the_password_field(page: Page, windows: Windows) -> None:
    windows.allow(r"status of 422 .*/api/setup$")
    await page.get_by_label("Your name").fill("Sam")
    await page.get_by_label("Email").fill("sam@example.org")
    password = page.get_by_label("Password", exact=True)
    await password.fill("short")
    await page.get_by_role("button", name="Continue").click()
    await expect(password).to_have_accessible_description("Choose a password of at least 10 characters.")
    await expect(password).to_be_focused()


async def test_signing_in_needs_the_right_password(page: Page, world: World) -> None:
    await world.set_up("Sam")
    await page.reload()
    await expect(page.get_by_role("heading", name="One conversation, many models")).to_be_visible()
    await page.get_by_label("Email").fill("sam@example.org")
    password = page.get_by_label("Password", exact=True)
    await password.fill("not the right one")
    await page.get_by_role("button", name="Sign in").click()
    await expect(password).to_have_accessible_description("E-mail and password do not match an account here.")
    await expect(password).to_be_focused()

    await password.fill(PASSWORD)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("heading", name="What would you like to ask?")).to_be_visible()

    await ConversationPage(page).sidebar.get_by_role("button", name="Sam").click()
    await page.get_by_role("menuitem", name="Sign out").click()
    await expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    await page.goto("/settings/sessions")
    await expect(page.get_by_role("button", name="Sign in")).to_be_visible()
