"""What each dialect has for itself: its own events, its own ends, its own way to count."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.core.models import TokenCount
from tertulia.core.prompts import Prompt, PromptMessage
from tertulia.providers import catalogue
from tertulia.providers.anthropic import MessagesReading
from tertulia.providers.faults import Faults
from tertulia.providers.google import GeminiReading
from tertulia.providers.limits import Limits
from tertulia.providers.openai_chat import ChatReading
from tertulia.providers.openai_responses import ResponsesReading
from tertulia.providers.reading import Reading
from tertulia.providers.seam import Text, Thought
from tertulia.providers.sse import Event
from tests.providers.conftest import ANTHROPIC, CHAT, GOOGLE, RESPONSES, Listener
from tests.upstream.scripted import Bare, Finish, Raw, Say, Upstream

FAULTS = Faults("Someone", catalogue.unknown("openai", "gpt-9"), Limits())


def lines(*events: dict[str, Any]) -> Raw:
    """As a provider sends them: named where they have a type."""
    return Raw(b"".join(_line(event) for event in events))


def _line(event: dict[str, Any]) -> bytes:
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()


# --- Anthropic ---------------------------------------------------------------------------------------------

HELLO = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello."}}
STOP = {"type": "message_stop"}


def anthropic_ends(reason: str = "end_turn", **usage: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


def anthropic_begins(**usage: Any) -> dict[str, Any]:
    return {"type": "message_start", "message": {"type": "message", "content": [], "usage": usage}}


async def test_anthropic_counts_what_went_into_the_cache_and_what_came_out_of_it(
    upstream: Upstream, listener: Listener
) -> None:
    begins = anthropic_begins(
        input_tokens=10, cache_creation_input_tokens=20, cache_read_input_tokens=70, output_tokens=1
    )
    ends = anthropic_ends(output_tokens=9, output_tokens_details={"thinking_tokens": 4})
    upstream.plays((lines(begins, HELLO, ends, STOP), Bare()))
    heard = await listener.ask(ANTHROPIC)
    assert heard.end is not None
    assert heard.end.count == TokenCount(100, 70, 9, 4, written_tokens=20)


@pytest.mark.parametrize("said", [-5, 1e300, "3", None, True])
async def test_what_anthropic_counts_before_the_answer_is_not_the_answers_count(
    upstream: Upstream, listener: Listener, said: object
) -> None:
    begins = anthropic_begins(input_tokens=10, output_tokens=1)
    upstream.plays((lines(begins, HELLO, anthropic_ends(output_tokens=said), STOP), Bare()))
    heard = await listener.ask(ANTHROPIC)
    assert heard.end is not None
    assert heard.end.count == TokenCount(4, 0, 2, is_estimated=True)


async def test_anthropics_signatures_tools_and_sealed_thoughts_are_not_heard(
    upstream: Upstream, listener: Listener
) -> None:
    strange: list[dict[str, Any]] = [
        {"type": "content_block_start", "content_block": {"type": "redacted_thinking", "data": "x"}},
        {"type": "content_block_delta", "delta": {"type": "signature_delta", "signature": "x"}},
        {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": "{"}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": 7}},
        {"type": "content_block_delta", "delta": "text"},
        {"type": "a_new_kind", "delta": {"type": "text_delta", "text": "x"}},
    ]
    upstream.plays((lines(anthropic_begins(), *strange, HELLO, anthropic_ends(), STOP), Bare()))
    heard = await listener.ask(ANTHROPIC)
    assert (heard.text, heard.thinking, heard.code) == ("Hello.", "", None)


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
async def test_anthropics_filter_explains_itself(
    upstream: Upstream, listener: Listener, details: dict[str, Any], reason: str
) -> None:
    ends = {"type": "message_delta", "delta": {"stop_reason": "refusal", **details}, "usage": {}}
    upstream.plays((lines(HELLO, ends, STOP), Bare()))
    heard = await listener.ask(ANTHROPIC)
    assert heard.end is not None
    assert (heard.text, heard.end.finish, heard.end.reason) == ("Hello.", "filtered", reason)


async def test_a_message_of_anthropics_that_comes_as_one_object_is_read_whole(
    upstream: Upstream, listener: Listener
) -> None:
    content = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Four."}]
    usage = {"input_tokens": 5, "output_tokens": 2}
    message = {"type": "message", "content": content, "stop_reason": "max_tokens", "usage": usage}
    upstream.plays((Raw(json.dumps(message).encode()), Bare()))
    heard = await listener.ask(ANTHROPIC)
    assert heard.end is not None
    assert (heard.thinking, heard.text, heard.end.finish) == ("Hm.", "Four.", "length")
    assert heard.end.count == TokenCount(5, 0, 2)


async def test_a_window_that_is_full_is_an_answer_cut_by_its_limit(
    upstream: Upstream, listener: Listener
) -> None:
    upstream.plays((lines(HELLO, anthropic_ends("model_context_window_exceeded"), STOP), Bare()))
    heard = await listener.ask(ANTHROPIC)
    assert heard.end is not None
    assert heard.end.finish == "length"


async def test_anthropic_is_sent_no_more_marks_than_it_takes_and_the_last_ones(
    upstream: Upstream, listener: Listener
) -> None:
    talk = tuple(PromptMessage("user", f"{number}?", ends_cacheable=True) for number in range(6))
    await listener.ask(ANTHROPIC, Prompt("Be kind.", talk))
    body = upstream.last.body
    blocks = [*body["system"], *(message["content"][-1] for message in body["messages"])]
    marked = [block["text"] for block in blocks if "cache_control" in block]
    assert marked == ["Be kind.", "3?", "4?", "5?"]


async def test_anthropic_is_told_which_protocol_we_speak_and_no_temperature(
    upstream: Upstream, listener: Listener
) -> None:
    """The protocol has none any more, and refuses a request with one."""
    await listener.ask(ANTHROPIC, temperature=0.2)
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


def gemini(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": list(parts), "role": "model"}, **more}]}


async def test_google_is_sent_the_whole_conversation(upstream: Upstream, listener: Listener) -> None:
    talk = (
        PromptMessage("user", "One?"),
        PromptMessage("assistant", "Two."),
        PromptMessage("user", "Three?"),
    )
    await listener.ask(GOOGLE, Prompt("Be kind.", talk), temperature=0.2)
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


async def test_a_question_google_refuses_is_filtered(upstream: Upstream, listener: Listener) -> None:
    blocked = {
        "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
        "usageMetadata": {"promptTokenCount": 8},
    }
    upstream.plays((lines(blocked), Bare()))
    heard = await listener.ask(GOOGLE)
    assert heard.end is not None
    assert (heard.end.finish, heard.end.count) == ("filtered", TokenCount(8, 0, 0))


@pytest.mark.parametrize(
    "reason",
    ["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "MODEL_ARMOR"],
)
async def test_a_filter_of_googles_is_named(upstream: Upstream, listener: Listener, reason: str) -> None:
    cut = gemini({"text": "First you"}, finishReason=reason, finishMessage="It was stopped.")
    upstream.plays((lines(cut), Bare()))
    heard = await listener.ask(GOOGLE)
    assert heard.end is not None
    assert (heard.text, heard.end.finish, heard.end.is_early) == ("First you", "filtered", False)
    assert heard.end.reason == f"It was stopped. ({reason})"


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
async def test_an_end_of_googles_that_is_neither_done_nor_cut_gives_its_reason(
    upstream: Upstream, listener: Listener, reason: str
) -> None:
    upstream.plays((lines(gemini(finishReason=reason)), Bare()))
    heard = await listener.ask(GOOGLE)
    assert heard.end is not None
    assert (heard.text, heard.end.is_early, heard.end.reason) == ("", True, reason)


async def test_googles_last_count_of_what_was_sent_counts(upstream: Upstream, listener: Listener) -> None:
    """Gemini 2.0 guesses first and corrects itself; thinking models count up what they say."""
    first = gemini({"text": "The"}) | {"usageMetadata": {"promptTokenCount": 165, "candidatesTokenCount": 1}}
    last = gemini({"text": " end"}, finishReason="STOP") | {
        "usageMetadata": {"promptTokenCount": 163, "candidatesTokenCount": 13}
    }
    upstream.plays((lines(first, last), Bare()))
    heard = await listener.ask(GOOGLE)
    assert heard.end is not None
    assert heard.end.count == TokenCount(163, 0, 13)


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
async def test_what_google_counts_only_in_the_sum_was_said(
    upstream: Upstream, listener: Listener, usage: dict[str, int], count: TokenCount
) -> None:
    last = gemini({"text": "The end"}, finishReason="STOP") | {"usageMetadata": usage}
    upstream.plays((lines(last), Bare()))
    heard = await listener.ask(GOOGLE)
    assert heard.end is not None
    assert heard.end.count == count


async def test_only_googles_first_candidate_is_heard(upstream: Upstream, listener: Listener) -> None:
    other = gemini({"text": "Another answer"}, index=1, finishReason="STOP")
    last = gemini({"text": "Three"}, {"inlineData": {}}, {"text": " four."}, finishReason="STOP")
    upstream.plays((lines(gemini({"text": "Two "}, index=0), other, last), Bare()))
    heard = await listener.ask(GOOGLE)
    assert (heard.text, heard.code) == ("Two Three four.", None)


async def test_a_reason_google_leaves_open_is_no_last_word(upstream: Upstream, listener: Listener) -> None:
    open_ended = gemini({"text": "Hello."}, finishReason="FINISH_REASON_UNSPECIFIED")
    upstream.plays((lines(open_ended), Bare()))
    heard = await listener.ask(GOOGLE)
    assert (heard.text, heard.code) == ("Hello.", "cut")


@pytest.mark.parametrize("figure", [-5, 1e300, "3", True])
async def test_a_count_of_googles_that_cannot_be_true_is_replaced_by_an_estimate(
    upstream: Upstream, listener: Listener, figure: object
) -> None:
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 3, "thoughtsTokenCount": figure}
    upstream.plays(
        (lines(gemini({"text": "abcdefgh"}, finishReason="STOP") | {"usageMetadata": usage}), Bare())
    )
    heard = await listener.ask(GOOGLE)
    assert heard.end is not None
    assert heard.end.count == TokenCount(4, 0, 2, is_estimated=True)


# --- OpenAI responses --------------------------------------------------------------------------------------


def failed(code: str, message: str) -> dict[str, Any]:
    return {"type": "response.failed", "response": {"error": {"code": code, "message": message}}}


async def test_openai_responses_are_sent_the_whole_conversation(
    upstream: Upstream, listener: Listener
) -> None:
    talk = (
        PromptMessage("user", "One?"),
        PromptMessage("assistant", "Two."),
        PromptMessage("user", "Three?"),
    )
    await listener.ask(RESPONSES, Prompt("Be kind.", talk), temperature=0.2)
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


async def test_a_response_that_failed_is_told_in_its_own_words(
    upstream: Upstream, listener: Listener
) -> None:
    upstream.plays((lines(failed("server_error", "The model slipped.")), Bare()))
    heard = await listener.ask(RESPONSES)
    assert heard.fault is not None
    assert (heard.code, len(heard.waits)) == ("unavailable", 2)
    assert heard.fault.detail == "The model slipped. (server_error)"


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("invalid_image_format", "unavailable"),
        ("image_content_policy_violation", "filtered"),
        ("bio_policy", "filtered"),
    ],
)
async def test_a_response_that_failed_for_its_question_is_not_tried_again(
    upstream: Upstream, listener: Listener, code: str, told: str
) -> None:
    upstream.plays((lines(failed(code, "No.")), Bare()))
    heard = await listener.ask(RESPONSES)
    assert (heard.code, heard.waits) == (told, [])


@pytest.mark.parametrize(
    ("key", "refusal"),
    [
        (RESPONSES, {"type": "response.refusal.delta", "delta": "I cannot help with that."}),
        (CHAT, {"choices": [{"index": 0, "delta": {"refusal": "I cannot help with that."}}]}),
    ],
)
async def test_a_refusal_in_the_models_own_words_is_a_reply(
    upstream: Upstream, listener: Listener, key: str, refusal: dict[str, Any]
) -> None:
    upstream.plays((lines(refusal), Finish()))
    heard = await listener.ask(key)
    assert heard.end is not None
    assert (heard.text, heard.end.finish) == ("I cannot help with that.", "stop")


def message_item(number: int, *texts: str) -> list[dict[str, Any]]:
    begins = {"type": "response.output_item.added", "output_index": number, "item": {"type": "message"}}
    return [begins, *({"type": "response.output_text.delta", "delta": text} for text in texts)]


async def test_two_messages_of_one_response_are_two_paragraphs(
    upstream: Upstream, listener: Listener
) -> None:
    upstream.plays(
        (lines(*message_item(0, "Let me", " see."), *message_item(1, "It is", " four.")), Finish())
    )
    heard = await listener.ask(RESPONSES)
    assert heard.text == "Let me see.\n\nIt is four."


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
async def test_a_response_that_comes_as_one_object_is_read_whole(
    upstream: Upstream, listener: Listener, answer: dict[str, Any]
) -> None:
    upstream.plays((lines(answer), Bare()))
    heard = await listener.ask(RESPONSES)
    assert (heard.text, heard.code) == ("Four.", None)


@pytest.mark.parametrize("details", [None, {"reason": "a_new_reason"}])
async def test_a_response_that_is_incomplete_for_any_reason_is_not_done(
    upstream: Upstream, listener: Listener, details: dict[str, str] | None
) -> None:
    cut = response_of(whole_message("Four"), status="incomplete", incomplete_details=details)
    upstream.plays((lines({"type": "response.incomplete", "response": cut}), Bare()))
    heard = await listener.ask(RESPONSES)
    assert heard.end is not None
    assert (heard.text, heard.end.is_early) == ("Four", True)
    assert heard.end.reason == (details["reason"] if details else None)


async def test_openai_counts_what_it_puts_into_its_cache(upstream: Upstream, listener: Listener) -> None:
    usage = {
        "input_tokens": 100,
        "output_tokens": 9,
        "input_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 60},
    }
    done = {"type": "response.completed", "response": response_of(whole_message("Yes."), usage=usage)}
    upstream.plays((lines(done), Bare()))
    heard = await listener.ask(RESPONSES)
    assert heard.end is not None
    assert heard.end.count == TokenCount(100, 20, 9, written_tokens=60)


async def test_the_parts_of_a_summary_stand_apart(upstream: Upstream, listener: Listener) -> None:
    part = "response.reasoning_summary_part.added"
    text = "response.reasoning_summary_text.delta"
    summary = [
        {"type": part, "summary_index": 0},
        {"type": text, "summary_index": 0, "delta": "First this."},
        {"type": part, "summary_index": 1},
        {"type": text, "summary_index": 1, "delta": "Then that."},
    ]
    upstream.plays((lines(*summary), Say("Done."), Finish()))
    heard = await listener.ask(RESPONSES)
    assert (heard.thinking, heard.text) == ("First this.\n\nThen that.", "Done.")


# --- strangers (XS 6, PF 11) -------------------------------------------------------------------------------

READINGS = (ChatReading, ResponsesReading, MessagesReading, GeminiReading)
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


@pytest.mark.parametrize("reading", READINGS)
@given(st.lists(st.dictionaries(FIELDS, values, max_size=5), max_size=5))
def test_whatever_a_provider_sends_only_words_and_thoughts_come_out(
    reading: type[Reading], events: list[dict[str, Any]]
) -> None:
    read = reading(FAULTS)
    pieces = read.take([Event("", json.dumps(event)) for event in events])
    assert all(isinstance(piece, Text | Thought) and piece.text for piece in pieces)
    for piece in pieces:
        piece.text.encode("utf-8")
    count = read.count(Prompt("", ()))
    assert min(count.input_tokens, count.cached_tokens, count.output_tokens, count.reasoning_tokens) >= 0
    assert count.cached_tokens <= count.input_tokens
    assert count.reasoning_tokens <= count.output_tokens


@pytest.mark.parametrize("reading", READINGS)
def test_an_event_by_another_name_is_not_heard(reading: type[Reading]) -> None:
    """Whatever a server calls an event of its own, it says nothing here."""
    said = [
        {"choices": [{"index": 0, "delta": {"content": "x"}}]},
        {"type": "response.output_text.delta", "delta": "x"},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "x"}},
        {"candidates": [{"content": {"parts": [{"text": "x"}]}}]},
    ]
    events = [json.dumps(event) for event in said]
    assert reading(FAULTS).take([Event("", data) for data in events]) == [Text("x")]
    assert reading(FAULTS).take([Event("execute", data) for data in events]) == []


# --- an answer of a given shape -----------------------------------------------------------------------------

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
async def test_a_shape_is_asked_for_where_the_dialect_wants_it(
    upstream: Upstream, listener: Listener, model: str, path: tuple[str, ...]
) -> None:
    await listener.ask(model)
    await listener.ask(model, schema=SCHEMA)
    plain, shaped = (seen.body for seen in upstream.requests)
    assert path[0] not in plain or path[-1] not in plain[path[0]]
    for name in path:
        shaped = shaped[name]
    assert shaped == SCHEMA
