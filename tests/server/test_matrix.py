"""Every entry point, for everyone who might try it: the answers, and that nothing changed (AZ 1, 3 to 5)."""

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

MAY_BE_ANYONES = {
    # Whoever owns a project may take in any account whose id they know; that is what the id is for.
    ("PUT", "/api/projects/{project_id}/members", "user_id"),
    # The id of something that is yet to be made: one that is taken is refused, whoever has it.
    ("POST", "/api/messages/{message_id}/retry", "branch_id"),
    ("POST", "/api/messages/{message_id}/continue", "branch_id"),
    ("POST", "/api/conversations/{conversation_id}/rounds/{number}/edit", "branch_id"),
}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def cast(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cast]:
    async with (
        scripted() as upstream,
        running(tmp_path_factory.mktemp("house"), {"TERTULIA_ENDPOINTS": endpoints(upstream)}) as world,
    ):
        yield await gather_cast(world)


async def send(person: Person, request: Request) -> httpx2.Response:
    return await person.client.request(request.method, request.path, params=request.params, **request.sent)


def name_of(given: object) -> str:
    return f"{given.method} {given.path}" if isinstance(given, RouteAccess) else str(given)


def only_reads(entry: RouteAccess) -> bool:
    return entry.method in ("GET", "HEAD") or EXAMPLES[entry.method, entry.path].only_reads


def about_ids(*, writes_only: bool = False) -> Iterator[tuple[RouteAccess, str]]:
    for entry in HTTP:
        if entry.access is Access.SIGNED_IN and not (writes_only and only_reads(entry)):
            yield from ((entry, name) for name in entry.ids)


def takers_of_attachments() -> Iterator[RouteAccess]:
    """Those whose body names attachments, as the API describes itself."""
    api = bare().openapi()
    for entry in HTTP:
        asked = api["paths"][entry.path][entry.method.lower()]
        schema = asked.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        named = api["components"]["schemas"].get(schema.get("$ref", "").rpartition("/")[2], {})
        if "attachments" in named.get("properties", {}):
            yield entry


GUARDED = [entry for entry in HTTP if entry.access is not Access.ANYONE]
FOREIGN = [case for case in about_ids() if (case[0].method, case[0].path, case[1]) not in MAY_BE_ANYONES]
IN_A_PROJECT = ("project_id", "conversation_id", "message_id", "turn_id", "file_id")


# ── the table


async def test_every_entry_point_has_an_example_and_no_example_is_left_over() -> None:
    assert set(EXAMPLES) == {(entry.method, entry.path) for entry in HTTP}
    assert {entry.path for entry in ENTRIES if entry.method == "WEBSOCKET"} == {"/api/live"}


@pytest.mark.parametrize("entry", HTTP, ids=name_of)
async def test_every_id_an_entry_point_takes_is_in_its_example(entry: RouteAccess) -> None:
    someone = Things(*(name.upper() for name in Things.__annotations__))
    for name in entry.ids:
        assert getattr(someone, name) in repr(request_to(entry, someone, probed=name))


# ── nobody


@pytest.mark.parametrize("entry", GUARDED, ids=name_of)
async def test_nobody_gets_in_without_signing_in(cast: Cast, entry: RouteAccess) -> None:
    async with cast.untouched():
        answer = await send(cast.stranger, request_to(entry, cast.almas))
    assert answer.status_code == 401
    assert CANARY not in said(answer)


@pytest.mark.parametrize("entry", GUARDED, ids=name_of)
async def test_a_suspended_account_is_nobody(cast: Cast, entry: RouteAccess) -> None:
    assert cast.suspended.client.cookies
    async with cast.untouched():
        answer = await send(cast.suspended, request_to(entry, cast.almas))
    assert answer.status_code == 401
    assert CANARY not in said(answer)


# ── someone else


@pytest.mark.parametrize(("entry", "name"), FOREIGN, ids=name_of)
async def test_what_is_someone_elses_is_not_there(cast: Cast, entry: RouteAccess, name: str) -> None:
    """All else in the request is Bruno's own, so that this one id is what he is refused for."""
    theirs = replace(cast.brunos, **{field(name): getattr(cast.almas, name)})
    async with cast.untouched():
        answer = await send(cast.bruno, request_to(entry, theirs, probed=name))
    assert answer.status_code == 404, answer.text
    assert CANARY not in said(answer)


@pytest.mark.parametrize(("entry", "name"), FOREIGN, ids=name_of)
async def test_what_is_someone_elses_looks_like_what_never_was(
    cast: Cast, entry: RouteAccess, name: str
) -> None:
    theirs = replace(cast.brunos, **{field(name): getattr(cast.almas, name)})
    nobodys = replace(cast.brunos, **{field(name): new_id()})
    hidden, missing = [await send(cast.bruno, request_to(entry, its, name)) for its in (theirs, nobodys)]
    assert (hidden.status_code, told(hidden)) == (missing.status_code, told(missing))
    assert steady(hidden) == steady(missing)


@pytest.mark.parametrize(("entry", "name"), FOREIGN, ids=name_of)
async def test_whoever_left_a_project_sees_nothing_of_it(cast: Cast, entry: RouteAccess, name: str) -> None:
    """Not even what they said there themselves."""
    left = replace(cast.ex_members, session_id=cast.almas.session_id, user_id=cast.alma.id)
    async with cast.untouched():
        answer = await send(cast.ex_member, request_to(entry, left, probed=name))
    assert answer.status_code == 404, answer.text
    assert CANARY not in said(answer)


@pytest.mark.parametrize(
    ("entry", "name"),
    [case for case in about_ids(writes_only=True) if case[1] in IN_A_PROJECT],
    ids=name_of,
)
async def test_a_viewer_changes_nothing(cast: Cast, entry: RouteAccess, name: str) -> None:
    async with cast.untouched():
        answer = await send(cast.viewer, request_to(entry, cast.almas, probed=name))
    assert answer.status_code == 403, answer.text
    assert CANARY not in said(answer)


@pytest.mark.parametrize("entry", [e for e in HTTP if e.method == "POST" and only_reads(e)], ids=name_of)
async def test_a_question_sent_as_a_post_changes_nothing_and_is_a_viewers_too(
    cast: Cast, entry: RouteAccess
) -> None:
    async with cast.untouched():
        answer = await send(cast.viewer, request_to(entry, cast.almas))
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("entry", [e for e in HTTP if e.access is Access.ADMIN], ids=name_of)
async def test_administration_is_for_administrators(cast: Cast, entry: RouteAccess) -> None:
    async with cast.untouched():
        answer = await send(cast.bruno, request_to(entry, cast.almas))
    assert answer.status_code == 403
    assert CANARY not in said(answer)


@pytest.mark.parametrize(("entry", "name"), FOREIGN, ids=name_of)
async def test_an_administrator_has_no_part_in_other_peoples_projects(
    cast: Cast, entry: RouteAccess, name: str
) -> None:
    async with cast.untouched():
        answer = await send(cast.admin, request_to(entry, cast.almas, probed=name))
    assert answer.status_code == 404, answer.text
    assert CANARY not in said(answer)


# ── ids in a body that names several


async def test_a_foreign_conversation_is_not_taken_over_by_naming_a_project_of_ones_own(cast: Cast) -> None:
    body = turn("Mine now", conversation_id=cast.almas.conversation_id, project_id=cast.brunos.project_id)
    async with cast.untouched():
        answer = await cast.bruno.client.post("/api/turn", json=body)
    assert answer.status_code == 404
    assert CANARY not in said(answer)


async def test_a_foreign_turn_id_is_refused_and_tells_nothing(cast: Cast) -> None:
    body = turn("Mine now", project_id=cast.brunos.project_id) | {"id": cast.almas.turn_id}
    async with cast.untouched():
        answer = await cast.bruno.client.post("/api/turn", json=body)
    assert answer.status_code == 409
    assert CANARY not in said(answer)


@pytest.mark.parametrize("entry", list(takers_of_attachments()), ids=name_of)
async def test_a_foreign_attachment_does_not_come_along(cast: Cast, entry: RouteAccess) -> None:
    """All else is Bruno's own: nothing of hers is linked, counted or shown (AZ 4)."""
    request = request_to(entry, cast.brunos, probed="conversation_id")
    brought = replace(request, body=request.body | {"attachments": [cast.almas.attachment_id]})
    async with cast.untouched():
        answer = await send(cast.bruno, brought)
    assert answer.status_code == 404, answer.text
    assert CANARY not in said(answer)


async def test_a_reply_to_a_message_of_another_conversation_is_refused(cast: Cast) -> None:
    """Both are Bruno's: a child must belong to the parent named beside it."""
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
async def test_a_file_is_not_there_in_another_project_of_ones_own(cast: Cast, entry: RouteAccess) -> None:
    astray = replace(cast.brunos, project_id=cast.bruno.home)
    async with cast.untouched():
        answer = await send(cast.bruno, request_to(entry, astray))
    assert answer.status_code == 404, answer.text


# ── lists


@pytest.mark.parametrize("path", ["/api/projects", "/api/sessions", "/api/me", "/api/models"])
async def test_a_list_holds_only_ones_own(cast: Cast, path: str) -> None:
    for person in (cast.bruno, cast.ex_member, cast.admin):
        answer = await person.client.get(path)
        assert answer.status_code == 200
        assert CANARY not in said(answer)


# ── the socket


async def test_the_socket_is_refused_before_the_upgrade_without_a_session(cast: Cast) -> None:
    for person in (cast.stranger, cast.suspended):
        with pytest.raises(websockets.InvalidStatus) as refused:
            async with person.live():
                pass
        assert refused.value.response.status_code == 401
        assert CANARY.encode() not in bytes(refused.value.response.body or b"")


@pytest.mark.parametrize("who", ["bruno", "ex_member", "admin"])
async def test_a_foreign_place_is_gone_and_says_nothing(cast: Cast, who: str) -> None:
    person: Person = getattr(cast, who)
    places = (
        f"user:{cast.alma.id}",
        f"project:{cast.almas.project_id}",
        f"conversation:{cast.almas.conversation_id}",
    )
    async with cast.untouched(), person.live() as tab:
        for place in places:
            seen = await tab.follow(place)
            assert [(item["type"], item["place"]) for item in seen] == [("gone", place)]
            unknown = place.partition(":")[0] + ":" + new_id()
            assert outline(seen[0]) == outline((await tab.follow(unknown))[0])


async def test_a_viewer_may_look_on(cast: Cast) -> None:
    async with cast.viewer.live() as tab:
        seen = await tab.follow(f"conversation:{cast.almas.conversation_id}")
    assert seen[-1]["type"] == "following"


# ── reading answers


def said(answer: httpx2.Response) -> str:
    return answer.text + str(answer.headers)


def told(answer: httpx2.Response) -> object:
    """Without what differs each time; a HEAD is told nothing but its headers."""
    return outlined(answer.json()) if answer.content else None


def steady(answer: httpx2.Response) -> dict[str, str]:
    return {key: value for key, value in answer.headers.items() if key != "date"}


def outline(item: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in item.items() if key != "place"}


def field(name: str) -> str:
    """Some parameters name the same thing in other words."""
    other_words = {
        "reply_id": "message_id",
        "reply_to_id": "message_id",
        "default_table_id": "table_id",
        "other_id": "conversation_id",
    }
    return other_words.get(name, name)
