"""Access matrix: every route, as each kind of user: the status, and that nothing changed (AZ 1, 3 to 5)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import httpx2
import pytest
import pytest_asyncio
import websockets

from tertulia.app import new_id
from tertulia.server.access import Access, RouteAccess
from tertulia.server.asgi import bare
from tests.server.cast import CANARY, Cast, Things, at_rest, gather_cast, outlined
from tests.server.requests import ENTRIES, EXAMPLES, HTTP, Request, request_to
from tests.upstream.scripted import scripted
from tests.world import Person, endpoints, running, turn

pytestmark = pytest.mark.asyncio(loop_scope="module")

MAY_BE_FOREIGN = {
    # An owner may add any account whose id is known; that is the purpose of the id.
    ("PUT", "/api/projects/{project_id}/members", "user_id"),
    # The id of a branch that is created by the request; an existing id is refused.
    ("POST", "/api/messages/{message_id}/retry", "branch_id"),
    ("POST", "/api/messages/{message_id}/continue", "branch_id"),
    ("POST", "/api/conversations/{conversation_id}/rounds/{number}/edit", "branch_id"),
}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def cast(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cast]:
    async with (
        scripted() as upstream,
        running(tmp_path_factory.mktemp("home"), {"TERTULIA_ENDPOINTS": endpoints(upstream)}) as world,
    ):
        yield await gather_cast(world)


async def send(person: Person, request: Request) -> httpx2.Response:
    return await person.client.request(request.method, request.path, params=request.params, **request.sent)


def name_of(value: object) -> str:
    return f"{value.method} {value.path}" if isinstance(value, RouteAccess) else str(value)


def only_reads(entry: RouteAccess) -> bool:
    return entry.method in ("GET", "HEAD") or EXAMPLES[entry.method, entry.path].only_reads


def about_ids(*, writes_only: bool = False) -> Iterator[tuple[RouteAccess, str]]:
    for entry in HTTP:
        if entry.access is Access.SIGNED_IN and not (writes_only and only_reads(entry)):
            yield from ((entry, name) for name in entry.ids)


def routes_with_attachments() -> Iterator[RouteAccess]:
    """The routes whose body has attachments, by the OpenAPI document."""
    api = bare().openapi()
    for entry in HTTP:
        asked = api["paths"][entry.path][entry.method.lower()]
        schema = asked.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        named = api["components"]["schemas"].get(schema.get("$ref", "").rpartition("/")[2], {})
        if "attachments" in named.get("properties", {}):
            yield entry


GUARDED = [entry for entry in HTTP if entry.access is not Access.ANYONE]
FOREIGN = [case for case in about_ids() if (case[0].method, case[0].path, case[1]) not in MAY_BE_FOREIGN]
IN_A_PROJECT = ("project_id", "conversation_id", "message_id", "turn_id", "file_id")


# ── the table


async def test_every_route_has_an_example_and_every_example_a_route() -> None:
    assert set(EXAMPLES) == {(entry.method, entry.path) for entry in HTTP}
    assert {entry.path for entry in ENTRIES if entry.method == "WEBSOCKET"} == {"/api/live"}


@pytest.mark.parametrize("entry", HTTP, ids=name_of)
async def test_every_id_that_a_route_takes_is_in_its_example(entry: RouteAccess) -> None:
    someone = Things(*(name.upper() for name in Things.__annotations__))
    for name in entry.ids:
        assert getattr(someone, name) in repr(request_to(entry, someone, probed=name))


# ── without a session


@pytest.mark.parametrize("entry", GUARDED, ids=name_of)
async def test_a_request_without_a_session_is_refused(cast: Cast, entry: RouteAccess) -> None:
    async with cast.untouched():
        answer = await send(cast.stranger, request_to(entry, cast.almas))
    assert answer.status_code == 401
    assert CANARY not in all_text(answer)


@pytest.mark.parametrize("entry", GUARDED, ids=name_of)
async def test_a_suspended_account_is_refused(cast: Cast, entry: RouteAccess) -> None:
    assert cast.suspended.client.cookies
    async with cast.untouched():
        answer = await send(cast.suspended, request_to(entry, cast.almas))
    assert answer.status_code == 401
    assert CANARY not in all_text(answer)


# ── other users


@pytest.mark.parametrize(("entry", "name"), FOREIGN, ids=name_of)
async def test_objects_of_another_user_are_not_found(cast: Cast, entry: RouteAccess, name: str) -> None:
    """All other ids in the request are Bruno's own, so he is refused because of this one."""
    theirs = replace(cast.brunos, **{field(name): getattr(cast.almas, name)})
    async with cast.untouched():
        answer = await send(cast.bruno, request_to(entry, theirs, probed=name))
    assert answer.status_code == 404, answer.text
    assert CANARY not in all_text(answer)


@pytest.mark.parametrize(("entry", "name"), FOREIGN, ids=name_of)
async def test_objects_of_another_user_and_missing_objects_get_the_same_response(
    cast: Cast, entry: RouteAccess, name: str
) -> None:
    theirs = replace(cast.brunos, **{field(name): getattr(cast.almas, name)})
    nobodys = replace(cast.brunos, **{field(name): new_id()})
    hidden, missing = [await send(cast.bruno, request_to(entry, its, name)) for its in (theirs, nobodys)]
    assert (hidden.status_code, comparable_body(hidden)) == (missing.status_code, comparable_body(missing))
    assert comparable_headers(hidden) == comparable_headers(missing)


@pytest.mark.parametrize(("entry", "name"), FOREIGN, ids=name_of)
async def test_a_former_member_finds_nothing_of_the_project(
    cast: Cast, entry: RouteAccess, name: str
) -> None:
    """Not even their own messages."""
    left = replace(cast.ex_members, session_id=cast.almas.session_id, user_id=cast.alma.id)
    async with cast.untouched():
        answer = await send(cast.ex_member, request_to(entry, left, probed=name))
    assert answer.status_code == 404, answer.text
    assert CANARY not in all_text(answer)


@pytest.mark.parametrize(
    ("entry", "name"),
    [case for case in about_ids(writes_only=True) if case[1] in IN_A_PROJECT],
    ids=name_of,
)
async def test_a_viewer_is_refused_every_write(cast: Cast, entry: RouteAccess, name: str) -> None:
    async with cast.untouched():
        answer = await send(cast.viewer, request_to(entry, cast.almas, probed=name))
    assert answer.status_code == 403, answer.text
    assert CANARY not in all_text(answer)


@pytest.mark.parametrize("entry", [e for e in HTTP if e.method == "POST" and only_reads(e)], ids=name_of)
async def test_a_viewer_may_send_posts_that_only_read(cast: Cast, entry: RouteAccess) -> None:
    async with cast.untouched():
        answer = await send(cast.viewer, request_to(entry, cast.almas))
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("entry", [e for e in HTTP if e.access is Access.ADMIN], ids=name_of)
async def test_a_member_is_refused_the_routes_of_administrators(cast: Cast, entry: RouteAccess) -> None:
    async with cast.untouched():
        answer = await send(cast.bruno, request_to(entry, cast.almas))
    assert answer.status_code == 403
    assert CANARY not in all_text(answer)


@pytest.mark.parametrize(("entry", "name"), FOREIGN, ids=name_of)
async def test_an_administrator_finds_nothing_of_other_users_projects(
    cast: Cast, entry: RouteAccess, name: str
) -> None:
    async with cast.untouched():
        answer = await send(cast.admin, request_to(entry, cast.almas, probed=name))
    assert answer.status_code == 404, answer.text
    assert CANARY not in all_text(answer)


# ── ids in a body that names several


async def test_a_foreign_conversation_is_not_found_when_the_body_names_an_own_project(cast: Cast) -> None:
    body = turn("Mine now", conversation_id=cast.almas.conversation_id, project_id=cast.brunos.project_id)
    async with cast.untouched():
        answer = await cast.bruno.client.post("/api/turn", json=body)
    assert answer.status_code == 404
    assert CANARY not in all_text(answer)


async def test_a_foreign_turn_id_is_refused_without_details(cast: Cast) -> None:
    body = turn("Mine now", project_id=cast.brunos.project_id) | {"id": cast.almas.turn_id}
    async with cast.untouched():
        answer = await cast.bruno.client.post("/api/turn", json=body)
    assert answer.status_code == 409
    assert CANARY not in all_text(answer)


@pytest.mark.parametrize("entry", list(routes_with_attachments()), ids=name_of)
async def test_a_foreign_attachment_cannot_be_sent(cast: Cast, entry: RouteAccess) -> None:
    """All other ids are Bruno's own; the attachment is not linked, counted or shown (AZ 4)."""
    request = request_to(entry, cast.brunos, probed="conversation_id")
    brought = replace(request, body=request.body | {"attachments": [cast.almas.attachment_id]})
    async with cast.untouched():
        answer = await send(cast.bruno, brought)
    assert answer.status_code == 404, answer.text
    assert CANARY not in all_text(answer)


async def test_a_reply_to_a_message_of_another_conversation_is_refused(cast: Cast) -> None:
    """Both are Bruno's, but the message must belong to the conversation in the body."""
    elsewhere = await cast.bruno.ask("Elsewhere", project_id=cast.brunos.project_id)
    await cast.bruno.wait_for_end(elsewhere["turn"]["id"])
    await at_rest(cast.world.tertulia)
    body = turn("Re:", conversation_id=elsewhere["conversation"]["id"], reply_to_id=cast.brunos.message_id)
    async with cast.untouched():
        answer = await cast.bruno.client.post("/api/turn", json=body)
    assert answer.status_code == 409


@pytest.mark.parametrize(
    "entry", [entry for entry in HTTP if {"project_id", "file_id"} <= set(entry.ids)], ids=name_of
)
async def test_a_file_is_not_found_in_another_project_of_its_owner(cast: Cast, entry: RouteAccess) -> None:
    astray = replace(cast.brunos, project_id=cast.bruno.home)
    async with cast.untouched():
        answer = await send(cast.bruno, request_to(entry, astray))
    assert answer.status_code == 404, answer.text


# ── lists


@pytest.mark.parametrize("path", ["/api/projects", "/api/sessions", "/api/me", "/api/models"])
async def test_a_list_contains_only_the_users_own_objects(cast: Cast, path: str) -> None:
    for person in (cast.bruno, cast.ex_member, cast.admin):
        answer = await person.client.get(path)
        assert answer.status_code == 200
        assert CANARY not in all_text(answer)


# ── the WebSocket


async def test_a_websocket_without_a_session_is_refused_before_the_upgrade(cast: Cast) -> None:
    for person in (cast.stranger, cast.suspended):
        with pytest.raises(websockets.InvalidStatus) as refused:
            async with person.live():
                pass
        assert refused.value.response.status_code == 401
        assert CANARY.encode() not in bytes(refused.value.response.body or b"")


@pytest.mark.parametrize("who", ["bruno", "ex_member", "admin"])
async def test_a_foreign_topic_cannot_be_followed(cast: Cast, who: str) -> None:
    person: Person = getattr(cast, who)
    topics = (
        f"user:{cast.alma.id}",
        f"project:{cast.almas.project_id}",
        f"conversation:{cast.almas.conversation_id}",
    )
    async with cast.untouched(), person.live() as tab:
        for topic in topics:
            seen = await tab.follow(topic)
            assert [(item["type"], item["place"]) for item in seen] == [("gone", topic)]
            unknown = topic.partition(":")[0] + ":" + new_id()
            assert without_topic(seen[0]) == without_topic((await tab.follow(unknown))[0])


async def test_a_viewer_may_follow_a_conversation(cast: Cast) -> None:
    async with cast.viewer.live() as tab:
        seen = await tab.follow(f"conversation:{cast.almas.conversation_id}")
    assert seen[-1]["type"] == "following"


# ── comparing responses


def all_text(answer: httpx2.Response) -> str:
    return answer.text + str(answer.headers)


def comparable_body(answer: httpx2.Response) -> object:
    """The body without its incident id; None for a response to HEAD."""
    return outlined(answer.json()) if answer.content else None


def comparable_headers(answer: httpx2.Response) -> dict[str, str]:
    return {key: value for key, value in answer.headers.items() if key != "date"}


def without_topic(item: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in item.items() if key != "place"}


def field(name: str) -> str:
    """The field of Things for a parameter; some parameters have a second name for the same object."""
    synonyms = {
        "reply_id": "message_id",
        "reply_to_id": "message_id",
        "default_table_id": "table_id",
        "other_id": "conversation_id",
    }
    return synonyms.get(name, name)
