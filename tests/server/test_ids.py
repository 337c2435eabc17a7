"""Ids and tokens are random, and only one of many first visitors becomes administrator (AZ 9, 12)."""

from __future__ import annotations

import asyncio
import base64

from tertulia.app import new_id
from tertulia.core.ids import is_ulid
from tests.world import PASSWORD, Person, World


async def test_one_of_twenty_simultaneous_first_visitors_becomes_the_administrator(world: World) -> None:
    visitors = [world.stranger() for _ in range(20)]

    async def visit(number: int, person: Person) -> int:
        body = {"name": f"V{number}", "email": f"v{number}@example.org", "password": PASSWORD}
        return (await person.client.post("/api/setup", json=body)).status_code

    answers = await asyncio.gather(*(visit(number, person) for number, person in enumerate(visitors)))
    assert sorted(answers) == [201, *[409] * 19]
    [admin] = [person for person, answer in zip(visitors, answers, strict=True) if answer == 201]
    assert [user["role"] for user in (await admin.get("/api/users"))["items"]] == ["admin"]


def test_ten_thousand_ids_differ_in_their_random_part() -> None:
    made = [new_id() for _ in range(10_000)]
    assert all(map(is_ulid, made))
    assert len({id[10:] for id in made}) == len(made)
    assert varies_everywhere([id[10:] for id in made], alphabet=32)


async def test_session_tokens_are_random_at_every_position(world: World, ada: Person) -> None:
    """256 random bits each, without a time, a counter or an account."""
    tokens = []
    for _ in range(40):
        person = await world.sign_in("ada@example.org")
        tokens.append(person.client.cookies["tertulia"])
    assert {len(base64.urlsafe_b64decode(token + "=")) for token in tokens} == {32}
    assert len(set(tokens)) == len(tokens)
    assert varies_everywhere([token[:-1] for token in tokens], alphabet=8)


def varies_everywhere(texts: list[str], alphabet: int) -> bool:
    """At every position there are at least this many different characters."""
    return all(len(set(column)) >= alphabet for column in zip(*texts, strict=True))
