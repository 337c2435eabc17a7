"""Scripted upstream dialects: render a reply in the event stream of each provider."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Usage:
    sent: int = 7
    cached: int = 0
    said: int = 3
    thought: int = 0


class Dialect:
    """Renders the steps of one reply, with the events that must come before the first text."""

    def __init__(self, model: str, question: str) -> None:
        self.model = model
        self.question = question

    def says(self, text: str) -> bytes:
        raise NotImplementedError

    def thinks(self, text: str) -> bytes:
        raise NotImplementedError

    def finishes(self, reason: str, usage: Usage | None) -> bytes:
        raise NotImplementedError

    def fails(self, message: str, kind: str) -> bytes:
        raise NotImplementedError


def dialect_of(path: str, body: dict[str, Any]) -> Dialect:
    if "generateContent" in path or "GenerateContent" in path:
        model = re.split(r"[/:]", path.partition("/models/")[2])[0]
        return Gemini(model, _text(body.get("contents", [{}])[-1].get("parts")))
    model = str(body.get("model", ""))
    if path.endswith("/responses"):
        return OpenAIResponses(model, _text(body.get("input")))
    question = _text((body.get("messages") or [{}])[-1].get("content"))
    return Anthropic(model, question) if "/messages" in path else OpenAIChat(model, question)


def _text(content: Any) -> str:
    match content:
        case str():
            return content
        case list():
            return _text(content[-1]) if content else ""
        case {"text": str(text)}:
            return text
        case {"content": inner}:
            return _text(inner)
    return ""


def _data(value: object, name: str = "") -> bytes:
    event = f"event: {name}\n" if name else ""
    try:
        return f"{event}data: {json.dumps(value, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()
    except UnicodeEncodeError:  # Half a surrogate pair: some providers send one, escaped.
        return f"{event}data: {json.dumps(value, separators=(',', ':'))}\n\n".encode()


class OpenAIChat(Dialect):
    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _data(self._frame([choice]))

    def _frame(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": "chatcmpl-scripted",
            "object": "chat.completion.chunk",
            "created": 1_790_000_000,
            "model": self.model,
            "choices": choices,
        }

    def says(self, text: str) -> bytes:
        return self._chunk({"content": text})

    def thinks(self, text: str) -> bytes:
        return self._chunk({"reasoning_content": text})

    def finishes(self, reason: str, usage: Usage | None) -> bytes:
        counted = b"" if usage is None else _data(self._frame([]) | {"usage": self._usage(usage)})
        return self._chunk({}, reason) + counted + b"data: [DONE]\n\n"

    def _usage(self, usage: Usage) -> dict[str, Any]:
        return {
            "prompt_tokens": usage.sent,
            "completion_tokens": usage.said,
            "total_tokens": usage.sent + usage.said,
            "prompt_tokens_details": {"cached_tokens": usage.cached},
            "completion_tokens_details": {"reasoning_tokens": usage.thought},
        }

    def fails(self, message: str, kind: str) -> bytes:
        return _data({"error": {"message": message, "type": kind, "code": None}})


class OpenAIResponses(Dialect):
    def __init__(self, model: str, question: str) -> None:
        super().__init__(model, question)
        self._number = 0
        self._items: list[dict[str, Any]] = []
        self._said = ""

    def _event(self, kind: str, **fields: Any) -> bytes:
        event = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        return _data(event, kind)

    def _response(self, status: str, usage: Usage | None = None, reason: str | None = None) -> dict[str, Any]:
        return {
            "id": "resp_scripted",
            "object": "response",
            "created_at": 1_790_000_000,
            "status": status,
            "error": None,
            "incomplete_details": {"reason": reason} if reason else None,
            "instructions": None,
            "metadata": {},
            "model": self.model,
            "output": self._items,
            "parallel_tool_calls": True,
            "temperature": 1.0,
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
            "usage": usage and {
                "input_tokens": usage.sent,
                "input_tokens_details": {"cached_tokens": usage.cached},
                "output_tokens": usage.said,
                "output_tokens_details": {"reasoning_tokens": usage.thought},
                "total_tokens": usage.sent + usage.said,
            },
        }  # fmt: skip

    def _begin(self) -> bytes:
        return (
            b"" if self._number else self._event("response.created", response=self._response("in_progress"))
        )

    def _open(self, item: dict[str, Any]) -> bytes:
        if self._items and self._items[-1]["type"] == item["type"]:
            return b""
        close_event = self._close()
        self._items.append(item)
        return close_event + self._event(
            "response.output_item.added", output_index=len(self._items) - 1, item=item
        )

    def _close(self) -> bytes:
        if not self._items:
            return b""
        return self._event(
            "response.output_item.done", output_index=len(self._items) - 1, item=self._items[-1]
        )

    def says(self, text: str) -> bytes:
        events = self._begin()
        is_new = not self._items or self._items[-1]["type"] != "message"
        message = {"id": "msg_scripted", "type": "message", "role": "assistant", "status": "in_progress"}
        events += self._open(message | {"content": []})
        position = {"item_id": "msg_scripted", "output_index": len(self._items) - 1, "content_index": 0}
        if is_new:
            part = {"type": "output_text", "text": "", "annotations": []}
            events += self._event("response.content_part.added", part=part, **position)
        return events + self._event("response.output_text.delta", delta=text, logprobs=[], **position)

    def thinks(self, text: str) -> bytes:
        events = self._begin()
        is_new = not self._items or self._items[-1]["type"] != "reasoning"
        events += self._open({"id": "rs_scripted", "type": "reasoning", "summary": []})
        position = {"item_id": "rs_scripted", "output_index": len(self._items) - 1, "summary_index": 0}
        if is_new:
            part = {"type": "summary_text", "text": ""}
            events += self._event("response.reasoning_summary_part.added", part=part, **position)
        return events + self._event("response.reasoning_summary_text.delta", delta=text, **position)

    def finishes(self, reason: str, usage: Usage | None) -> bytes:
        events = self._begin() + self._close()
        if reason == "stop":
            return events + self._event("response.completed", response=self._response("completed", usage))
        incomplete_reason = {"length": "max_output_tokens"}.get(reason, reason)
        return events + self._event(
            "response.incomplete", response=self._response("incomplete", usage, incomplete_reason)
        )

    def fails(self, message: str, kind: str) -> bytes:
        return self._begin() + self._event("error", code=kind, message=message, param=None)


class Anthropic(Dialect):
    def __init__(self, model: str, question: str) -> None:
        super().__init__(model, question)
        self._open_kind: str | None = None
        self._index = -1
        self._has_begun = False

    def _event(self, kind: str, **fields: Any) -> bytes:
        return _data({"type": kind, **fields}, kind)

    def _begin(self) -> bytes:
        if self._has_begun:
            return b""
        self._has_begun = True
        message: dict[str, Any] = {
            "id": "msg_scripted",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {
                "input_tokens": 1,
                "output_tokens": 1,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
            },
        }
        return self._event("message_start", message=message) + self._event("ping")

    def _block(self, kind: str) -> bytes:
        events = self._begin()
        if self._open_kind == kind:
            return events
        events += self._close()
        self._open_kind = kind
        self._index += 1
        block = (
            {"type": "text", "text": ""}
            if kind == "text"
            else {"type": kind, "thinking": "", "signature": ""}
        )
        return events + self._event("content_block_start", index=self._index, content_block=block)

    def _close(self) -> bytes:
        if self._open_kind is None:
            return b""
        self._open_kind = None
        return self._event("content_block_stop", index=self._index)

    def says(self, text: str) -> bytes:
        delta = {"type": "text_delta", "text": text}
        return self._block("text") + self._event("content_block_delta", index=self._index, delta=delta)

    def thinks(self, text: str) -> bytes:
        delta = {"type": "thinking_delta", "thinking": text}
        return self._block("thinking") + self._event("content_block_delta", index=self._index, delta=delta)

    def finishes(self, reason: str, usage: Usage | None) -> bytes:
        events = self._begin() + self._close()
        stop_reason = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}.get(
            reason, reason
        )
        usage = usage or Usage()
        counts = {
            "input_tokens": usage.sent - usage.cached,
            "cache_read_input_tokens": usage.cached,
            "cache_creation_input_tokens": 0,
            "output_tokens": usage.said,
            "output_tokens_details": {"thinking_tokens": usage.thought},
        }
        delta = {"stop_reason": stop_reason, "stop_sequence": None}
        return events + self._event("message_delta", delta=delta, usage=counts) + self._event("message_stop")

    def fails(self, message: str, kind: str) -> bytes:
        return self._event("error", error={"type": kind, "message": message})


class Gemini(Dialect):
    def _part(self, part: dict[str, Any], **more: Any) -> bytes:
        candidate = {"content": {"parts": [part], "role": "model"}, "index": 0, **more}
        return _data({"candidates": [candidate], "modelVersion": self.model, "responseId": "scripted"})

    def says(self, text: str) -> bytes:
        return self._part({"text": text})

    def thinks(self, text: str) -> bytes:
        return self._part({"text": text, "thought": True})

    def finishes(self, reason: str, usage: Usage | None) -> bytes:
        finish_reason = {"stop": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}.get(
            reason, reason
        )
        last: dict[str, Any] = {
            "candidates": [
                {
                    "content": {"parts": [{"text": ""}], "role": "model"},
                    "finishReason": finish_reason,
                    "index": 0,
                }
            ],
            "modelVersion": self.model,
            "responseId": "scripted",
        }
        if usage is not None:
            last["usageMetadata"] = {
                "promptTokenCount": usage.sent,
                "cachedContentTokenCount": usage.cached,
                "candidatesTokenCount": usage.said - usage.thought,
                "thoughtsTokenCount": usage.thought,
                "totalTokenCount": usage.sent + usage.said,
            }
        return _data(last)

    def fails(self, message: str, kind: str) -> bytes:
        return _data({"error": {"code": 503, "message": message, "status": kind}})
