"""Access isolation: calls every store function that takes an actor as a stranger, who must get NotFound."""

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
from tertulia.core.personas import Ownership
from tertulia.core.projects import ProjectRole
from tertulia.core.tables import Defaults
from tertulia.core.users import Actor
from tertulia.core.votes import VoteValue
from tertulia.store import (
    access,
    attachments,
    blind,
    branches,
    conversations,
    file_listing,
    files,
    messages,
    people,
    personas,
    projects,
    receipts,
    replays,
    sessions,
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

MODULES = [
    importlib.import_module(f"tertulia.store.{module.name}")
    for module in pkgutil.iter_modules(store.__path__)
]


@dataclass(frozen=True)
class ObjectIds:
    """The ids of one user's objects."""

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


CALLS: dict[str, Callable[[Tx, Actor, ObjectIds], Any]] = {
    "access.to_conversation": lambda tx, actor, ids: access.to_conversation(tx, actor, ids.conversation),
    "access.to_project": lambda tx, actor, ids: access.to_project(tx, actor, ids.project),
    "attachments.add": lambda tx, actor, ids: attachments.add(tx, actor, ids.project, "mine.md", CONTENT),
    "attachments.get": lambda tx, actor, ids: attachments.get(tx, actor, ids.attachment),
    "attachments.remove": lambda tx, actor, ids: attachments.remove(tx, actor, ids.attachment),
    "attachments.unsent": lambda tx, actor, ids: attachments.unsent(tx, actor, ids.project, [ids.attachment]),
    "blind.must_be_known": lambda tx, actor, ids: blind.must_be_known(tx, actor, ids.message),
    "branches.add": lambda tx, actor, ids: branches.add(tx, actor, ids.conversation, at_round=0),
    "branches.family": lambda tx, actor, ids: branches.family(tx, actor, ids.conversation),
    "conversations.add": lambda tx, actor, ids: conversations.add(
        tx, actor, ids.project, mode="quick", table=VOICES, visibility=Visibility.OPEN
    ),
    "conversations.get": lambda tx, actor, ids: conversations.get(tx, actor, ids.conversation),
    "conversations.page": lambda tx, actor, ids: conversations.page(tx, actor, ids.project, limit=5),
    "conversations.remove": lambda tx, actor, ids: conversations.remove(tx, actor, ids.conversation),
    "conversations.rename": lambda tx, actor, ids: conversations.rename(tx, actor, ids.conversation, "Mine"),
    "conversations.set_archived": lambda tx, actor, ids: conversations.set_archived(
        tx, actor, ids.conversation, True
    ),
    "conversations.set_pinned": lambda tx, actor, ids: conversations.set_pinned(
        tx, actor, ids.conversation, True
    ),
    "files.begin": lambda tx, actor, ids: files.begin(tx, actor, ids.project, ids.file),
    "files.change": lambda tx, actor, ids: files.change(tx, actor, ids.project, ids.file, CONTENT),
    "files.get": lambda tx, actor, ids: files.get(tx, actor, ids.project, ids.file),
    "file_listing.page": lambda tx, actor, ids: file_listing.page(tx, actor, ids.project, limit=5),
    "files.put": lambda tx, actor, ids: files.put(tx, actor, ids.project, "mine.md", CONTENT),
    "files.remove": lambda tx, actor, ids: files.remove(tx, actor, ids.project, ids.file),
    "files.rename": lambda tx, actor, ids: files.rename(tx, actor, ids.project, ids.file, "mine.md"),
    "files.set_metadata": lambda tx, actor, ids: files.set_metadata(
        tx, actor, ids.project, ids.file, MetadataChange()
    ),
    "files.take_back": lambda tx, actor, ids: files.take_back(tx, actor, ids.project, "upload-1"),
    "attachments.take_back": lambda tx, actor, ids: attachments.take_back(tx, actor, ids.project, "upload-1"),
    "uploads.cancel": lambda tx, actor, ids: uploads.cancel(tx, actor, ids.project, "upload-1"),
    "versions.get": lambda tx, actor, ids: versions.get(tx, actor, ids.project, ids.file, 1),
    "versions.of_file": lambda tx, actor, ids: versions.of_file(tx, actor, ids.project, ids.file),
    "messages.get": lambda tx, actor, ids: messages.get(tx, actor, ids.message),
    "messages.page": lambda tx, actor, ids: messages.page(tx, actor, ids.conversation),
    "people.of_project": lambda tx, actor, ids: people.of_project(tx, actor, ids.project),
    "personas.add": lambda tx, actor, ids: personas.add(tx, actor, Ownership.PROJECT, ids.project, BAKER),
    "personas.change": lambda tx, actor, ids: personas.change(tx, actor, ids.persona, BAKER),
    "personas.duplicate": lambda tx, actor, ids: personas.duplicate(
        tx, actor, ids.persona, Ownership.USER, None
    ),
    "personas.get": lambda tx, actor, ids: personas.get(tx, actor, ids.persona),
    "personas.remove": lambda tx, actor, ids: personas.remove(tx, actor, ids.persona),
    "personas.version": lambda tx, actor, ids: personas.version(tx, actor, ids.persona, 1),
    "personas.visible_to": lambda tx, actor, ids: personas.visible_to(tx, actor, ids.project),
    "projects.get": lambda tx, actor, ids: projects.get(tx, actor, ids.project),
    "projects.members": lambda tx, actor, ids: projects.members(tx, actor, ids.project),
    "projects.remove": lambda tx, actor, ids: projects.remove(tx, actor, ids.project),
    "projects.remove_member": lambda tx, actor, ids: projects.remove_member(tx, actor, ids.project, ids.user),
    "projects.save": lambda tx, actor, ids: projects.save(tx, actor, ids.project, name="Mine"),
    "projects.set_member": lambda tx, actor, ids: projects.set_member(
        tx, actor, ids.project, actor.user_id, ProjectRole.OWNER
    ),
    "receipts.get": lambda tx, actor, ids: receipts.get(tx, actor, ids.message),
    "sessions.remove": lambda tx, actor, ids: sessions.remove(tx, actor, ids.session),
    "tables.add": lambda tx, actor, ids: tables.add(tx, actor, Ownership.PROJECT, ids.project, TABLE),
    "tables.change": lambda tx, actor, ids: tables.change(tx, actor, ids.table, TABLE),
    "tables.get": lambda tx, actor, ids: tables.get(tx, actor, ids.table),
    "tables.remove": lambda tx, actor, ids: tables.remove(tx, actor, ids.table),
    "tables.set_defaults": lambda tx, actor, ids: tables.set_defaults(tx, actor, Defaults(ids.table)),
    "tables.visible_to": lambda tx, actor, ids: tables.visible_to(tx, actor, ids.project),
    "replays.find": lambda tx, actor, ids: replays.find(tx, actor, ids.conversation),
    "trees.compared": lambda tx, actor, ids: trees.compared(tx, actor, ids.conversation, ids.conversation),
    "trees.get": lambda tx, actor, ids: trees.get(tx, actor, ids.conversation),
    "trees.message_removal": lambda tx, actor, ids: trees.message_removal(tx, actor, ids.message),
    "trees.removal": lambda tx, actor, ids: trees.removal(tx, actor, ids.conversation),
    "trees.remove_message": lambda tx, actor, ids: trees.remove_message(tx, actor, ids.message),
    "turns.get": lambda tx, actor, ids: turns.get(tx, actor, ids.turn),
    "usage.recent_replies": lambda tx, actor, ids: usage.recent_replies(
        tx, actor, ids.project, [("a:x", None)]
    ),
    "usage.of_conversation": lambda tx, actor, ids: usage.of_conversation(tx, actor, ids.conversation),
    "votes.cast": lambda tx, actor, ids: votes.cast(tx, actor, ids.message, VoteValue.BEST),
    "votes.reply_costs": lambda tx, actor, ids: votes.reply_costs(tx, actor, ids.project),
    "votes.of_project": lambda tx, actor, ids: votes.of_project(tx, actor, ids.project),
    "votes.of_rounds": lambda tx, actor, ids: votes.of_rounds(tx, actor, ids.conversation, ()),
    "users.save": lambda tx, actor, ids: users.save(tx, actor, ids.user, name="Mine"),
}

TESTED_ELSEWHERE = {
    "conversations.find",  # returns None instead of raising: tested below
    "messages.find",
    "messages.find_many",
    "attachments.again",  # takes a message that was read with a check before: test_attachments
    "events.may_follow",  # returns False instead of raising: test_events
    "chunks.facts",  # leaves out chunks the actor may not see: test_chunks
    "chunks.get_many",
    "projects.add",  # creates the actor's own project
    "projects.visible_to",  # lists the actor's own: test_projects
    "tables.defaults",  # the actor's own: test_tables
    "personas.was_seen",  # returns True or False: stories/test_personas
    "sessions.visible_to",  # lists the actor's own: test_sessions
    "users.visible_to",  # for administrators: test_users
}


def functions_with_an_actor(module: ModuleType) -> set[str]:
    module_name = module.__name__.rpartition(".")[2]
    return {
        f"{module_name}.{name}"
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__
        and not name.startswith("_")
        and "actor" in inspect.signature(function).parameters
    }


def test_every_function_with_an_actor_is_tested_here_or_elsewhere() -> None:
    assert set().union(*map(functions_with_an_actor, MODULES)) == CALLS.keys() | TESTED_ELSEWHERE


@pytest.fixture
def adas_ids(db: Database, ada: Actor, adas_home: str) -> ObjectIds:
    def add_objects(tx: Tx) -> ObjectIds:
        chat = conversation(tx, ada)
        turn = opened(tx, ada, chat.id)
        message = reply(tx, turn)
        messages.add(tx, message)
        receipts.save(tx, message.id, chat.id, RECEIPT)
        return ObjectIds(
            user=ada.user_id,
            session=ada.session_id or "",
            project=adas_home,
            conversation=chat.id,
            turn=turn.id,
            message=message.id,
            file=file(tx, ada).id,
            attachment=attachment(tx, ada).id,
            persona=personas.add(tx, ada, Ownership.PROJECT, adas_home, BAKER).id,
            table=tables.add(tx, ada, Ownership.PROJECT, adas_home, TABLE).id,
        )

    return db.write_now(add_objects)


async def test_a_stranger_gets_the_same_error_for_hidden_and_for_missing_objects(
    db: Database, bob: Actor, adas_ids: ObjectIds, ids: Ids, watch: Watch
) -> None:
    unused_ids = ObjectIds(*(ids() for _ in ObjectIds.__annotations__))
    async with watch.untouched():
        for name, call in CALLS.items():
            errors = []
            for object_ids in (adas_ids, unused_ids):
                with pytest.raises(NotFound) as raised:
                    await db.write(lambda tx, call=call, object_ids=object_ids: call(tx, bob, object_ids))
                errors.append((raised.value.code, raised.value.message))
            assert errors[0] == errors[1], name


async def test_find_functions_return_nothing_to_a_stranger(
    db: Database, bob: Actor, adas_ids: ObjectIds
) -> None:
    assert await db.read(lambda tx: conversations.find(tx, bob, adas_ids.conversation)) is None
    assert await db.read(lambda tx: messages.find(tx, bob, adas_ids.message)) is None
    assert await db.read(lambda tx: messages.find_many(tx, bob, [adas_ids.message])) == ()


async def test_an_administrator_cannot_read_conversations_of_others_projects(
    db: Database, ada: Actor, bob: Actor
) -> None:
    chat = await db.write(lambda tx: conversation(tx, bob))
    with pytest.raises(NotFound):
        await db.read(lambda tx: conversations.get(tx, ada, chat.id))


async def test_a_removed_member_is_a_stranger_again(
    db: Database, ada: Actor, bob: Actor, adas_ids: ObjectIds, watch: Watch
) -> None:
    await db.write(lambda tx: projects.set_member(tx, ada, adas_ids.project, bob.user_id, ProjectRole.EDITOR))
    await db.write(lambda tx: projects.remove_member(tx, ada, adas_ids.project, bob.user_id))
    async with watch.untouched():
        for call in CALLS.values():
            with pytest.raises(NotFound):
                await db.write(lambda tx, call=call: call(tx, bob, adas_ids))
