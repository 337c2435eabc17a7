"""Uploads: bodies that are a file's bytes, read as they arrive and never held whole."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Query, Request
from starlette.requests import ClientDisconnect

from tertulia.core.errors import Invalid, Malformed, TooLarge
from tertulia.core.files import FileLimits
from tertulia.server.security_middleware import SILENCE_S

UPLOAD_KEY = "[0-9A-Za-z_-]{8,64}"
UploadKey = Annotated[
    str | None,
    Query(pattern=f"^{UPLOAD_KEY}$", description="A new key of the client's own, to cancel the upload by."),
]

BYTES = {"schema": {"type": "string", "format": "binary"}}
RAW = {"requestBody": {"required": True, "content": {"application/octet-stream": BYTES}}}
"""What the API's description says of a body that is read as it is."""

_UPLOADS = (
    ("POST", re.compile(r"/api/projects/[^/]+/(files|attachments)")),
    ("PUT", re.compile(r"/api/projects/[^/]+/files/[^/]+")),
)


def takes_bytes(method: str, path: str) -> bool:
    """For the guard: what comes here is read as it arrives, by its route, and is not JSON."""
    return any(method == one and where.fullmatch(path) for one, where in _UPLOADS)


def is_form(request: Request) -> bool:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "multipart/form-data"


def must_be_raw(request: Request, limits: FileLimits) -> None:
    """One file as it is; a body that says itself that it is too large is not waited for."""
    if is_form(request):
        raise Invalid("Send the content as it is, with Content-Type: application/octet-stream.")
    declared = request.headers.get("content-length", "0")
    if not declared.isdecimal() or int(declared) > limits.upload_bytes:
        raise TooLarge(f"A file holds at most {limits.upload_bytes >> 20:,} MiB.")


async def body(request: Request, silence_s: float = SILENCE_S) -> AsyncIterator[bytes]:
    """The body as it arrives; one that stops arriving is over, and whatever was in it is forgotten."""
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
        raise Malformed("The upload was cut off before its end. Nothing of it was kept.") from None
