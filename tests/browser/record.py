"""A browser's own record of the names it looked up.

A policy stops requests, but not every look-up made for one; those stand only here.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import BrowserContext, async_playwright

from tests.browser.windows import FLAGS, program

OWN_ERRANDS = ("*.google.com", "*.googleapis.com")
"""What Chromium itself seeks behind every page."""
EVERY_NAME_IS_HERE = ", ".join(
    (*(f"MAP {name} ~NOTFOUND" for name in OWN_ERRANDS), "MAP * localhost", "EXCLUDE 127.0.0.1")
)


@asynccontextmanager
async def recorded(folder: Path, url: str) -> AsyncIterator[BrowserContext]:
    """A browser as people have it, with a profile: a private one would not look names up ahead of time."""
    flags = (f"--log-net-log={_record(folder)}", f"--host-resolver-rules={EVERY_NAME_IS_HERE}")
    async with async_playwright() as playwright:
        context = await playwright.chromium.launch_persistent_context(
            folder / "profile", executable_path=program(), args=[*FLAGS, *flags], base_url=url
        )
        yield context
        await context.close()


def hosts_looked_up(folder: Path) -> set[str]:
    """The hosts in the record; whatever the name, it stands there as localhost."""
    record = json.loads(_record(folder).read_text())
    kind = record["constants"]["logEventTypes"]["HOST_RESOLVER_MANAGER_REQUEST"]
    requests = (entry.get("params", {}) for entry in record["events"] if entry["type"] == kind)
    names = {re.sub(r"^\w+://|:\d+$", "", request["host"]) for request in requests if "host" in request}
    return names - {"~notfound"}


def _record(folder: Path) -> Path:
    return folder / "network.json"
