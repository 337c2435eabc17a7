"""Downloads: a file's bytes on their way out, in a dress in which no browser runs them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Protocol
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from tertulia.library.mime import BINARY, IMAGES, megapixels
from tertulia.server.http_ranges import ByteRange, is_known, requested_range
from tertulia.server.uploads import BYTES
from tertulia.store.blobs import Blobs

MEGAPIXELS = 50
"""Larger pictures are not shown in a page; they can still be saved."""

BEFORE_PIXELS = 256 << 10
"""So much may stand in a picture before its size: a photograph begins with a small copy of itself."""

CONTENT: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/octet-stream": BYTES}},
    206: {"description": "The part that Range asked for", "content": {"application/octet-stream": BYTES}},
    304: {"description": "What If-None-Match names is what there is"},
    416: {"description": "The file has no such part"},
}
ABOUT: dict[int | str, dict[str, Any]] = {200: {"description": "The headers alone"}, 304: CONTENT[304]}
"""What the API's description says of a download, and of asking with HEAD."""


class Downloadable(Protocol):
    """Whatever refers to bytes and knows what they are."""

    @property
    def content_hash(self) -> str: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def mime_type(self) -> str: ...


async def download(
    request: Request, blobs: Blobs, path: str, held: Downloadable, *, inline: bool = False
) -> Response:
    """Asked for with HEAD, only what would be said of it; nothing of what the one who asks has already.

    The ETag is the hash of the content, so that a part always belongs to the bytes it was begun with.
    """
    tag = f'"{held.content_hash}"'
    headers = {"ETag": tag, "Accept-Ranges": "bytes"}
    if is_known(request.headers, tag):
        return Response(status_code=304, headers=headers)
    is_shown = (
        inline and held.mime_type in IMAGES and _is_small(await blobs.head(held.content_hash, BEFORE_PIXELS))
    )
    kind = held.mime_type if is_shown else BINARY
    headers["Content-Disposition"] = disposition(path, is_shown)
    headers["Content-Security-Policy"] = "sandbox; default-src 'none'"
    if request.method == "HEAD":
        return Response(None, 200, headers | {"Content-Length": str(held.size_bytes)}, kind)
    part = requested_range(request.headers, tag, held.size_bytes)
    if part is not None:
        headers["Content-Range"] = f"bytes {part.start}-{part.end - 1}/{held.size_bytes}"
    return await _sent(blobs, held, part, headers, kind)


def _is_small(picture: bytes) -> bool:
    return (megapixels(picture) or MEGAPIXELS + 1) <= MEGAPIXELS


def disposition(path: str, is_shown: bool) -> str:
    """The name twice: for programs that know only ASCII, and as it is."""
    name = path.rpartition("/")[2]
    plain = "".join(c if c.isascii() and (c.isalnum() or c in " ._-()") else "_" for c in name)
    manner = "inline" if is_shown else "attachment"
    return f"{manner}; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"


async def _sent(
    blobs: Blobs, held: Downloadable, part: ByteRange | None, headers: dict[str, str], kind: str
) -> Response:
    """The first block is read before anything is promised: what cannot be read is answered as an error."""
    start, end = (part.start, part.end) if part else (0, held.size_bytes)
    blocks = blobs.read(held.content_hash, start, end)
    first = await anext(blocks, b"")
    headers["Content-Length"] = str(end - start)
    return Blocks(first, blocks, 206 if part else 200, headers, kind)


class Blocks(StreamingResponse):
    """A response of blocks. It closes their source even when the client leaves before the end."""

    def __init__(
        self, first: bytes, rest: AsyncGenerator[bytes], status: int, headers: dict[str, str], kind: str
    ) -> None:
        super().__init__(_all(first, rest), status, headers, kind)
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._rest):
            await super().__call__(scope, receive, send)


async def _all(first: bytes, rest: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    yield first
    async for block in rest:
        yield block
