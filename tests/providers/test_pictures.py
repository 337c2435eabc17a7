"""Pictures: each dialect sends them inside their message, before its text."""

from base64 import b64decode
from hashlib import sha256
from typing import Any

import pytest

from tertulia.core.prompts import Picture, Prompt, PromptMessage
from tertulia.providers.tokens import estimated_usage
from tests.providers.conftest import ANTHROPIC, CHAT, EVERY_DIALECT, GOOGLE, RESPONSES, Caller
from tests.upstream.scripted import Upstream, refuses, says

every_dialect = pytest.mark.parametrize("key", EVERY_DIALECT)

# A red dot of one pixel as a PNG, and the same as a GIF.
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc000"
    "000301010018dd8db00000000049454e44ae426082"
)
GIF = bytes.fromhex("47494638396101000100800000ff0000ffffff21f90400000000002c00000000010001000002024401003b")
BYTES = {sha256(data).hexdigest(): data for data in (PNG, GIF)}
DOT = Picture(sha256(PNG).hexdigest(), "image/png")
OTHER = Picture(sha256(GIF).hexdigest(), "image/gif")
IN_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQAY3Y2wAAAAAElFTkSuQmCC"
IN_GIF = "R0lGODlhAQABAIAAAP8AAP///yH5BAAAAAAALAAAAAABAAEAAAICRAEAOw=="

TALK = Prompt(
    "Be kind.",
    (
        PromptMessage("user", "What are these?", pictures=(DOT, OTHER)),
        PromptMessage("assistant", "Dots."),
        PromptMessage("user", "Which is red?"),
    ),
)


async def test_openai_chat_receives_pictures_as_parts(upstream: Upstream, caller: Caller) -> None:
    await caller.ask(CHAT, TALK, pictures=BYTES)
    assert upstream.last.body["messages"] == [
        {"role": "system", "content": "Be kind."},
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{IN_PNG}"}},
                {"type": "image_url", "image_url": {"url": f"data:image/gif;base64,{IN_GIF}"}},
                {"type": "text", "text": "What are these?"},
            ],
        },
        {"role": "assistant", "content": "Dots."},
        {"role": "user", "content": "Which is red?"},
    ]


async def test_openai_responses_receive_pictures_as_input_items(upstream: Upstream, caller: Caller) -> None:
    await caller.ask(RESPONSES, TALK, pictures=BYTES)
    assert upstream.last.body["input"] == [
        {
            "role": "user",
            "content": [
                {"type": "input_image", "image_url": f"data:image/png;base64,{IN_PNG}", "detail": "auto"},
                {"type": "input_image", "image_url": f"data:image/gif;base64,{IN_GIF}", "detail": "auto"},
                {"type": "input_text", "text": "What are these?"},
            ],
        },
        {"role": "assistant", "content": "Dots."},
        {"role": "user", "content": "Which is red?"},
    ]


async def test_anthropic_receives_pictures_as_blocks(upstream: Upstream, caller: Caller) -> None:
    await caller.ask(ANTHROPIC, TALK, pictures=BYTES)
    png = {"type": "base64", "media_type": "image/png", "data": IN_PNG}
    gif = {"type": "base64", "media_type": "image/gif", "data": IN_GIF}
    assert upstream.last.body["messages"][0] == {
        "role": "user",
        "content": [
            {"type": "image", "source": png},
            {"type": "image", "source": gif},
            {"type": "text", "text": "What are these?"},
        ],
    }


async def test_google_receives_pictures_as_inline_data(upstream: Upstream, caller: Caller) -> None:
    await caller.ask(GOOGLE, TALK, pictures=BYTES)
    assert upstream.last.body["contents"][0] == {
        "role": "user",
        "parts": [
            {"inlineData": {"mimeType": "image/png", "data": IN_PNG}},
            {"inlineData": {"mimeType": "image/gif", "data": IN_GIF}},
            {"text": "What are these?"},
        ],
    }


@every_dialect
async def test_a_message_with_only_a_picture_is_sent(upstream: Upstream, caller: Caller, key: str) -> None:
    await caller.ask(key, Prompt("", (PromptMessage("user", " ", pictures=(DOT,)),)), pictures=BYTES)
    assert str(upstream.last.body).count(IN_PNG) == 1
    assert "'text': ' '" not in str(upstream.last.body)


async def test_a_cache_mark_may_be_set_on_a_picture(upstream: Upstream, caller: Caller) -> None:
    message = PromptMessage("user", "", ends_cacheable=True, pictures=(DOT,))
    await caller.ask(ANTHROPIC, Prompt("", (message, PromptMessage("user", "Which?"))), pictures=BYTES)
    (picture,) = upstream.last.body["messages"][0]["content"]
    assert (picture["type"], picture["cache_control"]) == ("image", {"type": "ephemeral"})


@every_dialect
async def test_unused_picture_bytes_do_not_change_the_request(
    upstream: Upstream, caller: Caller, key: str
) -> None:
    talk = Prompt("Be kind.", TALK.messages[1:])
    await caller.ask(key, talk)
    await caller.ask(key, talk, pictures=BYTES)
    plain, with_bytes = (request.headers | {"body": str(request.body)} for request in upstream.requests)
    assert plain == with_bytes


@every_dialect
async def test_a_large_picture_is_sent_completely_and_again_on_a_retry(
    upstream: Upstream, caller: Caller, key: str
) -> None:
    large = PNG + bytes(range(256)) * 8192
    picture = Picture(sha256(large).hexdigest(), "image/png")
    upstream.plays(refuses(503), says("I see."))
    prompt = Prompt("", (PromptMessage("user", "What is this?", pictures=(picture,)),))
    reply = await caller.ask(key, prompt, pictures={picture.content_hash: large})
    assert (reply.text, len(reply.retries)) == ("I see.", 1)
    assert [b64decode(encoded(request.body)) == large for request in upstream.requests] == [True, True]


def encoded(body: Any) -> str:
    """The longest string in a body, without the prefix of a data URL."""
    match body:
        case str():
            return body.rpartition(",")[2]
        case dict():
            return max(map(encoded, body.values()), key=len, default="")
        case list():
            return max(map(encoded, body), key=len, default="")
    return ""


@every_dialect
async def test_a_picture_without_bytes_raises_an_error_before_the_request(
    upstream: Upstream, caller: Caller, key: str
) -> None:
    with pytest.raises(KeyError):
        await caller.ask(key, TALK, pictures={DOT.content_hash: PNG})
    assert upstream.requests == []


def test_pictures_are_included_in_the_estimated_token_count() -> None:
    prompt = Prompt("", (PromptMessage("user", "abcd", pictures=(DOT, OTHER)),))
    assert estimated_usage(prompt, 0).input_tokens == 3001


def test_built_in_models_have_no_vision(caller: Caller) -> None:
    built_in = [model for model in caller.providers.models() if model.provider == "builtin"]
    assert built_in
    assert not any(model.abilities.vision for model in built_in)
