"""The log: numbered without gaps, read from anywhere, pruned without losing count."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tertulia.core.events import Event, Kind, conversation_place, project_place, user_place
from tertulia.core.projects import Membership
from tertulia.core.users import Actor
from tertulia.store import events, projects
from tertulia.store.database import Database, Tx
from tests.store.samples import conversation
from tests.store_fixtures import Clock


def say(tx: Tx, *places: str) -> None:
    for place in places:
        tx.emit(place, Kind.CHANGED, "note", tx.new_id(), {"said": place})


async def test_events_are_read_from_a_number_on(db: Database, clock: Clock) -> None:
    await db.write(lambda tx: say(tx, "a", "b", "a"))
    clock.forward(1)
    await db.write(lambda tx: say(tx, "a"))
    log = await db.read(lambda tx: events.after(tx, "a", 1))
    assert [(event.number, event.at) for event in log] == [(2, clock.now - 1), (3, clock.now)]
    assert log[0].value == '{"said":"a"}'
    assert [event.number for event in await db.read(lambda tx: events.after(tx, "a", 0, limit=2))] == [1, 2]
    assert await db.read(lambda tx: events.last_number(tx, "a")) == 3


async def test_where_nothing_happened_the_first_number_will_be_one(db: Database) -> None:
    assert await db.read(lambda tx: events.last_number(tx, "nowhere")) == 0
    assert await db.read(lambda tx: events.first_number(tx, "nowhere")) == 1
    assert await db.read(lambda tx: events.after(tx, "nowhere", 0)) == ()


async def test_said_twice_in_one_transaction_only_the_last_word_counts(db: Database) -> None:
    def change_one_s_mind(tx: Tx) -> None:
        tx.emit("a", Kind.CHANGED, "note", "1", {"n": 1})
        tx.emit("a", Kind.CHANGED, "note", "2", {"n": 2})
        tx.emit("a", Kind.REMOVED, "note", "1")

    await db.write(change_one_s_mind)
    log = await db.read(lambda tx: events.after(tx, "a", 0))
    assert [(event.number, event.kind, event.id) for event in log] == [
        (1, Kind.CHANGED, "2"),
        (2, Kind.REMOVED, "1"),
    ]


async def test_what_a_transaction_said_it_can_read(db: Database) -> None:
    def say_and_count(tx: Tx) -> int:
        say(tx, "a")
        before = events.last_number(tx, "a")
        say(tx, "a")
        return before

    assert await db.write(say_and_count) == 1
    assert [e.number for e in await db.read(lambda tx: events.after(tx, "a", 0))] == [1, 2]


async def test_pruning_forgets_the_old_and_goes_on_counting(db: Database, clock: Clock) -> None:
    await db.write(lambda tx: say(tx, "a", "a"))
    clock.forward(10)
    await db.write(lambda tx: say(tx, "a"))
    assert await db.write(lambda tx: events.prune(tx, clock.now, limit=9)) == 2
    assert await db.read(lambda tx: events.first_number(tx, "a")) == 3
    assert await db.write(lambda tx: events.prune(tx, clock.now + 1, limit=9)) == 1
    assert await db.read(lambda tx: events.first_number(tx, "a")) == 4
    assert await db.read(lambda tx: events.last_number(tx, "a")) == 3
    await db.write(lambda tx: say(tx, "a"))
    assert [e.number for e in await db.read(lambda tx: events.after(tx, "a", 3))] == [4]


async def test_pruning_takes_no_more_at_once_than_it_is_told(db: Database, clock: Clock) -> None:
    for place in ("a", "b", "a"):
        await db.write(lambda tx, place=place: say(tx, place))
        clock.forward(1)
    assert await db.write(lambda tx: events.prune(tx, clock.now, limit=2)) == 2
    assert [e.number for e in await db.read(lambda tx: events.after(tx, "a", 0))] == [2], (
        "the oldest go first"
    )
    assert await db.write(lambda tx: events.prune(tx, clock.now, limit=2)) == 1


async def test_one_follows_what_one_can_see(db: Database, ada: Actor, bob: Actor, adas_home: str) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    places = (user_place(ada.user_id), project_place(adas_home), conversation_place(made.id))

    async def follows(actor: Actor) -> list[bool]:
        return [await db.read(lambda tx, p=place: events.may_follow(tx, actor, p)) for place in places]

    assert await follows(ada) == [True, True, True]
    assert await follows(bob) == [False, False, False]
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, Membership.VIEWER))
    assert await follows(bob) == [False, True, True]
    await db.write(lambda tx: projects.remove_member(tx, ada, adas_home, bob.user_id))
    assert await follows(bob) == [False, False, False]


@pytest.mark.parametrize("place", ["", ":", "user", "user:", "project:", "conversation:x", "secret:1", "\0"])
async def test_a_place_nobody_knows_is_nobody_s_to_follow(db: Database, ada: Actor, place: str) -> None:
    assert not await db.read(lambda tx: events.may_follow(tx, ada, place))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    plans=st.lists(
        st.tuples(st.lists(st.sampled_from("abc"), min_size=1, max_size=4), st.booleans()),
        min_size=1,
        max_size=25,
    )
)
def test_writers_at_once_number_every_place_without_gaps(
    db: Database, plans: list[tuple[list[str], bool]]
) -> None:
    run = db.write_now(lambda tx: tx.new_id())
    heard: list[Event] = []
    db.on_commit(heard.extend)

    async def write(places: list[str], fails: bool) -> None:
        def work(tx: Tx) -> None:
            say(tx, *(f"{run}{place}" for place in places))
            tx.number_events()
            if fails:
                raise RuntimeError("after its numbers were taken")

        try:
            await db.write(work)
        except RuntimeError:
            assert fails

    async def write_all() -> None:
        await asyncio.gather(*(write(places, fails) for places, fails in plans))

    asyncio.run(write_all())
    for place in {f"{run}{letter}" for letter in "abc"}:
        expected = sum(places.count(place[-1]) for places, fails in plans if not fails)
        log = db.read_now(lambda tx, place=place: events.after(tx, place, 0))
        assert [event.number for event in log] == list(range(1, expected + 1))
        assert [event for event in heard if event.place == place] == list(log)
