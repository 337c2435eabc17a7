"""The Google dialect: Gemini."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from tertulia.core.models import TokenCount
from tertulia.core.prompts import PromptMessage
from tertulia.core.thinking import Effort, ThinkingForm
from tertulia.providers.counting import number
from tertulia.providers.encoding import HEADERS, Part, as_base64, as_body, parts, said
from tertulia.providers.endpoints import Endpoint
from tertulia.providers.limits import Limits
from tertulia.providers.reading import Reading, Words, inside
from tertulia.providers.seam import Call, Finish
from tertulia.providers.speaking import Speaking
from tertulia.providers.wire import Request

VERSION = "v1beta"
ROLES = {"user": "user", "assistant": "model"}
FILTERS = (
    "SAFETY",
    "RECITATION",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MODEL_ARMOR",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
)
FINISHES: dict[str, Finish] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    **dict.fromkeys(FILTERS, "filtered"),
}
BUDGETS = {Effort.LOW: 1_024, Effort.MEDIUM: 8_192, Effort.HIGH: 24_576}
"""Tokens to think with, where a model wants a number: what Google takes the three words for elsewhere."""
UNFINISHED = (None, "", "FINISH_REASON_UNSPECIFIED")


def speaker(endpoint: Endpoint, limits: Limits, *, stays_inside: bool) -> Speaking:
    return Speaking(endpoint, limits, request, GeminiReading, stays_inside=stays_inside)


def request(call: Call, endpoint: Endpoint) -> Request:
    headers = HEADERS | ({"x-goog-api-key": endpoint.key} if endpoint.key else {})
    model = quote(call.model.model_id, safe="")
    url = f"{endpoint.base_url}/{VERSION}/models/{model}:streamGenerateContent?alt=sse"
    return Request(url, as_body(encode(call, endpoint)), headers)


def encode(call: Call, endpoint: Endpoint) -> dict[str, object]:
    settings: dict[str, object] = {**endpoint.limited(call)}
    if call.temperature is not None:
        settings["temperature"] = call.temperature
    if call.schema is not None:
        settings |= {"responseMimeType": "application/json", "responseJsonSchema": call.schema}
    if thinking := _thinking(call):
        settings["thinkingConfig"] = thinking
    body: dict[str, object] = {"contents": _contents(call)}
    if settings:
        body["generationConfig"] = settings
    if call.prompt.system.strip():
        body["systemInstruction"] = {"parts": [{"text": call.prompt.system}]}
    return body


def _thinking(call: Call) -> dict[str, object]:
    """What is thought is paid for, so it is shown; it also keeps the line alive while the model thinks."""
    form, effort = call.model.thinking_form, call.effort
    if form not in (ThinkingForm.BUDGET, ThinkingForm.LEVEL):
        return {}
    if effort is Effort.OFF:
        return {"thinkingBudget": 0}
    thinking: dict[str, object] = {"includeThoughts": True}
    if effort is not None:
        is_budget = form is ThinkingForm.BUDGET
        thinking |= {"thinkingBudget": BUDGETS[effort]} if is_budget else {"thinkingLevel": effort.value}
    return thinking


def _contents(call: Call) -> list[dict[str, object]]:
    return [{"role": ROLES[message.role], "parts": _parts(message, call)} for message in said(call.prompt)]


def _parts(message: PromptMessage, call: Call) -> list[Part]:
    return parts(
        message,
        lambda picture: {"inlineData": {"mimeType": picture.mime_type, "data": as_base64(call, picture)}},
        lambda text: {"text": text},
    )


class GeminiReading(Reading):
    """Knows no end marker: after a finish reason the stream just ends."""

    def _decode(self, event: dict[str, Any]) -> Words:
        if event.get("error"):
            raise self._error(event)
        if usage := event.get("usageMetadata"):
            self._counts(counted(usage))
        if self.finish is not None:
            return []  # After the last word nothing counts.
        match event.get("candidates"):
            # We ask for one answer: a second in the stream is not ours.
            case [{"index": int(index)}, *_] if index != 0:
                return []
            case [dict(candidate), *_]:
                return self._candidate(candidate)
        match event.get("promptFeedback"):
            case {"blockReason": str(reason), **told} if reason:
                # A question that was refused before it was answered.
                return self._finishes("filtered", _explained(reason, told.get("blockReasonMessage")))
        return []

    def _candidate(self, candidate: dict[str, Any]) -> Words:
        pieces: Words = []
        parts = inside(candidate, "content", "parts")
        for part in parts if isinstance(parts, list) else ():
            match part:
                case {"thought": True, "text": str(text)}:
                    pieces.append(self._thinks(text))
                case {"text": str(text)}:
                    pieces.append(self._says(text))
                case {"functionCall": _}:
                    self._instead = "functionCall"
        reason = candidate.get("finishReason")
        if reason not in UNFINISHED:
            pieces += self._ends(str(reason), candidate.get("finishMessage"))
        return pieces

    def _ends(self, reason: str, message: object) -> Words:
        """A reason of none of these kinds (MALFORMED_FUNCTION_CALL, OTHER…) is no end of an answer."""
        if reason == "STOP":
            return self._finishes("stop")
        told = _explained(reason, message)
        return self._finishes(FINISHES.get(reason, "stop"), told, is_early=reason not in FINISHES)


def _explained(reason: str, message: object) -> str:
    return f"{message} ({reason})" if message and isinstance(message, str) else reason


def counted(usage: object) -> TokenCount | None:
    """The provider's figures, when they can be figures of this call; thoughts stand beside the answer."""
    sent = number(inside(usage, "promptTokenCount"))
    answered, thought = inside(usage, "candidatesTokenCount"), inside(usage, "thoughtsTokenCount")
    said = [number(figure) for figure in (answered, thought) if figure is not None]
    if not sent or None in said:
        return None
    if answered is None:
        said.append(_unnamed(usage, sent + (number(thought) or 0)))
    cached = number(inside(usage, "cachedContentTokenCount")) or 0
    return TokenCount(sent, min(cached, sent), sum(figure or 0 for figure in said), number(thought) or 0)


def _unnamed(usage: object, named: int) -> int:
    """What Gemini 2.0 said, where it tells only the sum."""
    total, tools = number(inside(usage, "totalTokenCount")), number(inside(usage, "toolUsePromptTokenCount"))
    return max(0, (total or 0) - (tools or 0) - named)
