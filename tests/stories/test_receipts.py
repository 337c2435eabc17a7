"""A receipt rebuilds the exact request, in every dialect and for every kind of reply."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tertulia.app import Tertulia, new_id
from tertulia.context.assemble import rebuild
from tertulia.context.budget import output_limit
from tertulia.core.models import TokenCount
from tertulia.core.prompts import Prompt
from tertulia.core.receipts import Receipt
from tertulia.core.reply_parsing import OUTLINE_SCHEMA
from tertulia.core.serialization import from_plain
from tertulia.providers import endpoints, model_downloads
from tertulia.providers.client_pool import DIALECT_MODULES
from tertulia.providers.interface import Completed, ModelRequest
from tertulia.providers.local_models import SMOLLM2
from tests.providers.test_local_models import HOME, needs_weights
from tests.stories.test_attachments import PHOTO
from tests.stories.test_replays import start_replay, wait_for_replay
from tests.stories.waiting import Item, is_reply, stored_rounds, wait_for_item, wait_for_text
from tests.upstream.scripted import Cut, Say, Stall, Upstream, refuses, says
from tests.world import Person, running

VOICES = {
    "openai:gpt-4o": "openai_chat",
    "openai:o3-pro": "openai_responses",
    "anthropic:claude-sonnet-5-5": "anthropic",
    "google:gemini-2.5-pro": "google",
}
CHAT, RESPONSES, CLAUDE, GEMINI = VOICES
SWITCHED = {"openai:gpt-5.4": "openai_responses", "google:gemini-2.5-flash": "google"}
"""Models whose thinking can be switched off."""


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
    """A person on a server that has a key for each provider."""
    async with running(tmp_path, environ) as world:
        yield await world.set_up("Ann")


async def test_a_receipt_rebuilds_the_request_of_every_reply_in_every_mode(
    ann: Person, upstream: Upstream, environ: dict[str, str]
) -> None:
    upstream.says("Words \u202e of 日本 and\n\nmore.")
    attachments = [await ann.attach("sea.png", PHOTO), await ann.attach("notes.md", b"# Tea\n\nOolong.")]
    replies = await ann.ask_and_wait(
        "What is this?", *VOICES, attachments=[attachment["id"] for attachment in attachments]
    )
    conversation_id = replies[0]["conversation_id"]
    pair = (RESPONSES, CLAUDE)
    for mode, table in (
        ("brain_trust", tuple(VOICES)),
        ("debate", pair),
        ("second_opinion", (CLAUDE, GEMINI)),
        ("peer_review", (GEMINI, RESPONSES)),
        ("relay", pair),
    ):
        replies += await ann.ask_and_wait(
            f"And in {mode}?", *table, mode=mode, conversation_id=conversation_id
        )
    steps = {reply["step"] for reply in replies}
    assert steps >= {"answer", "rebuttal", "critique", "review", "synthesis", "outline"}
    for reply in replies:
        assert await rebuilt_body(ann, reply, environ) in request_bodies(upstream, reply), reply["step"]


async def test_a_receipt_rebuilds_failed_stopped_continued_and_shortened_requests(
    ann: Person, upstream: Upstream, environ: dict[str, str]
) -> None:
    upstream.plays(refuses(401), says("Now."), model="gpt-4o")
    upstream.plays((Say("Half"), Cut()), says(" and whole."), model="claude-sonnet-5-5")
    upstream.plays((Say("Going on"), Stall()), model="gemini-2.5-pro")
    notes = await ann.attach("notes.md", b"# Tea\n\nOolong.")
    opened = await ann.ask("Well?", CHAT, CLAUDE, GEMINI, attachments=[notes["id"]])
    await wait_for_text(ann, opened["turn"]["id"], "Going on")
    topic = f"conversation:{opened['conversation']['id']}"
    async with ann.live() as tab:
        for status in ("failed", "interrupted"):
            await wait_for_item(tab, topic, partial(is_reply_with, status))
    await ann.post(f"/api/turns/{opened['turn']['id']}/stop", expect=202)
    await ann.wait_for_end(opened["turn"]["id"])
    first = await ann.replies(opened["conversation"]["id"], 1)
    assert [reply["status"] for reply in first] == ["failed", "interrupted", "stopped"]
    for reply, action, more in (
        (first[0], "retry", {"without": [notes["id"]]}),
        (first[1], "continue", {}),
    ):
        second_turn = await ann.post(
            f"/api/messages/{reply['id']}/{action}", {"id": new_id()} | more, expect=202
        )
        await ann.wait_for_end(second_turn["turn"]["id"])
    replies = await ann.replies(opened["conversation"]["id"], 1)
    assert len(replies) == 5
    for reply in replies:
        assert await rebuilt_body(ann, reply, environ) in request_bodies(upstream, reply), reply["status"]


@pytest.mark.parametrize("effort", ["off", "low", "medium", "high"])
async def test_a_receipt_rebuilds_the_thinking_effort_of_a_request(
    ann: Person, upstream: Upstream, environ: dict[str, str], effort: str
) -> None:
    keys = [key for key in VOICES | SWITCHED if effort in await efforts_of(ann, key)]
    assert keys, effort
    replies = await ann.ask_and_wait("Well?", voices=[{"model": key, "effort": effort} for key in keys])
    for reply in replies:
        assert reply["voice"]["effort"] == effort
        assert await rebuilt_body(ann, reply, environ) in request_bodies(upstream, reply)


def is_reply_with(status: str, item: Item) -> bool:
    return is_reply(item) and item["value"]["status"] == status


async def efforts_of(person: Person, key: str) -> list[str]:
    models = (await person.get("/api/models"))["items"]
    return next(list(model["efforts"]) for model in models if model["key"] == key)


async def test_a_receipt_rebuilds_requests_of_branches_summaries_and_replays(
    ann: Person, upstream: Upstream, environ: dict[str, str]
) -> None:
    upstream.says("Words.")
    [first] = await ann.ask_and_wait("Tea?", CHAT)
    source = first["conversation_id"]
    references = {"reply_to_id": first["id"], "quotes": [{"message_id": first["id"], "text": "Words"}]}
    await ann.ask_and_wait("Sure?", CHAT, conversation_id=source, **references)
    retry = await ann.post(f"/api/messages/{first['id']}/retry", {"id": new_id()}, expect=202)
    await ann.wait_for_end(retry["turn"]["id"])
    branch = retry["conversation"]["id"]
    assert branch != source, "an earlier round is asked again in a branch"
    body = {"id": new_id(), "voice": {"model": CLAUDE}}
    summary = await ann.post(f"/api/conversations/{branch}/bring-back", body, expect=202)
    await ann.wait_for_end(summary["turn"]["id"])
    replay = await start_replay(ann, source, voices=[{"model": GEMINI}])
    assert (await wait_for_replay(ann, replay["conversation"]["id"]))["state"] == "complete"
    conversations = (source, branch, replay["conversation"]["id"])
    replies = {
        reply["id"]: reply for conversation in conversations for reply in await all_replies(ann, conversation)
    }
    assert len(replies) == 7
    for reply in replies.values():
        assert await rebuilt_body(ann, reply, environ) in request_bodies(upstream, reply), reply["content"]


async def all_replies(person: Person, conversation_id: str) -> list[dict[str, Any]]:
    return [m for r in await stored_rounds(person, conversation_id) for m in r["messages"] if m["voice"]]


@pytest.mark.slow
@pytest.mark.xdist_group("builtin")
@needs_weights
async def test_a_receipt_rebuilds_the_prompt_of_the_built_in_model(tmp_path: Path) -> None:
    """Its requests cannot be recorded, but it reports how much of a prompt is cached."""
    model_downloads.folder(tmp_path).parent.mkdir(parents=True, exist_ok=True)
    model_downloads.folder(tmp_path).symlink_to(model_downloads.folder(HOME))
    async with running(tmp_path, {}) as world:
        ann = await world.set_up("Ann")
        opened = await ann.ask("What is the capital of France?", SMOLLM2.key)
        conversation_id = opened["conversation"]["id"]
        await ann.put(
            f"/api/conversations/{conversation_id}/title", {"title": "France"}
        )  # so that no job writes a title
        async for _ in ann.follow(opened["turn"]["id"]):  # no timeout: the model is slow on a busy machine
            pass
        [reply] = await ann.replies(conversation_id, 1)
        receipt = from_plain(Receipt, await ann.get(f"/api/messages/{reply['id']}/receipt"))
        count = await count_tokens(world.tertulia, rebuild(receipt))
        assert count.input_tokens == reply["usage"]["input_tokens"]
        assert count.cached_tokens == count.input_tokens - 1, "the last token is never taken from the cache"


async def count_tokens(tertulia: Tertulia, prompt: Prompt) -> TokenCount:
    """The token count that its process reports for this prompt."""
    async with aclosing(tertulia.dependencies.providers.stream(ModelRequest(SMOLLM2, prompt, 1))) as pieces:
        [count] = [piece.count async for piece in pieces if isinstance(piece, Completed)]
    return count


def request_bodies(upstream: Upstream, reply: dict[str, Any]) -> list[dict[str, Any]]:
    model = reply["voice"]["model"].partition(":")[2]
    return [request.body for request in upstream.requests if request.model == model]


async def rebuilt_body(person: Person, reply: dict[str, Any], environ: dict[str, str]) -> dict[str, Any]:
    """The request body that the dialect makes from the receipt alone."""
    receipt = from_plain(Receipt, await person.get(f"/api/messages/{reply['id']}/receipt"))
    model = person.world.tertulia.dependencies.providers.find(receipt.model)
    assert model is not None
    is_outline = reply["step"] == "outline" and model.abilities.structured
    prompt = rebuild(receipt)
    pictures = {picture.content_hash: PHOTO for message in prompt.messages for picture in message.pictures}
    schema = OUTLINE_SCHEMA if is_outline else None
    call = ModelRequest(
        model, prompt, output_limit(model), schema=schema, pictures=pictures, effort=receipt.effort
    )
    endpoint = next(
        picture for picture in endpoints.from_environment(environ) if picture.provider == model.provider
    )
    dialect = import_module(DIALECT_MODULES[(VOICES | SWITCHED)[model.key]])  # type: ignore[index]
    body: dict[str, Any] = json.loads(dialect.request(call, endpoint).body)
    return body
