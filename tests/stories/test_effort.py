"""The thinking effort is set for each seat, stored with tables and personas, and sent to the model."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tertulia.app import new_id
from tests.stories.test_replays import start_replay, wait_for_replay
from tests.upstream.scripted import Upstream
from tests.world import Person, running

THINKER, OTHER, PLAIN = "voices:thinker", "voices:other", "voices:plain"


@pytest.fixture
async def ann(tmp_path: Path, upstream: Upstream) -> AsyncIterator[Person]:
    """A person on a server with two models that have efforts and one that has none."""
    models = [
        {"id": "thinker", "name": "Thinker", "efforts": ["off", "low", "medium", "high"]},
        {"id": "other", "name": "Other", "efforts": ["low", "high"]},
        {"id": "plain", "name": "Plain"},
    ]
    row = {"name": "voices", "base_url": f"{upstream.url}/v1", "is_local": False, "models": models}
    async with running(tmp_path, {"TERTULIA_ENDPOINTS": json.dumps([row])}) as world:
        yield await world.set_up("Ann")


def sent_efforts(upstream: Upstream) -> list[tuple[str, str | None]]:
    return [(request.model, request.body.get("reasoning_effort")) for request in upstream.requests]


async def test_each_seat_has_its_own_effort_which_the_reply_and_the_receipt_name(
    ann: Person, upstream: Upstream
) -> None:
    seats = [{"model": THINKER, "effort": "high"}, {"model": THINKER, "effort": "off"}, {"model": THINKER}]
    replies = await ann.ask_and_wait("Well?", voices=seats)
    assert [reply["voice"]["effort"] for reply in replies] == ["high", "off", None]
    assert sorted(sent_efforts(upstream), key=str) == [
        ("thinker", "high"),
        ("thinker", "none"),
        ("thinker", None),
    ]
    receipts = [await ann.get(f"/api/messages/{reply['id']}/receipt") for reply in replies]
    assert [receipt["effort"] for receipt in receipts] == ["high", "off", None]


@pytest.mark.parametrize("seat", [{"model": PLAIN, "effort": "low"}, {"model": OTHER, "effort": "medium"}])
async def test_an_effort_that_the_model_lacks_is_refused_and_nothing_is_sent(
    ann: Person, upstream: Upstream, seat: dict[str, str]
) -> None:
    refused = await ann.ask("Well?", voices=[seat], expect=422)
    assert "has no thinking setting" in refused["message"]
    await ann.post("/api/estimate", {"text": "Well?", "voices": [seat]}, expect=422)
    assert upstream.requests == []


async def test_an_unknown_effort_value_is_refused(ann: Person) -> None:
    await ann.ask("Well?", voices=[{"model": THINKER, "effort": "extreme"}], expect=422)


async def test_a_seats_effort_overrides_the_effort_of_its_persona(ann: Person, upstream: Upstream) -> None:
    character = {
        "name": "The Baker",
        "glyph": "",
        "hue": 4,
        "instructions": "",
        "model": THINKER,
        "effort": "high",
    }
    persona = await ann.post("/api/personas", {"scope": "user", "character": character}, expect=201)
    assert persona["character"]["effort"] == "high"
    baker = {"persona_id": persona["id"]}
    for seat in (baker, baker | {"effort": "low"}, baker | {"model": OTHER}, baker | {"model": PLAIN}):
        await ann.ask_and_wait("Well?", voices=[seat])
    efforts = [("thinker", "high"), ("thinker", "low"), ("other", "high"), ("plain", None)]
    assert sent_efforts(upstream) == efforts
    changed = await ann.put(f"/api/personas/{persona['id']}", {"character": character | {"effort": None}})
    assert changed["character"]["effort"] is None
    before = await ann.get(f"/api/personas/{persona['id']}/versions/1")
    assert before["effort"] == "high"


async def test_saved_tables_and_defaults_store_the_effort(ann: Person) -> None:
    voices = [{"model": THINKER, "persona_id": None, "effort": "high"}]
    table = {"name": "Slow", "mode": "quick", "voices": voices}
    saved = await ann.post("/api/tables", table, expect=201)
    assert saved["voices"] == voices
    assert (await ann.put("/api/me/defaults", {"voices": voices}))["voices"] == voices


async def test_a_retry_keeps_the_effort_and_another_model_drops_an_effort_it_lacks(
    ann: Person, upstream: Upstream
) -> None:
    [reply] = await ann.ask_and_wait("Well?", voices=[{"model": THINKER, "effort": "medium"}])
    for model in (None, OTHER):
        body: dict[str, Any] = {"id": new_id()} | ({"model": model} if model else {})
        opened = await ann.post(f"/api/messages/{reply['id']}/retry", body, expect=202)
        await ann.wait_for_end(opened["turn"]["id"])
    assert sent_efforts(upstream) == [
        ("thinker", "medium"),
        ("thinker", "medium"),
        ("other", None),
    ]
    upstream.requests.clear()
    replay = await start_replay(ann, reply["conversation_id"])
    assert (await wait_for_replay(ann, replay["conversation"]["id"]))["state"] == "complete"
    assert sent_efforts(upstream)[0] == ("thinker", "medium")


async def test_the_chair_can_have_a_higher_effort_than_its_seat(ann: Person, upstream: Upstream) -> None:
    table = [{"model": THINKER}, {"model": OTHER}]
    chair = {"model": THINKER, "effort": "high"}
    replies = await ann.ask_and_wait("Well?", voices=table, mode="brain_trust", chair=chair)
    by_step = {(reply["step"], reply["voice"]["model"]): reply["voice"]["effort"] for reply in replies}
    assert by_step["answer", THINKER] is None
    assert by_step["synthesis", THINKER] == "high"


async def test_an_estimate_expects_more_output_tokens_at_a_higher_effort(ann: Person) -> None:
    async def expected(effort: str | None) -> int:
        voices = [{"model": THINKER, "effort": effort}]
        estimate = await ann.post("/api/estimate", {"text": "Well?", "voices": voices})
        tokens: int = estimate["items"][0]["output_tokens"]
        return tokens

    off, low, high = [await expected(effort) for effort in ("off", "low", "high")]
    assert off < low < high


async def test_a_blind_round_hides_the_efforts(ann: Person) -> None:
    seats = [{"model": THINKER, "effort": "high"}, {"model": OTHER}]
    opened = await ann.ask("Well?", voices=seats, is_blind=True)
    await ann.wait_for_end(opened["turn"]["id"])
    replies = await ann.replies(opened["conversation"]["id"], 1)
    assert [reply["voice"]["effort"] for reply in replies] == [None, None]
