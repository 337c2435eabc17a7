"""Browser windows: Chromium, and a monitor that collects every problem of its pages.

A test passes only without problems: an error on the console or in a script, a violation of the content
security policy, a dialog, a call of the canary, a request to another host.
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
ONLY_LOOPBACK = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
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
"""Requests without a session or with a wrong password get 401, which the browser logs as an error."""

MONITOR_SCRIPT = """
    globalThis.canary = () => console.error('the canary was called');
    addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI, sample }) =>
        console.error(`the policy stopped ${violatedDirective} ${blockedURI} ${sample}`));
"""


def program() -> str | None:
    """The path of Chromium on this machine."""
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


@asynccontextmanager
async def chromium(without: Sequence[str] = ()) -> AsyncIterator[Browser]:
    """Starts Chromium, without these of Playwright's default flags."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=program(), args=[*FLAGS, ONLY_LOOPBACK], ignore_default_args=without
        )
        yield browser
        await browser.close()


@dataclass
class PageMonitor:
    """Collects the problems of all windows on one server."""

    url: str
    problems: list[str] = field(default_factory=list)
    allowed: list[str] = field(default_factory=lambda: [NOT_SIGNED_IN])

    async def attach(self, context: BrowserContext) -> None:
        context.set_default_timeout(PATIENCE_MS)
        context.on("console", self._on_console)
        context.on("weberror", self._on_error)
        context.on("dialog", self._on_dialog)
        context.on("request", lambda request: self._check_host(request.url))
        context.on("page", self._on_page)
        await context.add_init_script(MONITOR_SCRIPT)

    def allow(self, *problems: str) -> None:
        """Allows problems that the test causes on purpose, as patterns."""
        self.allowed += problems

    def must_have_no_problems(self) -> None:
        unexpected = [
            problem
            for problem in self.problems
            if not any(re.search(pattern, problem) for pattern in self.allowed)
        ]
        assert not unexpected, "\n".join(unexpected)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.problems.append(f"console: {message.text} {message.location['url']}")

    def _on_error(self, error: WebError) -> None:
        self.problems.append(f"script: {error.error}")

    async def _on_dialog(self, dialog: Dialog) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        await dialog.dismiss()

    def _on_page(self, page: Page) -> None:
        page.on("websocket", lambda socket: self._check_host(socket.url.replace("ws://", "http://")))

    def _check_host(self, address: str) -> None:
        if not address.startswith((f"{self.url}/", "data:", "blob:", "about:")):
            self.problems.append(f"a request to another host: {address}")


class Windows(PageMonitor):
    """Opens windows, signed in or not."""

    def __init__(self, browser: Browser, url: str) -> None:
        super().__init__(url)
        self._browser = browser
        self._contexts: list[BrowserContext] = []

    async def open(
        self, person: Person | None = None, path: str = "/", viewport: ViewportSize = DESK, **more: Any
    ) -> Page:
        """Opens a window with its own cookies, as on another device."""
        chosen = {"base_url": self.url, "viewport": viewport, "locale": "en-GB"} | more
        context = await self._browser.new_context(**chosen)
        self._contexts.append(context)
        await self.attach(context)
        if person is not None:
            await sign_in(context, person, self.url)
        return await self.tab(context, path)

    async def tab(self, context: BrowserContext, path: str = "/") -> Page:
        """Opens another tab with the same cookies."""
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
