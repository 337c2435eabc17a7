"""Event log: numbered without gaps, read from any number on, pruned without renumbering."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tertulia.core.events import Event, EventKind, conversation_topic, project_topic, user_topic
from tertulia.core.projects import ProjectRole
from tertulia.core.users import Actor
from tertulia.store import events, projects
from tertulia.store.database import Database, Tx
from tests.store.samples import conversation
from tests.store_fixtures import Clock


def emit(tx: Tx, *topics: str) -> None:
    for topic in topics:
        tx.emit(topic, EventKind.CHANGED, "note", tx.new_id(), {"topic": topic})


async def test_events_after_a_number_are_read_in_order(db: Database, clock: Clock) -> None:
    await db.write(lambda tx: emit(tx, "a", "b", "a"))
    clock.forward(1)
    await db.write(lambda tx: emit(tx, "a"))
    log = await db.read(lambda tx: events.after(tx, "a", 1))
    assert [(event.number, event.at) for event in log] == [(2, clock.now - 1), (3, clock.now)]
    assert log[0].value == '{"topic":"a"}'
    assert [event.number for event in await db.read(lambda tx: events.after(tx, "a", 0, limit=2))] == [1, 2]
    assert await db.read(lambda tx: events.last_number(tx, "a")) == 3


async def test_a_topic_without_events_begins_at_number_one(db: Database) -> None:
    assert await db.read(lambda tx: events.last_number(tx, "nowhere")) == 0
    assert await db.read(lambda tx: events.first_number(tx, "nowhere")) == 1
    assert await db.read(lambda tx: events.after(tx, "nowhere", 0)) == ()


async def test_the_last_event_of_a_thing_in_one_transaction_replaces_earlier_ones(db: Database) -> None:
    def emit_twice(tx: Tx) -> None:
        tx.emit("a", EventKind.CHANGED, "note", "1", {"n": 1})
        tx.emit("a", EventKind.CHANGED, "note", "2", {"n": 2})
        tx.emit("a", EventKind.REMOVED, "note", "1")

    await db.write(emit_twice)
    log = await db.read(lambda tx: events.after(tx, "a", 0))
    assert [(event.number, event.kind, event.id) for event in log] == [
        (1, EventKind.CHANGED, "2"),
        (2, EventKind.REMOVED, "1"),
    ]


async def test_a_transaction_reads_its_own_events(db: Database) -> None:
    def emit_and_count(tx: Tx) -> int:
        emit(tx, "a")
        before = events.last_number(tx, "a")
        emit(tx, "a")
        return before

    assert await db.write(emit_and_count) == 1
    assert [e.number for e in await db.read(lambda tx: events.after(tx, "a", 0))] == [1, 2]


async def test_pruning_deletes_old_events_and_keeps_the_numbering(db: Database, clock: Clock) -> None:
    await db.write(lambda tx: emit(tx, "a", "a"))
    clock.forward(10)
    await db.write(lambda tx: emit(tx, "a"))
    assert await db.write(lambda tx: events.prune(tx, clock.now, limit=9)) == 2
    assert await db.read(lambda tx: events.first_number(tx, "a")) == 3
    assert await db.write(lambda tx: events.prune(tx, clock.now + 1, limit=9)) == 1
    assert await db.read(lambda tx: events.first_number(tx, "a")) == 4
    assert await db.read(lambda tx: events.last_number(tx, "a")) == 3
    await db.write(lambda tx: emit(tx, "a"))
    assert [e.number for e in await db.read(lambda tx: events.after(tx, "a", 3))] == [4]


async def test_pruning_deletes_at_most_the_limit_oldest_first(db: Database, clock: Clock) -> None:
    for topic in ("a", "b", "a"):
        await db.write(lambda tx, topic=topic: emit(tx, topic))
        clock.forward(1)
    assert await db.write(lambda tx: events.prune(tx, clock.now, limit=2)) == 2
    assert [e.number for e in await db.read(lambda tx: events.after(tx, "a", 0))] == [2], (
        "the oldest go first"
    )
    assert await db.write(lambda tx: events.prune(tx, clock.now, limit=2)) == 1


async def test_a_user_may_follow_topics_of_their_projects_and_no_others(
    db: Database, ada: Actor, bob: Actor, adas_home: str
) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    topics = (user_topic(ada.user_id), project_topic(adas_home), conversation_topic(chat.id))

    async def may_follow(actor: Actor) -> list[bool]:
        return [
            await db.read(lambda tx, topic_=topic: events.may_follow(tx, actor, topic_)) for topic in topics
        ]

    assert await may_follow(ada) == [True, True, True]
    assert await may_follow(bob) == [False, False, False]
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, ProjectRole.VIEWER))
    assert await may_follow(bob) == [False, True, True]
    await db.write(lambda tx: projects.remove_member(tx, ada, adas_home, bob.user_id))
    assert await may_follow(bob) == [False, False, False]


@pytest.mark.parametrize("topic", ["", ":", "user", "user:", "project:", "conversation:x", "secret:1", "\0"])
async def test_nobody_may_follow_an_unknown_topic(db: Database, ada: Actor, topic: str) -> None:
    assert not await db.read(lambda tx: events.may_follow(tx, ada, topic))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    plans=st.lists(
        st.tuples(st.lists(st.sampled_from("abc"), min_size=1, max_size=4), st.booleans()),
        min_size=1,
        max_size=25,
    )
)
def test_concurrent_writers_number_every_topic_without_gaps(
    db: Database, plans: list[tuple[list[str], bool]]
) -> None:
    prefix = db.write_now(lambda tx: tx.new_id())
    delivered: list[Event] = []
    db.on_commit(delivered.extend)

    async def write(topics: list[str], fails: bool) -> None:
        def work(tx: Tx) -> None:
            emit(tx, *(f"{prefix}{topic}" for topic in topics))
            tx.number_events()
            if fails:
                raise RuntimeError("after its events were numbered")

        try:
            await db.write(work)
        except RuntimeError:
            assert fails

    async def write_all() -> None:
        await asyncio.gather(*(write(topics, fails) for topics, fails in plans))

    asyncio.run(write_all())
    for topic in {f"{prefix}{letter}" for letter in "abc"}:
        expected = sum(topics.count(topic[-1]) for topics, fails in plans if not fails)
        log = db.read_now(lambda tx, topic=topic: events.after(tx, topic, 0))
        assert [event.number for event in log] == list(range(1, expected + 1))
        assert [event for event in delivered if event.topic == topic] == list(log)
