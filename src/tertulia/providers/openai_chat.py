"""The OpenAI chat dialect: spoken by OpenAI, by most other companies and by every local server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tertulia.core.models import TokenCount
from tertulia.core.prompts import PromptMessage
from tertulia.providers.counting import number
from tertulia.providers.encoding import HEADERS, SHAPE, as_body, as_data_url, bearer, parts, said
from tertulia.providers.endpoints import Endpoint
from tertulia.providers.limits import Limits
from tertulia.providers.reading import Reading, Words, inside
from tertulia.providers.seam import Call, Finish, Text, Thought
from tertulia.providers.speaking import Speaking
from tertulia.providers.wire import Request

FINISHES: dict[str, Finish] = {"length": "length", "max_tokens": "length", "content_filter": "filtered"}


def speaker(endpoint: Endpoint, limits: Limits, *, stays_inside: bool) -> Speaking:
    return Speaking(endpoint, limits, request, ChatReading, stays_inside=stays_inside)


def request(call: Call, endpoint: Endpoint) -> Request:
    headers = HEADERS | bearer(endpoint.key)
    return Request(f"{endpoint.base_url}/chat/completions", as_body(encode(call, endpoint)), headers)


def encode(call: Call, endpoint: Endpoint) -> dict[str, object]:
    body: dict[str, object] = {
        "model": call.model.model_id,
        "messages": _messages(call),
        "stream": True,
        **endpoint.limited(call),
    }
    if call.schema is not None:
        shape = {"name": SHAPE, "schema": call.schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": shape}
    if endpoint.asks_for_count:
        body["stream_options"] = {"include_usage": True}
    if call.temperature is not None and endpoint.takes_temperature(call.model):
        body["temperature"] = call.temperature
    return body


def _messages(call: Call) -> list[dict[str, object]]:
    messages: list[dict[str, object]] = []
    if call.prompt.system.strip():
        messages.append({"role": "system", "content": call.prompt.system})
    spoken = said(call.prompt)
    return messages + [{"role": message.role, "content": _content(message, call)} for message in spoken]


def _content(message: PromptMessage, call: Call) -> object:
    """Text alone stays text: not every server takes parts."""
    if not message.pictures:
        return message.content
    return parts(
        message,
        lambda picture: {"type": "image_url", "image_url": {"url": as_data_url(call, picture)}},
        lambda text: {"type": "text", "text": text},
    )


class ChatReading(Reading):
    def _decode(self, event: dict[str, Any]) -> Words:
        if event.get("error"):
            raise self._error(event)
        if usage := event.get("usage"):
            self._counts(counted(usage))
        match event.get("choices"):
            # We ask for one answer: a second in the stream is not ours. After the last word nothing counts.
            case [{"index": int(index)}, *_] if index != 0:
                return []
            case [dict(choice), *_] if self.finish is None:
                return self._choice(choice)
        return []

    def _choice(self, choice: dict[str, Any]) -> Words:
        pieces: Words = []
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, dict):
            thought = delta.get("reasoning_content") or delta.get("reasoning")
            if thought and isinstance(thought, str):
                pieces.append(self._thinks(thought))
            content = delta.get("content")
            if isinstance(content, str):
                if content:
                    pieces.append(self._says(content))
            elif isinstance(content, list):
                pieces += self._parts(content)
        if reason := choice.get("finish_reason"):
            pieces += self._ends(str(reason))
        return pieces

    def _parts(self, parts: list[object]) -> Iterable[Text | Thought]:
        """Mistral's thinking models send lists of typed parts."""
        for part in parts:
            match part:
                case {"type": "text", "text": str(text)}:
                    yield self._says(text)
                case {"type": "thinking", "thinking": list(thoughts)}:
                    words = (thought.get("text") for thought in thoughts if isinstance(thought, dict))
                    yield self._thinks("".join(word for word in words if isinstance(word, str)))

    def _ends(self, reason: str) -> Words:
        if reason == "error":
            raise self._faults.cut()
        return self._finishes(FINISHES.get(reason, "stop"))

    def _end_marker(self) -> Words:
        """In this dialect a last word of its own: some servers send no finish reason."""
        self.is_over = True
        if self.finish is not None:
            return []
        if not self._has_events:
            raise self._faults.empty()
        return self._finishes("stop")


def counted(usage: object) -> TokenCount | None:
    """A provider's figures, when they can be figures of this call."""
    if not isinstance(usage, dict):
        return None
    sent, said = number(usage.get("prompt_tokens")), number(usage.get("completion_tokens"))
    if sent is None or said is None:
        return None
    cached = number(inside(usage, "prompt_tokens_details", "cached_tokens"))
    cached = cached if cached is not None else number(usage.get("prompt_cache_hit_tokens"))
    thought = number(inside(usage, "completion_tokens_details", "reasoning_tokens")) or 0
    if thought and number(usage.get("total_tokens")) == sent + said + thought:
        said += thought  # xAI counts thoughts beside the answer, others inside it.
    written = number(inside(usage, "prompt_tokens_details", "cache_write_tokens")) or 0
    return TokenCount(
        sent, min(cached or 0, sent), said, min(thought, said), written_tokens=min(written, sent)
    )
