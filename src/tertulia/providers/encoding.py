"""Encoding: what every dialect does alike when a call becomes a request."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tertulia.core.prompts import Prompt, PromptMessage

HEADERS = {"Content-Type": "application/json", "Accept": "text/event-stream"}


def said(prompt: Prompt) -> list[PromptMessage]:
    """Empty messages are left out: strict servers refuse them, and they say nothing."""
    return [message for message in prompt.messages if message.content.strip()]


def as_body(fields: Mapping[str, object]) -> bytes:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def bearer(key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}
