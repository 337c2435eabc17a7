"""Answers: dataclasses as JSON, in the one shape that events carry too."""

from __future__ import annotations

import gzip
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from tertulia.core.serialization import to_json

LARGE = 8_192
"""From here on compressing costs less than sending."""


def json_response(value: Any, status: int = 200) -> Response:
    return Response(to_json(value), status, media_type="application/json")


def large_json_response(request: Request, value: Any) -> Response:
    """Compressed where the client takes it and it pays."""
    body = to_json(value).encode()
    if len(body) < LARGE or "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(body, media_type="application/json")
    headers = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    return Response(gzip.compress(body, compresslevel=3), headers=headers, media_type="application/json")


def no_content() -> Response:
    return Response(status_code=204)
