"""User accounts: creation, changes, suspension and passwords."""

from __future__ import annotations

import asyncio

import pytest

from tertulia.core.errors import AlreadySetUp, Conflict, EmailTaken, Forbidden, NotFound
from tertulia.core.users import Actor, ServerRole, User
from tertulia.store import projects, sessions, users
from tertulia.store.database import Database
from tests.store.samples import CLIENT
from tests.store_fixtures import Watch


async def test_a_new_account_gets_its_own_home_project(db: Database) -> None:
    user = await db.write(lambda tx: users.add(tx, "Ada", "Ada@Example.org", "hash", ServerRole.MEMBER))
    assert (user.name, user.email, user.suspended) == ("Ada", "ada@example.org", False)
    assert await db.read(lambda tx: users.get(tx, user.id)) == user
    [home] = await db.read(lambda tx: projects.visible_to(tx, Actor(user.id, user.role)))
    assert (home.name, home.role) == ("Home", "owner")


async def test_an_e_mail_address_can_have_only_one_account(db: Database, ada: Actor, watch: Watch) -> None:
    async with watch.untouched():
        with pytest.raises(EmailTaken):
            await db.write(lambda tx: users.add(tx, "Eve", " ADA@example.org", "hash", ServerRole.ADMIN))


async def test_only_one_of_twenty_simultaneous_first_accounts_is_created(db: Database) -> None:
    async def add_first(number: int) -> User | None:
        try:
            return await db.write(lambda tx: users.add_first(tx, f"V{number}", f"v{number}@example.org", "h"))
        except AlreadySetUp:
            return None

    accounts = [user for user in await asyncio.gather(*map(add_first, range(20))) if user]
    assert [user.role for user in accounts] == [ServerRole.ADMIN]
    assert await db.read(users.count) == 1


async def test_credentials_are_found_by_e_mail_address_in_any_case(db: Database, ada: Actor) -> None:
    login = await db.read(lambda tx: users.find_credentials(tx, " Ada@EXAMPLE.org "))
    assert login is not None
    assert (login.user.id, login.password_hash) == (ada.user_id, "a hash")
    assert await db.read(lambda tx: users.find_credentials(tx, "nobody@example.org")) is None


async def test_an_unknown_account_is_not_found(db: Database) -> None:
    with pytest.raises(NotFound):
        await db.read(lambda tx: users.get(tx, "nobody"))


async def test_only_an_administrator_can_list_accounts(db: Database, ada: Actor, bob: Actor) -> None:
    everyone = await db.read(lambda tx: users.visible_to(tx, ada))
    assert [user.name for user in everyone] == ["Ada", "Bob"]
    with pytest.raises(Forbidden):
        await db.read(lambda tx: users.visible_to(tx, bob))


async def test_a_changed_account_is_emitted_to_its_owner(
    db: Database, ada: Actor, bob: Actor, watch: Watch
) -> None:
    async with watch(ada, bob):
        saved = await db.write(
            lambda tx: users.save(tx, ada, bob.user_id, name="Robert", role=ServerRole.ADMIN)
        )
    assert (saved.name, saved.role) == ("Robert", ServerRole.ADMIN)
    assert await db.read(lambda tx: users.get(tx, bob.user_id)) == saved


async def test_a_member_can_change_only_their_own_name(
    db: Database, ada: Actor, bob: Actor, watch: Watch
) -> None:
    async with watch(bob):
        assert (await db.write(lambda tx: users.save(tx, bob, bob.user_id, name="Rob"))).name == "Rob"
    async with watch.untouched():
        with pytest.raises(Forbidden):
            await db.write(lambda tx: users.save(tx, bob, bob.user_id, role=ServerRole.ADMIN))
        with pytest.raises(NotFound):
            await db.write(lambda tx: users.save(tx, bob, ada.user_id, name="Eve"))


async def test_suspending_an_account_signs_it_out(db: Database, ada: Actor, bob: Actor, watch: Watch) -> None:
    async with watch(bob) as new_events:
        await db.write(lambda tx: users.save(tx, ada, bob.user_id, suspended=True))
    assert [(event.kind, event.noun) for event in new_events] == [("changed", "user"), ("removed", "session")]
    assert await db.read(lambda tx: sessions.find_signed_in(tx, "token of Bob")) is None


@pytest.mark.parametrize("change", [{"suspended": True}, {"role": ServerRole.MEMBER}])
async def test_the_last_administrator_cannot_be_suspended_or_demoted(
    db: Database, ada: Actor, bob: Actor, watch: Watch, change: dict[str, object]
) -> None:
    async with watch.untouched():
        with pytest.raises(Conflict):
            await db.write(lambda tx: users.save(tx, ada, ada.user_id, **change))  # type: ignore[arg-type]


async def test_of_two_administrators_who_demote_each_other_one_stays(
    db: Database, ada: Actor, bob: Actor
) -> None:
    await db.write(lambda tx: users.save(tx, ada, bob.user_id, role=ServerRole.ADMIN))

    async def demote(user_id: str) -> bool:
        try:
            await db.write(lambda tx: users.save(tx, ada, user_id, role=ServerRole.MEMBER))
        except Conflict:
            return False
        return True

    assert sorted(await asyncio.gather(demote(ada.user_id), demote(bob.user_id))) == [False, True]


async def test_a_new_password_ends_all_other_sessions(db: Database, ada: Actor, watch: Watch) -> None:
    await db.write(lambda tx: sessions.add(tx, ada.user_id, "another", CLIENT))
    async with watch(ada):
        await db.write(lambda tx: users.set_password(tx, ada.user_id, "new", keep_session=ada.session_id))
    assert [s.id for s in await db.read(lambda tx: sessions.visible_to(tx, ada))] == [ada.session_id]
    assert await db.read(lambda tx: users.password_hash(tx, ada.user_id)) == "new"
