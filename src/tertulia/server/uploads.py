"""Uploads: reads request bodies that hold files in pieces, never completely into memory."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Query, Request
from starlette.requests import ClientDisconnect

from tertulia.core.errors import Invalid, Malformed, TooLarge
from tertulia.core.files import FileLimits
from tertulia.server.json_body import SILENCE_S

UPLOAD_KEY = "[0-9A-Za-z_-]{8,64}"
UploadKey = Annotated[
    str | None,
    Query(
        pattern=f"^{UPLOAD_KEY}$",
        description="A new key that the client makes up, with which it can cancel the upload.",
    ),
]

BYTES = {"schema": {"type": "string", "format": "binary"}}
RAW = {"requestBody": {"required": True, "content": {"application/octet-stream": BYTES}}}
"""The OpenAPI description of a body that is one file."""

_UPLOADS = (
    ("POST", re.compile(r"/api/projects/[^/]+/(files|attachments)")),
    ("PUT", re.compile(r"/api/projects/[^/]+/files/[^/]+")),
)


def is_upload(method: str, path: str) -> bool:
    """True if the route for this method and path reads the bytes of files instead of JSON."""
    return any(method == upload_method and pattern.fullmatch(path) for upload_method, pattern in _UPLOADS)


def is_form(request: Request) -> bool:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "multipart/form-data"


def must_be_raw(request: Request, limits: FileLimits) -> None:
    """Raises if the body is a form, or if its Content-Length is over the limit, before any of it is read."""
    if is_form(request):
        raise Invalid("Send the file as the body, with Content-Type: application/octet-stream.")
    declared = request.headers.get("content-length", "0")
    if not declared.isdecimal() or int(declared) > limits.upload_bytes:
        raise TooLarge(f"A file holds at most {limits.upload_bytes >> 20:,} MiB.")


async def body(request: Request, silence_s: float = SILENCE_S) -> AsyncIterator[bytes]:
    """The chunks of the body as they arrive; raises Malformed if the client stops sending."""
    stream = aiter(request.stream())
    try:
        while True:
            async with asyncio.timeout(silence_s):
                chunk = await anext(stream, None)
            if chunk is None:
                return
            if chunk:
                yield chunk
    except (ClientDisconnect, TimeoutError):
        raise Malformed("The upload was cut off before its end. Nothing was saved.") from None
