"""The limit of an answer is sent only where a provider needs it."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tertulia.context.budget import output_limit
from tertulia.core.errors import CannotStart
from tertulia.providers.endpoints import own_endpoints
from tests.providers.conftest import ANTHROPIC, Listener, NewListener
from tests.upstream.scripted import Upstream, refuses, says

NAMES = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens", "max_new_tokens")
UNLIMITED = (
    "openai:gpt-4o",
    "openai:o3-pro",
    "google:gemini-2.5-pro",
    "xai:grok-4.3",
    "mistral:mistral-small-latest",
    "deepseek:deepseek-v4-flash",
)
RESERVING = ("groq:openai/gpt-oss-120b", "groq:qwen/qwen3.8-27b", "openrouter:openai/gpt-6.1-sol")


def limits(body: dict[str, Any]) -> dict[str, int]:
    fields = body | body.get("generationConfig", {})
    return {name: fields[name] for name in NAMES if name in fields}


async def asked(listener: Listener, key: str) -> None:
    """As a turn asks: with all the room that is kept for the model's answer."""
    whole = replace(listener, max_output_tokens=output_limit(listener.model(key)))
    assert (await whole.ask(key)).code is None


@pytest.mark.parametrize("key", UNLIMITED)
async def test_a_provider_that_needs_no_limit_is_sent_none(
    upstream: Upstream, listener: Listener, key: str
) -> None:
    await asked(listener, key)
    assert limits(upstream.last.body) == {}


async def test_anthropic_is_sent_the_whole_room_because_it_needs_a_limit(
    upstream: Upstream, listener: Listener
) -> None:
    await asked(listener, ANTHROPIC)
    assert limits(upstream.last.body) == {"max_tokens": output_limit(listener.model(ANTHROPIC))}


@pytest.mark.parametrize("key", RESERVING)
async def test_a_provider_that_reserves_what_is_asked_for_is_asked_for_a_sensible_amount(
    upstream: Upstream, listener: Listener, key: str
) -> None:
    await asked(listener, key)
    (limit,) = limits(upstream.last.body).values()
    assert 8_000 <= limit <= 16_384


async def test_a_short_answer_reserves_no_more_than_it_may_have(
    upstream: Upstream, listener: Listener
) -> None:
    await listener.ask("groq:openai/gpt-oss-20b")
    assert limits(upstream.last.body) == {"max_completion_tokens": 500}


@pytest.mark.parametrize(
    ("said", "limit"),
    [
        ({}, {}),
        ({"output_limit": None}, {}),
        ({"output_limit": "none"}, {}),
        ({"output_limit": ""}, {}),
        ({"output_limit": "max_tokens"}, {"max_tokens": 500}),
        ({"output_limit": "max_completion_tokens"}, {"max_completion_tokens": 500}),
        ({"output_limit": "max_new_tokens"}, {"max_new_tokens": 500}),
    ],
)
async def test_an_endpoint_of_ones_own_says_what_it_calls_the_limit(
    upstream: Upstream, new_listener: NewListener, said: dict[str, Any], limit: dict[str, int]
) -> None:
    row = {"name": "Mine", "base_url": f"{upstream.url}/v1", "models": ["blend"], **said}
    await new_listener(TERTULIA_ENDPOINTS=json.dumps([row])).ask("mine:blend")
    assert limits(upstream.last.body) == limit


AFFORDABLE = {"error": {"message": "You requested up to 500 tokens, but can only afford 300.", "code": 402}}


@pytest.mark.parametrize(
    ("dialect", "name"),
    [
        ("openai_chat", "max_tokens"),
        ("openai_responses", "max_output_tokens"),
        ("anthropic", "max_tokens"),
        ("google", "maxOutputTokens"),
    ],
)
async def test_a_smaller_limit_is_sent_by_the_name_its_dialect_has_for_it(
    upstream: Upstream, new_listener: NewListener, dialect: str, name: str
) -> None:
    row = {"name": "Mine", "base_url": upstream.url, "models": ["blend"], "dialect": dialect}
    upstream.plays(refuses(402, AFFORDABLE), says("In short."))
    heard = await new_listener(TERTULIA_ENDPOINTS=json.dumps([row])).ask("mine:blend")
    assert (heard.text, limits(upstream.last.body)) == ("In short.", {name: 300})


async def test_a_limit_named_for_google_is_sent_to_it(upstream: Upstream, new_listener: NewListener) -> None:
    row = {"name": "Mine", "base_url": upstream.url, "models": ["blend"], "dialect": "google"}
    row["output_limit"] = "maxOutputTokens"
    await new_listener(TERTULIA_ENDPOINTS=json.dumps([row])).ask("mine:blend")
    assert limits(upstream.last.body) == {"maxOutputTokens": 500}


def test_a_company_that_reserves_is_asked_for_less_by_the_name_of_the_dialect(listener: Listener) -> None:
    row = {"name": "Mine", "base_url": "https://api.groq.com/openai/v1", "key": "k", "models": ["blend"]}
    (own,) = own_endpoints({"TERTULIA_ENDPOINTS": json.dumps([row | {"dialect": "openai_responses"}])})
    assert list(own.endpoint.limited(listener.call())) == ["max_output_tokens"]


@pytest.mark.parametrize(
    "address",
    ["https://api.groq.com/openai/v1", "https://api.cerebras.ai/v1", "https://openrouter.ai/api/v1"],
)
def test_an_endpoint_of_ones_own_at_a_company_that_reserves_is_asked_for_a_sensible_amount(
    listener: Listener, address: str
) -> None:
    row = {"name": "Mine", "base_url": address, "key": "k", "models": ["blend"]}
    (own,) = own_endpoints({"TERTULIA_ENDPOINTS": json.dumps([row])})
    (limit,) = own.endpoint.limited(replace(listener.call(), max_output_tokens=65_536)).values()
    assert 8_000 <= limit <= 16_384


@pytest.mark.parametrize("name", ["max tokens", "7", "-1"])
def test_a_limit_whose_name_is_no_name_stops_the_start_with_a_sentence(name: str) -> None:
    row = {"name": "Mine", "base_url": "http://x", "models": ["blend"], "output_limit": name}
    with pytest.raises(CannotStart, match="output_limit is the name of a field"):
        own_endpoints({"TERTULIA_ENDPOINTS": json.dumps([row])})
