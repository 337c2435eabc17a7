"""OpenAI responses dialect: used for all OpenAI models that think, because it streams while they think."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from tertulia.core.models import TokenCount
from tertulia.core.prompts import PromptMessage
from tertulia.core.thinking import Effort
from tertulia.providers.client import DialectClient
from tertulia.providers.egress import Egress
from tertulia.providers.endpoints import Endpoint
from tertulia.providers.interface import Finish, ModelRequest, ProviderError, StreamItem
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
from tertulia.providers.stream_decoder import PLAIN_EVENTS, Deltas, StreamDecoder, inside
from tertulia.providers.tokens import as_count
from tertulia.providers.transport import Request

FINISHES: dict[object, Finish] = {"max_output_tokens": "length", "content_filter": "filtered"}
SUMMARY_REFUSED = re.compile(r"reasoning[ ._]summar", re.IGNORECASE)
TEMPORARY_CODES = frozenset({"server_error", "rate_limit_exceeded", "vector_store_timeout"})
"""Error codes of a failed response for which the request is not to blame."""


def create_client(endpoint: Endpoint, limits: Limits, egress: Egress) -> DialectClient:
    return ResponsesClient(endpoint, limits, egress, request, ResponsesDecoder)


def request(call: ModelRequest, endpoint: Endpoint) -> Request:
    headers = HEADERS | bearer(endpoint.key)
    return Request(f"{endpoint.base_url}/responses", as_body(encode(call, endpoint)), headers)


def encode(call: ModelRequest, endpoint: Endpoint) -> dict[str, object]:
    body: dict[str, object] = {
        "model": call.model.model_id,
        "input": _input(call),
        "stream": True,
        **endpoint.output_limit_field(call),
        "store": False,  # Otherwise OpenAI stores the conversation for a month.
    }
    if call.schema is not None:
        shape = {"type": "json_schema", "name": SCHEMA_NAME, "schema": call.schema, "strict": True}
        body["text"] = {"format": shape}
    if call.prompt.system.strip():
        body["instructions"] = call.prompt.system
    if reasoning := _reasoning(call):
        body["reasoning"] = reasoning
    if call.temperature is not None and endpoint.takes_temperature(call.model):
        body["temperature"] = call.temperature
    return body


def _reasoning(call: ModelRequest) -> dict[str, object]:
    """The effort, and a summary of the thinking: thinking is paid for, so people see it."""
    if not call.model.abilities.thinking:
        return {}
    effort: dict[str, object] = {"effort": effort_name(call.effort)} if call.effort else {}
    is_shown = call.shows_thinking and call.effort is not Effort.OFF
    return effort | ({"summary": "auto"} if is_shown else {})


def _input(call: ModelRequest) -> list[dict[str, object]]:
    return [
        {"role": message.role, "content": _content(message, call)}
        for message in non_empty_messages(call.prompt)
    ]


def _content(message: PromptMessage, call: ModelRequest) -> object:
    if not message.pictures:
        return message.content
    return parts(
        message,
        lambda picture: {"type": "input_image", "image_url": as_data_url(call, picture), "detail": "auto"},
        lambda text: {"type": "input_text", "text": text},
    )


class ResponsesClient(DialectClient):
    """Repeats a call without the summary of the thinking if OpenAI refuses it: it shows the summaries of some
    models to verified organisations only."""

    _models_without_summary: frozenset[str] = frozenset()

    async def stream(self, call: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        model_id = call.model.model_id
        is_refused = model_id in self._models_without_summary
        first_call = replace(call, shows_thinking=call.shows_thinking and not is_refused)
        try:
            async with aclosing(super().stream(first_call)) as items:
                async for item in items:
                    yield item
            return
        except ProviderError as error:
            if not first_call.shows_thinking or not SUMMARY_REFUSED.search(error.detail or ""):
                raise
            self._models_without_summary |= {model_id}
        async with aclosing(super().stream(replace(call, shows_thinking=False))) as items:
            async for item in items:
                yield item


class ResponsesDecoder(StreamDecoder):
    names = PLAIN_EVENTS | {
        "response.created",
        "response.output_item.added",
        "response.output_text.delta",
        "response.refusal.delta",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_text.delta",
        "response.reasoning_text.delta",
        "response.completed",
        "response.incomplete",
        "response.failed",
    }
    keep_alive = "keepalive"

    def _decode(self, event: dict[str, Any]) -> Deltas:
        match event:
            case {"type": "response.output_text.delta" | "response.refusal.delta", "delta": str(text)}:
                return [self._text_delta(text)]
            case {
                "type": "response.reasoning_summary_text.delta" | "response.reasoning_text.delta",
                "delta": str(text),
            }:
                return [self._thinking_delta(text)]
            case {"type": "response.output_item.added", "item": {"type": str(kind)}}:
                self._start_item(kind)
            case {"type": "response.reasoning_summary_part.added", "summary_index": int(index)} if index > 0:
                return [self._thinking_delta("\n\n")]
            case {"type": "response.completed" | "response.incomplete", "response": dict(response)}:
                return self._finish_with_response(response)
            case {"object": "response", "status": "completed" | "incomplete"}:
                # The whole reply as one object, from a server that does not stream.
                return self._finish_with_response(event)
            case {"type": "response.failed"}:
                raise self._error(_with_status(inside(event, "response", "error")))
            case {"type": "error"} | {"error": dict() | str()}:
                raise self._error(event)
        return []

    def _finish_with_response(self, response: dict[str, Any]) -> Deltas:
        self.is_over = True
        self._merge_usage(token_count(response.get("usage")))
        deltas = [] if self._has_text else self._decode_output(response.get("output"))
        reason = inside(response, "incomplete_details", "reason")
        is_early = response.get("status") == "incomplete" and reason not in FINISHES
        return [*deltas, *self._finish(FINISHES.get(reason, "stop"), reason, is_early=is_early)]

    def _start_item(self, kind: str) -> None:
        if kind == "message":
            self._start_paragraph()
        elif kind != "reasoning":
            self._non_text_output = kind

    def _decode_output(self, output: object) -> Deltas:
        """The text of the final event, used if no deltas came before it."""
        deltas: Deltas = []
        for item in output if isinstance(output, list) else ():
            match item:
                case {"type": "message", "content": list(parts)}:
                    self._start_item("message")
                    deltas += [self._text_delta(text) for text in map(_part_text, parts) if text]
                case {"type": str(kind)}:
                    self._start_item(kind)
        return deltas


def _part_text(part: object) -> str:
    match part:
        case {"type": "output_text", "text": str(text)} | {"type": "refusal", "refusal": str(text)}:
            return text
    return ""


def _with_status(error: object) -> object:
    """A failed response has a code but no status. Most codes mean that the request was wrong, so they become
    400."""
    if not isinstance(error, dict) or error.get("code") in TEMPORARY_CODES:
        return error
    return error | {"status": 400}


def token_count(usage: object) -> TokenCount | None:
    """The provider's token count, or None if it is implausible."""
    prompt, output = as_count(inside(usage, "input_tokens")), as_count(inside(usage, "output_tokens"))
    if not prompt or output is None:
        return None
    cache_read = as_count(inside(usage, "input_tokens_details", "cached_tokens")) or 0
    thinking = as_count(inside(usage, "output_tokens_details", "reasoning_tokens")) or 0
    cache_write = as_count(inside(usage, "input_tokens_details", "cache_write_tokens")) or 0
    return TokenCount(
        prompt,
        min(cache_read, prompt),
        output,
        min(thinking, output),
        written_tokens=min(cache_write, prompt),
    )
