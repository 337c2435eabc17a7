"""Sessions: tokens, expiry, activity, location and signing out."""

from __future__ import annotations

import pytest

from tertulia.core.errors import NotFound
from tertulia.core.projects import ProjectRole
from tertulia.core.sessions import ABSOLUTE_DAYS, DAY_MS, IDLE_DAYS
from tertulia.core.users import Actor
from tertulia.store import projects, sessions, users
from tertulia.store.database import Database
from tests.store.samples import CLIENT, conversation
from tests.store_fixtures import Clock, Watch


async def test_a_token_identifies_the_user_and_the_session(db: Database, ada: Actor) -> None:
    signed_in = await db.read(lambda tx: sessions.find_signed_in(tx, "token of Ada"))
    assert signed_in is not None
    assert signed_in.actor == ada
    assert signed_in.user == await db.read(lambda tx: users.get(tx, ada.user_id))
    assert (signed_in.session.id, signed_in.session.client_info, signed_in.session.is_current) == (
        ada.session_id,
        CLIENT,
        True,
    )


async def test_an_unknown_token_finds_no_session(db: Database, ada: Actor) -> None:
    assert await db.read(lambda tx: sessions.find_signed_in(tx, "a guess")) is None


async def test_an_idle_session_expires(db: Database, ada: Actor, clock: Clock) -> None:
    clock.forward(IDLE_DAYS * DAY_MS + 1)
    assert await db.read(lambda tx: sessions.find_signed_in(tx, "token of Ada")) is None
    assert await db.read(lambda tx: sessions.visible_to(tx, ada)) == ()


async def test_a_suspended_account_has_no_valid_session_even_a_new_one(
    db: Database, ada: Actor, bob: Actor
) -> None:
    await db.write(lambda tx: users.save(tx, ada, bob.user_id, suspended=True))
    late = await db.write(lambda tx: sessions.add(tx, bob.user_id, "late", CLIENT))
    assert await db.read(lambda tx: sessions.find_signed_in(tx, "late")) is None
    assert not await db.read(lambda tx: sessions.is_open(tx, late.id))


async def test_a_session_in_use_expires_after_its_longest_lifetime(
    db: Database, ada: Actor, clock: Clock
) -> None:
    assert ada.session_id
    session_id = ada.session_id
    for _ in range(ABSOLUTE_DAYS // 10):
        clock.forward(10 * DAY_MS)
        await db.write(lambda tx: sessions.touch(tx, session_id))
    assert await db.read(lambda tx: sessions.find_signed_in(tx, "token of Ada"))
    clock.forward(1)
    assert await db.read(lambda tx: sessions.find_signed_in(tx, "token of Ada")) is None


async def test_a_new_session_is_emitted_to_the_user_s_other_devices(
    db: Database, ada: Actor, watch: Watch
) -> None:
    async with watch(ada):
        session = await db.write(lambda tx: sessions.add(tx, ada.user_id, "second", CLIENT))
    assert session.is_current
    sessions_of_ada = await db.read(lambda tx: sessions.visible_to(tx, ada))
    assert {item.id: item.is_current for item in sessions_of_ada} == {
        ada.session_id: True,
        session.id: False,
    }


async def test_activity_is_written_at_most_once_per_interval(
    db: Database, ada: Actor, clock: Clock, watch: Watch
) -> None:
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


async def test_a_session_stores_the_last_location_of_its_client(
    db: Database, ada: Actor, adas_home: str, watch: Watch
) -> None:
    assert ada.session_id
    session_id = ada.session_id
    chat = await db.write(lambda tx: conversation(tx, ada))
    async with watch(ada):
        await db.write(lambda tx: sessions.set_location(tx, session_id, adas_home, chat.id))
    [session] = await db.read(lambda tx: sessions.visible_to(tx, ada))
    assert (session.project_id, session.conversation_id) == (adas_home, chat.id)
    async with watch.untouched():
        await db.write(lambda tx: sessions.set_location(tx, session_id, adas_home, chat.id))


async def test_a_location_that_the_user_cannot_see_is_not_stored(
    db: Database, ada: Actor, bob: Actor, adas_home: str, watch: Watch
) -> None:
    assert bob.session_id
    session_id = bob.session_id
    chat = await db.write(lambda tx: conversation(tx, ada))
    async with watch(bob):
        await db.write(lambda tx: sessions.set_location(tx, session_id, adas_home, chat.id))
    [session] = await db.read(lambda tx: sessions.visible_to(tx, bob))
    assert (session.project_id, session.conversation_id) == (None, None)


async def test_a_removed_member_s_sessions_lose_their_location(
    db: Database, ada: Actor, bob: Actor, adas_home: str, watch: Watch
) -> None:
    assert bob.session_id
    session_id = bob.session_id
    chat = await db.write(lambda tx: conversation(tx, ada))
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, ProjectRole.EDITOR))
    await db.write(lambda tx: sessions.set_location(tx, session_id, adas_home, chat.id))
    async with watch(ada, bob):
        await db.write(lambda tx: projects.remove_member(tx, ada, adas_home, bob.user_id))
    [session] = await db.read(lambda tx: sessions.visible_to(tx, bob))
    assert (session.project_id, session.conversation_id) == (None, None)


async def test_users_can_sign_out_only_their_own_sessions(
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


async def test_expired_sessions_are_deleted(
    db: Database, ada: Actor, bob: Actor, clock: Clock, watch: Watch
) -> None:
    clock.forward(IDLE_DAYS * DAY_MS)
    await db.write(lambda tx: sessions.touch(tx, ada.session_id or ""))
    clock.forward(1)
    async with watch(ada):
        assert await db.write(sessions.remove_over) == 1
    assert len(await db.read(lambda tx: sessions.visible_to(tx, ada))) == 1
