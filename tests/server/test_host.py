"""The Host header: an unknown or malformed host is refused on every path, for every client (SE 1, 2)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.server import raw
from tests.server.requests import ENTRIES
from tests.world import Person, World, running

pytestmark = pytest.mark.asyncio(loop_scope="module")

PAGES = ("/", "/new", "/favicon.ico", "/v1/models", "/mcp", "/nothing/here")
PATHS = sorted({entry.path for entry in ENTRIES if entry.method != "WEBSOCKET"} | set(PAGES))


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    home = tmp_path_factory.mktemp("home")
    async with running(home, {"TERTULIA_ALLOWED_HOSTS": "Tertulia.Example"}) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def ada(world: World) -> Person:
    person = world.stranger()
    body = {"name": "Ada", "email": "ada@example.org", "password": "correct horse battery"}
    return person.signed_in_as(
        await person.post("/api/setup", body | {"token": "the-token-on-the-terminal"}, expect=201)
    )


def cookie(person: Person) -> tuple[str, str]:
    return "Cookie", "; ".join(f"{name}={value}" for name, value in person.client.cookies.items())


# ── foreign host names


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
@pytest.mark.parametrize("path", PATHS)
async def test_a_foreign_host_name_is_refused_on_every_path(
    world: World, ada: Person, path: str, method: str
) -> None:
    """421 even without a session and for missing paths: the host is checked before anything else."""
    for who in ((), (cookie(ada),)):
        asked = raw.request(
            path, ("Host", "attacker.test"), ("Origin", "http://attacker.test"), *who, method=method
        )
        answer = await raw.send(world, asked)
        assert answer.status == 421
        assert b"example.org" not in answer.body


async def test_a_foreign_host_name_gets_no_websocket(world: World, ada: Person) -> None:
    for who in ((), (cookie(ada),)):
        asked = raw.upgrade("/api/live", ("Host", "attacker.test"), ("Origin", "http://attacker.test"), *who)
        assert (await raw.send(world, asked)).status == 421


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.2",
        "localhost.attacker.test",
        "127.0.0.1.attacker.test",
        "localhost.",
        "[::2]",
        "xn--lcalhost-1za",
    ],
)
async def test_a_host_name_that_resembles_ours_is_refused(world: World, host: str) -> None:
    assert (await raw.send(world, raw.request("/api/health", ("Host", host)))).status == 421


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.0.0.1:8000", "localhost", "LOCALHOST:80", "[::1]:8000", "tertulia.example:443"],
)
async def test_our_own_host_names_are_accepted_on_any_port(world: World, host: str) -> None:
    assert (await raw.send(world, raw.request("/api/health", ("Host", host)))).status == 200


# ── malformed hosts

MALFORMED = {
    "a path": "localhost/login?",
    "a fragment": "localhost#x",
    "a user": "a@localhost",
    "a high port": "localhost:99999",
    "port zero": "localhost:0",
    "a port of letters": "localhost:abc",
    "an empty port": "localhost:",
    "two ports": "localhost:80:80",
    "nothing": "",
    "a space": "local host",
    "a list": "localhost,attacker.test",
    "a backslash": "localhost\\attacker.test",
    "a percent sign": "local%68ost",
    "a query": "localhost?x=/api/health",
    "Latin-1": "l\u00f6calhost",
    "four kilobytes": "a" * 4096,
    "an open bracket": "[::1",
}


@pytest.mark.parametrize("path", ["/", "/api/health", "/api/me", "/api/users"])
@pytest.mark.parametrize("host", MALFORMED.values(), ids=MALFORMED.keys())
async def test_a_malformed_host_is_refused(world: World, ada: Person, host: str, path: str) -> None:
    answer = await raw.send(world, raw.request(path, ("Host", host), cookie(ada)))
    assert answer.status == 400
    assert b"example.org" not in answer.body


async def test_a_request_without_a_host_is_refused(world: World, ada: Person) -> None:
    assert (await raw.send(world, raw.request("/api/me", cookie(ada), version="1.0"))).status == 400
    assert (await raw.send(world, raw.request("/api/me", cookie(ada)))).status == 400


@pytest.mark.parametrize(
    "names", [("localhost", "attacker.test"), ("attacker.test", "localhost"), ("localhost",) * 2]
)
async def test_two_host_headers_are_refused(world: World, ada: Person, names: tuple[str, str]) -> None:
    asked = raw.request("/api/me", *(("Host", name) for name in names), cookie(ada))
    assert (await raw.send(world, asked)).status == 400


@pytest.mark.parametrize(
    "target", ["http://attacker.test/api/me", "https://attacker.test/", "http://a@localhost/"]
)
async def test_a_target_that_names_another_host_is_refused(world: World, ada: Person, target: str) -> None:
    answer = await raw.send(world, raw.request(target, ("Host", "localhost"), cookie(ada)))
    assert answer.status == 400


async def test_a_target_that_names_the_same_host_is_accepted(world: World, ada: Person) -> None:
    for who, status in (((), 401), ((cookie(ada),), 200)):
        answer = await raw.send(world, raw.request("http://localhost/api/me", ("Host", "localhost"), *who))
        assert answer.status == status


@pytest.mark.parametrize("target", ["http://attacker.test/api/live", "http://localhost/api/live"])
async def test_a_websocket_request_with_an_absolute_target_is_refused(
    world: World, ada: Person, target: str
) -> None:
    asked = raw.upgrade(target, ("Host", "localhost"), ("Origin", "http://localhost"), cookie(ada))
    assert (await raw.send(world, asked)).status in (400, 403, 404)


# ── spellings of paths


@pytest.mark.parametrize(
    "target",
    [
        "/api/health/../me",
        "/api/%2e%2e/api/me",
        "//api/me",
        "/api//me",
        "/API/me",
        "/api/me/",
        "/api/me%00",
        "/api/me;x=1",
        "/%61pi/me",
        "/api/me?x=/api/health",
        "/api/me#/api/health",
        "\\api\\me",
        "*",
        "api/me",
        "localhost:80",
    ],
)
async def test_no_spelling_of_a_path_bypasses_authentication(world: World, ada: Person, target: str) -> None:
    """Pages are public, but no response to a stranger contains Ada's data."""
    answer = await raw.send(world, raw.request(target, ("Host", "localhost")))
    assert answer.status in (200, 400, 401, 404, 503)
    assert b"example.org" not in answer.body
