"""The users of the access tests, the objects of each, and a check that nothing changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tertulia.app import Tertulia
from tertulia.core.events import Event
from tertulia.store.sql import sql
from tests.patience import soon
from tests.store_fixtures import contents
from tests.world import Person, World

CANARY = "kanarienvogel"
"""A word that is in all of Alma's objects, and in no others."""


@dataclass(frozen=True)
class Things:
    """The ids of a user's objects, by the parameter names of the routes."""

    project_id: str
    conversation_id: str
    message_id: str
    turn_id: str
    session_id: str
    user_id: str
    file_id: str
    attachment_id: str
    persona_id: str
    table_id: str

    @property
    def default_table_id(self) -> str:
        return self.table_id

    @property
    def other_id(self) -> str:
        return self.conversation_id

    @property
    def branch_id(self) -> str:
        return self.conversation_id

    @property
    def reply_id(self) -> str:
        return self.message_id

    @property
    def reply_to_id(self) -> str:
        return self.message_id


@dataclass(frozen=True)
class Cast:
    world: World
    admin: Person
    alma: Person
    """The owner of the project."""
    bruno: Person
    """Has objects of his own and is no member of Alma's project."""
    viewer: Person
    ex_member: Person
    suspended: Person
    """His cookie belongs to a session that has ended."""
    stranger: Person
    almas: Things
    brunos: Things
    ex_members: Things
    """His objects in Alma's project from when he was a member."""
    new_events: list[Event]
    """All events since the setup."""

    @asynccontextmanager
    async def untouched(self) -> AsyncIterator[None]:
        """Asserts that the block changes no row and emits no event."""
        before, begun = await _contents(self.world.tertulia), len(self.new_events)
        yield
        assert await _contents(self.world.tertulia) == before
        assert self.new_events[begun:] == []


async def gather_cast(world: World) -> Cast:
    admin = await world.set_up("Ada")
    people = [
        await world.create_account(admin, name)
        for name in (
            f"Alma{CANARY}",
            "Bruno",
            "Vera",
            "Emil",
            "Sol",
        )  # owner, outsider, viewer, ex, suspended
    ]
    alma, bruno, viewer, ex_member, suspended = people
    almas = await things(alma, CANARY)
    for person, role in ((viewer, "viewer"), (ex_member, "editor"), (suspended, "editor")):
        await alma.put(f"/api/projects/{almas.project_id}/members", {"user_id": person.id, "role": role})
    ex_members = await objects_in(ex_member, almas.project_id, f"Before I left, {CANARY}")
    await alma.delete(f"/api/projects/{almas.project_id}/members/{ex_member.id}")
    await admin.put(f"/api/users/{suspended.id}", {"suspended": True})
    brunos = await things(bruno, "mine")
    await at_rest(world.tertulia)
    new_events: list[Event] = []
    world.tertulia.db.on_commit(new_events.extend)
    stranger = world.stranger()
    return Cast(
        world,
        admin,
        alma,
        bruno,
        viewer,
        ex_member,
        suspended,
        stranger,
        almas,
        brunos,
        ex_members,
        new_events,
    )


async def things(person: Person, word: str) -> Things:
    project = await person.post(
        "/api/projects",
        {"name": f"Project {word}", "description": f"About {word}", "instructions": f"Always say {word}"},
        expect=201,
    )
    return await objects_in(person, project["id"], f"What is {word}?")


async def objects_in(person: Person, project_id: str, text: str) -> Things:
    opened = await person.ask(text, "alpha", project_id=project_id)
    turn, conversation = opened["turn"], opened["conversation"]
    await person.wait_for_end(turn["id"])
    [reply] = await person.replies(conversation["id"], turn["round_number"])
    file = await person.upload(f"{person.me['user']['name']}.md", text.encode(), project_id)
    attachment = await person.attach("notes.md", f"Notes on {text}".encode(), project_id)
    ours = {"scope": "project", "project_id": project_id}
    persona = await person.post("/api/personas", {"character": character(text), **ours}, expect=201)
    table = await person.post(
        "/api/tables",
        {"name": text, "mode": "quick", "voices": [{"model": "voices:alpha"}], **ours},
        expect=201,
    )
    return Things(
        project_id=project_id,
        conversation_id=conversation["id"],
        message_id=reply["id"],
        turn_id=turn["id"],
        session_id=person.me["session"]["id"],
        user_id=person.id,
        file_id=file["id"],
        attachment_id=attachment["id"],
        persona_id=persona["id"],
        table_id=table["id"],
    )


def character(name: str) -> dict[str, Any]:
    return {"name": name, "glyph": "", "hue": 4, "instructions": f"Be {name}", "model": "voices:alpha"}


async def at_rest(tertulia: Tertulia) -> None:
    """Waits until no job is running or due, so that nothing changes by itself any more."""
    busy = sql("SELECT 1 FROM jobs WHERE state = 'running' OR (state = 'waiting' AND run_at <= :now)")
    async with soon():
        while await tertulia.db.read(lambda tx: tx.maybe(busy, now=tx.now)):
            pass


async def _contents(tertulia: Tertulia) -> dict[str, list[Any]]:
    return await asyncio.to_thread(contents, tertulia.db)


def outlined(body: Any) -> Any:
    """An error without its incident id."""
    return {key: value for key, value in body.items() if key != "incident"}
