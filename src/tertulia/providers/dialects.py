"""Dialects: the API protocols of the providers, the module of each, and the names of their output limits."""

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
"""Each module has a function `create_client`. Modules are imported by name when first needed: an HTTP client
is slow to import, and many dialects stay unused."""

OUTPUT_LIMITS: dict[Dialect, str] = {
    "openai_chat": "max_tokens",
    "openai_responses": "max_output_tokens",
    "anthropic": "max_tokens",
    "google": "maxOutputTokens",
}
"""The request field that limits the reply in each dialect, unless an endpoint uses another name."""

_SERIES = re.compile(r"o\d|gpt-(?P<number>\d+)", re.IGNORECASE)
FIRST_THINKING_GPT = 5


def is_openai_thinker(model_id: str) -> bool:
    """Whether an OpenAI model thinks, by its name alone: o1 and later, GPT-5 and later, including unreleased
    ones."""
    series = _SERIES.match(model_id)
    return series is not None and int(series["number"] or FIRST_THINKING_GPT) >= FIRST_THINKING_GPT
