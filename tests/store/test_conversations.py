"""Conversations: listed, changed, branched, removed."""

from __future__ import annotations

import asyncio
import base64

import pytest

from tertulia.core.conversations import Conversation, Visibility
from tertulia.core.errors import Conflict, Forbidden, Invalid, NotFound
from tertulia.core.events import EventKind, conversation_topic, project_topic
from tertulia.core.projects import ProjectRole
from tertulia.core.turns import TurnState
from tertulia.core.users import Actor
from tertulia.store import branches, conversations, events, messages, projects, sessions, turns
from tertulia.store.database import Database, Tx
from tests.store.samples import FIRST, VOICES, answered, conversation, opened, reply
from tests.store_fixtures import Clock, Ids, Watch, contents


async def test_a_new_conversation_emits_an_event_in_its_project(
    db: Database, ada: Actor, adas_home: str, watch: Watch
) -> None:
    async with watch(ada):
        chat = await db.write(lambda tx: conversation(tx, ada))
    assert (chat.title, chat.round_count, chat.table) == ("", 0, VOICES)
    assert (chat.owner_id, chat.project_id, chat.is_answering) == (ada.user_id, adas_home, False)
    assert await db.read(lambda tx: conversations.get(tx, ada, chat.id)) == chat


async def test_a_client_may_choose_a_conversation_id_that_is_not_in_use(
    db: Database, ada: Actor, ids: Ids, watch: Watch
) -> None:
    chosen_id = ids()
    assert (await db.write(lambda tx: conversation(tx, ada, id=chosen_id))).id == chosen_id
    async with watch.untouched():
        with pytest.raises(Conflict):
            await db.write(lambda tx: conversation(tx, ada, id=chosen_id))


async def test_a_viewer_cannot_add_change_or_remove_conversations(
    db: Database, ada: Actor, bob: Actor, adas_home: str, watch: Watch
) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, ProjectRole.VIEWER))
    calls = (
        lambda tx: conversation(tx, bob, adas_home),
        lambda tx: conversations.rename(tx, bob, chat.id, "Mine"),
        lambda tx: conversations.set_pinned(tx, bob, chat.id, True),
        lambda tx: conversations.set_archived(tx, bob, chat.id, True),
        lambda tx: branches.add(tx, bob, chat.id, at_round=0),
        lambda tx: conversations.remove(tx, bob, chat.id),
    )
    async with watch.untouched():
        for call in calls:
            with pytest.raises(Forbidden):
                await db.write(call)


# ── changing


async def test_a_new_title_is_cleaned_and_emits_an_event(db: Database, ada: Actor, watch: Watch) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    async with watch(ada):
        assert (await db.write(lambda tx: conversations.rename(tx, ada, chat.id, " Blue \n sky "))).title == (
            "Blue sky"
        )
    with pytest.raises(Invalid):
        await db.write(lambda tx: conversations.rename(tx, ada, chat.id, "  "))


async def test_a_second_generated_title_does_not_replace_the_first(
    db: Database, ada: Actor, watch: Watch
) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    async with watch(ada):
        await db.write(lambda tx: conversations.set_title_if_unnamed(tx, chat.id, "Made"))
    assert (await db.read(lambda tx: conversations.get(tx, ada, chat.id))).title == "Made"
    async with watch.untouched():
        await db.write(lambda tx: conversations.set_title_if_unnamed(tx, chat.id, "Made again"))


async def test_a_generated_title_replaces_a_provisional_one_for_good(
    db: Database, ada: Actor, watch: Watch
) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))

    def set_provisional(tx: Tx) -> None:
        conversations.set_title_if_unnamed(tx, chat.id, "Why is the sky", provisional=True)

    async with watch():
        await db.write(set_provisional)
    unnamed = await db.read(lambda tx: conversations.find_unnamed(tx, chat.id))
    assert unnamed is not None
    assert unnamed.title == "Why is the sky"
    assert await db.read(lambda tx: conversations.needs_name(tx, chat.id))
    async with watch():
        await db.write(lambda tx: conversations.set_title_if_unnamed(tx, chat.id, "Blue skies"))
    assert not await db.read(lambda tx: conversations.needs_name(tx, chat.id))
    async with watch.untouched():
        await db.write(set_provisional)
    assert (await db.read(lambda tx: conversations.get(tx, ada, chat.id))).title == "Blue skies"


async def test_a_title_set_by_a_person_stays_even_if_it_equals_the_provisional_one(
    db: Database, ada: Actor
) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    await db.write(lambda tx: conversations.set_title_if_unnamed(tx, chat.id, "Skies", provisional=True))
    await db.write(lambda tx: conversations.rename(tx, ada, chat.id, "Skies"))
    await db.write(lambda tx: conversations.set_title_if_unnamed(tx, chat.id, "Blue skies"))
    assert (await db.read(lambda tx: conversations.get(tx, ada, chat.id))).title == "Skies"


async def test_a_generated_title_does_not_restore_a_deleted_conversation(
    db: Database, ada: Actor, watch: Watch
) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    assert await db.read(lambda tx: conversations.find_unnamed(tx, chat.id)) == chat
    await db.write(lambda tx: conversations.remove(tx, ada, chat.id))
    async with watch.untouched():
        await db.write(lambda tx: conversations.set_title_if_unnamed(tx, chat.id, "Ghost"))
    assert await db.read(lambda tx: conversations.find_unnamed(tx, chat.id)) is None


async def test_pinning_and_archiving_emit_events(db: Database, ada: Actor, watch: Watch) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    async with watch(ada):
        await db.write(lambda tx: conversations.set_pinned(tx, ada, chat.id, True))
        await db.write(lambda tx: conversations.set_archived(tx, ada, chat.id, True))
    changed = await db.read(lambda tx: conversations.get(tx, ada, chat.id))
    assert (changed.pinned, changed.archived) == (True, True)


async def test_setting_a_table_emits_an_event_only_if_it_changed(
    db: Database, ada: Actor, watch: Watch
) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))

    def set_table(tx: Tx) -> None:
        conversations.set_table(tx, chat.id, "quick", (FIRST,), Visibility.OWN_LANE)

    async with watch(ada):
        await db.write(set_table)
    changed = await db.read(lambda tx: conversations.get(tx, ada, chat.id))
    assert (changed.mode, changed.table, changed.visibility) == ("quick", (FIRST,), Visibility.OWN_LANE)
    async with watch.untouched():
        await db.write(set_table)


async def test_a_conversation_is_answering_until_its_turn_ends(
    db: Database, ada: Actor, watch: Watch
) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    async with watch(ada):
        turn = await db.write(lambda tx: opened(tx, ada, chat.id))
    assert (await db.read(lambda tx: conversations.get(tx, ada, chat.id))).is_answering

    def end(tx: Tx) -> Conversation:
        turns.set_state(tx, turn.id, TurnState.COMPLETE)
        return conversations.changed(tx, chat.id)

    async with watch(ada):
        assert not (await db.write(end)).is_answering


async def test_a_conversation_stops_answering_when_concurrent_turns_have_all_ended(
    db: Database, ada: Actor, watch: Watch
) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    running_turns = [await db.write(lambda tx: opened(tx, ada, chat.id)) for _ in range(8)]

    def end(tx: Tx, turn_id: str) -> None:
        turns.set_state(tx, turn_id, TurnState.COMPLETE)
        conversations.changed(tx, chat.id)

    async with watch(ada):
        await asyncio.gather(*(db.write(lambda tx, id=turn.id: end(tx, id)) for turn in running_turns))
    assert not (await db.read(lambda tx: conversations.get(tx, ada, chat.id))).is_answering


# ── listing


async def test_conversations_are_listed_newest_first_in_pages(
    db: Database, ada: Actor, adas_home: str, clock: Clock
) -> None:
    def add(tx: Tx) -> str:
        return conversation(tx, ada).id

    ids_in_order = []
    for number in range(7):
        clock.forward(number % 2)  # two conversations can have the same time
        ids_in_order.append(await db.write(add))
    listed_ids: list[str] = []
    cursor, sizes = None, []
    while True:
        page = await db.read(
            lambda tx, cursor=cursor: conversations.page(tx, ada, adas_home, limit=3, cursor=cursor)
        )
        listed_ids += [item.id for item in page.items]
        sizes.append(len(page.items))
        if (cursor := page.next) is None:
            break
    assert listed_ids == ids_in_order[::-1]
    assert sizes == [3, 3, 1]


async def test_pinned_conversations_come_before_the_first_page_only(
    db: Database, ada: Actor, adas_home: str, clock: Clock
) -> None:
    chat_ids = []
    for _ in range(4):
        chat_ids.append((await db.write(lambda tx: conversation(tx, ada))).id)
        clock.forward(1)
    for id in chat_ids[:2]:
        await db.write(lambda tx, id=id: conversations.set_pinned(tx, ada, id, True))
    first = await db.read(lambda tx: conversations.page(tx, ada, adas_home, limit=1))
    assert [item.id for item in first.items] == [chat_ids[1], chat_ids[0], chat_ids[3]]
    second = await db.read(lambda tx: conversations.page(tx, ada, adas_home, limit=1, cursor=first.next))
    assert ([item.id for item in second.items], second.next) == ([chat_ids[2]], None)


async def test_archived_conversations_are_listed_separately(db: Database, ada: Actor, adas_home: str) -> None:
    active, archived_chat = [await db.write(lambda tx: conversation(tx, ada)) for _ in range(2)]
    await db.write(lambda tx: conversations.set_archived(tx, ada, archived_chat.id, True))
    page = await db.read(lambda tx: conversations.page(tx, ada, adas_home, limit=9))
    archived = await db.read(lambda tx: conversations.page(tx, ada, adas_home, limit=9, archived=True))
    assert [item.id for item in page.items] == [active.id]
    assert [item.id for item in archived.items] == [archived_chat.id]


async def test_a_new_round_moves_a_conversation_to_the_front(
    db: Database, ada: Actor, adas_home: str, clock: Clock
) -> None:
    old, new = [await db.write(lambda tx: conversation(tx, ada)) for _ in range(2)]
    clock.forward(1)
    await db.write(lambda tx: opened(tx, ada, old.id))
    page = await db.read(lambda tx: conversations.page(tx, ada, adas_home, limit=9))
    assert [item.id for item in page.items] == [old.id, new.id]


@pytest.mark.parametrize(
    "cursor",
    ["", "x", "no page", "ü", "\0", "Zg==", base64.urlsafe_b64encode(b"12 short").decode(), "9" * 10_000],
)
async def test_a_malformed_cursor_is_refused(db: Database, ada: Actor, adas_home: str, cursor: str) -> None:
    with pytest.raises(Invalid):
        await db.read(lambda tx: conversations.page(tx, ada, adas_home, limit=9, cursor=cursor))


# ── branching and removing


async def test_a_branch_continues_after_the_round_it_begins_at(
    db: Database, ada: Actor, watch: Watch
) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    for _ in range(2):
        await db.write(lambda tx: answered(tx, ada, chat.id))
    async with watch(ada):
        branch = await db.write(lambda tx: branches.add(tx, ada, chat.id, at_round=1))
    assert (branch.parent_id, branch.branch_round, branch.round_count) == (chat.id, 1, 1)
    assert await db.write(lambda tx: turns.next_round(tx, branch.id)) == 2


async def test_a_branch_becomes_a_child_of_the_conversation_that_wrote_its_round(
    db: Database, ada: Actor
) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    for _ in range(2):
        await db.write(lambda tx: answered(tx, ada, chat.id))
    _, replies = await db.write(lambda tx: answered(tx, ada, chat.id))
    branch = await db.write(lambda tx: branches.add(tx, ada, chat.id, at_round=3, message_id=replies[0].id))
    await db.write(lambda tx: answered(tx, ada, branch.id))

    def points(tx: Tx) -> list[tuple[str | None, int | None, str | None]]:
        children = [branches.add(tx, ada, branch.id, at_round=number) for number in (4, 3, 1)]
        return [(child.parent_id, child.branch_round, child.branch_message_id) for child in children]

    assert await db.write(points) == [
        (branch.id, 4, None),
        (chat.id, 3, replies[0].id),  # the branch inherits only one reply of that round
        (chat.id, 1, None),
    ]


async def test_adding_a_branch_twice_with_one_id_makes_one_branch(
    db: Database, ada: Actor, ids: Ids, watch: Watch
) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    await db.write(lambda tx: answered(tx, ada, chat.id))
    chosen_id = ids()
    first = await db.write(lambda tx: branches.add(tx, ada, chat.id, at_round=1, id=chosen_id))
    async with watch.untouched():
        second = await db.write(lambda tx: branches.add(tx, ada, chat.id, at_round=1, id=chosen_id))
        with pytest.raises(Conflict):
            await db.write(lambda tx: branches.add(tx, ada, chat.id, at_round=0, id=chosen_id))
    assert second == first


@pytest.mark.parametrize("at_round", [-1, 2])
async def test_a_branch_at_a_round_that_does_not_exist_is_refused(
    db: Database, ada: Actor, watch: Watch, at_round: int
) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    await db.write(lambda tx: answered(tx, ada, chat.id))
    async with watch.untouched():
        with pytest.raises(Invalid):
            await db.write(lambda tx: branches.add(tx, ada, chat.id, at_round=at_round))


async def test_a_branch_at_a_message_of_another_round_or_conversation_is_refused(
    db: Database, ada: Actor, watch: Watch
) -> None:
    chat, other_chat = [await db.write(lambda tx: conversation(tx, ada)) for _ in range(2)]
    await db.write(lambda tx: answered(tx, ada, chat.id))
    _, later = await db.write(lambda tx: answered(tx, ada, chat.id))
    _, foreign = await db.write(lambda tx: answered(tx, ada, other_chat.id))
    async with watch.untouched():
        for message in (later[0], foreign[0]):
            with pytest.raises(NotFound):
                await db.write(
                    lambda tx, id=message.id: branches.add(tx, ada, chat.id, at_round=1, message_id=id)
                )


async def test_removing_a_conversation_removes_its_branches_and_nothing_else(
    db: Database, ada: Actor, adas_home: str, watch: Watch
) -> None:
    root, other_chat = [await db.write(lambda tx: conversation(tx, ada)) for _ in range(2)]
    await db.write(lambda tx: answered(tx, ada, root.id))
    child = await db.write(lambda tx: branches.add(tx, ada, root.id, at_round=1))
    grandchild = await db.write(lambda tx: branches.add(tx, ada, child.id, at_round=1))
    await db.write(lambda tx: sessions.set_location(tx, ada.session_id or "", adas_home, grandchild.id))
    async with watch(ada):
        removed_ids = await db.write(lambda tx: conversations.remove(tx, ada, root.id))
    assert set(removed_ids) == {root.id, child.id, grandchild.id}
    page = await db.read(lambda tx: conversations.page(tx, ada, adas_home, limit=9))
    assert [item.id for item in page.items] == [other_chat.id]


async def test_no_text_of_a_removed_conversation_stays_in_the_database(
    db: Database, ada: Actor, adas_home: str
) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    await db.write(lambda tx: conversations.rename(tx, ada, chat.id, "xylophone"))
    await db.write(lambda tx: answered(tx, ada, chat.id, "xylophone?"))
    assert "xylophone" in str(contents(db))
    await db.write(lambda tx: conversations.remove(tx, ada, chat.id))
    assert "xylophone" not in str(contents(db))
    log = await db.read(lambda tx: events.after(tx, project_topic(adas_home), 0))
    assert {event.kind for event in log if event.id == chat.id} == {EventKind.REMOVED}
    assert [event.number for event in log] == list(range(1, len(log) + 1))


async def test_a_conversation_with_a_reused_id_continues_the_event_numbers(db: Database, ada: Actor) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    await db.write(lambda tx: answered(tx, ada, chat.id))
    topic = conversation_topic(chat.id)
    last_number = await db.read(lambda tx: events.last_number(tx, topic))
    await db.write(lambda tx: conversations.remove(tx, ada, chat.id))
    await db.write(lambda tx: conversation(tx, ada, id=chat.id))
    await db.write(lambda tx: opened(tx, ada, chat.id))
    assert await db.read(lambda tx: events.first_number(tx, topic)) == last_number + 1


async def test_late_writes_do_not_restore_a_removed_conversation(
    db: Database, ada: Actor, watch: Watch
) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    turn = await db.write(lambda tx: opened(tx, ada, chat.id))
    await db.write(lambda tx: conversations.remove(tx, ada, chat.id))
    async with watch.untouched():
        with pytest.raises(NotFound):
            await db.write(lambda tx: messages.add(tx, reply(tx, turn)))
        with pytest.raises(NotFound):
            await db.write(lambda tx: turns.set_state(tx, turn.id, TurnState.COMPLETE))
        with pytest.raises(NotFound):
            await db.write(lambda tx: branches.add(tx, ada, chat.id, at_round=0))


@pytest.mark.slow
async def test_branches_deeper_than_a_thousand_are_read_and_removed(db: Database, ada: Actor) -> None:
    depth = 1_100

    def add_branches(tx: Tx) -> list[str]:
        chat_ids = [conversation(tx, ada).id]
        answered(tx, ada, chat_ids[0])
        for number in range(1, depth + 1):
            chat_ids.append(branches.add(tx, ada, chat_ids[-1], at_round=number).id)
            opened(tx, ada, chat_ids[-1])
        return chat_ids

    chat_ids = await db.write(add_branches)
    inherited = await db.read(lambda tx: messages.round(tx, chat_ids[-1], 1))
    assert len(inherited.messages) == 3
    assert len(await db.write(lambda tx: conversations.remove(tx, ada, chat_ids[0]))) == depth + 1
