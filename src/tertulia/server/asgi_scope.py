"""ASGI scope: the headers, the content type and the kind of a request, read before any route runs."""

from __future__ import annotations

from starlette.types import Scope

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def header_values(scope: Scope, name: bytes) -> list[str]:
    """All values of a header, in order; its name is given in lower case."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def content_type(scope: Scope) -> str:
    """The media type without parameters, in lower case; empty without the header."""
    return (header_values(scope, b"content-type") or [""])[0].partition(";")[0].strip().lower()


def is_safe(scope: Scope) -> bool:
    """True for an HTTP request whose method only reads."""
    return scope["type"] == "http" and scope["method"] in SAFE_METHODS


def is_api(scope: Scope) -> bool:
    return str(scope["path"]).startswith("/api/")
