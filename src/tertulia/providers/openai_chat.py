"""The OpenAI chat dialect: spoken by OpenAI, by most other companies and by every local server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tertulia.core.models import TokenCount
from tertulia.core.prompts import PromptMessage
from tertulia.core.thinking import Effort, ThinkingForm
from tertulia.providers.counting import number
from tertulia.providers.encoding import HEADERS, SHAPE, as_body, as_data_url, bearer, effort_name, parts, said
from tertulia.providers.endpoints import Endpoint
from tertulia.providers.faults import Faults
from tertulia.providers.limits import Limits
from tertulia.providers.reading import Reading, Words, inside
from tertulia.providers.seam import Call, Finish, Source, Text, Thought
from tertulia.providers.speaking import Speaking
from tertulia.providers.think_tags import Part, ThinkTags
from tertulia.providers.wire import Request

TAGGED = ThinkingForm.TAGGED
LIMITED = ("length", "max_tokens", "max_output_tokens", "model_length")
FILTERS = (
    "content_filter",
    "safety",
    "refusal",
    "sensitive",
    "recitation",
    "prohibited_content",
    "blocklist",
)
FINISHES: dict[str, Finish] = {**dict.fromkeys(LIMITED, "length"), **dict.fromkeys(FILTERS, "filtered")}
PLAIN_ENDS = ("", "stop", "end_turn", "completed", "eos", "stop_sequence")
BROKEN = frozenset({"error", "network_error", "insufficient_system_resource", "abort"})
"""The company's own machines gave up in the middle."""
SOURCES_LIMIT = 100


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
    body |= _thinking(call, endpoint)
    if endpoint.asks_for_count:
        body["stream_options"] = {"include_usage": True}
    if call.temperature is not None and endpoint.takes_temperature(call.model):
        body["temperature"] = call.temperature
    return body


def _thinking(call: Call, endpoint: Endpoint) -> dict[str, object]:
    model = call.model
    apart: dict[str, object] = {"reasoning_format": "parsed"} if model.thinking_form is TAGGED else {}
    if call.effort is None or call.effort not in model.efforts:
        return apart
    name = effort_name(call.effort)
    if endpoint.effort_field == "reasoning":
        return apart | {"reasoning": {"effort": name}}
    if endpoint.effort_field == "thinking" and call.effort is Effort.OFF:
        return apart | {"thinking": {"type": "disabled"}}
    return apart | {"reasoning_effort": name}


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
    def __init__(self, faults: Faults) -> None:
        super().__init__(faults)
        self._tags = ThinkTags()

    def _decode(self, event: dict[str, Any]) -> Words:
        if event.get("error"):
            raise self._error(event)
        if usage := event.get("usage") or inside(event, "x_groq", "usage"):
            self._counts(counted(usage))
        if found := sources(event):
            self.sources = found
        match event.get("choices"):
            # We ask for one answer: a second in the stream is not ours. After the last word nothing counts.
            case [{"index": int(index)}, *_] if index != 0:
                return []
            case [dict(choice), *_] if self.finish is None:
                return self._choice(choice)
        return []

    def _choice(self, choice: dict[str, Any]) -> Words:
        delta = choice.get("delta") or choice.get("message")
        if choice.get("error"):
            raise self._error(choice["error"])
        pieces = list(self._delta(delta)) if isinstance(delta, dict) else []
        if reason := choice.get("finish_reason"):
            pieces += self._ends(str(reason), choice.get("native_finish_reason"))
        return pieces

    def _delta(self, delta: dict[str, Any]) -> Iterable[Text | Thought]:
        if thought := _thought(delta):
            yield from self._told_apart(self._tags.skip())
            yield self._thinks(thought)
        content = delta.get("content")
        if isinstance(content, str):
            if content:
                yield from self._told_apart(self._tags.take(content))
        elif isinstance(content, list):
            yield from self._parts(content)
        if delta.get("tool_calls"):
            self._instead = "tool_calls"
        refusal = delta.get("refusal")
        if refusal and isinstance(refusal, str):
            yield self._says(refusal)

    def _parts(self, parts: list[object]) -> Iterable[Text | Thought]:
        """Mistral's thinking models send lists of typed parts."""
        for part in parts:
            match part:
                case {"type": "text", "text": str(text)}:
                    yield self._says(text)
                case {"type": "refusal", "refusal": str(text)}:
                    yield self._says(text)
                case {"type": "thinking", "thinking": list(thoughts)}:
                    words = (thought.get("text") for thought in thoughts if isinstance(thought, dict))
                    yield self._thinks("".join(word for word in words if isinstance(word, str)))
                case {"type": "thinking", "thinking": str(text)}:
                    yield self._thinks(text)

    def _told_apart(self, parts: Iterable[Part]) -> Iterable[Text | Thought]:
        return (self._thinks(text) if is_thought else self._says(text) for text, is_thought in parts)

    def _held(self) -> Words:
        return list(self._told_apart(self._tags.rest()))

    def _ends(self, reason: str, native: object) -> Words:
        """A gateway also names the reason in the words of the provider behind it."""
        kind = reason.partition(":")[0].strip().lower()
        if isinstance(native, str) and native.lower() not in (kind, *PLAIN_ENDS):
            reason = native if kind == "stop" else f"{reason} ({native})"
        if kind in BROKEN:
            raise self._faults.cut(reason)
        return self._finishes(FINISHES.get(kind, "stop"), reason if reason.lower() != "stop" else None)

    def _end_marker(self) -> Words:
        """In this dialect a last word of its own: some servers send no finish reason."""
        self.is_over = True
        if self.finish is not None:
            return []
        if not self._has_events:
            raise self._faults.empty()
        return self._finishes("stop")


def _thought(delta: dict[str, Any]) -> str:
    """Every company has a field of its own for it, and some fill several with the same words."""
    for name in ("reasoning_content", "reasoning"):
        if (thought := delta.get(name)) and isinstance(thought, str):
            return thought
    details = delta.get("reasoning_details")
    return "".join(map(_detail, details)) if isinstance(details, list) else ""


def _detail(detail: object) -> str:
    match detail:
        case {"type": "reasoning.text", "text": str(text)} | {
            "type": "reasoning.summary",
            "summary": str(text),
        }:
            return text
    return ""  # What is encrypted is for the model alone.


def sources(event: dict[str, Any]) -> tuple[Source, ...]:
    """The pages that [1], [2] in a search model's answer stand for."""
    titles = dict(filter(None, map(_found, _listed(event.get("search_results")))))
    cited = [url for url in _listed(event.get("citations")) if isinstance(url, str)]
    return tuple(Source(url, titles.get(url, "")) for url in (cited or list(titles))[:SOURCES_LIMIT])


def _found(result: object) -> tuple[str, str] | None:
    match result:
        case {"url": str(url), "title": str(title)}:
            return url, title
        case {"url": str(url)}:
            return url, ""
    return None


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def counted(usage: object) -> TokenCount | None:
    """A provider's figures, when they can be figures of this call."""
    if not isinstance(usage, dict):
        return None
    sent, said = number(usage.get("prompt_tokens")), number(usage.get("completion_tokens"))
    if sent is None or said is None:
        return None
    cached = number(inside(usage, "prompt_tokens_details", "cached_tokens"))
    cached = cached if cached is not None else number(usage.get("prompt_cache_hit_tokens"))
    cached = cached if cached is not None else number(usage.get("cache_read_input_tokens"))
    thought = number(inside(usage, "completion_tokens_details", "reasoning_tokens")) or 0
    if thought and number(usage.get("total_tokens")) == sent + said + thought:
        said += thought  # xAI counts thoughts beside the answer, others inside it.
    written = number(inside(usage, "prompt_tokens_details", "cache_write_tokens"))
    written = (written if written is not None else number(usage.get("cache_creation_input_tokens"))) or 0
    return TokenCount(
        sent, min(cached or 0, sent), said, min(thought, said), written_tokens=min(written, sent)
    )
