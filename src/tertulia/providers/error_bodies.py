"""Error bodies: extracts the message and the status from an error response, however the provider
nests them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

SENTENCES = ("error", "message", "detail", "msg", "error_description", "errors", "Message", "error_message")
TAGS = ("type", "code", "status")
STATUSES = ("status_code", "status", "code", "http_status")
NAMED_STATUSES = {
    "invalid_request_error": 400,
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
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "RESOURCE_EXHAUSTED": 429,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
MAX_DEPTH = 8


@dataclass(frozen=True, slots=True)
class ErrorBody:
    message: str | None
    """The provider's message with its error codes. None if the body has no message, for example
    an HTML page."""
    status: int
    """The HTTP status that the body itself names; 0 if it names none."""
    fields: object = None
    """The parsed body; None for plain text."""

    @property
    def text(self) -> str:
        """The message and all fields as text, to match patterns against."""
        if self.message is None:
            return ""
        return (
            self.message
            if self.fields is None
            else f"{self.message} {json.dumps(self.fields, ensure_ascii=False)}"
        )

    def values(self, *names: str) -> Iterator[object]:
        """All values with one of these field names, at any depth."""
        return _values(self.fields, names, MAX_DEPTH)


def parse(body: bytes) -> ErrorBody:
    error = _loads(body)
    if error is not None:
        return from_fields(error)
    text = body.decode("utf-8", "replace").strip()
    return ErrorBody(None if not text or text.startswith("<") else text, 0)


def from_fields(error: object) -> ErrorBody:
    """Reads an error that is already parsed."""
    return ErrorBody(_message(error), _status(error), error)


def _loads(text: bytes | str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _message(error: object) -> str | None:
    match error:
        case str():
            return _unwrap_json(error)
        case [first, *_]:
            return _message(first)
        case dict():
            tags = [str(error[name]) for name in TAGS if isinstance(error.get(name), str | int)]
            tags = [tag for tag in tags if tag != "error"]  # {"type": "error"} tells nothing.
            messages = (_message(error[name]) for name in SENTENCES if name in error)
            text = _upstream_message(error) or next((nested for nested in messages if nested), None)
            return f"{text} ({', '.join(tags)})" if text and tags else text or ", ".join(tags) or None
    return None


def _unwrap_json(text: str) -> str | None:
    """A gateway may pass the original provider's JSON body on as a string."""
    inner = _loads(text) if text.lstrip()[:1] in ("{", "[") else None
    return (_message(inner) or text) if inner is not None else text or None


def _upstream_message(error: dict[str, object]) -> str | None:
    """OpenRouter sends "Provider returned error" and puts the original provider's message into
    the metadata."""
    metadata = error.get("metadata")
    if not isinstance(metadata, dict):
        return None
    raw = metadata.get("raw")
    message = _message(raw) if isinstance(raw, str | dict | list) else None
    name = metadata.get("provider_name")
    return f"{name}: {message}" if message and isinstance(name, str) and name else message


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
    statuses = (NAMED_STATUSES.get(str(error.get(name)), 0) for name in ("code", "type", "status"))
    return next((status for status in statuses if status), 0)


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
