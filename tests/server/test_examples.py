"""The examples: each request succeeds for the owner, so that a refusal in other tests means something."""

from __future__ import annotations

from tertulia.server.access import Access
from tests.server.cast import things
from tests.server.requests import EXAMPLES, HTTP, request_to
from tests.world import Person, World

CONFLICTS = {
    ("POST", "/api/setup"): "there is an administrator already",
    ("POST", "/api/messages/{message_id}/continue"): "the reply is complete",
    ("DELETE", "/api/projects/{project_id}/members/{user_id}"): "a project needs an owner",
    ("POST", "/api/conversations/{conversation_id}/bring-back"): "it is no branch",
}


async def test_every_example_succeeds_for_the_owner(world: World, ada: Person) -> None:
    bruno = await world.create_account(ada, "Bruno")
    its = await things(bruno, "mine")
    unexpected = []
    for entry in sorted(HTTP, key=lambda entry: EXAMPLES[entry.method, entry.path].is_last):
        if EXAMPLES[entry.method, entry.path].is_last:
            bruno = await world.sign_in("bruno@example.org")
            its = await things(bruno, "mine")
        request = request_to(entry, its)
        person = ada if entry.access is Access.ADMIN else bruno
        answer = await person.client.request(
            request.method, request.path, params=request.params, **request.sent
        )
        has_conflict = (entry.method, entry.path) in CONFLICTS
        if answer.status_code != 409 if has_conflict else answer.status_code >= 400:
            unexpected.append((entry.method, entry.path, answer.status_code, answer.text))
    assert unexpected == []
