"""Nobody reaches what is not theirs: every function that is asked by someone, asked by a stranger."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

from tertulia import store
from tertulia.core.conversations import Visibility
from tertulia.core.errors import NotFound
from tertulia.core.files import MetadataChange
from tertulia.core.personas import Scope
from tertulia.core.projects import Membership
from tertulia.core.tables import Defaults
from tertulia.core.users import Actor
from tertulia.core.votes import Choice
from tertulia.store import (
    access,
    attachments,
    blind,
    branches,
    conversations,
    files,
    messages,
    people,
    personas,
    projects,
    receipts,
    replays,
    sessions,
    shelves,
    tables,
    trees,
    turns,
    uploads,
    usage,
    users,
    versions,
    votes,
)
from tertulia.store.database import Database, Tx
from tests.store.samples import (
    BAKER,
    CONTENT,
    RECEIPT,
    TABLE,
    VOICES,
    attachment,
    conversation,
    file,
    opened,
    reply,
)
from tests.store_fixtures import Ids, Watch

NOUNS = [
    importlib.import_module(f"tertulia.store.{found.name}") for found in pkgutil.iter_modules(store.__path__)
]


@dataclass(frozen=True)
class Things:
    """What Ada has, by id."""

    user: str
    session: str
    project: str
    conversation: str
    turn: str
    message: str
    file: str
    attachment: str
    persona: str
    table: str


ASKED: dict[str, Callable[[Tx, Actor, Things], Any]] = {
    "access.to_conversation": lambda tx, who, its: access.to_conversation(tx, who, its.conversation),
    "access.to_project": lambda tx, who, its: access.to_project(tx, who, its.project),
    "attachments.add": lambda tx, who, its: attachments.add(tx, who, its.project, "mine.md", CONTENT),
    "attachments.get": lambda tx, who, its: attachments.get(tx, who, its.attachment),
    "attachments.remove": lambda tx, who, its: attachments.remove(tx, who, its.attachment),
    "attachments.unsent": lambda tx, who, its: attachments.unsent(tx, who, its.project, [its.attachment]),
    "blind.must_be_known": lambda tx, who, its: blind.must_be_known(tx, who, its.message),
    "branches.add": lambda tx, who, its: branches.add(tx, who, its.conversation, at_round=0),
    "branches.family": lambda tx, who, its: branches.family(tx, who, its.conversation),
    "conversations.add": lambda tx, who, its: conversations.add(
        tx, who, its.project, mode="quick", table=VOICES, visibility=Visibility.OPEN
    ),
    "conversations.get": lambda tx, who, its: conversations.get(tx, who, its.conversation),
    "conversations.page": lambda tx, who, its: conversations.page(tx, who, its.project, limit=5),
    "conversations.remove": lambda tx, who, its: conversations.remove(tx, who, its.conversation),
    "conversations.rename": lambda tx, who, its: conversations.rename(tx, who, its.conversation, "Mine"),
    "conversations.set_archived": lambda tx, who, its: conversations.set_archived(
        tx, who, its.conversation, True
    ),
    "conversations.set_pinned": lambda tx, who, its: conversations.set_pinned(
        tx, who, its.conversation, True
    ),
    "files.begin": lambda tx, who, its: files.begin(tx, who, its.project, its.file),
    "files.change": lambda tx, who, its: files.change(tx, who, its.project, its.file, CONTENT),
    "files.get": lambda tx, who, its: files.get(tx, who, its.project, its.file),
    "shelves.page": lambda tx, who, its: shelves.page(tx, who, its.project, limit=5),
    "files.put": lambda tx, who, its: files.put(tx, who, its.project, "mine.md", CONTENT),
    "files.remove": lambda tx, who, its: files.remove(tx, who, its.project, its.file),
    "files.rename": lambda tx, who, its: files.rename(tx, who, its.project, its.file, "mine.md"),
    "files.set_metadata": lambda tx, who, its: files.set_metadata(
        tx, who, its.project, its.file, MetadataChange()
    ),
    "files.take_back": lambda tx, who, its: files.take_back(tx, who, its.project, "upload-1"),
    "attachments.take_back": lambda tx, who, its: attachments.take_back(tx, who, its.project, "upload-1"),
    "uploads.cancel": lambda tx, who, its: uploads.cancel(tx, who, its.project, "upload-1"),
    "versions.get": lambda tx, who, its: versions.get(tx, who, its.project, its.file, 1),
    "versions.of_file": lambda tx, who, its: versions.of_file(tx, who, its.project, its.file),
    "messages.get": lambda tx, who, its: messages.get(tx, who, its.message),
    "messages.page": lambda tx, who, its: messages.page(tx, who, its.conversation),
    "people.of_project": lambda tx, who, its: people.of_project(tx, who, its.project),
    "personas.add": lambda tx, who, its: personas.add(tx, who, Scope.PROJECT, its.project, BAKER),
    "personas.change": lambda tx, who, its: personas.change(tx, who, its.persona, BAKER),
    "personas.duplicate": lambda tx, who, its: personas.duplicate(tx, who, its.persona, Scope.USER, None),
    "personas.get": lambda tx, who, its: personas.get(tx, who, its.persona),
    "personas.remove": lambda tx, who, its: personas.remove(tx, who, its.persona),
    "personas.version": lambda tx, who, its: personas.version(tx, who, its.persona, 1),
    "personas.visible_to": lambda tx, who, its: personas.visible_to(tx, who, its.project),
    "projects.get": lambda tx, who, its: projects.get(tx, who, its.project),
    "projects.members": lambda tx, who, its: projects.members(tx, who, its.project),
    "projects.remove": lambda tx, who, its: projects.remove(tx, who, its.project),
    "projects.remove_member": lambda tx, who, its: projects.remove_member(tx, who, its.project, its.user),
    "projects.save": lambda tx, who, its: projects.save(tx, who, its.project, name="Mine"),
    "projects.set_member": lambda tx, who, its: projects.set_member(
        tx, who, its.project, who.user_id, Membership.OWNER
    ),
    "receipts.get": lambda tx, who, its: receipts.get(tx, who, its.message),
    "sessions.remove": lambda tx, who, its: sessions.remove(tx, who, its.session),
    "tables.add": lambda tx, who, its: tables.add(tx, who, Scope.PROJECT, its.project, TABLE),
    "tables.change": lambda tx, who, its: tables.change(tx, who, its.table, TABLE),
    "tables.get": lambda tx, who, its: tables.get(tx, who, its.table),
    "tables.remove": lambda tx, who, its: tables.remove(tx, who, its.table),
    "tables.set_defaults": lambda tx, who, its: tables.set_defaults(tx, who, Defaults(its.table)),
    "tables.visible_to": lambda tx, who, its: tables.visible_to(tx, who, its.project),
    "replays.find": lambda tx, who, its: replays.find(tx, who, its.conversation),
    "trees.compared": lambda tx, who, its: trees.compared(tx, who, its.conversation, its.conversation),
    "trees.get": lambda tx, who, its: trees.get(tx, who, its.conversation),
    "trees.message_removal": lambda tx, who, its: trees.message_removal(tx, who, its.message),
    "trees.removal": lambda tx, who, its: trees.removal(tx, who, its.conversation),
    "trees.remove_message": lambda tx, who, its: trees.remove_message(tx, who, its.message),
    "turns.get": lambda tx, who, its: turns.get(tx, who, its.turn),
    "usage.recent_replies": lambda tx, who, its: usage.recent_replies(tx, who, its.project, [("a:x", None)]),
    "usage.of_conversation": lambda tx, who, its: usage.of_conversation(tx, who, its.conversation),
    "votes.cast": lambda tx, who, its: votes.cast(tx, who, its.message, Choice.BEST),
    "votes.efforts": lambda tx, who, its: votes.efforts(tx, who, its.project),
    "votes.of_project": lambda tx, who, its: votes.of_project(tx, who, its.project),
    "votes.of_rounds": lambda tx, who, its: votes.of_rounds(tx, who, its.conversation, ()),
    "users.save": lambda tx, who, its: users.save(tx, who, its.user, name="Mine"),
}

TESTED_ELSEWHERE = {
    "conversations.find",  # answers nothing instead of raising: below
    "messages.find",
    "messages.find_some",
    "attachments.again",  # of a message that was read before: test_attachments
    "events.may_follow",  # answers no instead of raising: test_events
    "chunks.facts",  # leaves out what one may not see: test_chunks
    "chunks.get_many",
    "projects.add",  # makes something new of one's own
    "projects.visible_to",  # lists one's own: test_projects
    "tables.defaults",  # one's own: test_tables
    "personas.was_seen",  # answers yes or no: stories/test_personas
    "sessions.visible_to",  # lists one's own: test_sessions
    "users.visible_to",  # for administrators: test_users
}


def functions_with_an_actor(module: ModuleType) -> set[str]:
    noun = module.__name__.rpartition(".")[2]
    return {
        f"{noun}.{name}"
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__
        and not name.startswith("_")
        and "actor" in inspect.signature(function).parameters
    }


def test_no_function_that_is_asked_by_someone_is_left_out() -> None:
    assert set().union(*map(functions_with_an_actor, NOUNS)) == ASKED.keys() | TESTED_ELSEWHERE


@pytest.fixture
def adas(db: Database, ada: Actor, adas_home: str) -> Things:
    def make(tx: Tx) -> Things:
        made = conversation(tx, ada)
        turn = opened(tx, ada, made.id)
        message = reply(tx, turn)
        messages.add(tx, message)
        receipts.save(tx, message.id, made.id, RECEIPT, 0)
        return Things(
            user=ada.user_id,
            session=ada.session_id or "",
            project=adas_home,
            conversation=made.id,
            turn=turn.id,
            message=message.id,
            file=file(tx, ada).id,
            attachment=attachment(tx, ada).id,
            persona=personas.add(tx, ada, Scope.PROJECT, adas_home, BAKER).id,
            table=tables.add(tx, ada, Scope.PROJECT, adas_home, TABLE).id,
        )

    return db.write_now(make)


async def test_a_stranger_cannot_tell_what_is_hidden_from_what_never_was(
    db: Database, bob: Actor, adas: Things, ids: Ids, watch: Watch
) -> None:
    nothing = Things(*(ids() for _ in Things.__annotations__))
    async with watch.untouched():
        for name, ask in ASKED.items():
            answers = []
            for things in (adas, nothing):
                with pytest.raises(NotFound) as refused:
                    await db.write(lambda tx, ask=ask, things=things: ask(tx, bob, things))
                answers.append((refused.value.code, refused.value.message))
            assert answers[0] == answers[1], name


async def test_what_may_be_missing_is_missing_for_a_stranger(db: Database, bob: Actor, adas: Things) -> None:
    assert await db.read(lambda tx: conversations.find(tx, bob, adas.conversation)) is None
    assert await db.read(lambda tx: messages.find(tx, bob, adas.message)) is None
    assert await db.read(lambda tx: messages.find_some(tx, bob, [adas.message])) == ()


async def test_an_administrator_sees_no_more_of_others_projects_than_anyone(
    db: Database, ada: Actor, bob: Actor
) -> None:
    made = await db.write(lambda tx: conversation(tx, bob))
    with pytest.raises(NotFound):
        await db.read(lambda tx: conversations.get(tx, ada, made.id))


async def test_whoever_was_a_member_is_a_stranger_again(
    db: Database, ada: Actor, bob: Actor, adas: Things, watch: Watch
) -> None:
    await db.write(lambda tx: projects.set_member(tx, ada, adas.project, bob.user_id, Membership.EDITOR))
    await db.write(lambda tx: projects.remove_member(tx, ada, adas.project, bob.user_id))
    async with watch.untouched():
        for ask in ASKED.values():
            with pytest.raises(NotFound):
                await db.write(lambda tx, ask=ask: ask(tx, bob, adas))
