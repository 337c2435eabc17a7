"""Encoding: what every dialect does alike when a call becomes a request."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping

from tertulia.core.prompts import Picture, Prompt, PromptMessage
from tertulia.core.thinking import Effort
from tertulia.providers.seam import Call

SHAPE = "answer"
"""Some want a name for the shape an answer is to have."""
HEADERS = {"Content-Type": "application/json", "Accept": "text/event-stream"}

Part = dict[str, object]


def said(prompt: Prompt) -> list[PromptMessage]:
    """Empty messages are left out: strict servers refuse them, and they say nothing."""
    return [message for message in prompt.messages if message.content.strip() or message.pictures]


def parts(
    message: PromptMessage, picture: Callable[[Picture], Part], text: Callable[[str], Part]
) -> list[Part]:
    """What a message shows and then what it says; models answer best in this order."""
    shown = [picture(one) for one in message.pictures]
    return [*shown, text(message.content)] if message.content.strip() else shown


def as_base64(call: Call, picture: Picture) -> str:
    """Whoever makes a call brings the bytes of its pictures: one that is missing is a mistake of ours."""
    return b64encode(call.pictures[picture.content_hash]).decode("ascii")


def as_data_url(call: Call, picture: Picture) -> str:
    return f"data:{picture.mime_type};base64,{as_base64(call, picture)}"


def as_body(fields: Mapping[str, object]) -> bytes:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def effort_name(effort: Effort) -> str:
    """As OpenAI calls it, and everyone who follows it."""
    return "none" if effort is Effort.OFF else effort.value


def bearer(key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}
