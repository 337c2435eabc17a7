"""Error bodies: what a refusal says, wherever its provider nests the sentence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

SENTENCES = ("error", "message", "detail", "msg", "error_description")
TAGS = ("type", "code", "status")
STATUSES = ("status_code", "status", "code", "http_status")
NAMED_STATUSES = {
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "overloaded_error": 529,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "timeout_error": 504,
    "api_error": 500,
    "server_error": 500,
    "RESOURCE_EXHAUSTED": 429,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
DEEPEST = 8


@dataclass(frozen=True, slots=True)
class ErrorBody:
    said: str | None
    """The provider's sentence with its codes; None where a body has none, such as a page."""
    status: int
    """The status the body names for itself, 0 when it names none."""
    fields: object = None
    """The body as it was parsed; None for plain text."""

    @property
    def text(self) -> str:
        """All it says, its details included: where patterns are looked for."""
        if self.said is None:
            return ""
        return (
            self.said if self.fields is None else f"{self.said} {json.dumps(self.fields, ensure_ascii=False)}"
        )

    def values(self, *names: str) -> Iterator[object]:
        """Whatever stands under one of these names, however deep."""
        return _values(self.fields, names, DEEPEST)


def read(body: bytes) -> ErrorBody:
    error = _loads(body)
    if error is not None:
        return of(error)
    text = body.decode("utf-8", "replace").strip()
    return ErrorBody(None if not text or text.startswith("<") else text, 0)


def of(error: object) -> ErrorBody:
    """An error that was parsed already."""
    return ErrorBody(_message(error), _status(error), error)


def _loads(text: bytes | str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _message(error: object) -> str | None:
    match error:
        case str():
            return _unwrapped(error)
        case [first, *_]:
            return _message(first)
        case dict():
            tags = [str(error[name]) for name in TAGS if isinstance(error.get(name), str | int)]
            words = (_message(error[name]) for name in SENTENCES if name in error)
            said = _of_upstream(error) or next((word for word in words if word), None)
            return f"{said} ({', '.join(tags)})" if said and tags else said or ", ".join(tags) or None
    return None


def _unwrapped(text: str) -> str | None:
    """A gateway may pass the other provider's body on as text."""
    inner = _loads(text) if text.lstrip()[:1] in ("{", "[") else None
    return (_message(inner) or text) if inner is not None else text or None


def _of_upstream(error: dict[str, object]) -> str | None:
    """OpenRouter says "Provider returned error", and beside it what that provider said."""
    metadata = error.get("metadata")
    if not isinstance(metadata, dict):
        return None
    raw = metadata.get("raw")
    said = _message(raw) if isinstance(raw, str | dict | list) else None
    name = metadata.get("provider_name")
    return f"{name}: {said}" if said and isinstance(name, str) and name else said


def _status(error: object) -> int:
    if not isinstance(error, dict):
        return _status(error[0]) if isinstance(error, list) and error else 0
    inner = error.get("error")
    if isinstance(inner, dict) and (status := _status(inner)):
        return status
    for name in STATUSES:
        value = error.get(name)
        if isinstance(value, str) and value.isdigit():
            value = int(value)
        if isinstance(value, int) and 400 <= value < 600:
            return value
    named = (NAMED_STATUSES.get(str(error.get(name)), 0) for name in ("type", "code", "status"))
    return next((status for status in named if status), 0)


def _values(inside: object, names: tuple[str, ...], depth: int) -> Iterator[object]:
    if depth == 0:
        return
    if isinstance(inside, dict):
        for name, value in inside.items():
            if name in names:
                yield value
            yield from _values(value, names, depth - 1)
    elif isinstance(inside, list):
        for value in inside:
            yield from _values(value, names, depth - 1)
