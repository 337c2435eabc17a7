"""Malformed requests get a 4xx after little work, on both databases alike (SQ 5, 6)."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import httpx2
import pytest
import pytest_asyncio
import websockets
from starlette.types import Message

from tertulia.app import new_id
from tertulia.server.json_body import JSON_DEPTH, JSON_LIMIT, JSON_PARTS
from tertulia.server.security_middleware import SecurityMiddleware
from tertulia.server.throttle import Throttle
from tests.calls import counted_calls
from tests.server.cast import Things, things
from tests.server.requests import EXAMPLES, HTTP, request_to
from tests.store_fixtures import new_postgres_database
from tests.upstream.scripted import scripted
from tests.world import Person, World, endpoints, running, turn

pytestmark = pytest.mark.asyncio(loop_scope="module")

MIB = 1 << 20


@pytest_asyncio.fixture(loop_scope="module", scope="module", params=["sqlite", "postgres"])
async def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[World]:
    more = {}
    if request.param == "postgres":
        server = request.getfixturevalue("postgres_server")
        name = f"malformed_{new_id().lower()}"
        more["TERTULIA_DATABASE_URL"] = new_postgres_database(server, name)
    async with scripted() as upstream:
        environ = {"TERTULIA_ENDPOINTS": endpoints(upstream)} | more
        async with running(tmp_path_factory.mktemp("home"), environ) as made:
            patient = Throttle(time.monotonic, attempts=1_000_000)
            made.app.state.server = replace(made.app.state.server, throttle=patient)
            yield made


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def ada(world: World) -> Person:
    return await world.set_up("Ada")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def its(ada: Person) -> Things:
    return await things(ada, "mine")


@pytest.fixture(autouse=True)
def no_incident(caplog: pytest.LogCaptureFixture) -> Any:
    """No test of this module may cause an incident."""
    yield
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def send(
    person: Person, path: str, content: bytes, method: str = "POST", **headers: str
) -> httpx2.Response:
    kind = {"Content-Type": "application/json"} | {k.replace("_", "-"): v for k, v in headers.items()}
    return await person.client.request(method, path, content=content, headers=kind)


# ── malformed bodies

UNREADABLE = {
    "half an object": b'{"name"',
    "single quotes": b"{'name': 'x'}",
    "a trailing comma": b'{"name":"x",}',
    "two values": b'{"name":"x"}{}',
    "a comment": b'{"name":"x"} // hello',
    "broken UTF-8": b'{"name":"\xff\xfe"}',
    "overlong UTF-8": b'{"name":"\xc0\x80"}',
    "a surrogate in UTF-8": b'{"name":"\xed\xa0\x80"}',
    "UTF-16": '{"name":"x"}'.encode("utf-16"),
    "UTF-32": '{"name":"x"}'.encode("utf-32"),
    "a bare NUL": b'{"name":"\x00"}',
    "a control character": b'{"name":"\x01"}',
    "a number of 5,000 digits": b'{"name":' + b"1" * 5000 + b"}",
    "too deep": b'{"name":' + b"[" * (JSON_DEPTH + 1) + b"]" * (JSON_DEPTH + 1) + b"}",
    "far too deep": b"[" * 100_000,
    "deep, in UTF-16": ('["\u2201",' + "[" * 5000).encode("utf-16-le"),
    "deep after quotes": b'{"name":"\\"",' + b'"a":[' * 5000,
}


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE.keys())
async def test_a_body_that_is_no_json_is_malformed(ada: Person, body: bytes) -> None:
    answer = await send(ada, "/api/projects", body)
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed")


LARGE = {
    "five megabytes": b'{"name":"' + b"x" * (5 * MIB) + b'"}',
    "just too much": b'"' + b"x" * (JSON_LIMIT - 1) + b'"',
    "many parts": b"[" + b"1," * JSON_PARTS + b"1]",
    "many empty lists": b"[" + b"[]," * JSON_PARTS + b"[]]",
    "many texts": b"[" + b'"",' * JSON_PARTS + b'""]',
}


@pytest.mark.parametrize("body", LARGE.values(), ids=LARGE.keys())
async def test_a_body_that_is_too_large_is_refused(ada: Person, body: bytes) -> None:
    assert (await send(ada, "/api/projects", body)).status_code == 413


async def test_a_body_without_a_content_length_has_the_same_limit(ada: Person) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(6):
            yield b"x" * MIB

    headers = {"Content-Type": "application/json"}
    answer = await ada.client.post("/api/projects", content=endless(), headers=headers)
    assert answer.status_code == 413


@pytest.mark.parametrize("body", [b"null", b"[]", b'"x"', b"1", b"true", b"{}", b"", b"NaN", b"1e999"])
@pytest.mark.parametrize("entry", [e for e in HTTP if EXAMPLES[e.method, e.path].body], ids=lambda e: e.path)
async def test_a_body_of_the_wrong_type_is_a_client_error(
    ada: Person, its: Things, entry: Any, body: bytes
) -> None:
    answer = await send(ada, request_to(entry, its).path, body, entry.method)
    assert answer.status_code < 300 or answer.status_code in (400, 409, 422), answer.text


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "application/jsonx", "text/json", ""])
async def test_a_body_without_the_json_content_type_is_refused(ada: Person, kind: str) -> None:
    assert (await send(ada, "/api/projects", b'{"name":"x"}', Content_Type=kind)).status_code == 415


async def test_the_json_content_type_may_have_a_charset(ada: Person) -> None:
    answer = await send(ada, "/api/projects", b'{"name":"x"}', Content_Type="application/json; charset=utf-8")
    assert answer.status_code == 201


async def test_the_last_of_two_values_with_one_key_is_used(ada: Person) -> None:
    answer = await send(ada, "/api/projects", b'{"name":"first","name":"last"}')
    assert answer.json()["name"] == "last"


# ── text that no database can store

STRANGE = {
    "NUL": "\\u0000",
    "NUL within": "a\\u0000b",
    "half a pair": "\\ud800",
    "the other half": "a\\udfffb",
    "halves the wrong way round": "\\udc00\\ud800",
    "a whole pair": "\\ud83d\\ude00",
    "the last character": "\\udbff\\udfff",
    "not a character": "\\uffff",
    "right to left": "\\u202eabc",
    "much above one letter": "a" + "\\u0301" * 50,
}


@pytest.mark.parametrize("strange", STRANGE.values(), ids=STRANGE.keys())
async def test_unusual_text_is_stored_or_refused_on_every_route(
    ada: Person, its: Things, strange: str
) -> None:
    """Each route that takes a text responds with 2xx, after which it can be read back, or with 4xx."""
    text = json.dumps("PLACE").replace("PLACE", f"x{strange}x").encode()
    conversation = f"/api/conversations/{its.conversation_id}"
    bodies = [
        ("PUT", f"{conversation}/title", b'{"title":' + text + b"}"),
        ("POST", "/api/projects", b'{"name":' + text + b',"description":' + text + b"}"),
        ("PUT", f"/api/projects/{its.project_id}", b'{"instructions":' + text + b"}"),
        ("POST", "/api/config", b'{"key":"instance_name","value":' + text + b"}"),
        ("POST", "/api/config/bulk", b'{"default_models":[' + text + b"]}"),
        ("POST", "/api/config", b'{"key":' + text + b',"value":1}'),
        ("POST", "/api/login", b'{"email":' + text + b',"password":' + text + b"}"),
        ("POST", "/api/users", b'{"name":"x","email":' + text + b',"password":"correct horse"}'),
        ("POST", "/api/turn", _turn_saying(text, its)),
        ("POST", "/api/turn", b'{"id":' + text + b',"text":"x","voices":[{"model":' + text + b"}]}"),
        ("PUT", f"/api/projects/{its.project_id}/members", b'{"user_id":' + text + b',"role":"viewer"}'),
    ]
    for method, path, body in bodies:
        answer = await send(ada, path, body, method)
        assert answer.status_code < 500, (path, answer.text)
        json.loads(answer.text, parse_constant=_no_constant)
    for path in (
        conversation,
        f"/api/projects/{its.project_id}",
        "/api/projects",
        "/api/config",
        "/api/setup",
    ):
        (await ada.client.get(path)).raise_for_status()


def _turn_saying(text: bytes, its: Things) -> bytes:
    body = json.dumps(turn("PLACE", conversation_id=its.conversation_id, voices=[{"model": "voices:none"}]))
    return body.encode().replace(b'"PLACE"', text)


def _no_constant(name: str) -> Any:
    raise AssertionError(f"{name} is no JSON")


@pytest.mark.parametrize(
    "value", [b"NaN", b"[NaN]", b"[1e999]", b"[[]]", b"{}", b"[null]", b"1", b'["' + b"x" * 300 + b'"]']
)
async def test_a_setting_refuses_values_of_the_wrong_type(ada: Person, value: bytes) -> None:
    for key in (b"instance_name", b"default_models"):
        assert (
            await send(ada, "/api/config", b'{"key":"' + key + b'","value":' + value + b"}")
        ).status_code == 422


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (b"a\\u0000b", "a\ufffdb"),
        (b"a\\ud800b", "a\ufffdb"),
        (b"\\ud83d\\ude00", "\U0001f600"),
        (b"\\\\ud800 in \\ud83d\\ude00", "\\ud800 in \U0001f600"),
    ],
)
async def test_a_message_with_unusual_text_is_answered_and_stored_as_the_response_says(
    ada: Person, its: Things, sent: bytes, kept: str
) -> None:
    """The response contains the text as it is stored; text that is only unusual is not changed."""
    body = json.dumps(turn("PLACE", "alpha", conversation_id=its.conversation_id)).encode()
    answer = await send(ada, "/api/turn", body.replace(b"PLACE", sent))
    assert answer.status_code == 202
    assert answer.json()["message"]["content"] == kept
    await ada.wait_for_end(answer.json()["turn"]["id"])
    page = await ada.get(f"/api/conversations/{its.conversation_id}")
    assert page["rounds"][-1]["messages"][0]["content"] == kept


async def test_a_user_without_a_project_is_told_to_create_one(world: World, ada: Person) -> None:
    user = await world.create_account(ada, "Nils")
    await user.delete(f"/api/projects/{user.home}")
    error = await user.ask("Hello", expect=422)
    assert "Create one first" in error["message"]


@pytest.mark.parametrize(
    "id", ["%00", "%ff", "%ed%a0%80", "%2e%2e", "a%2fb", "'", '"', ";--", "x" * 5000, "%F0%9F%98%80", "1e9"]
)
async def test_a_malformed_id_is_not_found(ada: Person, id: str) -> None:
    for path in ("/api/conversations/", "/api/turns/", "/api/projects/"):
        assert (await ada.client.get(path + id)).status_code == 404
    assert (await ada.client.get(f"/api/messages/{id}/receipt")).status_code == 404
    assert (await ada.client.get("/api/conversations", params={"project_id": id})).status_code == 404


# ── pages


@pytest.mark.parametrize(
    "limit", ["-1", "0", "101", "1000000000", "1e9", "NaN", "", "9" * 5000, "5;drop table users", "[]"]
)
async def test_an_invalid_page_limit_is_refused(ada: Person, its: Things, limit: str) -> None:
    for path, params in (
        ("/api/conversations", {"project_id": its.project_id, "limit": limit}),
        (f"/api/conversations/{its.conversation_id}/messages", {"limit": limit}),
    ):
        assert (await ada.client.get(path, params=params)).status_code == 422


@pytest.mark.parametrize("before", ["-1", "0", "1000000000000000", "NaN", "x", "9" * 5000])
async def test_an_invalid_page_start_is_refused(ada: Person, its: Things, before: str) -> None:
    answer = await ada.client.get(
        f"/api/conversations/{its.conversation_id}/messages", params={"before": before}
    )
    assert answer.status_code == 422


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "0",
        "' OR 1=1 --",
        "MTIz",
        "MSAy",
        "OTk5OTk5OTk5OTk5OTk5OTk5OTkgMDFBUlozTkRFS1RTVjRSUkZGUTY5RzVGQVY=",
        "=" * 5000,
        "\u00e9",
    ],
)
async def test_a_forged_cursor_is_invalid(ada: Person, its: Things, cursor: str) -> None:
    params = {"project_id": its.project_id, "cursor": cursor}
    assert (await ada.client.get("/api/conversations", params=params)).status_code == 422


@pytest.mark.parametrize(
    "after", ["-1", "x", "99999999999", "1e9", "\u0661", "' OR 1=1 --", "01ARZ3NDEKTSV4RRFFQ69G5FAV"]
)
async def test_an_unknown_event_id_gets_the_whole_turn(ada: Person, its: Things, after: str) -> None:
    """The client gets a snapshot of the finished turn, and the stream closes."""
    answer = await ada.client.get(
        f"/api/turns/{its.turn_id}/events", params={"after": after}, headers={"Accept": "text/event-stream"}
    )
    assert answer.status_code == 200
    assert '"state":"complete"' in answer.text


# ── messages on the WebSocket

FRAMES = {
    "no JSON": "hello",
    "nothing": "",
    "a list": "[]",
    "a number": "1",
    "null": "null",
    "no type": "{}",
    "an unknown type": '{"type":"delete","place":"user:1"}',
    "a type that is an object": '{"type":{"type":"follow"}}',
    "no topic": '{"type":"follow","after":0}',
    "no cursor": '{"type":"follow","place":"user:1"}',
    "a topic that is a list": '{"type":"follow","place":["user:1"],"after":0}',
    "a cursor that is a text": '{"type":"follow","place":"user:1","after":"0"}',
    "a broken cursor": '{"type":"follow","place":"user:1","after":1.5}',
    "a cursor of 4,000 digits": '{"type":"follow","place":"user:1","after":' + "9" * 4000 + "}",
    "a cursor below zero": '{"type":"follow","place":"user:1","after":-1}',
    "an unknown kind of topic": '{"type":"follow","place":"server:all","after":0}',
    "a topic without a kind": '{"type":"follow","place":"","after":0}',
    "half a pair": '{"type":"follow","place":"user:\\ud800","after":0}',
    "half a pair as a type": '{"type":"\\ud800"}',
    "NUL": '{"type":"follow","place":"project:\\u0000","after":0}',
    "SQL": '{"type":"follow","place":"project:\' OR 1=1 --","after":0}',
    "leaving a topic that was not followed": '{"type":"leave","place":"user:1"}',
    "deep": "[" * 4000,
    "deep and long": '{"type":' + "[" * 60_000,
    "long": "x" * 60_000,
    "binary": b"\x00\xff\x00",
    "binary JSON": b'{"type":"ping"}',
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())
async def test_a_malformed_message_leaves_the_websocket_usable(ada: Person, frame: str | bytes) -> None:
    async with ada.live() as tab:
        await tab._socket.send(frame)
        await tab.send({"type": "ping"})
        seen = await tab.until(lambda item: item["type"] == "pong")
        assert {item["type"] for item in seen} <= {"error", "gone", "pong"}
        followed = await tab.follow(f"user:{ada.id}", ada.me["cursor"])
        assert followed[-1]["type"] in ("following", "reset")


@pytest.mark.parametrize(
    "frame", [b"\xff\xfe", b"x" * 70_000, b"x" * (2 * MIB)], ids=["broken UTF-8", "70 kB", "2 MiB"]
)
async def test_a_websocket_frame_that_cannot_be_read_closes_only_its_own_connection(
    ada: Person, frame: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with ada.live() as other:
        async with ada.live() as tab:
            with suppress(websockets.ConnectionClosed):
                await tab._socket.send(frame, text=True)
            assert await tab.closed() in (1007, 1009)
        await other.send({"type": "ping"})
        await other.until(lambda item: item["type"] == "pong")
    caplog.clear()  # uvicorn logs malformed text as an error, but it is the client's


async def test_a_tab_cannot_follow_more_than_64_topics(ada: Person) -> None:
    projects = [(await ada.post("/api/projects", {"name": f"P{n}"}, expect=201))["id"] for n in range(70)]
    async with ada.live() as tab:
        answers = [(await tab.follow(f"project:{id}"))[-1] for id in projects]
    assert [item["type"] for item in answers].count("following") == 64
    assert answers[-1] == {"type": "gone", "place": f"project:{projects[-1]}", "reason": "too_many"}


# ── the cost of refusing

HOSTILE = {
    "brackets": b"[" * JSON_LIMIT,
    "brackets side by side": b"[" + b"[]," * (JSON_LIMIT // 3 - 1),
    "commas": b"[" + b"," * (JSON_LIMIT - 1),
    "quotes": b"[" * 65 + b'"' * (JSON_LIMIT - 65),
    "escaped quotes": b"[" * 65 + b'"' + b'\\"' * (JSON_LIMIT // 2 - 40),
    "escaped quotes, unnested": b"," * 65 + b'"' + b'\\"' * (JSON_LIMIT // 2 - 40),
    "one endless string": b"," * 65 + b'"' + b"x" * (JSON_LIMIT - 70),
    "digits": b"1" * JSON_LIMIT,
    "objects": b'{"a":' * (JSON_LIMIT // 5),
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
async def test_a_hostile_body_is_refused_with_little_work(body: bytes) -> None:
    """Counts function calls: the event loop's thread serves all clients."""
    responses: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def answer(message: Message) -> None:
        responses.append(message)

    async def parser(scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        try:
            json.loads(message["body"])
        except ValueError:
            await send({"type": "http.response.start", "status": 400, "headers": []})

    headers = [
        (b"host", b"localhost"),
        (b"origin", b"http://localhost"),
        (b"content-type", b"application/json"),
    ]
    scope = {"type": "http", "method": "POST", "path": "/api/turn", "headers": headers}
    with counted_calls() as calls:
        await SecurityMiddleware(parser, {"localhost"}, "")(scope, receive, answer)
    assert calls() < 200_000
    assert responses[0]["status"] in (400, 413)
