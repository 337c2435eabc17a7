"""The Anthropic dialect: the messages protocol."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tertulia.core.models import TokenCount
from tertulia.core.prompts import Picture, PromptMessage
from tertulia.core.thinking import Effort, ThinkingForm
from tertulia.providers.counting import number
from tertulia.providers.encoding import HEADERS, Part, as_base64, as_body, bearer, parts, said
from tertulia.providers.endpoints import Endpoint
from tertulia.providers.faults import Faults
from tertulia.providers.limits import Limits
from tertulia.providers.reading import PLAIN_EVENTS, Reading, Words, inside
from tertulia.providers.seam import Call, Finish
from tertulia.providers.speaking import Speaking
from tertulia.providers.wire import Request

VERSION = "2026-10-21"
"""Of the protocol. It knows no temperature any more."""
MARKS = 3
"""How many messages get a cache mark: with the one of the system prompt, more than four are refused."""
KEPT = {"type": "ephemeral"}
FINISHES: dict[str, Finish] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "filtered",
}
BUDGETS = {Effort.LOW: 4_096, Effort.MEDIUM: 12_288, Effort.HIGH: 32_768}
"""Tokens to think with, for models that want a number; never more than half of the answer's."""
LEAST_BUDGET = 1_024
DONE = ("end_turn", "stop_sequence")
SENT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
"""Three figures beside each other: what was new, what was put into the cache, what was found there."""


def speaker(endpoint: Endpoint, limits: Limits, *, stays_inside: bool) -> Speaking:
    return Speaking(endpoint, limits, request, MessagesReading, stays_inside=stays_inside)


def request(call: Call, endpoint: Endpoint) -> Request:
    headers = HEADERS | {"anthropic-version": VERSION} | bearer(endpoint.key)
    return Request(f"{endpoint.base_url}/v1/messages", as_body(encode(call, endpoint)), headers)


def encode(call: Call, endpoint: Endpoint) -> dict[str, object]:
    call = replace(call, max_output_tokens=endpoint.asked_tokens(call) or call.max_output_tokens)
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
        body["system"] = [{"type": "text", "text": call.prompt.system, "cache_control": KEPT}]
    return body


def _thinking(call: Call) -> Part | None:
    """What is thought is paid for, so it is shown; newer models leave it out unless a summary is asked."""
    form = call.model.thinking_form
    if form is ThinkingForm.ADAPTIVE:
        if call.effort is Effort.OFF:
            return {"type": "disabled"}
        return {"type": "adaptive", "display": "summarized"}
    if form is not ThinkingForm.BUDGET or call.effort is None or call.effort is Effort.OFF:
        return None
    budget = min(BUDGETS[call.effort], call.max_output_tokens // 2)
    return {"type": "enabled", "budget_tokens": budget} if budget >= LEAST_BUDGET else None


def _output(call: Call) -> Part:
    output: Part = {}
    if call.schema is not None:
        output["format"] = {"type": "json_schema", "schema": call.schema}
    if call.model.thinking_form is ThinkingForm.ADAPTIVE and call.effort not in (None, Effort.OFF):
        output["effort"] = call.effort
    return output


def _messages(call: Call) -> list[dict[str, object]]:
    messages = said(call.prompt)
    marked = [place for place, message in enumerate(messages) if message.ends_cacheable][-MARKS:]
    return [
        {"role": message.role, "content": _blocks(message, call, is_marked=place in marked)}
        for place, message in enumerate(messages)
    ]


def _blocks(message: PromptMessage, call: Call, *, is_marked: bool) -> list[Part]:
    blocks = parts(
        message,
        lambda picture: {"type": "image", "source": _source(picture, call)},
        lambda text: {"type": "text", "text": text},
    )
    if is_marked:
        blocks[-1]["cache_control"] = KEPT
    return blocks


def _source(picture: Picture, call: Call) -> Part:
    return {"type": "base64", "media_type": picture.mime_type, "data": as_base64(call, picture)}


class MessagesReading(Reading):
    names = PLAIN_EVENTS | {
        "message_start",
        "content_block_start",
        "content_block_delta",
        "message_delta",
        "message_stop",
    }
    keep_alive = "ping"

    def __init__(self, faults: Faults) -> None:
        super().__init__(faults)
        self._figures: dict[str, int] = {}

    def _decode(self, event: dict[str, Any]) -> Words:
        match event:
            case {"type": "content_block_delta", "delta": dict(delta)} if self.finish is None:
                return self._words(delta)
            case {"type": "content_block_start", "content_block": dict(block)} if self.finish is None:
                return self._words(block)
            case {"type": "message_start", "message": dict(message)}:
                self._note(message.get("usage"), SENT)
            case {"type": "message_delta"}:
                self._note(event.get("usage"), (*SENT, "output_tokens"))
                if reason := inside(event, "delta", "stop_reason"):
                    return self._ends(str(reason), inside(event, "delta", "stop_details", "explanation"))
            case {"type": "message_stop"}:
                return self._stop()
            case {"type": "message", "content": list(blocks)}:
                return self._whole(event, blocks)
            case {"type": "error"} | {"error": dict() | str()}:
                raise self._error(event)
        return []

    def _whole(self, message: dict[str, Any], blocks: list[object]) -> Words:
        """The whole answer as one object, where a server does not stream."""
        self._note(message.get("usage"), (*SENT, "output_tokens"))
        pieces = [word for block in blocks if isinstance(block, dict) for word in self._words(block)]
        reason, explanation = message.get("stop_reason"), inside(message, "stop_details", "explanation")
        ends = self._ends(str(reason), explanation) if reason else []
        return [*pieces, *ends, *self._stop()]

    def _words(self, part: dict[str, Any]) -> Words:
        match part:
            case {"type": "text_delta" | "text", "text": str(text)} if text:
                return [self._says(text)]
            case {"type": "thinking_delta" | "thinking", "thinking": str(text)} if text:
                return [self._thinks(text)]
        return []

    def _ends(self, reason: str, explanation: object) -> Words:
        told = explanation or (reason if reason not in DONE else None)
        return self._finishes(FINISHES.get(reason, "stop"), told)

    def _stop(self) -> Words:
        self.is_over = True
        return [] if self.finish is not None else self._finishes("stop")

    def _note(self, usage: object, names: tuple[str, ...]) -> None:
        """Each figure is the sum so far, and may be told in the beginning, at the end or both."""
        for name in names:
            if (figure := number(inside(usage, name))) is not None:
                self._figures[name] = max(figure, self._figures.get(name, 0))
        thought = number(inside(usage, "output_tokens_details", "thinking_tokens")) or 0
        self._counts(counted(self._figures, thought))


def counted(figures: dict[str, int], thought: int) -> TokenCount | None:
    """The provider's figures, once it has told what was sent and what was said."""
    sent, said = sum(figures.get(name, 0) for name in SENT), figures.get("output_tokens")
    if not sent or said is None:
        return None
    written, read = figures.get("cache_creation_input_tokens", 0), figures.get("cache_read_input_tokens", 0)
    return TokenCount(sent, read, said, min(thought, said), written_tokens=written)
