"""Sends files in tests: one as the body, or several in a form."""

from __future__ import annotations

from typing import Any

import httpx2

from tests.world import Person


def url(project: str, *more: object) -> str:
    return "/".join(["/api/projects", project, "files", *map(str, more)])


async def form(
    person: Person, project: str, *parts: tuple[str, Any], expect: int = 201, **params: str
) -> dict[str, Any]:
    answer = await person.client.post(url(project), files=list(parts), params=params)
    assert answer.status_code == expect, answer.text
    body: dict[str, Any] = answer.json()
    return body


def file(name: str, content: bytes = b"x", kind: str = "application/octet-stream") -> tuple[str, Any]:
    return "file", (name, content, kind)


def field(value: str) -> tuple[str, Any]:
    return "path", (None, value)


async def put(person: Person, path: str, content: bytes, **headers: str) -> httpx2.Response:
    sent = {"Content-Type": "application/octet-stream"} | {k.replace("_", "-"): v for k, v in headers.items()}
    return await person.client.put(path, content=content, headers=sent)
