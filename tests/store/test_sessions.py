"""Signed-in clients."""

from __future__ import annotations

import pytest

from tertulia.core.errors import NotFound
from tertulia.core.projects import Membership
from tertulia.core.sessions import ABSOLUTE_DAYS, DAY_MS, IDLE_DAYS
from tertulia.core.users import Actor
from tertulia.store import projects, sessions, users
from tertulia.store.database import Database
from tests.store.samples import CLIENT, conversation
from tests.store_fixtures import Clock, Watch


async def test_a_token_says_who_asks(db: Database, ada: Actor) -> None:
    found = await db.read(lambda tx: sessions.find_signed_in(tx, "token of Ada"))
    assert found is not None
    assert found.actor == ada
    assert found.user == await db.read(lambda tx: users.get(tx, ada.user_id))
    assert (found.session.id, found.session.client_info, found.session.is_current) == (
        ada.session_id,
        CLIENT,
        True,
    )


async def test_an_unknown_token_says_nothing(db: Database, ada: Actor) -> None:
    assert await db.read(lambda tx: sessions.find_signed_in(tx, "a guess")) is None


async def test_a_session_ends_when_it_is_idle_for_too_long(db: Database, ada: Actor, clock: Clock) -> None:
    clock.forward(IDLE_DAYS * DAY_MS + 1)
    assert await db.read(lambda tx: sessions.find_signed_in(tx, "token of Ada")) is None
    assert await db.read(lambda tx: sessions.visible_to(tx, ada)) == ()


async def test_a_suspended_account_has_no_session_even_one_begun_at_that_moment(
    db: Database, ada: Actor, bob: Actor
) -> None:
    await db.write(lambda tx: users.save(tx, ada, bob.user_id, suspended=True))
    late = await db.write(lambda tx: sessions.add(tx, bob.user_id, "late", CLIENT))
    assert await db.read(lambda tx: sessions.find_signed_in(tx, "late")) is None
    assert not await db.read(lambda tx: sessions.is_open(tx, late.id))


async def test_a_session_in_use_ends_at_last(db: Database, ada: Actor, clock: Clock) -> None:
    assert ada.session_id
    session_id = ada.session_id
    for _ in range(ABSOLUTE_DAYS // 10):
        clock.forward(10 * DAY_MS)
        await db.write(lambda tx: sessions.touch(tx, session_id))
    assert await db.read(lambda tx: sessions.find_signed_in(tx, "token of Ada"))
    clock.forward(1)
    assert await db.read(lambda tx: sessions.find_signed_in(tx, "token of Ada")) is None


async def test_signing_in_is_told_to_one_s_other_devices(db: Database, ada: Actor, watch: Watch) -> None:
    async with watch(ada):
        session = await db.write(lambda tx: sessions.add(tx, ada.user_id, "second", CLIENT))
    assert session.is_current
    seen = await db.read(lambda tx: sessions.visible_to(tx, ada))
    assert {one.id: one.is_current for one in seen} == {ada.session_id: True, session.id: False}


async def test_activity_is_written_now_and_then(db: Database, ada: Actor, clock: Clock, watch: Watch) -> None:
    assert ada.session_id
    session_id = ada.session_id
    clock.forward(sessions.TOUCH_MS - 1)
    async with watch.untouched():
        await db.write(lambda tx: sessions.touch(tx, session_id))
    clock.forward(1)
    async with watch(ada):
        await db.write(lambda tx: sessions.touch(tx, session_id))
    [session] = await db.read(lambda tx: sessions.visible_to(tx, ada))
    assert session.last_active_at == clock.now


async def test_a_client_stands_where_it_was_last(
    db: Database, ada: Actor, adas_home: str, watch: Watch
) -> None:
    assert ada.session_id
    session_id = ada.session_id
    made = await db.write(lambda tx: conversation(tx, ada))
    async with watch(ada):
        await db.write(lambda tx: sessions.stand(tx, session_id, adas_home, made.id))
    [session] = await db.read(lambda tx: sessions.visible_to(tx, ada))
    assert (session.project_id, session.conversation_id) == (adas_home, made.id)
    async with watch.untouched():
        await db.write(lambda tx: sessions.stand(tx, session_id, adas_home, made.id))


async def test_nobody_stands_where_they_cannot_see(
    db: Database, ada: Actor, bob: Actor, adas_home: str, watch: Watch
) -> None:
    assert bob.session_id
    session_id = bob.session_id
    made = await db.write(lambda tx: conversation(tx, ada))
    async with watch(bob):
        await db.write(lambda tx: sessions.stand(tx, session_id, adas_home, made.id))
    [session] = await db.read(lambda tx: sessions.visible_to(tx, bob))
    assert (session.project_id, session.conversation_id) == (None, None)


async def test_whoever_leaves_a_project_no_longer_stands_in_it(
    db: Database, ada: Actor, bob: Actor, adas_home: str, watch: Watch
) -> None:
    assert bob.session_id
    session_id = bob.session_id
    made = await db.write(lambda tx: conversation(tx, ada))
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, Membership.EDITOR))
    await db.write(lambda tx: sessions.stand(tx, session_id, adas_home, made.id))
    async with watch(ada, bob):
        await db.write(lambda tx: projects.remove_member(tx, ada, adas_home, bob.user_id))
    [session] = await db.read(lambda tx: sessions.visible_to(tx, bob))
    assert (session.project_id, session.conversation_id) == (None, None)


async def test_one_signs_out_one_s_own_sessions_and_no_others(
    db: Database, ada: Actor, bob: Actor, watch: Watch
) -> None:
    assert ada.session_id
    session_id = ada.session_id
    async with watch.untouched():
        with pytest.raises(NotFound):
            await db.write(lambda tx: sessions.remove(tx, bob, session_id))
    async with watch(ada):
        await db.write(lambda tx: sessions.remove(tx, ada, session_id))
    assert await db.read(lambda tx: sessions.find_signed_in(tx, "token of Ada")) is None


async def test_sessions_that_are_over_are_cleared_away(
    db: Database, ada: Actor, bob: Actor, clock: Clock, watch: Watch
) -> None:
    clock.forward(IDLE_DAYS * DAY_MS)
    await db.write(lambda tx: sessions.touch(tx, ada.session_id or ""))
    clock.forward(1)
    async with watch(ada):
        assert await db.write(sessions.remove_over) == 1
    assert len(await db.read(lambda tx: sessions.visible_to(tx, ada))) == 1
