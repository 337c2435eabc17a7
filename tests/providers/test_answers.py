"""Whoever is asked, in whatever dialect: the words, the thoughts and the count arrive the same way."""

import asyncio
from contextlib import aclosing

import pytest

from tertulia.core.models import TokenCount
from tertulia.core.prompts import Prompt, PromptMessage
from tertulia.providers.seam import End, Piece, Text
from tests.patience import soon
from tests.providers.conftest import ANTHROPIC, CHAT, EVERY_DIALECT, RESPONSES, Listener
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
async def test_an_answer_comes_word_by_word_and_ends_once(
    upstream: Upstream, listener: Listener, key: str
) -> None:
    """Each word is said once the one before it was heard."""
    words = ("Good", " evening,", " friend.")
    heard = [asyncio.Event() for _ in words]
    steps: list[Step] = [
        step for word, read in zip(words, heard, strict=True) for step in (Say(word), Hold(read))
    ]
    upstream.plays((*steps, Finish()))
    pieces: list[Piece] = []
    async with soon(), aclosing(listener.providers.stream(listener.call(key))) as stream:
        async for piece in stream:
            if isinstance(piece, Text):
                heard[len(pieces)].set()
            pieces.append(piece)
    *texts, end = pieces
    assert texts == [Text(word) for word in words]
    assert isinstance(end, End)
    assert end.finish == "stop"


@every_dialect
async def test_thoughts_are_told_apart_from_words(upstream: Upstream, listener: Listener, key: str) -> None:
    upstream.says("Forty-two.", thinking="Six times seven.")
    heard = await listener.ask(key)
    assert (heard.thinking, heard.text) == ("Six times seven.", "Forty-two.")


@every_dialect
async def test_the_count_is_the_providers_own(upstream: Upstream, listener: Listener, key: str) -> None:
    upstream.says("Yes.", usage=Usage(sent=120, cached=80, said=9, thought=4))
    heard = await listener.ask(key)
    assert heard.end is not None
    assert heard.end.count == TokenCount(120, 80, 9, 4)


@every_dialect
async def test_an_answer_cut_by_its_limit_says_so(upstream: Upstream, listener: Listener, key: str) -> None:
    upstream.says("Once upon a", finish="length")
    heard = await listener.ask(key)
    assert heard.end is not None
    assert (heard.text, heard.end.finish) == ("Once upon a", "length")


@every_dialect
async def test_an_answer_the_provider_withholds_is_filtered(
    upstream: Upstream, listener: Listener, key: str
) -> None:
    upstream.says("", finish="content_filter")
    heard = await listener.ask(key)
    assert heard.end is not None
    assert (heard.text, heard.end.finish) == ("", "filtered")


@every_dialect
async def test_the_key_travels_in_a_header_and_nowhere_else(
    upstream: Upstream, listener: Listener, key: str
) -> None:
    await listener.ask(key)
    provider = key.partition(":")[0]
    assert any(f"key-of-{provider}" in value for value in upstream.last.headers.values())
    assert f"key-of-{provider}" not in upstream.last.path + str(upstream.last.body)


@every_dialect
async def test_a_temperature_is_sent_only_when_one_was_chosen(
    upstream: Upstream, listener: Listener, key: str
) -> None:
    await listener.ask(key)
    assert "temperature" not in str(upstream.last.body)
    await listener.ask(CHAT, temperature=0.2)
    assert upstream.last.body["temperature"] == 0.2


async def test_openai_is_sent_the_whole_conversation(upstream: Upstream, listener: Listener) -> None:
    await listener.ask(CHAT, TALK)
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


async def test_anthropic_gets_a_cache_mark_where_the_unchanging_part_ends(
    upstream: Upstream, listener: Listener
) -> None:
    await listener.ask(ANTHROPIC, TALK)
    marked = [
        (message["role"], block["text"])
        for message in upstream.last.body["messages"]
        for block in message["content"]
        if "cache_control" in block
    ]
    assert marked == [("assistant", "Two.")]
    assert [message["role"] for message in upstream.last.body["messages"]] == ["user", "assistant", "user"]


async def test_anthropic_takes_a_cache_mark_after_what_a_user_said_too(
    upstream: Upstream, listener: Listener
) -> None:
    await listener.ask(ANTHROPIC, Prompt("", (PromptMessage("user", "A long file.", ends_cacheable=True),)))
    (message,) = upstream.last.body["messages"]
    assert "cache_control" in message["content"][0]


async def test_openai_is_asked_not_to_keep_what_was_said(upstream: Upstream, listener: Listener) -> None:
    await listener.ask(RESPONSES)
    assert upstream.last.path == "/v1/responses"
    assert upstream.last.body["store"] is False


@every_dialect
async def test_messages_that_say_nothing_are_not_sent(
    upstream: Upstream, listener: Listener, key: str
) -> None:
    empty = PromptMessage("assistant", " \n")
    await listener.ask(key, Prompt("", (PromptMessage("user", "One?"), empty, PromptMessage("user", "Two?"))))
    assert "assistant" not in str(upstream.last.body)
    assert "'model', 'parts'" not in str(upstream.last.body)
    assert "Two?" in str(upstream.last.body)


@every_dialect
async def test_a_second_call_uses_the_same_connection(
    upstream: Upstream, listener: Listener, key: str
) -> None:
    await listener.ask(key)
    await listener.ask(key)
    assert upstream.requests[0].connection == upstream.requests[1].connection


@every_dialect
async def test_two_halves_of_a_character_are_joined(upstream: Upstream, listener: Listener, key: str) -> None:
    """A provider that escapes its JSON may cut an emoji between two events."""
    upstream.says("", chunks=["smile \ud83d", "\ude00!", "\ud83d"])
    heard = await listener.ask(key)
    assert heard.text == "smile 😀!\ufffd"
