"""What a browser that was never here must fetch before one can write: scripts on the wire, and how long."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from statistics import median
from typing import Any

from playwright.async_api import Browser, expect

from benchmarks.figures import Figure, tell
from benchmarks.stage import Stage, stage
from tests.browser.windows import chromium

MODEL = "burst-8"
RUNS = 5
PAGES = {"the door": "/sign-in", "a new conversation": "/new"}


@dataclass(frozen=True, slots=True)
class Visit:
    script_kb: float
    all_kb: float
    ready_s: float


async def main() -> None:
    async with stage([MODEL]) as here, chromium() as browser:
        visits = {
            name: [await _visit(browser, here, path) for _ in range(RUNS)] for name, path in PAGES.items()
        }
    rows = [(name, *_middle(seen)) for name, seen in visits.items()]
    first = _middle(visits["a new conversation"])
    figures = [
        Figure("scripts at first load", first[0], "kB", bar=300),
        Figure("until one can write", first[2], "s", bar=1, is_cpu=True),
    ]
    tell("javascript", ("script kB", "all kB", "ready s"), rows, figures, here.pulse)


async def _visit(browser: Browser, here: Stage, path: str) -> Visit:
    """A fresh profile each time; preloaded pages are counted too, as they come over the same wire."""
    context = await browser.new_context()
    name, _, token = here.people[0].cookie.partition("=")
    if path != PAGES["the door"]:
        await context.add_cookies([{"name": name, "value": token, "url": here.tertulia.url}])
    page = await context.new_page()
    session = await context.new_cdp_session(page)
    kinds: dict[str, str] = {}
    sizes: dict[str, float] = {}
    session.on("Network.responseReceived", lambda event: kinds.update({event["requestId"]: event["type"]}))
    session.on("Network.loadingFinished", lambda event: sizes.update(_size(event)))
    await session.send("Network.enable")
    await page.goto(here.tertulia.url + path, wait_until="commit")
    field = page.get_by_role("textbox").first
    await expect(field).to_be_editable()
    ready_s = await page.evaluate("performance.now()") / 1000
    await page.wait_for_load_state("networkidle")
    await context.close()
    scripts = sum(size for request, size in sizes.items() if kinds.get(request) == "Script")
    return Visit(scripts / 1000, sum(sizes.values()) / 1000, ready_s)


def _size(event: dict[str, Any]) -> dict[str, float]:
    return {event["requestId"]: event["encodedDataLength"]}


def _middle(visits: list[Visit]) -> tuple[float, float, float]:
    return (
        median(visit.script_kb for visit in visits),
        median(visit.all_kb for visit in visits),
        median(visit.ready_s for visit in visits),
    )


if __name__ == "__main__":
    asyncio.run(main())
