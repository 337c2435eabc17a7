"""Conversations: listed, changed, branched, removed."""

from __future__ import annotations

import asyncio
import base64

import pytest

from tertulia.core.conversations import Conversation, Visibility
from tertulia.core.errors import Conflict, Forbidden, Invalid, NotFound
from tertulia.core.events import Kind, conversation_place, project_place
from tertulia.core.projects import Membership
from tertulia.core.turns import State
from tertulia.core.users import Actor
from tertulia.store import branches, conversations, events, messages, projects, sessions, turns
from tertulia.store.database import Database, Tx
from tests.store.samples import FIRST, VOICES, answered, conversation, opened, reply
from tests.store_fixtures import Clock, Ids, Watch, contents


async def test_a_new_conversation_is_told_to_its_project(
    db: Database, ada: Actor, adas_home: str, watch: Watch
) -> None:
    async with watch(ada):
        made = await db.write(lambda tx: conversation(tx, ada))
    assert (made.title, made.round_count, made.table) == ("", 0, VOICES)
    assert (made.owner_id, made.project_id, made.is_answering) == (ada.user_id, adas_home, False)
    assert await db.read(lambda tx: conversations.get(tx, ada, made.id)) == made


async def test_a_client_may_choose_the_id_once(db: Database, ada: Actor, ids: Ids, watch: Watch) -> None:
    chosen = ids()
    assert (await db.write(lambda tx: conversation(tx, ada, id=chosen))).id == chosen
    async with watch.untouched():
        with pytest.raises(Conflict):
            await db.write(lambda tx: conversation(tx, ada, id=chosen))


async def test_a_viewer_begins_changes_and_removes_nothing(
    db: Database, ada: Actor, bob: Actor, adas_home: str, watch: Watch
) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, Membership.VIEWER))
    refused = (
        lambda tx: conversation(tx, bob, adas_home),
        lambda tx: conversations.rename(tx, bob, made.id, "Mine"),
        lambda tx: conversations.set_pinned(tx, bob, made.id, True),
        lambda tx: conversations.set_archived(tx, bob, made.id, True),
        lambda tx: branches.add(tx, bob, made.id, at_round=0),
        lambda tx: conversations.remove(tx, bob, made.id),
    )
    async with watch.untouched():
        for act in refused:
            with pytest.raises(Forbidden):
                await db.write(act)


# ── changing


async def test_a_title_is_cleaned_and_told(db: Database, ada: Actor, watch: Watch) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    async with watch(ada):
        assert (await db.write(lambda tx: conversations.rename(tx, ada, made.id, " Blue \n sky "))).title == (
            "Blue sky"
        )
    with pytest.raises(Invalid):
        await db.write(lambda tx: conversations.rename(tx, ada, made.id, "  "))


async def test_a_made_title_never_replaces_a_chosen_one(db: Database, ada: Actor, watch: Watch) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    async with watch(ada):
        await db.write(lambda tx: conversations.set_title_if_unnamed(tx, made.id, "Made"))
    assert (await db.read(lambda tx: conversations.get(tx, ada, made.id))).title == "Made"
    async with watch.untouched():
        await db.write(lambda tx: conversations.set_title_if_unnamed(tx, made.id, "Made again"))


async def test_a_provisional_title_gives_way_to_a_made_one_and_never_comes_back(
    db: Database, ada: Actor, watch: Watch
) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))

    def provisional(tx: Tx) -> None:
        conversations.set_title_if_unnamed(tx, made.id, "Why is the sky", provisional=True)

    async with watch():
        await db.write(provisional)
    found = await db.read(lambda tx: conversations.find_unnamed(tx, made.id))
    assert found is not None
    assert found.title == "Why is the sky"
    assert await db.read(lambda tx: conversations.needs_name(tx, made.id))
    async with watch():
        await db.write(lambda tx: conversations.set_title_if_unnamed(tx, made.id, "Blue skies"))
    assert not await db.read(lambda tx: conversations.needs_name(tx, made.id))
    async with watch.untouched():
        await db.write(provisional)
    assert (await db.read(lambda tx: conversations.get(tx, ada, made.id))).title == "Blue skies"


async def test_a_name_given_by_a_person_is_no_provisional_one_even_when_it_is_the_same(
    db: Database, ada: Actor
) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    await db.write(lambda tx: conversations.set_title_if_unnamed(tx, made.id, "Skies", provisional=True))
    await db.write(lambda tx: conversations.rename(tx, ada, made.id, "Skies"))
    await db.write(lambda tx: conversations.set_title_if_unnamed(tx, made.id, "Blue skies"))
    assert (await db.read(lambda tx: conversations.get(tx, ada, made.id))).title == "Skies"


async def test_a_made_title_brings_nothing_back(db: Database, ada: Actor, watch: Watch) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    assert await db.read(lambda tx: conversations.find_unnamed(tx, made.id)) == made
    await db.write(lambda tx: conversations.remove(tx, ada, made.id))
    async with watch.untouched():
        await db.write(lambda tx: conversations.set_title_if_unnamed(tx, made.id, "Ghost"))
    assert await db.read(lambda tx: conversations.find_unnamed(tx, made.id)) is None


async def test_pinning_and_archiving_are_told(db: Database, ada: Actor, watch: Watch) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    async with watch(ada):
        await db.write(lambda tx: conversations.set_pinned(tx, ada, made.id, True))
        await db.write(lambda tx: conversations.set_archived(tx, ada, made.id, True))
    seen = await db.read(lambda tx: conversations.get(tx, ada, made.id))
    assert (seen.pinned, seen.archived) == (True, True)


async def test_a_table_is_remembered_and_told_only_when_it_is_new(
    db: Database, ada: Actor, watch: Watch
) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))

    def seat(tx: Tx) -> None:
        conversations.set_table(tx, made.id, "quick", (FIRST,), Visibility.OWN_LANE)

    async with watch(ada):
        await db.write(seat)
    seen = await db.read(lambda tx: conversations.get(tx, ada, made.id))
    assert (seen.mode, seen.table, seen.visibility) == ("quick", (FIRST,), Visibility.OWN_LANE)
    async with watch.untouched():
        await db.write(seat)


async def test_a_conversation_is_answering_while_a_turn_is_not_over(
    db: Database, ada: Actor, watch: Watch
) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    async with watch(ada):
        turn = await db.write(lambda tx: opened(tx, ada, made.id))
    assert (await db.read(lambda tx: conversations.get(tx, ada, made.id))).is_answering

    def end(tx: Tx) -> Conversation:
        turns.set_state(tx, turn.id, State.COMPLETE)
        return conversations.changed(tx, made.id)

    async with watch(ada):
        assert not (await db.write(end)).is_answering


async def test_turns_that_end_at_once_leave_the_last_word_to_the_last(
    db: Database, ada: Actor, watch: Watch
) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    running = [await db.write(lambda tx: opened(tx, ada, made.id)) for _ in range(8)]

    def end(tx: Tx, turn_id: str) -> None:
        turns.set_state(tx, turn_id, State.COMPLETE)
        conversations.changed(tx, made.id)

    async with watch(ada):
        await asyncio.gather(*(db.write(lambda tx, id=turn.id: end(tx, id)) for turn in running))
    assert not (await db.read(lambda tx: conversations.get(tx, ada, made.id))).is_answering


# ── listing


async def test_the_newest_come_first_page_by_page(
    db: Database, ada: Actor, adas_home: str, clock: Clock
) -> None:
    def add(tx: Tx) -> str:
        return conversation(tx, ada).id

    made = []
    for number in range(7):
        clock.forward(number % 2)  # some of them at the same moment
        made.append(await db.write(add))
    listed: list[str] = []
    cursor, sizes = None, []
    while True:
        page = await db.read(
            lambda tx, cursor=cursor: conversations.page(tx, ada, adas_home, limit=3, cursor=cursor)
        )
        listed += [item.id for item in page.items]
        sizes.append(len(page.items))
        if (cursor := page.next) is None:
            break
    assert listed == made[::-1]
    assert sizes == [3, 3, 1]


async def test_pinned_ones_stand_before_the_first_page_only(
    db: Database, ada: Actor, adas_home: str, clock: Clock
) -> None:
    made = []
    for _ in range(4):
        made.append((await db.write(lambda tx: conversation(tx, ada))).id)
        clock.forward(1)
    for id in made[:2]:
        await db.write(lambda tx, id=id: conversations.set_pinned(tx, ada, id, True))
    first = await db.read(lambda tx: conversations.page(tx, ada, adas_home, limit=1))
    assert [item.id for item in first.items] == [made[1], made[0], made[3]]
    second = await db.read(lambda tx: conversations.page(tx, ada, adas_home, limit=1, cursor=first.next))
    assert ([item.id for item in second.items], second.next) == ([made[2]], None)


async def test_archived_ones_are_listed_apart(db: Database, ada: Actor, adas_home: str) -> None:
    kept, put_away = [await db.write(lambda tx: conversation(tx, ada)) for _ in range(2)]
    await db.write(lambda tx: conversations.set_archived(tx, ada, put_away.id, True))
    listed = await db.read(lambda tx: conversations.page(tx, ada, adas_home, limit=9))
    archived = await db.read(lambda tx: conversations.page(tx, ada, adas_home, limit=9, archived=True))
    assert [item.id for item in listed.items] == [kept.id]
    assert [item.id for item in archived.items] == [put_away.id]


async def test_a_new_round_moves_a_conversation_to_the_front(
    db: Database, ada: Actor, adas_home: str, clock: Clock
) -> None:
    old, new = [await db.write(lambda tx: conversation(tx, ada)) for _ in range(2)]
    clock.forward(1)
    await db.write(lambda tx: opened(tx, ada, old.id))
    listed = await db.read(lambda tx: conversations.page(tx, ada, adas_home, limit=9))
    assert [item.id for item in listed.items] == [old.id, new.id]


@pytest.mark.parametrize(
    "cursor",
    ["", "x", "no page", "ü", "\0", "Zg==", base64.urlsafe_b64encode(b"12 short").decode(), "9" * 10_000],
)
async def test_a_cursor_nobody_gave_out_is_refused(
    db: Database, ada: Actor, adas_home: str, cursor: str
) -> None:
    with pytest.raises(Invalid):
        await db.read(lambda tx: conversations.page(tx, ada, adas_home, limit=9, cursor=cursor))


# ── branching and removing


async def test_a_branch_begins_where_its_parent_was(db: Database, ada: Actor, watch: Watch) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    for _ in range(2):
        await db.write(lambda tx: answered(tx, ada, made.id))
    async with watch(ada):
        branch = await db.write(lambda tx: branches.add(tx, ada, made.id, at_round=1))
    assert (branch.parent_id, branch.branch_round, branch.round_count) == (made.id, 1, 1)
    assert await db.write(lambda tx: turns.next_round(tx, branch.id)) == 2


async def test_a_branch_hangs_on_whoever_said_what_it_goes_on_from(db: Database, ada: Actor) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    for _ in range(2):
        await db.write(lambda tx: answered(tx, ada, made.id))
    _, replies = await db.write(lambda tx: answered(tx, ada, made.id))
    branch = await db.write(lambda tx: branches.add(tx, ada, made.id, at_round=3, message_id=replies[0].id))
    await db.write(lambda tx: answered(tx, ada, branch.id))

    def points(tx: Tx) -> list[tuple[str | None, int | None, str | None]]:
        made = [branches.add(tx, ada, branch.id, at_round=number) for number in (4, 3, 1)]
        return [(one.parent_id, one.branch_round, one.branch_message_id) for one in made]

    assert await db.write(points) == [
        (branch.id, 4, None),
        (made.id, 3, replies[0].id),  # of that round the branch has one reply, and so has its own branch
        (made.id, 1, None),
    ]


async def test_a_branch_made_twice_is_one_branch(db: Database, ada: Actor, ids: Ids, watch: Watch) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    await db.write(lambda tx: answered(tx, ada, made.id))
    chosen = ids()
    first = await db.write(lambda tx: branches.add(tx, ada, made.id, at_round=1, id=chosen))
    async with watch.untouched():
        again = await db.write(lambda tx: branches.add(tx, ada, made.id, at_round=1, id=chosen))
        with pytest.raises(Conflict):
            await db.write(lambda tx: branches.add(tx, ada, made.id, at_round=0, id=chosen))
    assert again == first


@pytest.mark.parametrize("at_round", [-1, 2])
async def test_a_branch_needs_a_round_to_begin_at(
    db: Database, ada: Actor, watch: Watch, at_round: int
) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    await db.write(lambda tx: answered(tx, ada, made.id))
    async with watch.untouched():
        with pytest.raises(Invalid):
            await db.write(lambda tx: branches.add(tx, ada, made.id, at_round=at_round))


async def test_a_branch_takes_no_message_of_another_round_or_conversation(
    db: Database, ada: Actor, watch: Watch
) -> None:
    made, other = [await db.write(lambda tx: conversation(tx, ada)) for _ in range(2)]
    await db.write(lambda tx: answered(tx, ada, made.id))
    _, later = await db.write(lambda tx: answered(tx, ada, made.id))
    _, foreign = await db.write(lambda tx: answered(tx, ada, other.id))
    async with watch.untouched():
        for message in (later[0], foreign[0]):
            with pytest.raises(NotFound):
                await db.write(
                    lambda tx, id=message.id: branches.add(tx, ada, made.id, at_round=1, message_id=id)
                )


async def test_removing_takes_the_subtree_and_nothing_else(
    db: Database, ada: Actor, adas_home: str, watch: Watch
) -> None:
    root, other = [await db.write(lambda tx: conversation(tx, ada)) for _ in range(2)]
    await db.write(lambda tx: answered(tx, ada, root.id))
    child = await db.write(lambda tx: branches.add(tx, ada, root.id, at_round=1))
    grandchild = await db.write(lambda tx: branches.add(tx, ada, child.id, at_round=1))
    await db.write(lambda tx: sessions.stand(tx, ada.session_id or "", adas_home, grandchild.id))
    async with watch(ada):
        gone = await db.write(lambda tx: conversations.remove(tx, ada, root.id))
    assert set(gone) == {root.id, child.id, grandchild.id}
    listed = await db.read(lambda tx: conversations.page(tx, ada, adas_home, limit=9))
    assert [item.id for item in listed.items] == [other.id]


async def test_nothing_that_was_said_is_left_behind(db: Database, ada: Actor, adas_home: str) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    await db.write(lambda tx: conversations.rename(tx, ada, made.id, "xylophone"))
    await db.write(lambda tx: answered(tx, ada, made.id, "xylophone?"))
    assert "xylophone" in str(contents(db))
    await db.write(lambda tx: conversations.remove(tx, ada, made.id))
    assert "xylophone" not in str(contents(db))
    log = await db.read(lambda tx: events.after(tx, project_place(adas_home), 0))
    assert {event.kind for event in log if event.id == made.id} == {Kind.REMOVED}
    assert [event.number for event in log] == list(range(1, len(log) + 1))


async def test_an_id_that_is_used_again_goes_on_with_its_numbers(db: Database, ada: Actor) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    await db.write(lambda tx: answered(tx, ada, made.id))
    place = conversation_place(made.id)
    before = await db.read(lambda tx: events.last_number(tx, place))
    await db.write(lambda tx: conversations.remove(tx, ada, made.id))
    await db.write(lambda tx: conversation(tx, ada, id=made.id))
    await db.write(lambda tx: opened(tx, ada, made.id))
    assert await db.read(lambda tx: events.first_number(tx, place)) == before + 1


async def test_a_late_reply_does_not_bring_a_conversation_back(
    db: Database, ada: Actor, watch: Watch
) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    turn = await db.write(lambda tx: opened(tx, ada, made.id))
    await db.write(lambda tx: conversations.remove(tx, ada, made.id))
    async with watch.untouched():
        with pytest.raises(NotFound):
            await db.write(lambda tx: messages.add(tx, reply(tx, turn)))
        with pytest.raises(NotFound):
            await db.write(lambda tx: turns.set_state(tx, turn.id, State.COMPLETE))
        with pytest.raises(NotFound):
            await db.write(lambda tx: branches.add(tx, ada, made.id, at_round=0))


@pytest.mark.slow
async def test_branches_deeper_than_a_thousand_are_read_and_removed(db: Database, ada: Actor) -> None:
    depth = 1_100

    def grow(tx: Tx) -> list[str]:
        line = [conversation(tx, ada).id]
        answered(tx, ada, line[0])
        for number in range(1, depth + 1):
            line.append(branches.add(tx, ada, line[-1], at_round=number).id)
            opened(tx, ada, line[-1])
        return line

    line = await db.write(grow)
    seen = await db.read(lambda tx: messages.round(tx, line[-1], 1))
    assert len(seen.messages) == 3
    assert len(await db.write(lambda tx: conversations.remove(tx, ada, line[0]))) == depth + 1
