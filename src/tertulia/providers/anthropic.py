"""Anthropic dialect: the messages API."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tertulia.core.models import TokenCount
from tertulia.core.prompts import Picture, PromptMessage
from tertulia.core.thinking import Effort, ThinkingForm
from tertulia.providers.client import DialectClient
from tertulia.providers.egress import Egress
from tertulia.providers.endpoints import Endpoint
from tertulia.providers.errors import ErrorFactory
from tertulia.providers.interface import Finish, ModelRequest
from tertulia.providers.limits import Limits
from tertulia.providers.request_encoding import (
    HEADERS,
    Part,
    as_base64,
    as_body,
    bearer,
    non_empty_messages,
    parts,
)
from tertulia.providers.stream_decoder import PLAIN_EVENTS, Deltas, StreamDecoder, inside
from tertulia.providers.tokens import as_count
from tertulia.providers.transport import Request

VERSION = "2026-10-21"
"""The API version. It no longer accepts a temperature."""
MAX_CACHE_MARKS = 3
"""How many messages get a cache mark. The system prompt has one too, and the API refuses more than four."""
CACHE_MARK = {"type": "ephemeral"}
FINISHES: dict[str, Finish] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "filtered",
}
BUDGETS = {Effort.LOW: 4_096, Effort.MEDIUM: 12_288, Effort.HIGH: 32_768}
"""Thinking tokens for models that need a number; never more than half of the output limit."""
MIN_BUDGET = 1_024
NORMAL_STOPS = ("end_turn", "stop_sequence")
INPUT_FIGURES = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
"""Three figures that add up to the input: new tokens, tokens written to the cache, tokens read from the
cache."""


def create_client(endpoint: Endpoint, limits: Limits, egress: Egress) -> DialectClient:
    return DialectClient(endpoint, limits, egress, request, MessagesDecoder)


def request(call: ModelRequest, endpoint: Endpoint) -> Request:
    headers = HEADERS | {"anthropic-version": VERSION} | bearer(endpoint.key)
    return Request(f"{endpoint.base_url}/v1/messages", as_body(encode(call, endpoint)), headers)


def encode(call: ModelRequest, endpoint: Endpoint) -> dict[str, object]:
    call = replace(call, max_output_tokens=endpoint.requested_tokens(call) or call.max_output_tokens)
    body: dict[str, object] = {
        "model": call.model.model_id,
        "max_tokens": call.max_output_tokens,
        "messages": _messages(call),
        "stream": True,
    }
    if thinking := _thinking(call):
        body["thinking"] = thinking
    if output := _output(call):
        body["output_config"] = output
    if call.prompt.system.strip():
        body["system"] = [{"type": "text", "text": call.prompt.system, "cache_control": CACHE_MARK}]
    return body


def _thinking(call: ModelRequest) -> Part | None:
    """Thinking is paid for, so people see it. Newer models send it only if a summary is requested."""
    form = call.model.thinking_form
    if form is ThinkingForm.ADAPTIVE:
        if call.effort is Effort.OFF:
            return {"type": "disabled"}
        return {"type": "adaptive", "display": "summarized"}
    if form is not ThinkingForm.BUDGET or call.effort is None or call.effort is Effort.OFF:
        return None
    budget = min(BUDGETS[call.effort], call.max_output_tokens // 2)
    return {"type": "enabled", "budget_tokens": budget} if budget >= MIN_BUDGET else None


def _output(call: ModelRequest) -> Part:
    output: Part = {}
    if call.schema is not None:
        output["format"] = {"type": "json_schema", "schema": call.schema}
    if call.model.thinking_form is ThinkingForm.ADAPTIVE and call.effort not in (None, Effort.OFF):
        output["effort"] = call.effort
    return output


def _messages(call: ModelRequest) -> list[dict[str, object]]:
    messages = non_empty_messages(call.prompt)
    indexes = [index for index, message in enumerate(messages) if message.ends_cacheable][-MAX_CACHE_MARKS:]
    return [
        {"role": message.role, "content": _blocks(message, call, is_marked=index in indexes)}
        for index, message in enumerate(messages)
    ]


def _blocks(message: PromptMessage, call: ModelRequest, *, is_marked: bool) -> list[Part]:
    blocks = parts(
        message,
        lambda picture: {"type": "image", "source": _source(picture, call)},
        lambda text: {"type": "text", "text": text},
    )
    if is_marked:
        blocks[-1]["cache_control"] = CACHE_MARK
    return blocks


def _source(picture: Picture, call: ModelRequest) -> Part:
    return {"type": "base64", "media_type": picture.mime_type, "data": as_base64(call, picture)}


class MessagesDecoder(StreamDecoder):
    names = PLAIN_EVENTS | {
        "message_start",
        "content_block_start",
        "content_block_delta",
        "message_delta",
        "message_stop",
    }
    keep_alive = "ping"

    def __init__(self, errors: ErrorFactory) -> None:
        super().__init__(errors)
        self._figures: dict[str, int] = {}

    def _decode(self, event: dict[str, Any]) -> Deltas:
        match event:
            case {"type": "content_block_delta", "delta": dict(delta)} if self.finish is None:
                return self._decode_part(delta)
            case {"type": "content_block_start", "content_block": dict(block)} if self.finish is None:
                return self._decode_part(block)
            case {"type": "message_start", "message": dict(message)}:
                self._add_figures(message.get("usage"), INPUT_FIGURES)
            case {"type": "message_delta"}:
                self._add_figures(event.get("usage"), (*INPUT_FIGURES, "output_tokens"))
                if reason := inside(event, "delta", "stop_reason"):
                    return self._finish_with_reason(
                        str(reason), inside(event, "delta", "stop_details", "explanation")
                    )
            case {"type": "message_stop"}:
                return self._stop()
            case {"type": "message", "content": list(blocks)}:
                return self._decode_message(event, blocks)
            case {"type": "error"} | {"error": dict() | str()}:
                raise self._error(event)
        return []

    def _decode_message(self, message: dict[str, Any], blocks: list[object]) -> Deltas:
        """The whole reply as one object, from a server that does not stream."""
        self._add_figures(message.get("usage"), (*INPUT_FIGURES, "output_tokens"))
        deltas = [delta for block in blocks if isinstance(block, dict) for delta in self._decode_part(block)]
        reason, explanation = message.get("stop_reason"), inside(message, "stop_details", "explanation")
        end_deltas = self._finish_with_reason(str(reason), explanation) if reason else []
        return [*deltas, *end_deltas, *self._stop()]

    def _decode_part(self, part: dict[str, Any]) -> Deltas:
        match part:
            case {"type": "text_delta" | "text", "text": str(text)} if text:
                return [self._text_delta(text)]
            case {"type": "thinking_delta" | "thinking", "thinking": str(text)} if text:
                return [self._thinking_delta(text)]
        return []

    def _finish_with_reason(self, reason: str, explanation: object) -> Deltas:
        explained_reason = explanation or (reason if reason not in NORMAL_STOPS else None)
        return self._finish(FINISHES.get(reason, "stop"), explained_reason)

    def _stop(self) -> Deltas:
        self.is_over = True
        return [] if self.finish is not None else self._finish("stop")

    def _add_figures(self, usage: object, names: tuple[str, ...]) -> None:
        """Adds usage figures. Each one is a running total that may come at the start, at the end, or both."""
        for name in names:
            if (figure := as_count(inside(usage, name))) is not None:
                self._figures[name] = max(figure, self._figures.get(name, 0))
        thinking_tokens = as_count(inside(usage, "output_tokens_details", "thinking_tokens")) or 0
        self._merge_usage(token_count(self._figures, thinking_tokens))


def token_count(figures: dict[str, int], thinking: int) -> TokenCount | None:
    """The provider's token count, once it has sent input and output figures."""
    prompt, output = sum(figures.get(name, 0) for name in INPUT_FIGURES), figures.get("output_tokens")
    if not prompt or output is None:
        return None
    cache_write, cache_read = (
        figures.get("cache_creation_input_tokens", 0),
        figures.get("cache_read_input_tokens", 0),
    )
    return TokenCount(prompt, cache_read, output, min(thinking, output), written_tokens=cache_write)
