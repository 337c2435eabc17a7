"""What every answer wears: the policy, no sniffing, no framing, no referrer, and no store for data."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import httpx2
import pytest
import pytest_asyncio
import websockets

from tertulia.server.passwords import Passwords
from tests.server import raw
from tests.world import Person, World, running

pytestmark = pytest.mark.asyncio(loop_scope="module")

ALWAYS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}
CASES = [
    ("GET", "/", 200),
    ("GET", "/c/01ARZ3NDEKTSV4RRFFQ69G5FAV", 200),
    ("GET", "/missing.js", 404),
    ("HEAD", "/", 200),
    ("GET", "/api/health", 200),
    ("GET", "/api/me", 401),
    ("GET", "/api/nothing", 404),
    ("GET", "/api/conversations/nothing", 401),
    ("DELETE", "/api/health", 405),
    ("POST", "/api/login", 422),
    ("PUT", "/nothing", 405),
]


class Broken(Passwords):
    """Something nobody thought of."""

    async def match(self, *given: object) -> bool:
        raise ZeroDivisionError("the canary in the exception")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with running(tmp_path_factory.mktemp("home"), {}) as made:
        made.app.state.server = replace(made.app.state.server, passwords=Broken())
        yield made


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def visitor(world: World) -> Person:
    return world.stranger()


@pytest.mark.parametrize(("method", "path", "status"), CASES)
async def test_every_answer_wears_the_headers(visitor: Person, method: str, path: str, status: int) -> None:
    answer = await visitor.client.request(method, path)
    assert answer.status_code in ({200, 503} if status == 200 else {status})  # 503: no interface was built
    assert_dressed(answer)


async def test_a_refusal_of_the_guard_wears_them_too(world: World, visitor: Person) -> None:
    refused = await visitor.client.post("/api/login", json={}, headers={"Origin": "https://attacker.test"})
    assert refused.status_code == 403
    assert_dressed(refused)
    unknown = await raw.send(world, raw.request("/", ("Host", "attacker.test")))
    assert unknown.status == 421
    assert ALWAYS.items() <= unknown.headers.items()
    assert "content-security-policy" in unknown.headers


async def test_what_nobody_expected_wears_them_and_says_nothing_of_the_inside(
    visitor: Person, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await visitor.client.post("/api/login", json={"email": "a@b.c", "password": "x" * 12})
    assert answer.status_code == 500
    assert_dressed(answer)
    told = answer.json()
    assert set(told) == {"code", "message", "incident"}
    assert "canary" not in answer.text
    assert "ZeroDivisionError" not in answer.text
    assert told["incident"] in caplog.text


async def test_data_is_not_stored_on_the_way(visitor: Person) -> None:
    for path in ("/api/health", "/api/me", "/api/nothing", "/api/setup"):
        assert (await visitor.client.get(path)).headers["cache-control"] == "no-store"


async def test_the_policy_lets_a_page_load_from_its_own_server_alone(visitor: Person) -> None:
    policy = directives((await visitor.client.get("/")).headers["content-security-policy"])
    assert policy["default-src"] == ["'none'"]
    assert policy["frame-ancestors"] == ["'none'"]
    assert policy["base-uri"] == ["'none'"]
    assert policy["form-action"] == ["'self'"]
    assert policy["connect-src"] == ["'self'"]
    assert policy["require-trusted-types-for"] == ["'script'"]
    allowed = {source for sources in policy.values() for source in sources}
    assert not allowed & {"'unsafe-inline'", "'unsafe-eval'", "*", "http:", "https:"}
    assert not {source for source in allowed if "//" in source}


async def test_an_answer_says_nothing_of_what_serves_it(visitor: Person) -> None:
    assert not {"server", "x-powered-by"} & set((await visitor.client.get("/api/health")).headers)


async def test_an_error_has_a_code_a_sentence_and_an_incident_and_nothing_else(visitor: Person) -> None:
    for answer in (
        await visitor.client.get("/api/nothing"),
        await visitor.client.get("/api/me"),
        await visitor.client.delete("/api/health"),
        await visitor.client.post("/api/login", json={"email": 1}),
        await visitor.client.post("/api/login", content=b"{", headers={"Content-Type": "application/json"}),
    ):
        assert answer.headers["content-type"] == "application/json"
        assert set(answer.json()) == {"code", "message", "incident"}


async def test_a_refused_socket_is_told_like_any_other_request(world: World, visitor: Person) -> None:
    with pytest.raises(websockets.InvalidStatus) as refused:
        async with visitor.live():
            pass
    assert refused.value.response.status_code == 401
    assert b'"not_signed_in"' in bytes(refused.value.response.body or b"")


def assert_dressed(answer: httpx2.Response) -> None:
    assert ALWAYS.items() <= dict(answer.headers).items()
    assert "content-security-policy" in answer.headers
    assert not [name for name in answer.headers if name.startswith("access-control-")]


def directives(policy: str) -> dict[str, list[str]]:
    parts = (part.split() for part in policy.split(";"))
    return {name: sources for name, *sources in parts}
