"""Search over HTTP: files and messages are found with their location, by members of the project only."""

from __future__ import annotations

import pytest

from tertulia.store.database import Tx
from tertulia.store.sql import sql
from tests.patience import soon
from tests.upstream.scripted import Say, Upstream
from tests.world import Person, World


async def settled(world: World) -> None:
    """Waits until no job is running or due."""
    async with soon():
        while await world.tertulia.db.read(_is_busy):
            pass


def _is_busy(tx: Tx) -> bool:
    return tx.maybe(_BUSY, now=tx.now) is not None


_BUSY = sql("SELECT id FROM jobs WHERE state = 'running' OR (state = 'waiting' AND run_at <= :now) LIMIT 1")


async def upload(person: Person, path: str, written: str) -> None:
    answer = await person.client.post(
        f"/api/projects/{person.home}/files?path={path}",
        content=written.encode(),
        headers={"Content-Type": "application/octet-stream"},
    )
    assert answer.status_code == 201, answer.text


async def test_a_file_and_a_conversation_are_found_by_their_owner_alone(
    world: World, ada: Person, bob: Person, upstream: Upstream
) -> None:
    upstream.plays((Say("Walnuts float, mostly."),))
    await ada.ask_and_wait("Do walnuts float?", project_id=ada.home)
    await upload(ada, "docs/nuts.md", "# Nuts\n\nA walnut is the seed of a drupe.\n")
    await settled(world)
    found = await ada.post(f"/api/projects/{ada.home}/search", {"query": "walnut"})
    assert {hit["source_type"] for hit in found["hits"]} == {"file", "conversation_message"}
    (file,) = [hit for hit in found["hits"] if hit["source_type"] == "file"]
    assert (file["title"], file["location"]["path"]) == ("docs/nuts.md", "docs/nuts.md")
    assert (file["location"]["start_line"], file["location"]["end_line"]) == (1, 3)
    span = file["highlights"][0]
    assert file["snippet"][span["start"] : span["end"]].lower().startswith("walnut")
    assert found["without_meaning"]
    everywhere = await ada.post("/api/search/global", {"query": "walnut"})
    assert [hit["chunk_id"] for hit in everywhere["hits"]] == [hit["chunk_id"] for hit in found["hits"]]
    assert (await bob.post("/api/search/global", {"query": "walnut"}))["hits"] == []
    await bob.post(f"/api/projects/{ada.home}/search", {"query": "walnut"}, expect=404)


async def test_a_deleted_or_changed_file_is_no_longer_found_by_its_old_text(
    world: World, ada: Person
) -> None:
    await upload(ada, "a.md", "walnut")
    await settled(world)
    await upload(ada, "a.md", "hazel")
    await settled(world)
    search = f"/api/projects/{ada.home}/search"
    assert (await ada.post(search, {"query": "walnut"}))["hits"] == []
    (hit,) = (await ada.post(search, {"query": "hazel"}))["hits"]
    await ada.delete(f"/api/projects/{ada.home}/files/{hit['source_id']}")
    assert (await ada.post(search, {"query": "hazel"}))["hits"] == []


async def test_a_shared_round_is_found_once_in_the_conversation_that_wrote_it(
    world: World, ada: Person, upstream: Upstream
) -> None:
    upstream.says("Walnuts float.")
    [reply] = await ada.ask_and_wait("Do they?", project_id=ada.home)
    branches = f"/api/conversations/{reply['conversation_id']}/branches"
    branch = await ada.post(branches, {"at_round": 1}, expect=201)
    upstream.says("Hazels sink.")
    await ada.ask_and_wait("And hazels?", conversation_id=branch["id"], project_id=ada.home)
    await settled(world)
    found = (await ada.post(f"/api/projects/{ada.home}/search", {"query": "walnuts hazels"}))["hits"]
    found_in = {hit["content"]: hit["location"]["conversation_id"] for hit in found}
    assert len(found_in) == len(found)
    assert (found_in["Walnuts float."], found_in["Hazels sink."]) == (reply["conversation_id"], branch["id"])


async def test_a_rebuilt_index_finds_the_same_hits(world: World, ada: Person) -> None:
    await upload(ada, "a.md", "walnut")
    await ada.ask_and_wait("Do walnuts float?", project_id=ada.home)
    await settled(world)
    search = f"/api/projects/{ada.home}/search"
    before = await ada.post(search, {"query": "walnut"})
    assert (await ada.post(f"/api/projects/{ada.home}/rebuild", expect=202))["jobs"] >= 2
    await settled(world)
    after = await ada.post(search, {"query": "walnut"})
    assert [hit["content"] for hit in after["hits"]] == [hit["content"] for hit in before["hits"]]
    assert {hit["chunk_id"] for hit in after["hits"]}.isdisjoint(hit["chunk_id"] for hit in before["hits"])


@pytest.mark.parametrize(
    "body",
    [
        {"query": "x" * 10_001},
        {"query": "x", "limit": 0},
        {"query": "x", "limit": 51},
        {"query": "x", "limit": 1e9},
        {"query": "x", "mode": "telepathy"},
        {"query": "x", "filters": {"file_types": ["x"] * 101}},
        {"query": "x", "filters": {"since": -1}},
        {"query": "x", "filters": {"until": 1 << 70}},
        {"query": None},
        {},
    ],
)
async def test_an_invalid_search_request_is_refused(ada: Person, body: object) -> None:
    answer = await ada.client.post(f"/api/projects/{ada.home}/search", json=body)
    assert answer.status_code == 422, answer.text


@pytest.mark.parametrize(
    "query", ["C++", "O'Reilly", '"a" AND (b', "x" * 512, "", "日本語 🦊", "rowid:1", "NEAR/2"]
)
async def test_any_query_text_is_accepted(ada: Person, query: str) -> None:
    assert (await ada.post(f"/api/projects/{ada.home}/search", {"query": query}))["hits"] == []
