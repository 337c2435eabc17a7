"""All dialects: text, thinking and token counts arrive in the same way from every provider."""

import asyncio
from contextlib import aclosing

import pytest

from tertulia.core.models import TokenCount
from tertulia.core.prompts import Prompt, PromptMessage
from tertulia.providers.interface import Completed, StreamItem, TextDelta
from tests.patience import soon
from tests.providers.conftest import ANTHROPIC, CHAT, EVERY_DIALECT, RESPONSES, Caller
from tests.upstream.dialects import Usage
from tests.upstream.scripted import Finish, Hold, Say, Step, Upstream

every_dialect = pytest.mark.parametrize("key", EVERY_DIALECT)

TALK = Prompt(
    "Be kind.",
    (
        PromptMessage("user", "One?"),
        PromptMessage("assistant", "Two.", ends_cacheable=True),
        PromptMessage("user", "Three?"),
    ),
)


@every_dialect
async def test_a_reply_streams_word_by_word_and_completes_once(
    upstream: Upstream, caller: Caller, key: str
) -> None:
    """The upstream sends each word after the one before it has been received."""
    words = ("Good", " evening,", " friend.")
    word_events = [asyncio.Event() for _ in words]
    steps: list[Step] = [
        step
        for word, received in zip(words, word_events, strict=True)
        for step in (Say(word), Hold(received))
    ]
    upstream.plays((*steps, Finish()))
    items: list[StreamItem] = []
    async with soon(), aclosing(caller.providers.stream(caller.call(key))) as stream:
        async for item in stream:
            if isinstance(item, TextDelta):
                word_events[len(items)].set()
            items.append(item)
    *texts, completed = items
    assert texts == [TextDelta(word) for word in words]
    assert isinstance(completed, Completed)
    assert completed.finish == "stop"


@every_dialect
async def test_thinking_is_separated_from_text(upstream: Upstream, caller: Caller, key: str) -> None:
    upstream.says("Forty-two.", thinking="Six times seven.")
    reply = await caller.ask(key)
    assert (reply.thinking, reply.text) == ("Six times seven.", "Forty-two.")


@every_dialect
async def test_the_providers_token_count_is_used(upstream: Upstream, caller: Caller, key: str) -> None:
    upstream.says("Yes.", usage=Usage(sent=120, cached=80, said=9, thought=4))
    reply = await caller.ask(key)
    assert reply.end is not None
    assert reply.end.count == TokenCount(120, 80, 9, 4)


@every_dialect
async def test_a_reply_cut_by_its_output_limit_finishes_with_length(
    upstream: Upstream, caller: Caller, key: str
) -> None:
    upstream.says("Once upon a", finish="length")
    reply = await caller.ask(key)
    assert reply.end is not None
    assert (reply.text, reply.end.finish) == ("Once upon a", "length")


@every_dialect
async def test_a_reply_stopped_by_the_safety_filter_finishes_with_filtered(
    upstream: Upstream, caller: Caller, key: str
) -> None:
    upstream.says("", finish="content_filter")
    reply = await caller.ask(key)
    assert reply.end is not None
    assert (reply.text, reply.end.finish) == ("", "filtered")


@every_dialect
async def test_the_key_is_sent_in_a_header_only(upstream: Upstream, caller: Caller, key: str) -> None:
    await caller.ask(key)
    provider = key.partition(":")[0]
    assert any(f"key-of-{provider}" in value for value in upstream.last.headers.values())
    assert f"key-of-{provider}" not in upstream.last.path + str(upstream.last.body)


@every_dialect
async def test_a_temperature_is_sent_only_if_chosen(upstream: Upstream, caller: Caller, key: str) -> None:
    await caller.ask(key)
    assert "temperature" not in str(upstream.last.body)
    await caller.ask(CHAT, temperature=0.2)
    assert upstream.last.body["temperature"] == 0.2


async def test_openai_chat_receives_the_whole_conversation(upstream: Upstream, caller: Caller) -> None:
    await caller.ask(CHAT, TALK)
    assert upstream.last.path == "/v1/chat/completions"
    assert upstream.last.body == {
        "model": "gpt-4o",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "One?"},
            {"role": "assistant", "content": "Two."},
            {"role": "user", "content": "Three?"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_anthropic_receives_a_cache_mark_at_the_end_of_the_stable_part(
    upstream: Upstream, caller: Caller
) -> None:
    await caller.ask(ANTHROPIC, TALK)
    messages_with_mark = [
        (message["role"], block["text"])
        for message in upstream.last.body["messages"]
        for block in message["content"]
        if "cache_control" in block
    ]
    assert messages_with_mark == [("assistant", "Two.")]
    assert [message["role"] for message in upstream.last.body["messages"]] == ["user", "assistant", "user"]


async def test_anthropic_receives_a_cache_mark_on_a_user_message(upstream: Upstream, caller: Caller) -> None:
    await caller.ask(ANTHROPIC, Prompt("", (PromptMessage("user", "A long file.", ends_cacheable=True),)))
    (message,) = upstream.last.body["messages"]
    assert "cache_control" in message["content"][0]


async def test_openai_responses_are_requested_without_storage(upstream: Upstream, caller: Caller) -> None:
    await caller.ask(RESPONSES)
    assert upstream.last.path == "/v1/responses"
    assert upstream.last.body["store"] is False


@every_dialect
async def test_empty_messages_are_not_sent(upstream: Upstream, caller: Caller, key: str) -> None:
    empty = PromptMessage("assistant", " \n")
    await caller.ask(key, Prompt("", (PromptMessage("user", "One?"), empty, PromptMessage("user", "Two?"))))
    assert "assistant" not in str(upstream.last.body)
    assert "'model', 'parts'" not in str(upstream.last.body)
    assert "Two?" in str(upstream.last.body)


@every_dialect
async def test_a_second_call_reuses_the_connection(upstream: Upstream, caller: Caller, key: str) -> None:
    await caller.ask(key)
    await caller.ask(key)
    assert upstream.requests[0].connection == upstream.requests[1].connection


@every_dialect
async def test_a_surrogate_pair_split_between_events_is_joined(
    upstream: Upstream, caller: Caller, key: str
) -> None:
    """A provider that escapes its JSON may cut an emoji between two events."""
    upstream.says("", chunks=["smile \ud83d", "\ude00!", "\ud83d"])
    reply = await caller.ask(key)
    assert reply.text == "smile 😀!\ufffd"
