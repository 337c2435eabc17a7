"""Error responses: every error becomes a status with a stable code, a message and an incident id."""

from __future__ import annotations

import json
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from tertulia.app import log_incident, new_id
from tertulia.core import errors

STATUS: tuple[tuple[type[errors.TertuliaError], int], ...] = (
    (errors.Malformed, 400),
    (errors.NotSignedIn, 401),
    (errors.Forbidden, 403),
    (errors.NotFound, 404),
    (errors.Conflict, 409),
    (errors.VersionConflict, 412),
    (errors.TooLarge, 413),
    (errors.WrongType, 415),
    (errors.RangeNotSatisfiable, 416),
    (errors.UnknownHost, 421),
    (errors.Invalid, 422),
    (errors.TooMany, 429),
    (errors.Busy, 503),
    (errors.StorageFailed, 503),
    (errors.StorageFull, 507),
)


def status_of(error: errors.TertuliaError) -> int:
    return next((status for kind, status in STATUS if isinstance(error, kind)), 500)


def respond(error: errors.TertuliaError) -> Response:
    headers = {}
    if isinstance(error, errors.TooMany | errors.Busy):
        headers["Retry-After"] = str(error.retry_after_s)
    if isinstance(error, errors.RangeNotSatisfiable):
        headers["Content-Range"] = f"bytes */{error.size_bytes}"
    return body(status_of(error), error.code, error.message, headers=headers)


def body(
    status: int,
    code: str,
    message: str,
    *,
    incident: str | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    content = json.dumps({"code": code, "message": message, "incident": incident or new_id()})
    return Response(content, status, headers, media_type="application/json")


def unknown(error: Exception) -> Response:
    """The response to an unexpected exception, which names only the incident id in the log."""
    incident = log_incident(error)
    return body(500, "internal", f"Server error. Incident {incident}.", incident=incident)


def install(app: FastAPI) -> None:
    app.add_exception_handler(errors.TertuliaError, _known)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)


async def _known(request: Request, error: Exception) -> Response:
    assert isinstance(error, errors.TertuliaError)
    return respond(error)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    problems = error.errors()
    if any(problem["type"] == "json_invalid" for problem in problems):
        return respond(errors.Malformed("The body is not valid JSON."))
    return body(422, "invalid", "; ".join(map(_sentence, problems[:5])) or "The request is not valid.")


def _sentence(problem: dict[str, Any]) -> str:
    """The field and what is wrong, without the value, which may be a password."""
    where = ".".join(str(part) for part in problem["loc"] if part not in ("body", "query", "path"))[:200]
    return f"{where}: {problem['msg']}" if where else str(problem["msg"])


_HTTP_ERRORS = {
    404: ("not_found", "There is nothing at this address."),
    405: ("not_allowed", "This address does not allow that method."),
}


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code, message = _HTTP_ERRORS.get(error.status_code, ("malformed", "The request cannot be read."))
    return body(error.status_code, code, message, headers=dict(error.headers or {}))
