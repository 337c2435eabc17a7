"""Dialects: the events, finish reasons and token counts that only one dialect has."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.core.models import TokenCount
from tertulia.core.prompts import Prompt, PromptMessage
from tertulia.providers import catalogue
from tertulia.providers.anthropic import MessagesDecoder
from tertulia.providers.errors import ErrorFactory
from tertulia.providers.google import GeminiDecoder
from tertulia.providers.interface import TextDelta, ThinkingDelta
from tertulia.providers.limits import Limits
from tertulia.providers.openai_chat import ChatDecoder
from tertulia.providers.openai_responses import ResponsesDecoder
from tertulia.providers.sse import SseEvent
from tertulia.providers.stream_decoder import StreamDecoder
from tests.providers.conftest import ANTHROPIC, CHAT, GOOGLE, RESPONSES, Caller
from tests.upstream.scripted import Bare, Finish, Raw, Say, Upstream

ERRORS = ErrorFactory("Someone", catalogue.unknown("openai", "gpt-9"), Limits())


def lines(*events: dict[str, Any]) -> Raw:
    """Events as a provider sends them; named if they have a type."""
    return Raw(b"".join(_line(event) for event in events))


def _line(event: dict[str, Any]) -> bytes:
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()


# --- Anthropic ---------------------------------------------------------------------------------------------

HELLO = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello."}}
STOP = {"type": "message_stop"}


def anthropic_finish(reason: str = "end_turn", **usage: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


def anthropic_start(**usage: Any) -> dict[str, Any]:
    return {"type": "message_start", "message": {"type": "message", "content": [], "usage": usage}}


async def test_anthropic_usage_includes_tokens_written_to_and_read_from_the_cache(
    upstream: Upstream, caller: Caller
) -> None:
    start_event = anthropic_start(
        input_tokens=10, cache_creation_input_tokens=20, cache_read_input_tokens=70, output_tokens=1
    )
    finish_event = anthropic_finish(output_tokens=9, output_tokens_details={"thinking_tokens": 4})
    upstream.plays((lines(start_event, HELLO, finish_event, STOP), Bare()))
    reply = await caller.ask(ANTHROPIC)
    assert reply.end is not None
    assert reply.end.count == TokenCount(100, 70, 9, 4, written_tokens=20)


@pytest.mark.parametrize("output_tokens", [-5, 1e300, "3", None, True])
async def test_anthropic_usage_without_a_valid_output_count_is_estimated(
    upstream: Upstream, caller: Caller, output_tokens: object
) -> None:
    start_event = anthropic_start(input_tokens=10, output_tokens=1)
    upstream.plays((lines(start_event, HELLO, anthropic_finish(output_tokens=output_tokens), STOP), Bare()))
    reply = await caller.ask(ANTHROPIC)
    assert reply.end is not None
    assert reply.end.count == TokenCount(4, 0, 2, is_estimated=True)


async def test_anthropic_signatures_tool_input_and_redacted_thinking_are_ignored(
    upstream: Upstream, caller: Caller
) -> None:
    strange: list[dict[str, Any]] = [
        {"type": "content_block_start", "content_block": {"type": "redacted_thinking", "data": "x"}},
        {"type": "content_block_delta", "delta": {"type": "signature_delta", "signature": "x"}},
        {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": "{"}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": 7}},
        {"type": "content_block_delta", "delta": "text"},
        {"type": "a_new_kind", "delta": {"type": "text_delta", "text": "x"}},
    ]
    upstream.plays((lines(anthropic_start(), *strange, HELLO, anthropic_finish(), STOP), Bare()))
    reply = await caller.ask(ANTHROPIC)
    assert (reply.text, reply.thinking, reply.code) == ("Hello.", "", None)


@pytest.mark.parametrize(
    ("details", "reason"),
    [
        (
            {"stop_details": {"type": "refusal", "category": "bio", "explanation": "Not this one."}},
            "Not this one.",
        ),
        ({"stop_details": None}, "refusal"),
        ({}, "refusal"),
    ],
)
async def test_an_anthropic_refusal_gives_its_explanation(
    upstream: Upstream, caller: Caller, details: dict[str, Any], reason: str
) -> None:
    finish_event = {"type": "message_delta", "delta": {"stop_reason": "refusal", **details}, "usage": {}}
    upstream.plays((lines(HELLO, finish_event, STOP), Bare()))
    reply = await caller.ask(ANTHROPIC)
    assert reply.end is not None
    assert (reply.text, reply.end.finish, reply.end.reason) == ("Hello.", "filtered", reason)


async def test_an_anthropic_message_in_one_json_object_is_decoded(upstream: Upstream, caller: Caller) -> None:
    content = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Four."}]
    usage = {"input_tokens": 5, "output_tokens": 2}
    message = {"type": "message", "content": content, "stop_reason": "max_tokens", "usage": usage}
    upstream.plays((Raw(json.dumps(message).encode()), Bare()))
    reply = await caller.ask(ANTHROPIC)
    assert reply.end is not None
    assert (reply.thinking, reply.text, reply.end.finish) == ("Hm.", "Four.", "length")
    assert reply.end.count == TokenCount(5, 0, 2)


async def test_an_anthropic_reply_that_fills_the_window_finishes_with_length(
    upstream: Upstream, caller: Caller
) -> None:
    upstream.plays((lines(HELLO, anthropic_finish("model_context_window_exceeded"), STOP), Bare()))
    reply = await caller.ask(ANTHROPIC)
    assert reply.end is not None
    assert reply.end.finish == "length"


async def test_anthropic_receives_cache_marks_on_the_system_prompt_and_the_last_three_messages(
    upstream: Upstream, caller: Caller
) -> None:
    talk = tuple(PromptMessage("user", f"{number}?", ends_cacheable=True) for number in range(6))
    await caller.ask(ANTHROPIC, Prompt("Be kind.", talk))
    body = upstream.last.body
    blocks = [*body["system"], *(message["content"][-1] for message in body["messages"])]
    texts_with_mark = [block["text"] for block in blocks if "cache_control" in block]
    assert texts_with_mark == ["Be kind.", "3?", "4?", "5?"]


async def test_anthropic_receives_the_api_version_and_no_temperature(
    upstream: Upstream, caller: Caller
) -> None:
    """This API version has no temperature and refuses a request with one."""
    await caller.ask(ANTHROPIC, temperature=0.2)
    assert (upstream.last.path, upstream.last.headers["anthropic-version"]) == ("/v1/messages", "2026-10-21")
    assert upstream.last.body == {
        "model": "claude-sonnet-5-5",
        "max_tokens": 500,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello?"}]}],
        "stream": True,
        "system": [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}],
        "thinking": {"type": "adaptive", "display": "summarized"},
    }


# --- Google ------------------------------------------------------------------------------------------------


def gemini_event(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": list(parts), "role": "model"}, **more}]}


async def test_google_receives_the_whole_conversation(upstream: Upstream, caller: Caller) -> None:
    talk = (
        PromptMessage("user", "One?"),
        PromptMessage("assistant", "Two."),
        PromptMessage("user", "Three?"),
    )
    await caller.ask(GOOGLE, Prompt("Be kind.", talk), temperature=0.2)
    assert upstream.last.path == "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"
    assert upstream.last.body == {
        "contents": [
            {"role": "user", "parts": [{"text": "One?"}]},
            {"role": "model", "parts": [{"text": "Two."}]},
            {"role": "user", "parts": [{"text": "Three?"}]},
        ],
        "generationConfig": {"temperature": 0.2, "thinkingConfig": {"includeThoughts": True}},
        "systemInstruction": {"parts": [{"text": "Be kind."}]},
    }


async def test_a_prompt_blocked_by_google_finishes_with_filtered(upstream: Upstream, caller: Caller) -> None:
    blocked = {
        "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
        "usageMetadata": {"promptTokenCount": 8},
    }
    upstream.plays((lines(blocked), Bare()))
    reply = await caller.ask(GOOGLE)
    assert reply.end is not None
    assert (reply.end.finish, reply.end.count) == ("filtered", TokenCount(8, 0, 0))


@pytest.mark.parametrize(
    "reason",
    ["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "MODEL_ARMOR"],
)
async def test_a_google_filter_is_named_in_the_reason(
    upstream: Upstream, caller: Caller, reason: str
) -> None:
    cut = gemini_event({"text": "First you"}, finishReason=reason, finishMessage="It was stopped.")
    upstream.plays((lines(cut), Bare()))
    reply = await caller.ask(GOOGLE)
    assert reply.end is not None
    assert (reply.text, reply.end.finish, reply.end.is_early) == ("First you", "filtered", False)
    assert reply.end.reason == f"It was stopped. ({reason})"


@pytest.mark.parametrize(
    "reason",
    [
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "OTHER",
        "LANGUAGE",
        "TOO_MANY_TOOL_CALLS",
        "A_NEW_ONE",
    ],
)
async def test_an_unusual_google_finish_reason_marks_the_reply_as_broken_off(
    upstream: Upstream, caller: Caller, reason: str
) -> None:
    upstream.plays((lines(gemini_event(finishReason=reason)), Bare()))
    reply = await caller.ask(GOOGLE)
    assert reply.end is not None
    assert (reply.text, reply.end.is_early, reply.end.reason) == ("", True, reason)


async def test_googles_last_prompt_token_count_is_used(upstream: Upstream, caller: Caller) -> None:
    """Gemini 2.0 sends a guess first and corrects it; thinking models send a growing output count."""
    first = gemini_event({"text": "The"}) | {
        "usageMetadata": {"promptTokenCount": 165, "candidatesTokenCount": 1}
    }
    last = gemini_event({"text": " end"}, finishReason="STOP") | {
        "usageMetadata": {"promptTokenCount": 163, "candidatesTokenCount": 13}
    }
    upstream.plays((lines(first, last), Bare()))
    reply = await caller.ask(GOOGLE)
    assert reply.end is not None
    assert reply.end.count == TokenCount(163, 0, 13)


@pytest.mark.parametrize(
    ("usage", "count"),
    [
        ({"promptTokenCount": 10, "totalTokenCount": 13}, TokenCount(10, 0, 3)),
        (
            {"promptTokenCount": 10, "thoughtsTokenCount": 40, "totalTokenCount": 53},
            TokenCount(10, 0, 43, 40),
        ),
        (
            {"promptTokenCount": 10, "toolUsePromptTokenCount": 5, "totalTokenCount": 18},
            TokenCount(10, 0, 3),
        ),
        ({"promptTokenCount": 10, "totalTokenCount": 10}, TokenCount(10, 0, 0)),
    ],
)
async def test_output_tokens_that_google_reports_only_in_the_total_are_counted(
    upstream: Upstream, caller: Caller, usage: dict[str, int], count: TokenCount
) -> None:
    last = gemini_event({"text": "The end"}, finishReason="STOP") | {"usageMetadata": usage}
    upstream.plays((lines(last), Bare()))
    reply = await caller.ask(GOOGLE)
    assert reply.end is not None
    assert reply.end.count == count


async def test_only_googles_first_candidate_is_used(upstream: Upstream, caller: Caller) -> None:
    second_candidate = gemini_event({"text": "Another answer"}, index=1, finishReason="STOP")
    last = gemini_event({"text": "Three"}, {"inlineData": {}}, {"text": " four."}, finishReason="STOP")
    upstream.plays((lines(gemini_event({"text": "Two "}, index=0), second_candidate, last), Bare()))
    reply = await caller.ask(GOOGLE)
    assert (reply.text, reply.code) == ("Two Three four.", None)


async def test_googles_unspecified_finish_reason_does_not_complete_a_reply(
    upstream: Upstream, caller: Caller
) -> None:
    open_ended = gemini_event({"text": "Hello."}, finishReason="FINISH_REASON_UNSPECIFIED")
    upstream.plays((lines(open_ended), Bare()))
    reply = await caller.ask(GOOGLE)
    assert (reply.text, reply.code) == ("Hello.", "cut")


@pytest.mark.parametrize("figure", [-5, 1e300, "3", True])
async def test_an_implausible_google_token_count_is_replaced_by_an_estimate(
    upstream: Upstream, caller: Caller, figure: object
) -> None:
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 3, "thoughtsTokenCount": figure}
    upstream.plays(
        (lines(gemini_event({"text": "abcdefgh"}, finishReason="STOP") | {"usageMetadata": usage}), Bare())
    )
    reply = await caller.ask(GOOGLE)
    assert reply.end is not None
    assert reply.end.count == TokenCount(4, 0, 2, is_estimated=True)


# --- OpenAI responses --------------------------------------------------------------------------------------


def failed_response(code: str, message: str) -> dict[str, Any]:
    return {"type": "response.failed", "response": {"error": {"code": code, "message": message}}}


async def test_openai_responses_receive_the_whole_conversation(upstream: Upstream, caller: Caller) -> None:
    talk = (
        PromptMessage("user", "One?"),
        PromptMessage("assistant", "Two."),
        PromptMessage("user", "Three?"),
    )
    await caller.ask(RESPONSES, Prompt("Be kind.", talk), temperature=0.2)
    assert upstream.last.body == {
        "model": "o3-pro",
        "input": [
            {"role": "user", "content": "One?"},
            {"role": "assistant", "content": "Two."},
            {"role": "user", "content": "Three?"},
        ],
        "stream": True,
        "store": False,
        "instructions": "Be kind.",
        "reasoning": {"summary": "auto"},
    }


async def test_a_failed_response_quotes_the_providers_message(upstream: Upstream, caller: Caller) -> None:
    upstream.plays((lines(failed_response("server_error", "The model slipped.")), Bare()))
    reply = await caller.ask(RESPONSES)
    assert reply.error is not None
    assert (reply.code, len(reply.retries)) == ("unavailable", 2)
    assert reply.error.detail == "The model slipped. (server_error)"


@pytest.mark.parametrize(
    ("code", "error_code"),
    [
        ("invalid_image_format", "unavailable"),
        ("image_content_policy_violation", "filtered"),
        ("bio_policy", "filtered"),
    ],
)
async def test_a_response_that_failed_because_of_its_request_is_not_retried(
    upstream: Upstream, caller: Caller, code: str, error_code: str
) -> None:
    upstream.plays((lines(failed_response(code, "No.")), Bare()))
    reply = await caller.ask(RESPONSES)
    assert (reply.code, reply.retries) == (error_code, [])


@pytest.mark.parametrize(
    ("key", "refusal"),
    [
        (RESPONSES, {"type": "response.refusal.delta", "delta": "I cannot help with that."}),
        (CHAT, {"choices": [{"index": 0, "delta": {"refusal": "I cannot help with that."}}]}),
    ],
)
async def test_a_models_refusal_text_is_streamed_as_text(
    upstream: Upstream, caller: Caller, key: str, refusal: dict[str, Any]
) -> None:
    upstream.plays((lines(refusal), Finish()))
    reply = await caller.ask(key)
    assert reply.end is not None
    assert (reply.text, reply.end.finish) == ("I cannot help with that.", "stop")


def message_item(number: int, *texts: str) -> list[dict[str, Any]]:
    start_event = {"type": "response.output_item.added", "output_index": number, "item": {"type": "message"}}
    return [start_event, *({"type": "response.output_text.delta", "delta": text} for text in texts)]


async def test_two_messages_of_one_response_become_two_paragraphs(upstream: Upstream, caller: Caller) -> None:
    upstream.plays(
        (lines(*message_item(0, "Let me", " see."), *message_item(1, "It is", " four.")), Finish())
    )
    reply = await caller.ask(RESPONSES)
    assert reply.text == "Let me see.\n\nIt is four."


def response_of(*output: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"object": "response", "status": "completed", "output": list(output)} | more


def whole_message(text: str) -> dict[str, Any]:
    return {"type": "message", "content": [{"type": "output_text", "text": text}]}


@pytest.mark.parametrize(
    "answer",
    [
        {"type": "response.completed", "response": response_of(whole_message("Four."))},
        response_of({"type": "reasoning", "summary": []}, whole_message("Four.")),
    ],
)
async def test_a_response_in_one_json_object_is_decoded(
    upstream: Upstream, caller: Caller, answer: dict[str, Any]
) -> None:
    upstream.plays((lines(answer), Bare()))
    reply = await caller.ask(RESPONSES)
    assert (reply.text, reply.code) == ("Four.", None)


@pytest.mark.parametrize("details", [None, {"reason": "a_new_reason"}])
async def test_an_incomplete_response_is_marked_as_broken_off(
    upstream: Upstream, caller: Caller, details: dict[str, str] | None
) -> None:
    cut = response_of(whole_message("Four"), status="incomplete", incomplete_details=details)
    upstream.plays((lines({"type": "response.incomplete", "response": cut}), Bare()))
    reply = await caller.ask(RESPONSES)
    assert reply.end is not None
    assert (reply.text, reply.end.is_early) == ("Four", True)
    assert reply.end.reason == (details["reason"] if details else None)


async def test_openai_usage_includes_tokens_written_to_the_cache(upstream: Upstream, caller: Caller) -> None:
    usage = {
        "input_tokens": 100,
        "output_tokens": 9,
        "input_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 60},
    }
    done = {"type": "response.completed", "response": response_of(whole_message("Yes."), usage=usage)}
    upstream.plays((lines(done), Bare()))
    reply = await caller.ask(RESPONSES)
    assert reply.end is not None
    assert reply.end.count == TokenCount(100, 20, 9, written_tokens=60)


async def test_the_parts_of_a_thinking_summary_become_paragraphs(upstream: Upstream, caller: Caller) -> None:
    part = "response.reasoning_summary_part.added"
    text = "response.reasoning_summary_text.delta"
    summary = [
        {"type": part, "summary_index": 0},
        {"type": text, "summary_index": 0, "delta": "First this."},
        {"type": part, "summary_index": 1},
        {"type": text, "summary_index": 1, "delta": "Then that."},
    ]
    upstream.plays((lines(*summary), Say("Done."), Finish()))
    reply = await caller.ask(RESPONSES)
    assert (reply.thinking, reply.text) == ("First this.\n\nThen that.", "Done.")


# --- untrusted input (XS 6, PF 11) -------------------------------------------------------------------------

DECODERS = (ChatDecoder, ResponsesDecoder, MessagesDecoder, GeminiDecoder)
FIELDS = st.sampled_from(
    [
        "choices",
        "delta",
        "content",
        "index",
        "finish_reason",
        "usage",
        "message",
        "type",
        "text",
        "thinking",
        "thought",
        "response",
        "error",
        "content_block",
        "stop_reason",
        "candidates",
        "parts",
        "finishReason",
        "promptFeedback",
        "blockReason",
        "usageMetadata",
        "input_tokens",
        "output_tokens",
        "promptTokenCount",
        "candidatesTokenCount",
        "summary_index",
        "incomplete_details",
    ]
)
KINDS = st.sampled_from(
    [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "message_delta",
        "message_stop",
        "text_delta",
        "text",
        "thinking_delta",
        "response.output_text.delta",
        "response.completed",
        "response.incomplete",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_text.delta",
    ]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | KINDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("decoder_class", DECODERS)
@given(st.lists(st.dictionaries(FIELDS, values, max_size=5), max_size=5))
def test_arbitrary_events_decode_to_text_and_thinking_only(
    decoder_class: type[StreamDecoder], events: list[dict[str, Any]]
) -> None:
    decoder = decoder_class(ERRORS)
    deltas = decoder.decode([SseEvent("", json.dumps(event)) for event in events])
    assert all(isinstance(delta, TextDelta | ThinkingDelta) and delta.text for delta in deltas)
    for delta in deltas:
        delta.text.encode("utf-8")
    count = decoder.count(Prompt("", ()))
    assert min(count.input_tokens, count.cached_tokens, count.output_tokens, count.reasoning_tokens) >= 0
    assert count.cached_tokens <= count.input_tokens
    assert count.reasoning_tokens <= count.output_tokens


@pytest.mark.parametrize("decoder_class", DECODERS)
def test_events_with_unknown_names_are_ignored(decoder_class: type[StreamDecoder]) -> None:
    """A server's own events must not add text, whatever their names."""
    events_of_all_dialects = [
        {"choices": [{"index": 0, "delta": {"content": "x"}}]},
        {"type": "response.output_text.delta", "delta": "x"},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "x"}},
        {"candidates": [{"content": {"parts": [{"text": "x"}]}}]},
    ]
    events = [json.dumps(event) for event in events_of_all_dialects]
    assert decoder_class(ERRORS).decode([SseEvent("", data) for data in events]) == [TextDelta("x")]
    assert decoder_class(ERRORS).decode([SseEvent("execute", data) for data in events]) == []


# --- structured output -------------------------------------------------------------------------------------

SCHEMA = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


@pytest.mark.parametrize(
    ("model", "path"),
    [
        (CHAT, ("response_format", "json_schema", "schema")),
        (RESPONSES, ("text", "format", "schema")),
        (ANTHROPIC, ("output_config", "format", "schema")),
        (GOOGLE, ("generationConfig", "responseJsonSchema")),
    ],
)
async def test_a_json_schema_is_sent_in_the_field_of_the_dialect(
    upstream: Upstream, caller: Caller, model: str, path: tuple[str, ...]
) -> None:
    await caller.ask(model)
    await caller.ask(model, schema=SCHEMA)
    plain, with_schema = (request.body for request in upstream.requests)
    assert path[0] not in plain or path[-1] not in plain[path[0]]
    for name in path:
        with_schema = with_schema[name]
    assert with_schema == SCHEMA
