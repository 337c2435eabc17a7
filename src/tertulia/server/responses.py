"""JSON responses: writes dataclasses in the same form in which events carry them."""

from __future__ import annotations

import gzip
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from tertulia.core.serialization import to_json

LARGE = 8_192
"""Longer bodies are compressed: below, sending costs less than compressing."""


def json_response(value: Any, status: int = 200) -> Response:
    return Response(to_json(value), status, media_type="application/json")


def large_json_response(request: Request, value: Any) -> Response:
    """Compresses the body if it is large and the client accepts gzip."""
    body = to_json(value).encode()
    if len(body) < LARGE or "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(body, media_type="application/json")
    headers = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    return Response(gzip.compress(body, compresslevel=3), headers=headers, media_type="application/json")


def no_content() -> Response:
    return Response(status_code=204)
