"""Source list: the web pages that a search model's answer refers to, as Markdown links in their order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote, urlsplit

from tertulia.providers.interface import WebSource

URL_LIMIT = 2_000
TITLE_LIMIT = 200

_MARKUP = re.compile(r"([\\`*_\[\]<>&!|~])")


def source_list(sources: Sequence[WebSource]) -> str:
    """A numbered list, as the answer refers to the pages; an unsafe address is named without a link."""
    lines = (f"{number}. {_link(source)}" for number, source in enumerate(sources, 1))
    return "\n\nSources:\n\n" + "\n".join(lines)


def _link(source: WebSource) -> str:
    url = source.url.strip()
    title = _plain(source.title) or _plain(_site(url)) or "Source"
    if not _can_be_followed(url):
        return title
    return f"[{title}](<{quote(url, safe=_KEPT)}>)"


_KEPT = "!#$%&'()*+,/:;=?@[]~-._"
"""The characters of an address that are not encoded; spaces, quotes and angle brackets are."""


def _can_be_followed(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and len(url) <= URL_LIMIT


def _site(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return f"{parts.hostname}{parts.path.rstrip('/')}".removeprefix("www.") if parts.hostname else ""


def _plain(text: str) -> str:
    """The text on one line, with its Markdown escaped."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return _MARKUP.sub(r"\\\1", line[:TITLE_LIMIT])
