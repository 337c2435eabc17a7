"""A receipt gives the request again as it was sent, in every dialect and for every kind of reply."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
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
from tests.stories.listening import rounds, said
from tests.stories.test_attachments import PHOTO
from tests.stories.test_what_if import over, replayed
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
"""Those that can be told not to think at all."""


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


@pytest.mark.parametrize("effort", ["off", "low", "medium", "high"])
async def test_so_can_one_that_was_told_how_much_to_think(
    ann: Person, upstream: Upstream, environ: dict[str, str], effort: str
) -> None:
    able = [key for key in VOICES | SWITCHED if effort in await efforts(ann, key)]
    assert able, effort
    replies = await ann.hear("Well?", voices=[{"model": key, "effort": effort} for key in able])
    for reply in replies:
        assert reply["voice"]["effort"] == effort
        assert await sent_again(ann, reply, environ) in requests(upstream, reply)


async def efforts(person: Person, key: str) -> list[str]:
    models = (await person.get("/api/models"))["items"]
    return next(list(model["efforts"]) for model in models if model["key"] == key)


async def test_so_can_what_is_asked_again_in_a_branch_or_of_another_table(
    ann: Person, upstream: Upstream, environ: dict[str, str]
) -> None:
    upstream.says("Words.")
    [first] = await ann.hear("Tea?", CHAT)
    here = first["conversation_id"]
    about = {"reply_to_id": first["id"], "quotes": [{"message_id": first["id"], "text": "Words"}]}
    await ann.hear("Sure?", CHAT, conversation_id=here, **about)
    tried = await ann.post(f"/api/messages/{first['id']}/retry", {"id": new_id()}, expect=202)
    await ann.ended(tried["turn"]["id"])
    branch = tried["conversation"]["id"]
    assert branch != here, "an earlier round is asked again in a branch"
    told = {"id": new_id(), "voice": {"model": CLAUDE}}
    back = await ann.post(f"/api/conversations/{branch}/bring-back", told, expect=202)
    await ann.ended(back["turn"]["id"])
    begun = await replayed(ann, here, voices=[{"model": GEMINI}])
    assert (await over(ann, begun["conversation"]["id"]))["state"] == "complete"
    lines = (here, branch, begun["conversation"]["id"])
    replies = {reply["id"]: reply for line in lines for reply in await everything_said(ann, line)}
    assert len(replies) == 7
    for reply in replies.values():
        assert await sent_again(ann, reply, environ) in requests(upstream, reply), reply["content"]


async def everything_said(person: Person, conversation_id: str) -> list[dict[str, Any]]:
    return [m for r in await rounds(person, conversation_id) for m in r["messages"] if m["voice"]]


@pytest.mark.slow
@pytest.mark.xdist_group("builtin")
@needs_weights
async def test_so_can_one_of_the_built_in_model_which_knows_every_token_of_it_again(tmp_path: Path) -> None:
    """Nobody stands between us and its process; but it tells how much of a prompt it has read before."""
    model_downloads.folder(tmp_path).parent.mkdir(parents=True, exist_ok=True)
    model_downloads.folder(tmp_path).symlink_to(model_downloads.folder(HOME))
    async with running(tmp_path, {}) as world:
        ann = await world.first("Ann")
        opened = await ann.ask("What is the capital of France?", SMOLLM2.key)
        here = opened["conversation"]["id"]
        await ann.put(f"/api/conversations/{here}/title", {"title": "France"})  # so that no job asks for one
        async for _ in ann.follow(opened["turn"]["id"]):  # as long as it takes: it is slow where others work
            pass
        [reply] = await ann.replies(here, 1)
        receipt = from_plain(Receipt, await ann.get(f"/api/messages/{reply['id']}/receipt"))
        again = await counted(world.tertulia, rebuild(receipt))
        assert again.input_tokens == reply["usage"]["input_tokens"]
        assert again.cached_tokens == again.input_tokens - 1, "the last token is always read anew"


async def counted(tertulia: Tertulia, prompt: Prompt) -> TokenCount:
    """What its process counts, asked for one more token."""
    async with aclosing(tertulia.dependencies.providers.stream(ModelRequest(SMOLLM2, prompt, 1))) as pieces:
        [count] = [piece.count async for piece in pieces if isinstance(piece, Completed)]
    return count


def requests(upstream: Upstream, reply: dict[str, Any]) -> list[dict[str, Any]]:
    model = reply["voice"]["model"].partition(":")[2]
    return [seen.body for seen in upstream.requests if seen.model == model]


async def sent_again(person: Person, reply: dict[str, Any], environ: dict[str, str]) -> dict[str, Any]:
    """What would go over the wire if the receipt were all one had, with the pictures by their hash."""
    receipt = from_plain(Receipt, await person.get(f"/api/messages/{reply['id']}/receipt"))
    model = person.world.tertulia.dependencies.providers.find(receipt.model)
    assert model is not None
    is_outline = reply["step"] == "outline" and model.abilities.structured
    prompt = rebuild(receipt)
    shown = {one.content_hash: PHOTO for message in prompt.messages for one in message.pictures}
    schema = OUTLINE_SCHEMA if is_outline else None
    call = ModelRequest(
        model, prompt, output_limit(model), schema=schema, pictures=shown, effort=receipt.effort
    )
    at = next(one for one in endpoints.from_environment(environ) if one.provider == model.provider)
    dialect = import_module(DIALECT_MODULES[(VOICES | SWITCHED)[model.key]])  # type: ignore[index]
    body: dict[str, Any] = json.loads(dialect.request(call, at).body)
    return body
