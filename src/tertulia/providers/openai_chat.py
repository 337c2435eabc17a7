"""The OpenAI chat dialect: spoken by OpenAI, by most other companies and by every local server."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable
from itertools import groupby
from typing import Any

from tertulia.core.models import TokenCount
from tertulia.core.prompts import Prompt
from tertulia.providers.cleaning import Whole
from tertulia.providers.counting import estimated, number, size_bytes
from tertulia.providers.endpoints import Endpoint
from tertulia.providers.faults import Faults
from tertulia.providers.limits import Limits
from tertulia.providers.seam import Call, End, Finish, Piece, ProviderFault, Text, Thought
from tertulia.providers.sse import Event
from tertulia.providers.wire import Request, Wire

OWN_EVENTS = frozenset({"", "message", "data", "error"})
"""Event names of the protocol; anything else a server calls an event is not for us."""
FINISHES: dict[str, Finish] = {"length": "length", "max_tokens": "length", "content_filter": "filtered"}


def speaker(endpoint: Endpoint, limits: Limits, *, stays_inside: bool) -> OpenAIChat:
    return OpenAIChat(endpoint, Wire(limits, stays_inside=stays_inside), limits)


def rehearse(endpoint: Endpoint) -> None:
    """Nothing to prepare: this dialect is our own."""


class OpenAIChat:
    def __init__(self, endpoint: Endpoint, wire: Wire, limits: Limits) -> None:
        self._endpoint = endpoint
        self._wire = wire
        self._limits = limits

    @property
    def name(self) -> str:
        return self._endpoint.name

    async def stream(self, call: Call) -> AsyncGenerator[Piece, None]:
        faults = self._endpoint.faults(call.model, self._limits)
        reading = Reading(faults)
        async with self._wire.ask(request(call, self._endpoint), faults) as answer:
            while not reading.is_over:
                try:
                    events = await answer.read()
                except ProviderFault:
                    if reading.finish is None:
                        raise
                    break  # It had said its last word; only its count is missing.
                if events is None:
                    reading.close()
                    break
                for piece in reading.take(events):
                    yield piece
                if reading.fault is not None:
                    raise reading.fault
                if reading.finish is not None:
                    answer.expect_the_end()
        yield End(reading.finish or "stop", reading.count(call.prompt))

    async def close(self) -> None:
        await self._wire.close()


def request(call: Call, endpoint: Endpoint) -> Request:
    headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
    if endpoint.key:
        headers["Authorization"] = f"Bearer {endpoint.key}"
    body = json.dumps(encode(call, endpoint), ensure_ascii=False, separators=(",", ":"))
    return Request(f"{endpoint.base_url}/chat/completions", body.encode("utf-8", "replace"), headers)


def encode(call: Call, endpoint: Endpoint) -> dict[str, object]:
    body: dict[str, object] = {
        "model": call.model.model_id,
        "messages": _messages(call.prompt),
        "stream": True,
        endpoint.output_limit: call.max_output_tokens,
    }
    if endpoint.asks_for_count:
        body["stream_options"] = {"include_usage": True}
    if call.temperature is not None and not (call.model.abilities.thinking and endpoint.fixes_temperature):
        body["temperature"] = call.temperature
    return body


def _messages(prompt: Prompt) -> list[dict[str, str]]:
    """Empty messages are left out: strict servers refuse them, and they say nothing."""
    system = [{"role": "system", "content": prompt.system}] if prompt.system.strip() else []
    return system + [{"role": m.role, "content": m.content} for m in prompt.messages if m.content.strip()]


class Reading:
    """An answer as far as it was read: events in, pieces out."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._text = Whole()
        self._thought = Whole()
        self._said_bytes = 0
        self._has_events = False
        self._usage: TokenCount | None = None
        self.finish: Finish | None = None
        self.fault: ProviderFault | None = None
        """What ended the answer badly; the pieces before it are still good."""
        self.is_over = False

    def take(self, events: Iterable[Event]) -> list[Text | Thought]:
        """The pieces of these events; neighbours of one kind become one."""
        pieces: list[Text | Thought] = []
        try:
            for event in events:
                if event.name in OWN_EVENTS and event.data and not self.is_over:
                    pieces += self._decode(event.data)
        except ProviderFault as fault:
            self.fault = fault
        return pieces if len(pieces) == 1 and pieces[0].text else _merged(pieces)

    def close(self) -> None:
        """The stream has ended; an answer without a last word is cut, whatever arrived."""
        if self.finish is None:
            raise self._faults.cut() if self._has_events else self._faults.empty()

    def count(self, prompt: Prompt) -> TokenCount:
        """As the provider counted, else estimated."""
        return self._usage or estimated(prompt, self._said_bytes)

    def _decode(self, data: str) -> list[Text | Thought]:
        if data == "[DONE]":
            return self._end_marker()
        chunk = self._loads(data)
        self._has_events = True
        if chunk.get("error"):
            raise self._faults.error_object(chunk, has_begun=self._said_bytes > 0)
        if usage := chunk.get("usage"):
            self._add_usage(usage)
        match chunk.get("choices"):
            # We ask for one answer: a second in the stream is not ours. After the last word nothing counts.
            case [{"index": int(index)}, *_] if index != 0:
                return []
            case [dict(choice), *_] if self.finish is None:
                return self._choice(choice)
        return []

    def _loads(self, data: str) -> dict[str, Any]:
        try:
            chunk = json.loads(data)
        except (ValueError, RecursionError):
            raise self._faults.malformed(data) from None
        if not isinstance(chunk, dict):
            raise self._faults.malformed(data)
        return chunk

    def _choice(self, choice: dict[str, Any]) -> list[Text | Thought]:
        pieces: list[Text | Thought] = []
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
            pieces += self._finish(str(reason))
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

    def _says(self, text: str) -> Text:
        self._said_bytes += size_bytes(text)
        return Text(self._text.take(text))

    def _thinks(self, text: str) -> Thought:
        self._said_bytes += size_bytes(text)
        return Thought(self._thought.take(text))

    def _finish(self, reason: str) -> list[Text | Thought]:
        if reason == "error":
            raise self._faults.cut()
        self.finish = FINISHES.get(reason, "stop")
        return [Thought(self._thought.rest()), Text(self._text.rest())]

    def _end_marker(self) -> list[Text | Thought]:
        self.is_over = True
        if self.finish is not None:
            return []
        if not self._has_events:
            raise self._faults.empty()
        return self._finish("stop")

    def _add_usage(self, usage: object) -> None:
        count = counted(usage)
        if count is not None:
            self._usage = count if self._usage is None else _larger(self._usage, count)


def counted(usage: object) -> TokenCount | None:
    """A provider's figures, when they can be figures of this call."""
    if not isinstance(usage, dict):
        return None
    sent, said = number(usage.get("prompt_tokens")), number(usage.get("completion_tokens"))
    if sent is None or said is None:
        return None
    cached = number(_inside(usage, "prompt_tokens_details", "cached_tokens"))
    cached = cached if cached is not None else number(usage.get("prompt_cache_hit_tokens"))
    thought = number(_inside(usage, "completion_tokens_details", "reasoning_tokens")) or 0
    if thought and number(usage.get("total_tokens")) == sent + said + thought:
        said += thought  # xAI counts thoughts beside the answer, others inside it.
    return TokenCount(sent, min(cached or 0, sent), said, min(thought, said))


def _inside(usage: dict[str, Any], outer: str, inner: str) -> object:
    details = usage.get(outer)
    return details.get(inner) if isinstance(details, dict) else None


def _larger(one: TokenCount, other: TokenCount) -> TokenCount:
    """Told twice: some providers count up as they go, and no later figure takes tokens back."""
    return TokenCount(
        max(one.input_tokens, other.input_tokens),
        max(one.cached_tokens, other.cached_tokens),
        max(one.output_tokens, other.output_tokens),
        max(one.reasoning_tokens, other.reasoning_tokens),
    )


def _merged(pieces: list[Text | Thought]) -> list[Text | Thought]:
    runs = ((kind, "".join(piece.text for piece in run)) for kind, run in groupby(pieces, type))
    return [kind(text) for kind, text in runs if text]
