"""Where a request comes from: pages of other origins read nothing and change nothing (SE 4, 10, 11)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2
import pytest
import pytest_asyncio
import websockets

from tertulia.server.access import RouteAccess
from tertulia.server.asgi_scope import SAFE_METHODS
from tests.server.cast import CANARY, Cast, gather_cast
from tests.server.requests import HTTP, request_to
from tests.upstream.scripted import scripted
from tests.world import Person, World, endpoints, running

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def cast(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cast]:
    async with (
        scripted() as upstream,
        running(tmp_path_factory.mktemp("home"), {"TERTULIA_ENDPOINTS": endpoints(upstream)}) as world,
    ):
        yield await gather_cast(world)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def browser(cast: Cast) -> AsyncIterator[httpx2.AsyncClient]:
    """Alma's, used by any page: it sends her cookie, and nothing that says where it comes from."""
    headers = {"Cookie": cookie(cast.alma)}
    async with httpx2.AsyncClient(base_url=cast.world.url, headers=headers, verify=False) as client:
        yield client


def elsewhere(world: World) -> dict[str, dict[str, str]]:
    """What a browser sends with our cookie, by the page that makes it ask."""
    port = int(world.url.rpartition(":")[2])
    next_door = f"http://127.0.0.1:{port + 1}"
    return {
        "another port, fetch": {"Origin": next_door, "Sec-Fetch-Site": "same-site"},
        "another port, old browser": {"Origin": next_door},
        "another port, image or script": {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"},
        "another name of this machine": {"Origin": f"http://localhost:{port}"},
        "another site, fetch": {"Origin": "https://attacker.test", "Sec-Fetch-Site": "cross-site"},
        "another site, link or form": {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
        "another site, old browser": {"Origin": "https://attacker.test"},
        "our name in theirs": {"Origin": f"{world.url}.attacker.test"},
        "our name as a user": {"Origin": f"http://127.0.0.1:{port}@attacker.test"},
        "a sandboxed frame": {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
        "a file": {"Origin": "null"},
        "two origins": {"Origin": f"{world.url} https://attacker.test"},
    }


ELSEWHERE = list(elsewhere(World(None, "http://127.0.0.1:1", None)))  # type: ignore[arg-type]


def name_of(given: object) -> str:
    return f"{given.method} {given.path}" if isinstance(given, RouteAccess) else str(given)


@pytest.mark.parametrize("where", ELSEWHERE)
async def test_another_page_reads_nothing_and_changes_nothing(
    cast: Cast, browser: httpx2.AsyncClient, where: str
) -> None:
    """Every entry point, with the cookie of whoever looks at that page."""
    async with cast.untouched():
        for entry in HTTP:
            request = request_to(entry, cast.almas)
            answer = await browser.request(
                request.method,
                request.path,
                params=request.params,
                json=request.body,
                headers=elsewhere(cast.world)[where],
            )
            assert answer.status_code == 403, name_of(entry)
            assert CANARY not in answer.text
            assert_no_sharing(answer)


@pytest.mark.parametrize("where", ELSEWHERE)
async def test_another_page_gets_no_socket(cast: Cast, where: str) -> None:
    headers = elsewhere(cast.world)[where] | {"Cookie": cookie(cast.alma)}
    with pytest.raises(websockets.InvalidStatus) as refused:
        async with websockets.connect(
            f"ws://{cast.world.host}/api/live", additional_headers=headers, proxy=None
        ):
            pass
    assert refused.value.response.status_code == 403


async def test_a_socket_that_does_not_say_where_it_comes_from_is_refused(cast: Cast) -> None:
    with pytest.raises(websockets.InvalidStatus) as refused:
        async with websockets.connect(
            f"ws://{cast.world.host}/api/live", additional_headers={"Cookie": cookie(cast.alma)}, proxy=None
        ):
            pass
    assert refused.value.response.status_code == 403


@pytest.mark.parametrize("entry", [entry for entry in HTTP if entry.method not in SAFE_METHODS], ids=name_of)
async def test_a_write_that_does_not_say_where_it_comes_from_is_refused(
    cast: Cast, browser: httpx2.AsyncClient, entry: RouteAccess
) -> None:
    request = request_to(entry, cast.almas)
    async with cast.untouched():
        answer = await browser.request(request.method, request.path, json=request.body)
    assert (answer.status_code, answer.json()["code"]) == (403, "wrong_origin")


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
async def test_a_form_is_no_write(cast: Cast, kind: str) -> None:
    """These could be sent by any page without asking first."""
    async with cast.untouched():
        answer = await cast.alma.client.post(
            "/api/projects", content=b'{"name":"Forged"}', headers={"Content-Type": kind}
        )
    assert answer.status_code == 415


@pytest.mark.parametrize("entry", HTTP, ids=name_of)
async def test_a_preflight_from_elsewhere_is_granted_nothing(
    cast: Cast, browser: httpx2.AsyncClient, entry: RouteAccess
) -> None:
    asked = {
        "Origin": "https://attacker.test",
        "Access-Control-Request-Method": entry.method,
        "Access-Control-Request-Headers": "content-type,x-anything",
    }
    answer = await browser.options(request_to(entry, cast.almas).path, headers=asked)
    assert answer.status_code == 403
    assert_no_sharing(answer)


# ── what is not from elsewhere


@pytest.mark.parametrize(
    "headers",
    [{}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}],
    ids=["a program", "our page", "typed into the address bar"],
)
async def test_a_read_from_here_is_answered(
    cast: Cast, browser: httpx2.AsyncClient, headers: dict[str, str]
) -> None:
    assert (await browser.get("/api/me", headers=headers)).status_code == 200


async def test_a_page_may_be_linked_from_anywhere(cast: Cast, browser: httpx2.AsyncClient) -> None:
    answer = await browser.get("/", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})
    assert answer.status_code in (200, 503)


@pytest.mark.parametrize("headers", [{"Origin": "{here}"}, {"Sec-Fetch-Site": "same-origin"}])
async def test_a_write_from_our_page_is_taken(
    cast: Cast, browser: httpx2.AsyncClient, headers: dict[str, str]
) -> None:
    here = {name: value.format(here=cast.world.url) for name, value in headers.items()}
    assert (await browser.put("/api/me/password", json={}, headers=here)).status_code == 422


def assert_no_sharing(answer: httpx2.Response) -> None:
    assert not [name for name in answer.headers if name.startswith("access-control-")]


def cookie(person: Person) -> str:
    return "; ".join(f"{name}={value}" for name, value in person.client.cookies.items())
