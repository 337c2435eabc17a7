"""Thinking: a summary is requested where thinking is paid for, and the effort can be chosen."""

import json
from typing import Any

import pytest

from tertulia.core.models import Abilities
from tertulia.core.thinking import Effort, ThinkingForm
from tertulia.providers import catalogue
from tertulia.providers.endpoints import is_openai_thinking_model
from tests.providers.conftest import Caller, NewCaller
from tests.upstream.scripted import Upstream, refuses, says

OFF, LOW, MEDIUM, HIGH = Effort
ADAPTIVE = {"type": "adaptive", "display": "summarized"}


def thinking_fields(body: dict[str, Any]) -> dict[str, Any]:
    """The fields of a request that concern thinking, in any dialect."""
    names = ("thinking", "output_config", "reasoning", "reasoning_effort", "reasoning_format")
    fields = {name: body[name] for name in names if name in body}
    config = body.get("generationConfig", {}).get("thinkingConfig")
    return fields | ({} if config is None else {"thinkingConfig": config})


@pytest.mark.parametrize(
    ("key", "effort", "expected"),
    [
        ("openai:gpt-5.4", None, {"reasoning": {"summary": "auto"}}),
        ("openai:gpt-5.4", HIGH, {"reasoning": {"effort": "high", "summary": "auto"}}),
        ("openai:gpt-5.4", OFF, {"reasoning": {"effort": "none"}}),
        ("openai:o3", LOW, {"reasoning": {"effort": "low", "summary": "auto"}}),
        ("openai:gpt-4o", None, {}),
        ("anthropic:claude-sonnet-5-5", None, {"thinking": ADAPTIVE}),
        ("anthropic:claude-sonnet-5-5", LOW, {"thinking": ADAPTIVE, "output_config": {"effort": "low"}}),
        ("anthropic:claude-opus-4-6", OFF, {"thinking": {"type": "disabled"}}),
        ("anthropic:claude-sonnet-4-5", None, {}),
        ("anthropic:claude-sonnet-4-5", OFF, {}),
        ("anthropic:claude-sonnet-4-5", LOW, {"thinking": {"type": "enabled", "budget_tokens": 4_096}}),
        ("anthropic:claude-haiku-4-5", HIGH, {"thinking": {"type": "enabled", "budget_tokens": 32_000}}),
        ("anthropic:claude-sonnet-3.5", None, {}),
        ("google:gemini-2.5-pro", None, {"thinkingConfig": {"includeThoughts": True}}),
        (
            "google:gemini-2.5-flash",
            MEDIUM,
            {"thinkingConfig": {"includeThoughts": True, "thinkingBudget": 8_192}},
        ),
        ("google:gemini-2.5-flash", OFF, {"thinkingConfig": {"thinkingBudget": 0}}),
        (
            "google:gemini-3.1-pro-preview",
            LOW,
            {"thinkingConfig": {"includeThoughts": True, "thinkingLevel": "low"}},
        ),
        ("google:gemini-2.0-flash", None, {}),
        ("xai:grok-4.5", None, {}),
        ("xai:grok-4.5", HIGH, {"reasoning_effort": "high"}),
        ("groq:qwen/qwen3.8-27b", None, {"reasoning_format": "parsed"}),
        ("groq:qwen/qwen3.8-27b", OFF, {"reasoning_format": "parsed", "reasoning_effort": "none"}),
        ("groq:openai/gpt-oss-120b", None, {}),
        ("groq:openai/gpt-oss-120b", MEDIUM, {"reasoning_effort": "medium"}),
        ("openrouter:anthropic/claude-sonnet-4.6", HIGH, {"reasoning": {"effort": "high"}}),
        ("openrouter:anthropic/claude-sonnet-4.6", OFF, {"reasoning": {"effort": "none"}}),
        ("openrouter:anthropic/claude-sonnet-4.6", None, {}),
        ("deepseek:deepseek-v4-pro", OFF, {"thinking": {"type": "disabled"}}),
        ("deepseek:deepseek-v4-pro", HIGH, {"reasoning_effort": "high"}),
        ("mistral:mistral-medium-latest", OFF, {"reasoning_effort": "none"}),
    ],
)
async def test_each_provider_receives_the_effort_in_its_own_form(
    upstream: Upstream, caller: Caller, key: str, effort: Effort | None, expected: dict[str, Any]
) -> None:
    caller.max_output_tokens = 64_000
    await caller.ask(key, effort=effort)
    assert thinking_fields(upstream.last.body) == expected


async def test_a_thinking_budget_is_at_most_half_the_output_limit(upstream: Upstream, caller: Caller) -> None:
    budgets = []
    for caller.max_output_tokens in (6_000, 2_000):
        await caller.ask("anthropic:claude-sonnet-4-5", effort=HIGH)
        budgets.append(upstream.last.body.get("thinking", {}).get("budget_tokens"))
    assert budgets == [3_000, None]


async def test_a_schema_and_an_effort_are_sent_together(upstream: Upstream, caller: Caller) -> None:
    await caller.ask("anthropic:claude-opus-4-6", schema={"type": "object"}, effort=HIGH)
    assert upstream.last.body["output_config"] == {
        "format": {"type": "json_schema", "schema": {"type": "object"}},
        "effort": "high",
    }


# --- OpenAI's models that think ----------------------------------------------------------------------------

UNVERIFIED = {
    "error": {
        "message": "Your organization must be verified to generate reasoning summaries.",
        "type": "invalid_request_error",
        "param": "reasoning.summary",
        "code": "unsupported_value",
    }
}


async def test_an_unverified_organisation_gets_replies_without_thinking(
    upstream: Upstream, caller: Caller
) -> None:
    upstream.plays(refuses(400, UNVERIFIED), says("Four."))
    first_reply, second_reply = await caller.ask("openai:o3"), await caller.ask("openai:o3")
    assert [(reply.text, reply.code, reply.retries) for reply in (first_reply, second_reply)] == [
        ("Four.", None, [])
    ] * 2
    assert [thinking_fields(request.body) for request in upstream.requests] == [
        {"reasoning": {"summary": "auto"}},
        {},
        {},
    ]


async def test_a_model_that_refuses_summaries_does_not_affect_other_models(
    upstream: Upstream, caller: Caller
) -> None:
    message = "Unsupported parameter: 'reasoning.summary' is not supported with this model."
    upstream.plays(refuses(400, {"error": {"message": message}}), says("Four."))
    for key in ("openai:o3", "openai:o3-pro"):
        await caller.ask(key)
    assert thinking_fields(upstream.last.body) == {"reasoning": {"summary": "auto"}}


async def test_another_error_is_not_retried_without_thinking(upstream: Upstream, caller: Caller) -> None:
    upstream.plays(refuses(400, {"error": {"message": "Unknown parameter."}}))
    assert (await caller.ask("openai:o3")).code == "unavailable"
    assert len(upstream.requests) == 1


@pytest.mark.parametrize(
    ("model_id", "thinks"),
    [
        ("o1", True),
        ("o3-mini", True),
        ("o4-mini-2025-04-16", True),
        ("gpt-5", True),
        ("gpt-5.4-nano", True),
        ("gpt-7-whatever", True),
        ("gpt-10", True),
        ("gpt-4o", False),
        ("gpt-4.1-mini", False),
        ("gpt-4-turbo", False),
        ("gpt-3.5-turbo", False),
        ("gpt-oss-120b", False),
        ("llama3.2", False),
        ("olmo-3", False),
    ],
)
def test_an_openai_model_is_recognised_as_thinking_by_its_name(model_id: str, thinks: bool) -> None:
    assert is_openai_thinking_model(model_id) is thinks


@pytest.mark.parametrize(
    "model_id",
    [
        entry.model.model_id
        for entry in catalogue.entries()
        if entry.model.provider == "openai" and not entry.is_retired
    ],
)
async def test_openai_thinking_models_use_the_responses_dialect(
    upstream: Upstream, caller: Caller, model_id: str
) -> None:
    model = caller.model(f"openai:{model_id}")
    upstream.says("Yes.")
    assert (await caller.ask(model.key)).text == "Yes."
    path = "/v1/responses" if model.abilities.thinking else "/v1/chat/completions"
    assert upstream.last.path == path
    assert is_openai_thinking_model(model_id) == model.abilities.thinking


@pytest.mark.parametrize("provider", ["xai", "openrouter", "groq", "mistral", "deepseek"])
async def test_thinking_models_of_other_providers_use_the_chat_dialect(
    upstream: Upstream, caller: Caller, provider: str
) -> None:
    thinkers = [
        model
        for model in caller.providers.models()
        if model.provider == provider and model.abilities.thinking
    ]
    for model in thinkers:
        await caller.ask(model.key)
        assert upstream.last.path.endswith("/chat/completions")
    assert thinkers


# --- custom endpoints --------------------------------------------------------------------------------------


def custom_endpoints(upstream: Upstream, *models: object, **row: object) -> str:
    defaults = {"name": "Mine", "base_url": f"{upstream.url}/v1", "key": "s3cret", "models": models}
    return json.dumps([defaults | row])


@pytest.mark.parametrize(
    ("dialect", "path"),
    [
        (None, "/v1/chat/completions"),
        ("openai_chat", "/v1/chat/completions"),
        ("openai_responses", "/v1/responses"),
        ("anthropic", "/v1/v1/messages"),
        ("google", "/v1/v1beta/models/gpt-5:streamGenerateContent?alt=sse"),
    ],
)
async def test_a_custom_endpoint_uses_the_dialect_from_its_row(
    upstream: Upstream, new_caller: NewCaller, dialect: str | None, path: str
) -> None:
    row = {} if dialect is None else {"dialect": dialect}
    caller = new_caller(TERTULIA_ENDPOINTS=custom_endpoints(upstream, "gpt-5", **row))
    upstream.says("From next door.")
    assert (await caller.ask("mine:gpt-5")).text == "From next door."
    assert upstream.last.path == path


@pytest.mark.parametrize(("counts", "requests_usage"), [(None, True), (True, True), (False, False)])
async def test_a_custom_endpoint_states_whether_usage_is_requested(
    upstream: Upstream, new_caller: NewCaller, counts: bool | None, requests_usage: bool
) -> None:
    row = {} if counts is None else {"counts": counts}
    await new_caller(TERTULIA_ENDPOINTS=custom_endpoints(upstream, "m", **row)).ask("mine:m")
    assert ("stream_options" in upstream.last.body) is requests_usage


async def test_a_custom_model_receives_the_chosen_effort(upstream: Upstream, new_caller: NewCaller) -> None:
    row = {"id": "m", "efforts": ["off", "low", "high"]}
    caller = new_caller(TERTULIA_ENDPOINTS=custom_endpoints(upstream, row, "plain"))
    model = caller.model("mine:m")
    assert (model.efforts, model.abilities) == ((OFF, LOW, HIGH), Abilities(thinking=True))
    await caller.ask("mine:m", effort=LOW)
    assert upstream.last.body["reasoning_effort"] == "low"
    await caller.ask("mine:plain", effort=LOW)
    assert "reasoning_effort" not in upstream.last.body


def test_a_custom_endpoint_at_openais_address_uses_openais_dialects(new_caller: NewCaller) -> None:
    row = {"name": "Second key", "base_url": "https://api.openai.com/v1", "models": ["gpt-9", "gpt-4o"]}
    caller = new_caller(TERTULIA_ENDPOINTS=json.dumps([row]))
    dialects = {
        key: caller.providers.dialect_of(caller.model(f"second-key:{key}")) for key in ("gpt-9", "gpt-4o")
    }
    assert dialects == {"gpt-9": "openai_responses", "gpt-4o": "openai_chat"}
    assert caller.model("second-key:gpt-9").thinking_form is ThinkingForm.EFFORT


@pytest.mark.parametrize(
    "row", [{"dialect": "klingon"}, {"counts": "no"}, {"models": [{"id": "m", "efforts": ["extreme"]}]}]
)
def test_an_invalid_endpoint_row_is_refused(
    upstream: Upstream, new_caller: NewCaller, row: dict[str, Any]
) -> None:
    with pytest.raises(Exception, match="TERTULIA_ENDPOINTS"):
        new_caller(TERTULIA_ENDPOINTS=custom_endpoints(upstream, "m", **row))


def test_every_catalogue_model_with_efforts_can_think() -> None:
    for entry in catalogue.entries():
        model = entry.model
        assert not model.efforts or model.abilities.thinking, model.key
        assert not model.efforts or model.thinking_form is not ThinkingForm.NONE, model.key
        assert list(model.efforts) == [effort for effort in Effort if effort in model.efforts], model.key
