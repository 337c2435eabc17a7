"""Request encoding: what all dialects share when they build a request body."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping

from tertulia.core.prompts import Picture, Prompt, PromptMessage
from tertulia.core.thinking import Effort
from tertulia.providers.interface import ModelRequest

SCHEMA_NAME = "answer"
"""The name of the reply's JSON schema; some providers require one."""
HEADERS = {"Content-Type": "application/json", "Accept": "text/event-stream"}

Part = dict[str, object]


def non_empty_messages(prompt: Prompt) -> list[PromptMessage]:
    """The prompt's messages without empty ones, which strict servers refuse."""
    return [message for message in prompt.messages if message.content.strip() or message.pictures]


def parts(
    message: PromptMessage, picture: Callable[[Picture], Part], text: Callable[[str], Part]
) -> list[Part]:
    """A message as parts, pictures before the text: models reply best in this order."""
    pictures = [picture(attached) for attached in message.pictures]
    return [*pictures, text(message.content)] if message.content.strip() else pictures


def as_base64(call: ModelRequest, picture: Picture) -> str:
    """The picture's bytes as base64. The caller must supply the bytes of every picture; a missing one raises
    KeyError."""
    return b64encode(call.pictures[picture.content_hash]).decode("ascii")


def as_data_url(call: ModelRequest, picture: Picture) -> str:
    return f"data:{picture.mime_type};base64,{as_base64(call, picture)}"


def as_body(fields: Mapping[str, object]) -> bytes:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def effort_name(effort: Effort) -> str:
    """The effort as OpenAI and compatible providers name it."""
    return "none" if effort is Effort.OFF else effort.value


def bearer(key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}
