"""Signing in: cookies, session fixation, throttling, and limits on hashing (SE 5 to 9)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from http.cookies import Morsel, SimpleCookie
from pathlib import Path
from typing import Any, Literal

import httpx2
import pytest
from argon2 import PasswordHasher

from tertulia.server.passwords import AT_ONCE, Passwords
from tertulia.server.throttle import ATTEMPTS, WINDOW_S, Throttle
from tests.server.cast import outlined
from tests.world import PASSWORD, QUICK_HASHES, SETUP_TOKEN, Person, World, running

WRONG = "not the password"


@dataclass
class CountingPasswords(Passwords):
    """Records the passwords that are hashed or compared."""

    tried: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(QUICK_HASHES)

    async def hash(self, password: str) -> str:
        self.tried.append(password)
        return await super().hash(password)

    async def match(self, password: str, hashed: str | None, may_try: Callable[[], None]) -> bool:
        def counted() -> None:
            may_try()
            self.tried.append(password)

        return await super().match(password, hashed, counted)


@dataclass
class ManualClock:
    """A clock that the test sets."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def passwords(world: World) -> CountingPasswords:
    counting = CountingPasswords()
    world.app.state.server = replace(world.app.state.server, passwords=counting)
    return counting


@pytest.fixture
def clock(world: World) -> ManualClock:
    manual = ManualClock()
    world.app.state.server = replace(world.app.state.server, throttle=Throttle(manual))
    return manual


# ── the cookie


async def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(world: World) -> None:
    cookie = set_cookie(await try_setup(world.stranger()))
    assert cookie.key == "tertulia"
    assert (cookie["httponly"], cookie["samesite"], cookie["path"], cookie["domain"]) == (
        True,
        "lax",
        "/",
        "",
    )
    assert cookie["secure"] == ""
    assert int(cookie["max-age"]) == 90 * 86_400


async def test_over_tls_the_cookie_belongs_to_this_host_alone(tmp_path: Path) -> None:
    async with running(tmp_path, {"TERTULIA_PUBLIC_URL": "https://chat.example"}) as world:
        cookie = set_cookie(await try_setup(world.stranger(), token=SETUP_TOKEN))
    assert cookie.key == "__Host-tertulia"
    assert (cookie["secure"], cookie["httponly"], cookie["path"], cookie["domain"]) == (True, True, "/", "")


async def test_the_public_url_is_accepted_as_origin_whatever_host_the_proxy_sends(tmp_path: Path) -> None:
    async with running(tmp_path, {"TERTULIA_PUBLIC_URL": "https://chat.example"}) as world:
        person = world.stranger()
        for origin, status in (("https://chat.example", 201), ("http://chat.example", 403)):
            person.client.headers["Origin"] = origin
            assert (await try_setup(person, token=SETUP_TOKEN)).status_code == status


async def test_signing_out_deletes_the_cookie_and_ends_the_session(world: World, ada: Person) -> None:
    token = ada.client.cookies["tertulia"]
    answer = await ada.client.post("/api/logout")
    assert set_cookie(answer)["max-age"] == "0"
    assert (await with_cookie(world, token).client.get("/api/me")).status_code == 401


# ── the first visit


@pytest.mark.parametrize(
    "settings",
    [
        {"TERTULIA_HOST": "0.0.0.0"},
        {"TERTULIA_PUBLIC_URL": "https://chat.example"},
        {"TERTULIA_ALLOWED_HOSTS": "a.b"},
    ],
    ids=["listening to all", "behind a proxy", "under another name"],
)
async def test_the_first_account_of_a_reachable_server_needs_the_setup_token(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    async with running(tmp_path, settings) as world:
        person = world.stranger()
        assert (await person.get("/api/setup"))["token_needed"] is True
        for token in ("", "wrong", "\u00e9", "x" * 100_000):
            assert (await try_setup(person, token=token)).status_code in (403, 422)
        assert (await try_setup(person, token=SETUP_TOKEN)).status_code == 201


async def test_guesses_at_the_setup_token_are_throttled(tmp_path: Path) -> None:
    async with running(tmp_path, {"TERTULIA_PUBLIC_URL": "https://chat.example"}) as world:
        person = world.stranger()
        answers = [(await try_setup(person, token="wrong")).status_code for _ in range(ATTEMPTS + 1)]
        assert answers == [*[403] * ATTEMPTS, 429]
        assert (await try_setup(person, token=SETUP_TOKEN)).status_code == 429


# ── fixation and rotation


async def test_a_cookie_chosen_before_signing_in_is_never_accepted(world: World, ada: Person) -> None:
    chosen = "chosen-by-the-attacker"
    victim = with_cookie(world, chosen)
    assert set_cookie(await try_sign_in(victim, "ada@example.org", PASSWORD)).value != chosen
    assert (await with_cookie(world, chosen).client.get("/api/me")).status_code == 401


async def test_signing_in_again_ends_the_previous_session(world: World, ada: Person) -> None:
    before = ada.client.cookies["tertulia"]
    await ada.post("/api/login", {"email": "ada@example.org", "password": PASSWORD})
    assert ada.client.cookies["tertulia"] != before
    assert (await with_cookie(world, before).client.get("/api/me")).status_code == 401
    assert len((await ada.get("/api/sessions"))["items"]) == 1


async def test_a_new_administrator_must_sign_in_again(world: World, ada: Person, bob: Person) -> None:
    await ada.put(f"/api/users/{bob.id}", {"role": "admin"})
    await bob.get("/api/me", expect=401)
    again = await world.sign_in("bob@example.org")
    await again.get("/api/users")


async def test_a_former_administrator_is_refused_at_once(world: World, ada: Person, bob: Person) -> None:
    await ada.put(f"/api/users/{bob.id}", {"role": "admin"})
    bob = await world.sign_in("bob@example.org")
    await ada.put(f"/api/users/{bob.id}", {"role": "member"})
    await bob.get("/api/users", expect=403)


async def test_a_new_password_ends_every_other_session(world: World, ada: Person) -> None:
    elsewhere = await world.sign_in("ada@example.org")
    await ada.put("/api/me/password", {"current": PASSWORD, "new": "another " + PASSWORD}, expect=204)
    await ada.get("/api/me")
    await elsewhere.get("/api/me", expect=401)


async def test_a_new_password_needs_the_old_one(world: World, ada: Person) -> None:
    """403 and not 401: the session is valid, and a typing error must not sign the user out."""
    await ada.put("/api/me/password", {"current": WRONG, "new": "another " + PASSWORD}, expect=403)
    await world.sign_in("ada@example.org")


# ── tokens outside the cookie


@pytest.mark.parametrize("name", ["token", "api_key", "key", "session", "access_token", "tertulia"])
async def test_a_token_in_the_query_is_ignored(world: World, ada: Person, name: str) -> None:
    token = ada.client.cookies["tertulia"]
    answer = await world.stranger().client.get("/api/me", params={name: token})
    assert answer.status_code == 401
    assert token not in answer.text


@pytest.mark.parametrize("name", ["Authorization", "X-Api-Key", "X-Auth-Token"])
async def test_a_token_in_another_header_is_ignored(world: World, ada: Person, name: str) -> None:
    token = ada.client.cookies["tertulia"]
    for value in (token, f"Bearer {token}"):
        answer = await world.stranger().client.get("/api/me", headers={name: value})
        assert answer.status_code == 401


async def test_no_response_contains_the_token(ada: Person) -> None:
    token = ada.client.cookies["tertulia"]
    for path in ("/api/me", "/api/sessions", "/api/users", "/api/setup"):
        answer = await ada.client.get(path)
        assert token not in answer.text
        assert "hash" not in answer.text


# ── known and unknown accounts


async def test_a_wrong_password_and_a_missing_account_get_the_same_response_after_the_same_work(
    world: World, ada: Person, passwords: CountingPasswords
) -> None:
    known = await try_sign_in(world.stranger(), "ada@example.org", WRONG)
    unknown = await try_sign_in(world.stranger(), "nobody@example.org", WRONG)
    assert passwords.tried == [WRONG, WRONG]
    assert (known.status_code, outlined(known.json())) == (unknown.status_code, outlined(unknown.json()))
    assert set(known.headers) == set(unknown.headers)


async def test_a_password_is_compared_even_without_an_account() -> None:
    """Equal work hides whether the account exists."""
    compared = []

    class Counting(PasswordHasher):
        def verify(self, hash: str | bytes, password: str | bytes) -> Literal[True]:
            compared.append(password)
            return super().verify(hash, password)

    passwords = Passwords(Counting(time_cost=1, memory_cost=8, parallelism=1))
    assert not await passwords.match("a guess", None, may_try=lambda: None)
    assert not await passwords.match("nobody has this password", None, may_try=lambda: None)
    assert compared == ["a guess", "nobody has this password"]


async def test_a_suspended_account_gets_the_same_response_as_a_missing_one(
    world: World, ada: Person, bob: Person, passwords: CountingPasswords
) -> None:
    await ada.put(f"/api/users/{bob.id}", {"suspended": True})
    suspended = await try_sign_in(world.stranger(), "bob@example.org", PASSWORD)
    unknown = await try_sign_in(world.stranger(), "nobody@example.org", PASSWORD)
    assert passwords.tried == [PASSWORD, PASSWORD]
    assert (suspended.status_code, outlined(suspended.json())) == (401, outlined(unknown.json()))


# ── throttling


@pytest.mark.parametrize("account", ["ada@example.org", "someone{}@example.org"], ids=["one", "many"])
async def test_guesses_are_throttled_whatever_x_forwarded_for_says(
    world: World, ada: Person, clock: ManualClock, passwords: CountingPasswords, account: str
) -> None:
    """No proxy is trusted here, so X-Forwarded-For comes from the client."""
    guesser = world.stranger()
    answers = [
        await try_sign_in(guesser, account.format(n), f"guess {n}", **{"X-Forwarded-For": f"10.0.0.{n}"})
        for n in range(40)
    ]
    assert [a.status_code for a in answers] == [*[401] * ATTEMPTS, *[429] * (40 - ATTEMPTS)]
    assert 0 < int(answers[-1].headers["retry-after"]) <= WINDOW_S
    assert len(passwords.tried) == ATTEMPTS


async def test_simultaneous_guesses_are_throttled_like_consecutive_ones(
    world: World, ada: Person, clock: ManualClock, passwords: CountingPasswords
) -> None:
    guesser = world.stranger()
    answers = await asyncio.gather(
        *(try_sign_in(guesser, "ada@example.org", f"guess {n}") for n in range(100))
    )
    assert {answer.status_code for answer in answers} == {401, 429}
    assert len(passwords.tried) < ATTEMPTS + AT_ONCE


async def test_the_owner_can_sign_in_after_the_window(world: World, ada: Person, clock: ManualClock) -> None:
    for _ in range(ATTEMPTS):
        await try_sign_in(world.stranger(), "ada@example.org", WRONG)
    owner = world.stranger()
    assert (await try_sign_in(owner, "ada@example.org", PASSWORD)).status_code == 429
    clock.now += WINDOW_S
    assert (await try_sign_in(owner, "ada@example.org", PASSWORD)).status_code == 200


async def test_throttling_blocks_the_account_and_the_address_but_no_others(
    world: World, ada: Person, bob: Person, clock: ManualClock
) -> None:
    for _ in range(ATTEMPTS + 1):
        await try_sign_in(world.stranger(), "ada@example.org", WRONG)
    assert (
        await try_sign_in(from_address(world, "127.0.0.2"), "bob@example.org", PASSWORD)
    ).status_code == 200
    assert (
        await try_sign_in(from_address(world, "127.0.0.3"), "ada@example.org", PASSWORD)
    ).status_code == 429


async def test_signing_in_to_an_own_account_allows_no_further_guesses(
    world: World, ada: Person, bob: Person, clock: ManualClock, passwords: CountingPasswords
) -> None:
    guesser = world.stranger()
    for n in range(3 * ATTEMPTS):
        await try_sign_in(guesser, f"someone{n}@example.org", WRONG)
        await try_sign_in(guesser, "bob@example.org", PASSWORD)
    assert passwords.tried.count(WRONG) == ATTEMPTS


async def test_only_the_last_address_from_a_trusted_proxy_is_used(tmp_path: Path) -> None:
    """All values before the proxy's own, in the same header or in an earlier one, come from the client."""
    async with running(tmp_path, {"TERTULIA_TRUSTED_PROXIES": "127.0.0.1"}) as world:
        await world.set_up("Ada")
        proxy = world.stranger()
        for n in range(ATTEMPTS):
            forged = [("X-Forwarded-For", f"10.0.0.{n}"), ("X-Forwarded-For", f"10.1.0.{n}, 192.0.2.7")]
            answer = await proxy.client.post(
                "/api/login", json={"email": f"u{n}@example.org", "password": WRONG}, headers=forged
            )
            assert answer.status_code == 401
        for address, status in (("192.0.2.7", 429), ("192.0.2.8", 401)):
            answer = await try_sign_in(proxy, "x@example.org", WRONG, **{"X-Forwarded-For": address})
            assert answer.status_code == status


async def test_guesses_at_the_current_password_are_throttled(
    ada: Person, clock: ManualClock, passwords: CountingPasswords
) -> None:
    body = {"current": WRONG, "new": "another " + PASSWORD}
    answers = [(await ada.client.put("/api/me/password", json=body)).status_code for _ in range(ATTEMPTS + 5)]
    assert answers == [*[403] * ATTEMPTS, *[429] * 5]
    assert len(passwords.tried) == ATTEMPTS


# ── limits on hashing

LONG = "x" * 1_000_000


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/login", {"email": "ada@example.org", "password": LONG}),
        ("POST", "/api/login", {"email": LONG, "password": PASSWORD}),
        ("POST", "/api/login", {"email": "ada@example.org", "password": LONG * 10}),
        ("POST", "/api/setup", {"name": "Eve", "email": "eve@example.org", "password": LONG}),
        ("POST", "/api/setup", {"name": LONG, "email": LONG, "password": PASSWORD}),
        ("PUT", "/api/me/password", {"current": LONG, "new": PASSWORD}),
        ("PUT", "/api/me/password", {"current": PASSWORD, "new": LONG}),
        ("POST", "/api/users", {"name": "Eve", "email": "eve@example.org", "password": LONG}),
        ("POST", "/api/users", {"name": "Eve", "email": "eve@example.org", "password": "short"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_password_of_invalid_length_is_never_hashed(
    ada: Person, passwords: CountingPasswords, method: str, path: str, body: dict[str, str]
) -> None:
    answer = await ada.client.request(method, path, json=body)
    assert answer.status_code in (413, 422)
    assert LONG[:100] not in answer.text
    assert passwords.tried == []


async def test_a_second_setup_is_refused_without_hashing_its_password(
    ada: Person, passwords: CountingPasswords
) -> None:
    assert (await try_setup(ada)).status_code == 409
    assert passwords.tried == []


async def test_a_malformed_cookie_is_refused(world: World, ada: Person) -> None:
    for token in ("x" * 7000, ada.client.cookies["tertulia"] + "x" * 200, "", '"', "=;=", "a; tertulia=b"):
        assert (await with_cookie(world, token).client.get("/api/me")).status_code == 401


# ── requests


async def try_sign_in(person: Person, email: str, password: str, **headers: str) -> httpx2.Response:
    return await person.client.post(
        "/api/login", json={"email": email, "password": password}, headers=headers
    )


async def try_setup(person: Person, **more: str) -> httpx2.Response:
    body: dict[str, Any] = {"name": "Ada", "email": "ada@example.org", "password": PASSWORD} | more
    return await person.client.post("/api/setup", json=body)


def with_cookie(world: World, token: str) -> Person:
    person = world.stranger()
    person.client.headers["Cookie"] = f"tertulia={token}"
    return person


def from_address(world: World, address: str) -> Person:
    """A client with this local address; all of 127.0.0.0/8 belong to this machine."""
    client = httpx2.AsyncClient(
        base_url=world.url,
        headers={"Origin": world.url},
        transport=httpx2.AsyncHTTPTransport(local_address=address, verify=False),
    )
    world.people.append(client)
    return Person(world, client)


def set_cookie(answer: httpx2.Response) -> Morsel[str]:
    [cookie] = SimpleCookie(answer.headers["set-cookie"]).values()
    return cookie
