"""A receipt gives the request again as it was sent, in every dialect and for every kind of reply."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tertulia.app import new_id
from tertulia.context.assemble import rebuild
from tertulia.context.budget import output_limit
from tertulia.core.plain import from_plain
from tertulia.core.reading import OUTLINE_SCHEMA
from tertulia.core.receipts import Receipt
from tertulia.providers import endpoints
from tertulia.providers.dialects import MODULES
from tertulia.providers.seam import Call
from tests.stories.listening import said
from tests.stories.test_attachments import PHOTO
from tests.upstream.scripted import Cut, Say, Stall, Upstream, refuses, says
from tests.world import Person, running

VOICES = {
    "openai:gpt-4o": "openai_chat",
    "openai:o3-pro": "openai_responses",
    "anthropic:claude-sonnet-5-5": "anthropic",
    "google:gemini-2.5-pro": "google",
}
CHAT, RESPONSES, CLAUDE, GEMINI = VOICES


@pytest.fixture
def environ(upstream: Upstream) -> dict[str, str]:
    return {
        "OPENAI_API_KEY": "k",
        "OPENAI_BASE_URL": f"{upstream.url}/v1",
        "ANTHROPIC_API_KEY": "k",
        "ANTHROPIC_BASE_URL": upstream.url,
        "GOOGLE_API_KEY": "k",
        "GOOGLE_BASE_URL": upstream.url,
    }


@pytest.fixture
async def ann(tmp_path: Path, environ: dict[str, str]) -> AsyncIterator[Person]:
    """Someone who has a key for each of them."""
    async with running(tmp_path, environ) as world:
        yield await world.first("Ann")


async def test_every_reply_of_every_mode_can_be_asked_again_from_its_receipt(
    ann: Person, upstream: Upstream, environ: dict[str, str]
) -> None:
    upstream.says("Words \u202e of 日本 and\n\nmore.")
    brought = [await ann.attach("sea.png", PHOTO), await ann.attach("notes.md", b"# Tea\n\nOolong.")]
    replies = await ann.hear("What is this?", *VOICES, attachments=[one["id"] for one in brought])
    here = replies[0]["conversation_id"]
    two = (RESPONSES, CLAUDE)
    for mode, table in (
        ("brain_trust", tuple(VOICES)),
        ("debate", two),
        ("second_opinion", (CLAUDE, GEMINI)),
        ("peer_review", (GEMINI, RESPONSES)),
        ("relay", two),
    ):
        replies += await ann.hear(f"And in {mode}?", *table, mode=mode, conversation_id=here)
    steps = {reply["step"] for reply in replies}
    assert steps >= {"answer", "rebuttal", "critique", "review", "synthesis", "outline"}
    for reply in replies:
        assert await sent_again(ann, reply, environ) in requests(upstream, reply), reply["step"]


async def test_so_can_one_that_failed_was_stopped_goes_on_or_is_asked_without_something(
    ann: Person, upstream: Upstream, environ: dict[str, str]
) -> None:
    upstream.plays(refuses(401), says("Now."), model="gpt-4o")
    upstream.plays((Say("Half"), Cut()), says(" and whole."), model="claude-sonnet-5-5")
    upstream.plays((Say("Going on"), Stall()), model="gemini-2.5-pro")
    notes = await ann.attach("notes.md", b"# Tea\n\nOolong.")
    opened = await ann.ask("Well?", CHAT, CLAUDE, GEMINI, attachments=[notes["id"]])
    await said(ann, opened["turn"]["id"], "Going on")
    await ann.post(f"/api/turns/{opened['turn']['id']}/stop", expect=202)
    await ann.ended(opened["turn"]["id"])
    first = await ann.replies(opened["conversation"]["id"], 1)
    assert [reply["status"] for reply in first] == ["failed", "interrupted", "stopped"]
    for reply, what, more in (
        (first[0], "retry", {"without": [notes["id"]]}),
        (first[1], "continue", {}),
    ):
        again = await ann.post(f"/api/messages/{reply['id']}/{what}", {"id": new_id()} | more, expect=202)
        await ann.ended(again["turn"]["id"])
    replies = await ann.replies(opened["conversation"]["id"], 1)
    assert len(replies) == 5
    for reply in replies:
        assert await sent_again(ann, reply, environ) in requests(upstream, reply), reply["status"]


def requests(upstream: Upstream, reply: dict[str, Any]) -> list[dict[str, Any]]:
    model = reply["voice"]["model"].partition(":")[2]
    return [seen.body for seen in upstream.requests if seen.model == model]


async def sent_again(person: Person, reply: dict[str, Any], environ: dict[str, str]) -> dict[str, Any]:
    """What would go over the wire if the receipt were all one had, with the pictures by their hash."""
    receipt = from_plain(Receipt, await person.get(f"/api/messages/{reply['id']}/receipt"))
    model = person.world.house.means.providers.find(receipt.model)
    assert model is not None
    is_outline = reply["step"] == "outline" and model.abilities.structured
    prompt = rebuild(receipt)
    shown = {one.content_hash: PHOTO for message in prompt.messages for one in message.pictures}
    schema = OUTLINE_SCHEMA if is_outline else None
    call = Call(model, prompt, output_limit(model), schema=schema, pictures=shown)
    at = next(one for one in endpoints.from_environment(environ) if one.provider == model.provider)
    dialect = import_module(MODULES[VOICES[model.key]])  # type: ignore[index]
    body: dict[str, Any] = json.loads(dialect.request(call, at).body)
    return body
