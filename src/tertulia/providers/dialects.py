"""The dialects in which models are spoken to."""

from __future__ import annotations

from typing import Literal

Dialect = Literal["openai_chat", "openai_responses", "anthropic", "google"]

MODULES: dict[Dialect, str] = {
    "openai_chat": "tertulia.providers.openai_chat",
    "openai_responses": "tertulia.providers.openai_responses",
    "anthropic": "tertulia.providers.anthropic",
    "google": "tertulia.providers.google",
}
"""Each has a function `speaker`. Imported by name: what opens connections is heavy, and many go unused."""
