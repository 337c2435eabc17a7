"""OpenAI chat dialect (chat completions): used by OpenAI, most other providers and every local server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tertulia.core.models import TokenCount
from tertulia.core.prompts import PromptMessage
from tertulia.core.thinking import Effort, ThinkingForm
from tertulia.providers.client import DialectClient
from tertulia.providers.egress import Egress
from tertulia.providers.endpoints import Endpoint
from tertulia.providers.errors import ErrorFactory
from tertulia.providers.interface import Finish, ModelRequest, TextDelta, ThinkingDelta, WebSource
from tertulia.providers.limits import Limits
from tertulia.providers.request_encoding import (
    HEADERS,
    SCHEMA_NAME,
    as_body,
    as_data_url,
    bearer,
    effort_name,
    non_empty_messages,
    parts,
)
from tertulia.providers.stream_decoder import Deltas, StreamDecoder, inside
from tertulia.providers.think_tags import Part, ThinkTags
from tertulia.providers.tokens import as_count
from tertulia.providers.transport import Request

TAGGED = ThinkingForm.TAGGED
LENGTH_REASONS = ("length", "max_tokens", "max_output_tokens", "model_length")
FILTER_REASONS = (
    "content_filter",
    "safety",
    "refusal",
    "sensitive",
    "recitation",
    "prohibited_content",
    "blocklist",
    "spii",
    "model_armor",
    "image_safety",
)
FINISHES: dict[str, Finish] = {
    **dict.fromkeys(LENGTH_REASONS, "length"),
    **dict.fromkeys(FILTER_REASONS, "filtered"),
}
NORMAL_STOPS = ("", "stop", "end_turn", "completed", "eos", "stop_sequence")
FAILURE_REASONS = frozenset({"error", "network_error", "insufficient_system_resource", "abort"})
"""Finish reasons that mean the provider's own servers failed in the middle of a reply."""
SOURCES_LIMIT = 100


def create_client(endpoint: Endpoint, limits: Limits, egress: Egress) -> DialectClient:
    return DialectClient(endpoint, limits, egress, request, ChatDecoder)


def request(call: ModelRequest, endpoint: Endpoint) -> Request:
    headers = HEADERS | bearer(endpoint.key)
    return Request(f"{endpoint.base_url}/chat/completions", as_body(encode(call, endpoint)), headers)


def encode(call: ModelRequest, endpoint: Endpoint) -> dict[str, object]:
    body: dict[str, object] = {
        "model": call.model.model_id,
        "messages": _messages(call),
        "stream": True,
        **endpoint.output_limit_field(call),
    }
    if call.schema is not None:
        shape = {"name": SCHEMA_NAME, "schema": call.schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": shape}
    body |= _thinking(call, endpoint)
    if endpoint.requests_usage:
        body["stream_options"] = {"include_usage": True}
    if call.temperature is not None and endpoint.takes_temperature(call.model):
        body["temperature"] = call.temperature
    return body


def _thinking(call: ModelRequest, endpoint: Endpoint) -> dict[str, object]:
    model = call.model
    options: dict[str, object] = {"reasoning_format": "parsed"} if model.thinking_form is TAGGED else {}
    if call.effort is None or call.effort not in model.efforts:
        return options
    name = effort_name(call.effort)
    if endpoint.effort_field == "reasoning":
        return options | {"reasoning": {"effort": name}}
    if endpoint.effort_field == "thinking" and call.effort is Effort.OFF:
        return options | {"thinking": {"type": "disabled"}}
    return options | {"reasoning_effort": name}


def _messages(call: ModelRequest) -> list[dict[str, object]]:
    messages: list[dict[str, object]] = []
    if call.prompt.system.strip():
        messages.append({"role": "system", "content": call.prompt.system})
    return messages + [
        {"role": message.role, "content": _content(message, call)}
        for message in non_empty_messages(call.prompt)
    ]


def _content(message: PromptMessage, call: ModelRequest) -> object:
    """A message without pictures stays a string, because not every server accepts parts."""
    if not message.pictures:
        return message.content
    return parts(
        message,
        lambda picture: {"type": "image_url", "image_url": {"url": as_data_url(call, picture)}},
        lambda text: {"type": "text", "text": text},
    )


class ChatDecoder(StreamDecoder):
    def __init__(self, errors: ErrorFactory) -> None:
        super().__init__(errors)
        self._tags = ThinkTags()

    def _decode(self, event: dict[str, Any]) -> Deltas:
        if event.get("error") or event.get("object") == "error" or event.get("type") == "error":
            raise self._error(event)
        if reason := inside(event, "x_groq", "error"):
            raise self._error(reason)
        if usage := event.get("usage") or inside(event, "x_groq", "usage"):
            self._merge_usage(token_count(usage))
        if cited_pages := sources(event):
            self.sources = cited_pages
        match event.get("choices"):
            # We request one reply, so other choices are ignored, and so is anything after the finish reason.
            case [{"index": int(index)}, *_] if index != 0:
                return []
            case [dict(choice), *_] if self.finish is None:
                return self._decode_choice(choice)
        return []

    def _decode_choice(self, choice: dict[str, Any]) -> Deltas:
        delta = choice.get("delta") or choice.get("message")
        if choice.get("error"):
            raise self._error(choice["error"])
        deltas = list(self._decode_delta(delta)) if isinstance(delta, dict) else []
        if reason := choice.get("finish_reason"):
            deltas += self._finish_with_reason(str(reason), choice.get("native_finish_reason"))
        return deltas

    def _decode_delta(self, delta: dict[str, Any]) -> Iterable[TextDelta | ThinkingDelta]:
        if thinking := _thinking_text(delta):
            yield from self._tagged_deltas(self._tags.skip())
            yield self._thinking_delta(thinking)
        content = delta.get("content")
        if isinstance(content, str):
            if content:
                yield from self._tagged_deltas(self._tags.feed(content))
        elif isinstance(content, list):
            yield from self._decode_parts(content)
        if delta.get("tool_calls"):
            self._non_text_output = "tool_calls"
        refusal = delta.get("refusal")
        if refusal and isinstance(refusal, str):
            yield self._text_delta(refusal)

    def _decode_parts(self, parts: list[object]) -> Iterable[TextDelta | ThinkingDelta]:
        """The thinking models of Mistral and Databricks send lists of typed parts."""
        for part in parts:
            match part:
                case {"type": "text", "text": str(text)}:
                    yield self._text_delta(text)
                case {"type": "refusal", "refusal": str(text)}:
                    yield self._text_delta(text)
                case {"type": "thinking", "thinking": list(thoughts)}:
                    texts = (thought.get("text") for thought in thoughts if isinstance(thought, dict))
                    yield self._thinking_delta("".join(entry for entry in texts if isinstance(entry, str)))
                case {"type": "reasoning", "summary": list(summaries)}:
                    texts = (summary.get("text") for summary in summaries if isinstance(summary, dict))
                    yield self._thinking_delta("".join(entry for entry in texts if isinstance(entry, str)))
                case {"type": "thinking", "thinking": str(text)}:
                    yield self._thinking_delta(text)

    def _tagged_deltas(self, parts: Iterable[Part]) -> Iterable[TextDelta | ThinkingDelta]:
        return (
            self._thinking_delta(text) if is_thought else self._text_delta(text) for text, is_thought in parts
        )

    def _flush_dialect(self) -> Deltas:
        return list(self._tagged_deltas(self._tags.flush()))

    def _finish_with_reason(self, reason: str, native: object) -> Deltas:
        """A gateway also names the finish reason of the provider behind it."""
        kind = reason.partition(":")[0].strip().lower()
        if isinstance(native, str) and native.lower() not in (kind, *NORMAL_STOPS):
            if kind == "stop":
                kind, reason = native.lower(), native
            else:
                reason = f"{reason} ({native})"
        if kind in FAILURE_REASONS:
            raise self._errors.connection_lost(reason)
        return self._finish(FINISHES.get(kind, "stop"), reason if reason.lower() != "stop" else None)

    def _end_marker(self) -> Deltas:
        """Counts as a finish reason, because some servers of this dialect send none."""
        self.is_over = True
        if self.finish is not None:
            return []
        if not self._has_events:
            raise self._errors.empty()
        return self._finish("stop")


def _thinking_text(delta: dict[str, Any]) -> str:
    """Providers use different fields for the thinking, and some fill several with the same text."""
    for name in ("reasoning_content", "reasoning", "reasoning_text"):
        if (thinking := delta.get(name)) and isinstance(thinking, str):
            return thinking
    details = delta.get("reasoning_details")
    return "".join(map(_thinking_detail, details)) if isinstance(details, list) else ""


def _thinking_detail(detail: object) -> str:
    match detail:
        case {"type": "reasoning.text", "text": str(text)} | {
            "type": "reasoning.summary",
            "summary": str(text),
        }:
            return text
    return ""  # Encrypted thinking is only for the model.


def sources(event: dict[str, Any]) -> tuple[WebSource, ...]:
    """The web pages that [1], [2] in a search model's reply refer to."""
    titles = dict(filter(None, map(_web_page, _as_list(event.get("search_results")))))
    citations = [url for url in _as_list(event.get("citations")) if isinstance(url, str)]
    return tuple(WebSource(url, titles.get(url, "")) for url in (citations or list(titles))[:SOURCES_LIMIT])


def _web_page(result: object) -> tuple[str, str] | None:
    match result:
        case {"url": str(url), "title": str(title)}:
            return url, title
        case {"url": str(url)}:
            return url, ""
    return None


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def token_count(usage: object) -> TokenCount | None:
    """The provider's token count, or None if it is implausible."""
    if not isinstance(usage, dict):
        return None
    prompt, output = as_count(usage.get("prompt_tokens")), as_count(usage.get("completion_tokens"))
    if prompt is None or output is None:
        return None
    cache_read = as_count(inside(usage, "prompt_tokens_details", "cached_tokens"))
    cache_read = cache_read if cache_read is not None else as_count(usage.get("prompt_cache_hit_tokens"))
    cache_read = cache_read if cache_read is not None else as_count(usage.get("cache_read_input_tokens"))
    thinking = as_count(inside(usage, "completion_tokens_details", "reasoning_tokens")) or 0
    if thinking and as_count(usage.get("total_tokens")) == prompt + output + thinking:
        output += thinking  # xAI counts thinking in addition to the output, others as part of it.
    cache_write = as_count(inside(usage, "prompt_tokens_details", "cache_write_tokens"))
    cache_write = (
        cache_write if cache_write is not None else as_count(usage.get("cache_creation_input_tokens"))
    ) or 0
    return TokenCount(
        prompt,
        min(cache_read or 0, prompt),
        output,
        min(thinking, output),
        written_tokens=min(cache_write, prompt),
    )
