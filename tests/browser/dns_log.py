"""DNS log of a browser: the host names it resolved, from Chromium's network log.

A content security policy blocks requests, but not every DNS lookup; only this log shows those.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import BrowserContext, async_playwright

from tests.browser.windows import FLAGS, program

CHROMIUM_OWN_HOSTS = ("*.google.com", "*.googleapis.com")
"""Hosts that Chromium contacts by itself."""
RESOLVE_TO_LOCALHOST = ", ".join(
    (*(f"MAP {name} ~NOTFOUND" for name in CHROMIUM_OWN_HOSTS), "MAP * localhost", "EXCLUDE 127.0.0.1")
)


@asynccontextmanager
async def browser_with_dns_log(folder: Path, url: str) -> AsyncIterator[BrowserContext]:
    """A browser with a profile; a private one would not prefetch DNS names."""
    flags = (f"--log-net-log={_log_path(folder)}", f"--host-resolver-rules={RESOLVE_TO_LOCALHOST}")
    async with async_playwright() as playwright:
        context = await playwright.chromium.launch_persistent_context(
            folder / "profile", executable_path=program(), args=[*FLAGS, *flags], base_url=url
        )
        yield context
        await context.close()


def hosts_looked_up(folder: Path) -> set[str]:
    """The resolved hosts; names resolved for pages appear as localhost."""
    log = json.loads(_log_path(folder).read_text())
    kind = log["constants"]["logEventTypes"]["HOST_RESOLVER_MANAGER_REQUEST"]
    requests = (entry.get("params", {}) for entry in log["events"] if entry["type"] == kind)
    names = {re.sub(r"^\w+://|:\d+$", "", request["host"]) for request in requests if "host" in request}
    return names - {"~notfound"}


def _log_path(folder: Path) -> Path:
    return folder / "network.json"
