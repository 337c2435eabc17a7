"""Downloads: a file's bytes on their way out, in a dress in which no browser runs them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol
from urllib.parse import quote

from starlette.responses import Response, StreamingResponse

from tertulia.library.mime import BINARY, IMAGES, megapixels
from tertulia.store.blobs import Blobs

MEGAPIXELS = 50
"""Larger pictures are not shown in a page; they can still be saved."""


class Held(Protocol):
    """Whatever refers to bytes and knows what they are."""

    @property
    def content_hash(self) -> str: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def mime_type(self) -> str: ...


async def download(
    blobs: Blobs, path: str, held: Held, *, inline: bool = False, version: int | None = None
) -> Response:
    """The first block is read before anything is promised: what cannot be read is answered as an error.

    The version is said as an ETag, for If-Match to name when it is changed.
    """
    blocks = blobs.read(held.content_hash)
    first = await anext(blocks, b"")
    is_shown = inline and held.mime_type in IMAGES and (megapixels(first) or MEGAPIXELS + 1) <= MEGAPIXELS
    headers = {
        "Content-Length": str(held.size_bytes),
        "Content-Disposition": disposition(path, is_shown),
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "Accept-Ranges": "none",
    }
    if version is not None:
        headers["ETag"] = f'"{version}"'
    return StreamingResponse(_all(first, blocks), 200, headers, held.mime_type if is_shown else BINARY)


def disposition(path: str, is_shown: bool) -> str:
    """The name twice: for programs that know only ASCII, and as it is."""
    name = path.rpartition("/")[2]
    plain = "".join(c if c.isascii() and (c.isalnum() or c in " ._-()") else "_" for c in name)
    manner = "inline" if is_shown else "attachment"
    return f"{manner}; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"


async def _all(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for block in rest:
        yield block
