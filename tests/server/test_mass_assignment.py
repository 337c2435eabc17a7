"""Mass assignment: ids, owners, roles and times in a request body are ignored (AZ 6)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import httpx2

from tertulia.server.access import Access
from tests.server.cast import Things, at_rest, things
from tests.server.requests import EXAMPLES, HTTP, Request, request_to
from tests.store_fixtures import contents
from tests.world import PASSWORD, Person, World

FORGED_ID = "01FRGEDFRGEDFRGEDFRGEDFRGE"
FORGED_TIME = 1_234_567_890_123

WRITES = [entry for entry in HTTP if EXAMPLES[entry.method, entry.path].body is not None]

FORGED: dict[str, Any] = {
    "id": FORGED_ID,
    "user_id": FORGED_ID,
    "owner_id": FORGED_ID,
    "created_by": FORGED_ID,
    "session_id": FORGED_ID,
    "parent_id": FORGED_ID,
    "turn_id": FORGED_ID,
    "replaces_id": FORGED_ID,
    "project_id": FORGED_ID,
    "role": "admin",
    "is_admin": True,
    "suspended": False,
    "password_hash": FORGED_ID,
    "token_hash": FORGED_ID,
    "speaker": FORGED_ID,
    "state": FORGED_ID,
    "status": FORGED_ID,
    "round_number": FORGED_TIME,
    "round_count": FORGED_TIME,
    "created_at": FORGED_TIME,
    "updated_at": FORGED_TIME,
    "finished_at": FORGED_TIME,
    "last_active_at": FORGED_TIME,
    "cost_micros": FORGED_TIME,
    "usage": {"cost_micros": FORGED_TIME},
}


async def test_forged_fields_are_refused_or_ignored_in_every_write(world: World, ada: Person) -> None:
    bruno = await world.create_account(ada, "Bruno")
    its = await things(bruno, "mine")
    for entry in WRITES:
        person, least = (ada, {"role": "member"}) if entry.access is Access.ADMIN else (bruno, {})
        request = request_to(entry, its)
        answer = await send(person, replace(request, body=forged(request.body) | least))
        assert answer.status_code < 500, (entry, answer.text)
    await at_rest(world.tertulia)
    stored = repr(await asyncio.to_thread(contents, world.tertulia.db))
    assert FORGED_ID not in stored
    assert str(FORGED_TIME) not in stored
    await ada_is_the_only_administrator(ada)


def forged(body: Any) -> Any:
    """The body with forged fields added at every depth."""
    if isinstance(body, list):
        return [forged(item) for item in body]
    if isinstance(body, dict):
        return FORGED | {key: forged(value) for key, value in body.items()}
    return body


async def test_a_rename_ignores_the_project_and_owner_in_its_body(world: World, ada: Person) -> None:
    """Bruno cannot move his conversation into Ada's project with a title change."""
    bruno = await world.create_account(ada, "Bruno")
    its: Things = await things(bruno, "mine")
    before = (await bruno.get(f"/api/conversations/{its.conversation_id}"))["conversation"]
    after = await bruno.put(
        f"/api/conversations/{its.conversation_id}/title",
        {"title": "Mine", "project_id": ada.home, "owner_id": ada.id, "pinned": True},
    )
    assert (after["project_id"], after["owner_id"], after["pinned"]) == (
        before["project_id"],
        before["owner_id"],
        before["pinned"],
    )


async def test_a_role_in_the_sign_in_body_is_ignored(world: World, ada: Person) -> None:
    await world.create_account(ada, "Bruno")
    person = world.stranger()
    me = await person.post(
        "/api/login", {"email": "bruno@example.org", "password": PASSWORD, "role": "admin", "is_admin": True}
    )
    assert me["user"]["role"] == "member"
    await person.get("/api/users", expect=403)


async def ada_is_the_only_administrator(ada: Person) -> None:
    everyone = (await ada.get("/api/users"))["items"]
    assert [user["id"] for user in everyone if user["role"] == "admin"] == [ada.id]


async def send(person: Person, request: Request) -> httpx2.Response:
    return await person.client.request(request.method, request.path, params=request.params, **request.sent)
