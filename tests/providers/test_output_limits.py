"""Output limit: it is sent only to providers that need it."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tertulia.context.budget import output_limit
from tertulia.core.errors import CannotStart
from tertulia.providers.endpoints import custom_endpoints
from tests.providers.conftest import ANTHROPIC, Caller, NewCaller
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


async def ask_as_a_turn(caller: Caller, key: str) -> None:
    """Calls the model as a turn does, with the model's whole output limit."""
    turn_listener = replace(caller, max_output_tokens=output_limit(caller.model(key)))
    assert (await turn_listener.ask(key)).code is None


@pytest.mark.parametrize("key", UNLIMITED)
async def test_providers_that_need_no_output_limit_receive_none(
    upstream: Upstream, caller: Caller, key: str
) -> None:
    await ask_as_a_turn(caller, key)
    assert limits(upstream.last.body) == {}


async def test_anthropic_receives_the_models_whole_output_limit(upstream: Upstream, caller: Caller) -> None:
    await ask_as_a_turn(caller, ANTHROPIC)
    assert limits(upstream.last.body) == {"max_tokens": output_limit(caller.model(ANTHROPIC))}


@pytest.mark.parametrize("key", RESERVING)
async def test_providers_that_reserve_the_limit_receive_a_moderate_one(
    upstream: Upstream, caller: Caller, key: str
) -> None:
    await ask_as_a_turn(caller, key)
    (limit,) = limits(upstream.last.body).values()
    assert 8_000 <= limit <= 16_384


async def test_a_small_output_limit_is_sent_unchanged(upstream: Upstream, caller: Caller) -> None:
    await caller.ask("groq:openai/gpt-oss-20b")
    assert limits(upstream.last.body) == {"max_completion_tokens": 500}


@pytest.mark.parametrize(
    ("setting", "limit"),
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
async def test_a_custom_endpoint_names_the_field_of_the_output_limit(
    upstream: Upstream, new_caller: NewCaller, setting: dict[str, Any], limit: dict[str, int]
) -> None:
    row = {"name": "Mine", "base_url": f"{upstream.url}/v1", "models": ["blend"], **setting}
    await new_caller(TERTULIA_ENDPOINTS=json.dumps([row])).ask("mine:blend")
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
async def test_a_retry_with_a_smaller_limit_uses_the_dialects_field_name(
    upstream: Upstream, new_caller: NewCaller, dialect: str, name: str
) -> None:
    row = {"name": "Mine", "base_url": upstream.url, "models": ["blend"], "dialect": dialect}
    upstream.plays(refuses(402, AFFORDABLE), says("In short."))
    reply = await new_caller(TERTULIA_ENDPOINTS=json.dumps([row])).ask("mine:blend")
    assert (reply.text, limits(upstream.last.body)) == ("In short.", {name: 300})


@pytest.mark.parametrize(
    "message",
    [
        "`max_tokens` must be less than or equal to `300`, the maximum value for `max_tokens` is less than "
        "the `context_window` for this model",
        "max_tokens is too large: 500. This model supports at most 300 completion tokens, whereas you "
        "provided 500.",
        "max_tokens: 500 > 300, which is the maximum allowed number of output tokens for claude-x",
        "Invalid max_tokens value, the valid range of max_tokens is [1, 300]",
    ],
)
async def test_a_limit_above_the_models_own_is_lowered_once(
    upstream: Upstream, new_caller: NewCaller, message: str
) -> None:
    """The message may mention the context window, but the question is not too long."""
    row = {"name": "Mine", "base_url": upstream.url, "models": ["blend"], "output_limit": "max_tokens"}
    refusal = refuses(400, {"error": {"message": message}})
    upstream.plays(refusal, says("In short."), refusal)
    caller = new_caller(TERTULIA_ENDPOINTS=json.dumps([row]))
    assert (await caller.ask("mine:blend")).text == "In short."
    assert limits(upstream.last.body) == {"max_tokens": 300}
    reply = await caller.ask("mine:blend")
    assert (reply.code, len(upstream.requests)) == ("unavailable", 4)


async def test_a_custom_google_endpoint_receives_the_named_output_limit(
    upstream: Upstream, new_caller: NewCaller
) -> None:
    row = {"name": "Mine", "base_url": upstream.url, "models": ["blend"], "dialect": "google"}
    row["output_limit"] = "maxOutputTokens"
    await new_caller(TERTULIA_ENDPOINTS=json.dumps([row])).ask("mine:blend")
    assert limits(upstream.last.body) == {"maxOutputTokens": 500}


def test_a_custom_groq_endpoint_uses_the_field_name_of_its_own_dialect(caller: Caller) -> None:
    row = {"name": "Mine", "base_url": "https://api.groq.com/openai/v1", "key": "k", "models": ["blend"]}
    (custom,) = custom_endpoints({"TERTULIA_ENDPOINTS": json.dumps([row | {"dialect": "openai_responses"}])})
    assert list(custom.endpoint.output_limit_field(caller.call())) == ["max_output_tokens"]


@pytest.mark.parametrize(
    "address",
    ["https://api.groq.com/openai/v1", "https://api.cerebras.ai/v1", "https://openrouter.ai/api/v1"],
)
def test_a_custom_endpoint_of_a_reserving_provider_sends_a_moderate_limit(
    caller: Caller, address: str
) -> None:
    row = {"name": "Mine", "base_url": address, "key": "k", "models": ["blend"]}
    (custom,) = custom_endpoints({"TERTULIA_ENDPOINTS": json.dumps([row])})
    (limit,) = custom.endpoint.output_limit_field(replace(caller.call(), max_output_tokens=65_536)).values()
    assert 8_000 <= limit <= 16_384


@pytest.mark.parametrize("name", ["max tokens", "7", "-1"])
def test_an_invalid_output_limit_name_stops_the_start_with_a_message(name: str) -> None:
    row = {"name": "Mine", "base_url": "http://x", "models": ["blend"], "output_limit": name}
    with pytest.raises(CannotStart, match="output_limit is the name of a field"):
        custom_endpoints({"TERTULIA_ENDPOINTS": json.dumps([row])})
