"""OpenAI chat dialect: streams written after the documentation of each provider are decoded as expected."""

import json
from pathlib import Path
from typing import Any

import pytest

from tertulia.core.models import TokenCount
from tertulia.providers.interface import WebSource
from tertulia.providers.openai_chat import token_count
from tests.providers.conftest import Caller
from tests.upstream.scripted import Bare, Cut, Head, Pause, Raw, Step, Upstream

VECTORS = Path(__file__).parent.parent / "vectors" / "streams"
NAMES = sorted(path.stem for path in VECTORS.glob("*.sse"))


def expected(name: str) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads((VECTORS / f"{name}.json").read_text("utf-8"))
    return fields


@pytest.mark.parametrize("name", NAMES)
async def test_each_providers_stream_is_decoded_as_expected(
    upstream: Upstream, caller: Caller, name: str
) -> None:
    upstream.plays((Raw((VECTORS / f"{name}.sse").read_bytes()), Bare()))
    reply = await caller.ask()
    assert reply.error is None
    assert reply.end is not None
    decoded = {"text": reply.text, "thinking": reply.thinking, "finish": reply.end.finish}
    assert decoded == {key: expected(name)[key] for key in decoded}
    count = expected(name)["count"]
    assert reply.end.count.is_estimated == (count is None)
    if count is not None:
        assert reply.end.count == TokenCount(*count)


@pytest.mark.parametrize("name", NAMES)
async def test_a_stream_split_anywhere_is_decoded_the_same(
    upstream: Upstream, caller: Caller, name: str
) -> None:
    """Three bytes at a time, so that characters, line ends and events are all split."""
    lines = (VECTORS / f"{name}.sse").read_bytes()
    steps: list[Step] = [Head()]
    for start in range(0, len(lines), 3):
        steps += [Raw(lines[start : start + 3]), Pause(0)]
    upstream.plays((*steps, Bare()))
    reply = await caller.ask()
    assert reply.text == expected(name)["text"]
    assert reply.error is None


@pytest.mark.parametrize("name", [name for name in NAMES if name != "one-object"])
async def test_a_stream_cut_before_its_finish_reason_is_never_complete(
    upstream: Upstream, caller: Caller, name: str
) -> None:
    lines = (VECTORS / f"{name}.sse").read_bytes()
    finish_at = min(
        position for marker in (b'"finish_reason":"', b"[DONE]") if (position := lines.find(marker)) >= 0
    )
    text_at = lines.find(b'"content":"')
    upstream.plays((Raw(lines[: (text_at + finish_at) // 2]), Pause(0.01), Cut()))
    reply = await caller.ask()
    assert reply.end is None
    assert reply.code in ("cut", "unavailable")


# --- untrusted input (XS 6) --------------------------------------------------------------------------------

UNKNOWN_EVENTS = (
    b'event: execute\ndata: {"choices":[{"index":0,"delta":{"content":"<script>"}}]}\n\n'
    b'event: changed\ndata: {"type":"event","noun":"user","value":{"role":"admin"}}\n\n'
    b'data: {"html":"<b>","script":"x","code":"y","__proto__":{"a":1},"choices":"no"}\n\n'
    b'data: {"choices":[{"index":0,"delta":{"role":"system","tool_calls":[{"id":"1"}],"html":"<i>"}}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{"role":"tool","content":7}}]}\n\n'
    b'data: {"choices":[17]}\n\n'
    b'data: {"choices":[{"index":0,"delta":[]}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{"content":[1,{"type":"image"},{"type":"text","text":5}]}}]}\n\n'
    b"neither one nor the other\n\n"
)


async def test_events_outside_the_protocol_are_ignored(upstream: Upstream, caller: Caller) -> None:
    good = (VECTORS / "openai.sse").read_bytes()
    upstream.plays((Raw(UNKNOWN_EVENTS + good), Bare()))
    reply = await caller.ask()
    assert (reply.text, reply.thinking, reply.code) == (expected("openai")["text"], "", None)


# --- usage (PF 11) -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "usage",
    [
        '{"prompt_tokens": -5, "completion_tokens": 3}',
        '{"prompt_tokens": 5, "completion_tokens": NaN}',
        '{"prompt_tokens": 5, "completion_tokens": Infinity}',
        '{"prompt_tokens": 5, "completion_tokens": 1e300}',
        '{"prompt_tokens": 5, "completion_tokens": 99999999999}',
        '{"prompt_tokens": "5", "completion_tokens": 3}',
        '{"prompt_tokens": true, "completion_tokens": 3}',
        '{"completion_tokens": 3}',
        "[]",
        '"free"',
    ],
)
async def test_an_implausible_token_count_is_replaced_by_an_estimate(
    upstream: Upstream, caller: Caller, usage: str
) -> None:
    last = '{"choices":[{"index":0,"delta":{"content":"abcdefgh"},"finish_reason":"stop"}],"usage":%s}'
    upstream.plays((Raw(b"data: " + (last % usage).encode() + b"\n\ndata: [DONE]\n\n"), Bare()))
    reply = await caller.ask()
    assert reply.end is not None
    assert reply.end.count == TokenCount(4, 0, 2, is_estimated=True)


async def test_a_later_token_count_never_lowers_an_earlier_one(upstream: Upstream, caller: Caller) -> None:
    lines = (
        b'data: {"choices":[],"usage":{"prompt_tokens":50,"completion_tokens":9}}\n\n'
        b'data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}\n\n'
        b'data: {"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}\n\ndata: [DONE]\n\n'
    )
    upstream.plays((Raw(lines), Bare()))
    reply = await caller.ask()
    assert reply.end is not None
    assert reply.end.count == TokenCount(50, 0, 9)


@pytest.mark.parametrize(
    ("details", "cached", "thinking"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 400}}, 10, 0),
        ({"prompt_tokens_details": {"cached_tokens": -1}}, 0, 0),
        ({"prompt_tokens_details": "many"}, 0, 0),
        ({"prompt_cache_hit_tokens": 6}, 6, 0),
        ({"completion_tokens_details": {"reasoning_tokens": 90}}, 0, 5),
    ],
)
def test_cached_and_thinking_tokens_never_exceed_their_totals(
    details: dict[str, Any], cached: int, thinking: int
) -> None:
    count = token_count({"prompt_tokens": 10, "completion_tokens": 5} | details)
    assert count == TokenCount(10, cached, 5, thinking)


@pytest.mark.parametrize(("cache_write_tokens", "expected_tokens"), [(4, 4), (400, 10), ("many", 0)])
def test_tokens_written_to_the_cache_are_counted(cache_write_tokens: object, expected_tokens: int) -> None:
    count = token_count(
        {
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "prompt_tokens_details": {"cache_write_tokens": cache_write_tokens},
        }
    )
    assert count == TokenCount(10, 0, 5, written_tokens=expected_tokens)


def test_cache_figures_outside_the_details_are_counted() -> None:
    """Vercel's gateway and LiteLLM put both figures beside the prompt count."""
    caches = {"cache_read_input_tokens": 6, "cache_creation_input_tokens": 3}
    count = token_count({"prompt_tokens": 10, "completion_tokens": 5, **caches})
    assert count == TokenCount(10, 6, 5, written_tokens=3)


# --- thinking, finish reasons and sources ------------------------------------------------------------------


def chunks(*events: dict[str, Any]) -> Raw:
    return Raw(b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events))


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


DETAILS = [
    {"type": "reasoning.summary", "summary": "First "},
    {"type": "reasoning.text", "text": "this.", "signature": "x"},
    {"type": "reasoning.encrypted", "data": "gAAA"},
    {"type": "reasoning.text", "text": None},
]


@pytest.mark.parametrize(
    "delta",
    [
        {"reasoning_content": "First this."},
        {"reasoning": "First this."},
        {"reasoning_text": "First this."},
        {"content": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "First this."}]}]},
        {"reasoning_details": DETAILS},
        {"reasoning": "First this.", "reasoning_content": "First this.", "reasoning_details": DETAILS},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "First this."}]}]},
        {"content": [{"type": "thinking", "thinking": "First this."}]},
    ],
)
async def test_thinking_is_read_once_from_any_of_its_fields(
    upstream: Upstream, caller: Caller, delta: dict[str, Any]
) -> None:
    upstream.plays((chunks(chunk(delta), chunk({"content": "Then that."}, "stop")), Bare()))
    reply = await caller.ask()
    assert (reply.thinking, reply.text) == ("First this.", "Then that.")


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("content_filter", "filtered"),
        ("content_filter: PROHIBITED_CONTENT", "filtered"),
        ("SAFETY", "filtered"),
        ("sensitive", "filtered"),
        ("max_tokens", "length"),
        ("model_length", "length"),
        ("eos", "stop"),
        ("stop", "stop"),
    ],
)
async def test_every_providers_finish_reason_is_understood(
    upstream: Upstream, caller: Caller, reason: str, finish: str
) -> None:
    upstream.plays((chunks(chunk({"content": "Some"}), chunk({}, reason)), Bare()))
    reply = await caller.ask()
    assert reply.end is not None
    assert (reply.text, reply.end.finish) == ("Some", finish)
    assert reply.end.reason == (reason if finish == "filtered" or finish == "length" else None)


@pytest.mark.parametrize("reason", ["error", "network_error", "insufficient_system_resource"])
async def test_a_finish_reason_for_a_server_failure_ends_with_code_cut(
    upstream: Upstream, caller: Caller, reason: str
) -> None:
    upstream.plays((chunks(chunk({"content": "Some"}), chunk({}, reason)), Bare()))
    reply = await caller.ask()
    assert (reply.text, reply.end, reply.code) == ("Some", None, "cut")


@pytest.mark.parametrize(
    ("finish", "native", "reason"),
    [
        ("stop", "SAFETY", "SAFETY"),
        ("stop", "STOP", None),
        ("stop", "end_turn", None),
        ("content_filter", "refusal", "content_filter (refusal)"),
        ("length", "MAX_TOKENS", "length (MAX_TOKENS)"),
        ("content_filter", None, "content_filter"),
    ],
)
async def test_a_gateway_reply_gives_the_finish_reason_of_the_provider_behind_it(
    upstream: Upstream, caller: Caller, finish: str, native: str | None, reason: str | None
) -> None:
    last = chunk({"content": ""}, finish)
    last["choices"][0]["native_finish_reason"] = native
    upstream.plays((chunks(last), Bare()))
    reply = await caller.ask()
    assert reply.end is not None
    assert (reply.text, reply.end.reason) == ("", reason)


@pytest.mark.parametrize(
    ("native", "finish"),
    [("refusal", "filtered"), ("SAFETY", "filtered"), ("SPII", "filtered"), ("MAX_TOKENS", "length")],
)
async def test_a_cut_that_only_the_provider_behind_a_gateway_names_is_told(
    upstream: Upstream, caller: Caller, native: str, finish: str
) -> None:
    last = chunk({"content": "Some"}, "stop")
    last["choices"][0]["native_finish_reason"] = native
    upstream.plays((chunks(last), Bare()))
    reply = await caller.ask()
    assert reply.end is not None
    assert (reply.text, reply.end.finish, reply.end.reason) == ("Some", finish, native)


async def test_an_error_inside_a_choice_is_quoted(upstream: Upstream, caller: Caller) -> None:
    last = chunk({"content": ""}, "error")
    last["choices"][0]["error"] = {"code": 502, "message": "The upstream is gone."}
    upstream.plays((chunks(chunk({"content": "Some"}), last), Bare()))
    reply = await caller.ask()
    assert reply.error is not None
    assert (reply.text, reply.error.detail) == ("Some", "The upstream is gone. (502)")


@pytest.mark.parametrize(
    "event",
    [
        {"error": {"message": "Gone.", "code": "over_capacity"}},
        {"object": "error", "message": "Gone.", "code": "over_capacity"},
        {"type": "error", "error": {"message": "Gone.", "code": "over_capacity"}},
        {"choices": [], "x_groq": {"id": "req_1", "error": "Gone. (over_capacity)"}},
    ],
)
async def test_an_error_event_of_any_form_is_quoted(
    upstream: Upstream, caller: Caller, event: dict[str, Any]
) -> None:
    upstream.plays((chunks(chunk({"content": "Some"}), event), Bare()))
    reply = await caller.ask()
    assert reply.error is not None
    assert (reply.text, reply.error.detail) == ("Some", "Gone. (over_capacity)")


async def test_groqs_own_usage_field_is_read(upstream: Upstream, caller: Caller) -> None:
    usage = {"prompt_tokens": 30, "completion_tokens": 4}
    upstream.plays((chunks(chunk({"content": "Yes."}, "stop", x_groq={"usage": usage})), Bare()))
    reply = await caller.ask()
    assert reply.end is not None
    assert reply.end.count == TokenCount(30, 0, 4)


async def test_an_end_marker_followed_by_a_space_is_recognised(upstream: Upstream, caller: Caller) -> None:
    upstream.plays((chunks(chunk({"content": "Yes."}, "stop")), Raw(b"data: [DONE] \n\n"), Bare()))
    reply = await caller.ask()
    assert (reply.text, reply.code) == ("Yes.", None)


PAGES = [{"title": "One", "url": "https://one.example/"}, {"url": "https://two.example/"}, "nothing"]


@pytest.mark.parametrize(
    ("fields", "sources"),
    [
        ({"citations": ["https://one.example/"]}, (WebSource("https://one.example/"),)),
        (
            {"citations": ["https://two.example/", "https://one.example/", 7], "search_results": PAGES},
            (WebSource("https://two.example/"), WebSource("https://one.example/", "One")),
        ),
        (
            {"citations": None, "search_results": PAGES},
            (WebSource("https://one.example/", "One"), WebSource("https://two.example/")),
        ),
        ({"citations": "https://one.example/", "search_results": {}}, ()),
    ],
)
async def test_the_sources_of_a_search_model_come_with_the_completed_reply(
    upstream: Upstream, caller: Caller, fields: dict[str, Any], sources: tuple[WebSource, ...]
) -> None:
    upstream.plays((chunks(chunk({"content": "So it is [1]."}, **fields), chunk({}, "stop")), Bare()))
    reply = await caller.ask()
    assert reply.end is not None
    assert (reply.text, reply.end.sources) == ("So it is [1].", sources)
