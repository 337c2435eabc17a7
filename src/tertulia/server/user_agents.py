"""User agents: reads browser and system from the User-Agent header, for the list of sessions."""

from __future__ import annotations

from tertulia.core.sessions import ClientInfo

_BROWSERS = (
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)


def client_info(user_agent: str, address: str) -> ClientInfo:
    browser = _first(_BROWSERS, user_agent) or user_agent.partition("/")[0][:40] or "Unknown"
    return ClientInfo(browser, _first(_SYSTEMS, user_agent) or "Unknown", address)


def _first(table: tuple[tuple[str, str], ...], text: str) -> str | None:
    return next((name for token, name in table if token in text), None)
