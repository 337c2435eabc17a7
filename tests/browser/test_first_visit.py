"""The first visitor sets the house up, leaves it and comes back."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from playwright.async_api import Browser, Page, Route, expect

from tests.browser.room import Room
from tests.browser.windows import Windows
from tests.upstream.scripted import Upstream
from tests.world import PASSWORD, World, endpoints, running


@pytest_asyncio.fixture(loop_scope="session")
async def world(tmp_path: Path, upstream: Upstream) -> AsyncIterator[World]:
    """A house nobody lives in yet."""
    async with running(tmp_path, {"TERTULIA_ENDPOINTS": endpoints(upstream)}) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser: Browser, windows: Windows) -> Page:
    return await windows.open()


async def test_three_steps_lead_to_a_set_table(page: Page, upstream: Upstream) -> None:
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
    room = Room(page)
    await expect(room.table.get_by_role("button", name="Remove")).to_have_count(2)
    await room.ask("Is anybody here?")
    await expect(room.words("Alpha")).to_have_text("alpha heard: Is anybody here?")
    await expect(room.words("Beta")).to_have_text("beta heard: Is anybody here?")


async def test_the_demo_is_no_default_and_a_template_says_what_it_needs(
    page: Page, upstream: Upstream
) -> None:
    """Alpha is the demo here, and the only one that is ready; then keys are set and the others are too."""
    is_alone = True

    async def models(route: Route) -> None:
        answer = await route.fetch()
        items = (await answer.json())["items"]
        for model in items:
            model["is_demo"] = model["key"] == "voices:alpha"
            model["is_available"] = model["is_demo"] or (model["is_available"] and not is_alone)
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
    room = Room(page)
    await expect(room.table.get_by_role("button", name="Remove")).to_have_count(1)
    trust = page.get_by_role("button", name="Ask a brain trust")
    await expect(trust).to_be_disabled()
    await expect(trust).to_have_accessible_description(re.compile("^Templates need two"))
    await room.ask("Is anybody here?")
    await expect(room.words("Alpha")).to_have_text("alpha heard: Is anybody here?")

    me = await page.evaluate("async () => (await fetch('/api/me')).json()")
    assert me["projects"][0]["settings"]["default_models"] == []
    is_alone = False
    await page.goto("/new")
    await expect(room.table.get_by_role("button", name="Remove")).to_have_count(3)
    await expect(room.table.get_by_role("button", name="Remove Alpha")).to_have_count(0)
    upstream.says("Buy the bakery.")
    await expect(trust.locator("svg[data-seat]")).to_have_count(3)
    await trust.click()
    await room.field.press("End")
    await room.field.press("Enter")
    for name in ("The Sage", "The Skeptic", "The Strategist"):
        await expect(room.reply(name, "finished").first).to_be_visible()


async def test_a_weak_password_is_refused_where_it_was_typed(page: Page, windows: Windows) -> None:
    windows.expect(r"status of 422 .*/api/setup$")
    await page.get_by_label("Your name").fill("Sam")
    await page.get_by_label("Email").fill("sam@example.org")
    password = page.get_by_label("Password", exact=True)
    await password.fill("short")
    await page.get_by_role("button", name="Continue").click()
    await expect(password).to_have_accessible_description("Choose a password of at least 10 characters.")
    await expect(password).to_be_focused()


async def test_who_leaves_comes_back_with_the_right_password_only(page: Page, world: World) -> None:
    await world.first("Sam")
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

    await Room(page).sidebar.get_by_role("button", name="Sam").click()
    await page.get_by_role("menuitem", name="Sign out").click()
    await expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    await page.goto("/settings/sessions")
    await expect(page.get_by_role("button", name="Sign in")).to_be_visible()
