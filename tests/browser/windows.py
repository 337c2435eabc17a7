"""Real windows: a Chromium, and a watch over all that its pages do.

Whatever a page should never do is a trouble, and a test ends well only without any: an error on the console
or in a script, something the policy had to stop, a dialog, a call of the canary, a request to anywhere else.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    ViewportSize,
    WebSocket,
    async_playwright,
)

from tests.world import Person

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
PATIENCE_MS = 20_000
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
async def chromium(*flags: str) -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program(), args=[*FLAGS, *flags])
        yield browser
        await browser.close()


@dataclass
class Windows:
    """Opens windows on one server, for people who are signed in and for strangers."""

    browser: Browser
    url: str
    troubles: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=lambda: [NOT_SIGNED_IN])
    opened: list[BrowserContext] = field(default_factory=list)

    async def open(
        self, person: Person | None = None, path: str = "/", viewport: ViewportSize = DESK, **more: Any
    ) -> Page:
        """A window of its own, as on another device."""
        context = await self._context(viewport, more)
        if person is not None:
            await context.add_cookies(
                [
                    {"name": name, "value": value, "url": self.url}
                    for name, value in person.client.cookies.items()
                ]
            )
        return await self.tab(context, path)

    async def tab(self, context: BrowserContext, path: str = "/") -> Page:
        """One more window of the same browser."""
        page = await context.new_page()
        self._watch(page)
        await page.goto(path)
        return page

    async def close(self) -> None:
        for context in self.opened:
            await context.close()

    def expect(self, *troubles: str) -> None:
        """What this test brings about on purpose, as patterns."""
        self.expected += troubles

    def must_be_untroubled(self) -> None:
        surprises = [
            trouble
            for trouble in self.troubles
            if not any(re.search(pattern, trouble) for pattern in self.expected)
        ]
        assert surprises == []

    async def _context(self, viewport: ViewportSize, more: Mapping[str, Any]) -> BrowserContext:
        chosen = {"base_url": self.url, "viewport": viewport, "locale": "en-GB"} | more
        context = await self.browser.new_context(**chosen)
        context.set_default_timeout(PATIENCE_MS)
        context.on("request", self._requested)
        await context.add_init_script(WATCHMAN)
        self.opened.append(context)
        return context

    def _watch(self, page: Page) -> None:
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.troubles.append(f"script: {error}"))
        page.on("websocket", self._connected)

        async def refuse(dialog: Dialog) -> None:
            self.troubles.append(f"dialog: {dialog.message}")
            await dialog.dismiss()

        page.on("dialog", refuse)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.troubles.append(f"console: {message.text} {message.location['url']}")

    def _requested(self, request: Request) -> None:
        self._must_be_ours(request.url)

    def _connected(self, socket: WebSocket) -> None:
        self._must_be_ours(socket.url.replace("ws://", "http://"))

    def _must_be_ours(self, address: str) -> None:
        if not address.startswith((f"{self.url}/", "data:", "blob:")):
            self.troubles.append(f"a request left the house: {address}")


def hosts_looked_up(log: Sequence[Mapping[str, Any]]) -> set[str]:
    """The names in a browser's own record of its network."""
    named = (str(entry.get("params", {}).get("host", "")) for entry in log)
    return {re.sub(r"^\w+://|:\d+$", "", name) for name in named if name}
