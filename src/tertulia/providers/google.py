"""Google dialect: the Gemini API."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from tertulia.core.models import TokenCount
from tertulia.core.prompts import PromptMessage
from tertulia.core.thinking import Effort, ThinkingForm
from tertulia.providers.client import DialectClient
from tertulia.providers.egress import Egress
from tertulia.providers.endpoints import Endpoint
from tertulia.providers.interface import Finish, ModelRequest
from tertulia.providers.limits import Limits
from tertulia.providers.request_encoding import HEADERS, Part, as_base64, as_body, non_empty_messages, parts
from tertulia.providers.stream_decoder import Deltas, StreamDecoder, inside
from tertulia.providers.tokens import as_count
from tertulia.providers.transport import Request

VERSION = "v1beta"
ROLES = {"user": "user", "assistant": "model"}
FILTER_REASONS = (
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
    **dict.fromkeys(FILTER_REASONS, "filtered"),
}
BUDGETS = {Effort.LOW: 1_024, Effort.MEDIUM: 8_192, Effort.HIGH: 24_576}
"""Thinking tokens for models that need a number: Google's own values for low, medium and high."""
NO_FINISH_REASON = (None, "", "FINISH_REASON_UNSPECIFIED")


def create_client(endpoint: Endpoint, limits: Limits, egress: Egress) -> DialectClient:
    return DialectClient(endpoint, limits, egress, request, GeminiDecoder)


def request(call: ModelRequest, endpoint: Endpoint) -> Request:
    headers = HEADERS | ({"x-goog-api-key": endpoint.key} if endpoint.key else {})
    model = quote(call.model.model_id, safe="")
    url = f"{endpoint.base_url}/{VERSION}/models/{model}:streamGenerateContent?alt=sse"
    return Request(url, as_body(encode(call, endpoint)), headers)


def encode(call: ModelRequest, endpoint: Endpoint) -> dict[str, object]:
    settings: dict[str, object] = {**endpoint.output_limit_field(call)}
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


def _thinking(call: ModelRequest) -> dict[str, object]:
    """Thinking is paid for, so people see it. It also keeps the connection alive while the model thinks."""
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


def _contents(call: ModelRequest) -> list[dict[str, object]]:
    return [
        {"role": ROLES[message.role], "parts": _parts(message, call)}
        for message in non_empty_messages(call.prompt)
    ]


def _parts(message: PromptMessage, call: ModelRequest) -> list[Part]:
    return parts(
        message,
        lambda picture: {"inlineData": {"mimeType": picture.mime_type, "data": as_base64(call, picture)}},
        lambda text: {"text": text},
    )


class GeminiDecoder(StreamDecoder):
    """Decodes a stream without an end marker: after the finish reason it just ends."""

    def _decode(self, event: dict[str, Any]) -> Deltas:
        if event.get("error"):
            raise self._error(event)
        if usage := event.get("usageMetadata"):
            self._merge_usage(token_count(usage))
        if self.finish is not None:
            return []  # Anything after the finish reason is ignored.
        match event.get("candidates"):
            # We request one reply, so other candidates are ignored.
            case [{"index": int(index)}, *_] if index != 0:
                return []
            case [dict(candidate), *_]:
                return self._decode_candidate(candidate)
        match event.get("promptFeedback"):
            case {"blockReason": str(reason), **feedback} if reason:
                # Google refused the prompt and sent no reply.
                return self._finish("filtered", _with_message(reason, feedback.get("blockReasonMessage")))
        return []

    def _decode_candidate(self, candidate: dict[str, Any]) -> Deltas:
        deltas: Deltas = []
        parts = inside(candidate, "content", "parts")
        for part in parts if isinstance(parts, list) else ():
            match part:
                case {"thought": True, "text": str(text)}:
                    deltas.append(self._thinking_delta(text))
                case {"text": str(text)}:
                    deltas.append(self._text_delta(text))
                case {"functionCall": _}:
                    self._non_text_output = "functionCall"
        reason = candidate.get("finishReason")
        if reason not in NO_FINISH_REASON:
            deltas += self._finish_with_reason(str(reason), candidate.get("finishMessage"))
        return deltas

    def _finish_with_reason(self, reason: str, message: object) -> Deltas:
        """A finish reason that is not in FINISHES (MALFORMED_FUNCTION_CALL, OTHER…) means that the reply is
        not finished."""
        if reason == "STOP":
            return self._finish("stop")
        explanation = _with_message(reason, message)
        return self._finish(FINISHES.get(reason, "stop"), explanation, is_early=reason not in FINISHES)


def _with_message(reason: str, message: object) -> str:
    return f"{message} ({reason})" if message and isinstance(message, str) else reason


def token_count(usage: object) -> TokenCount | None:
    """The provider's token count, or None if it is implausible. Google counts thinking in addition to the
    output."""
    prompt = as_count(inside(usage, "promptTokenCount"))
    reply, thinking = inside(usage, "candidatesTokenCount"), inside(usage, "thoughtsTokenCount")
    output_counts = [as_count(figure) for figure in (reply, thinking) if figure is not None]
    if not prompt or None in output_counts:
        return None
    if reply is None:
        output_counts.append(_unreported_output(usage, prompt + (as_count(thinking) or 0)))
    cache_read = as_count(inside(usage, "cachedContentTokenCount")) or 0
    return TokenCount(
        prompt, min(cache_read, prompt), sum(figure or 0 for figure in output_counts), as_count(thinking) or 0
    )


def _unreported_output(usage: object, reported: int) -> int:
    """The output tokens of Gemini 2.0, which reports only the total."""
    total, tools = (
        as_count(inside(usage, "totalTokenCount")),
        as_count(inside(usage, "toolUsePromptTokenCount")),
    )
    return max(0, (total or 0) - (tools or 0) - reported)
