"""The dialects in which models are spoken to."""

from __future__ import annotations

import re
from typing import Literal

Dialect = Literal["openai_chat", "openai_responses", "anthropic", "google"]

MODULES: dict[Dialect, str] = {
    "openai_chat": "tertulia.providers.openai_chat",
    "openai_responses": "tertulia.providers.openai_responses",
    "anthropic": "tertulia.providers.anthropic",
    "google": "tertulia.providers.google",
}
"""Each has a function `speaker`. Imported by name: what opens connections is heavy, and many go unused."""

OUTPUT_LIMITS: dict[Dialect, str] = {
    "openai_chat": "max_tokens",
    "openai_responses": "max_output_tokens",
    "anthropic": "max_tokens",
    "google": "maxOutputTokens",
}
"""What each calls the limit of an answer, unless an endpoint calls it otherwise."""

_SERIES = re.compile(r"o\d|gpt-(?P<number>\d+)", re.IGNORECASE)
FIRST_THINKING_GPT = 5


def is_openai_thinker(model_id: str) -> bool:
    """Whether a model of OpenAI's thinks, by its name alone: from o1 and GPT-5 on, unreleased ones too."""
    series = _SERIES.match(model_id)
    return series is not None and int(series["number"] or FIRST_THINKING_GPT) >= FIRST_THINKING_GPT
