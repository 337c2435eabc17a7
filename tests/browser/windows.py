"""Real windows: a Chromium, and a watch over all that its pages do.

Whatever a page should never do is a trouble, and a test ends well only without any: an error on the console
or in a script, something the policy had to stop, a dialog, a call of the canary, a request to anywhere else.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    ViewportSize,
    WebError,
    async_playwright,
)

from tests.patience import PATIENCE_S
from tests.world import Person

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
NOTHING_ELSE_IS_FOUND = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
PATIENCE_MS = round(PATIENCE_S * 1000)
DESK: ViewportSize = {"width": 1440, "height": 900}
TABLET: ViewportSize = {"width": 834, "height": 1112}
PHONE: ViewportSize = {"width": 390, "height": 844}

NOT_SIGNED_IN = r"status of 401 .*/api/(me|login)$"
"""Asking who one is, and a wrong password, are answered with 401; the browser remarks on it."""

WATCHMAN = """
    globalThis.canary = () => console.error('the canary was called');
    addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI, sample }) =>
        console.error(`the policy stopped ${violatedDirective} ${blockedURI} ${sample}`));
"""


def program() -> str | None:
    """Where this machine keeps its Chromium."""
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


@asynccontextmanager
async def chromium(without: Sequence[str] = ()) -> AsyncIterator[Browser]:
    """Started without these of the flags that Playwright adds by itself."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=program(), args=[*FLAGS, NOTHING_ELSE_IS_FOUND], ignore_default_args=without
        )
        yield browser
        await browser.close()


@dataclass
class Watch:
    """Looks over the windows on one server and writes down what should not have happened."""

    url: str
    troubles: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=lambda: [NOT_SIGNED_IN])

    async def over(self, context: BrowserContext) -> None:
        context.set_default_timeout(PATIENCE_MS)
        context.on("console", self._said)
        context.on("weberror", self._broke)
        context.on("dialog", self._asked)
        context.on("request", lambda request: self._must_be_ours(request.url))
        context.on("page", self._opened)
        await context.add_init_script(WATCHMAN)

    def expect(self, *troubles: str) -> None:
        """What this test brings about on purpose, as patterns."""
        self.expected += troubles

    def must_be_untroubled(self) -> None:
        surprises = [
            trouble
            for trouble in self.troubles
            if not any(re.search(pattern, trouble) for pattern in self.expected)
        ]
        assert not surprises, "\n".join(surprises)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.troubles.append(f"console: {message.text} {message.location['url']}")

    def _broke(self, error: WebError) -> None:
        self.troubles.append(f"script: {error.error}")

    async def _asked(self, dialog: Dialog) -> None:
        self.troubles.append(f"dialog: {dialog.message}")
        await dialog.dismiss()

    def _opened(self, page: Page) -> None:
        page.on("websocket", lambda socket: self._must_be_ours(socket.url.replace("ws://", "http://")))

    def _must_be_ours(self, address: str) -> None:
        if not address.startswith((f"{self.url}/", "data:", "blob:", "about:")):
            self.troubles.append(f"a request left the house: {address}")


class Windows(Watch):
    """Opens windows, for people who are signed in and for strangers."""

    def __init__(self, browser: Browser, url: str) -> None:
        super().__init__(url)
        self._browser = browser
        self._contexts: list[BrowserContext] = []

    async def open(
        self, person: Person | None = None, path: str = "/", viewport: ViewportSize = DESK, **more: Any
    ) -> Page:
        """A window of its own, as on another device."""
        chosen = {"base_url": self.url, "viewport": viewport, "locale": "en-GB"} | more
        context = await self._browser.new_context(**chosen)
        self._contexts.append(context)
        await self.over(context)
        if person is not None:
            await sign_in(context, person, self.url)
        return await self.tab(context, path)

    async def tab(self, context: BrowserContext, path: str = "/") -> Page:
        """One more window of the same browser."""
        page = await context.new_page()
        await page.goto(path)
        return page

    async def close(self) -> None:
        for context in self._contexts:
            await context.close()


async def sign_in(context: BrowserContext, person: Person, url: str) -> None:
    """Hands the person's cookie to a browser."""
    cookies = person.client.cookies.items()
    await context.add_cookies([{"name": name, "value": value, "url": url} for name, value in cookies])
