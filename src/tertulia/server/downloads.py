"""Downloads: sends a file or a range of it, with headers that keep browsers from running its content."""

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
"""Larger images are sent as attachments, never to be shown in a page."""

BEFORE_PIXELS = 256 << 10
"""How far into an image file its size is looked for. Photographs begin with a thumbnail."""

CONTENT: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/octet-stream": BYTES}},
    206: {"description": "The requested range", "content": {"application/octet-stream": BYTES}},
    304: {"description": "The file still has the ETag in If-None-Match"},
    416: {"description": "The range is beyond the end of the file"},
}
HEAD: dict[int | str, dict[str, Any]] = {200: {"description": "The headers alone"}, 304: CONTENT[304]}
"""The OpenAPI descriptions of the responses to GET and to HEAD."""


class Downloadable(Protocol):
    """A file, a version of a file or an attachment."""

    @property
    def content_hash(self) -> str: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def mime_type(self) -> str: ...


async def download(
    request: Request, blobs: Blobs, path: str, file: Downloadable, *, inline: bool = False
) -> Response:
    """Responds to GET and HEAD: 304 if the client has the content, else the file or the requested range.

    The ETag is the hash of the content, so a resumed download never mixes two versions.
    """
    tag = f'"{file.content_hash}"'
    headers = {"ETag": tag, "Accept-Ranges": "bytes"}
    if is_known(request.headers, tag):
        return Response(status_code=304, headers=headers)
    is_inline = (
        inline and file.mime_type in IMAGES and _is_small(await blobs.head(file.content_hash, BEFORE_PIXELS))
    )
    media_type = file.mime_type if is_inline else BINARY
    headers["Content-Disposition"] = disposition(path, is_inline)
    headers["Content-Security-Policy"] = "sandbox; default-src 'none'"
    if request.method == "HEAD":
        return Response(None, 200, headers | {"Content-Length": str(file.size_bytes)}, media_type)
    byte_range = requested_range(request.headers, tag, file.size_bytes)
    if byte_range is not None:
        headers["Content-Range"] = f"bytes {byte_range.start}-{byte_range.end - 1}/{file.size_bytes}"
    return await _send(blobs, file, byte_range, headers, media_type)


def _is_small(image: bytes) -> bool:
    return (megapixels(image) or MEGAPIXELS + 1) <= MEGAPIXELS


def disposition(path: str, is_inline: bool) -> str:
    """The Content-Disposition header, with the file name in ASCII for old clients and in UTF-8."""
    name = path.rpartition("/")[2]
    plain = "".join(c if c.isascii() and (c.isalnum() or c in " ._-()") else "_" for c in name)
    kind = "inline" if is_inline else "attachment"
    return f"{kind}; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"


async def _send(
    blobs: Blobs, file: Downloadable, byte_range: ByteRange | None, headers: dict[str, str], media_type: str
) -> Response:
    """Reads the first block before it sends headers, so that an unreadable file becomes an error status."""
    start, end = (byte_range.start, byte_range.end) if byte_range else (0, file.size_bytes)
    blocks = blobs.read(file.content_hash, start, end)
    first = await anext(blocks, b"")
    headers["Content-Length"] = str(end - start)
    return BlockResponse(first, blocks, 206 if byte_range else 200, headers, media_type)


class BlockResponse(StreamingResponse):
    """Streams blocks, and closes their generator even when the client disconnects before the end."""

    def __init__(
        self, first: bytes, rest: AsyncGenerator[bytes], status: int, headers: dict[str, str], media_type: str
    ) -> None:
        super().__init__(_all(first, rest), status, headers, media_type)
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._rest):
            await super().__call__(scope, receive, send)


async def _all(first: bytes, rest: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    yield first
    async for block in rest:
        yield block
