"""Answers: dataclasses as JSON, in the one shape that events carry too."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from tertulia.core.plain import to_json


def answer(value: Any, status: int = 200) -> Response:
    return Response(to_json(value), status, media_type="application/json")


def nothing() -> Response:
    return Response(status_code=204)
