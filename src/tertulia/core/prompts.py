"""A prompt: exactly what one model is shown in one call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Speaker = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class Picture:
    """An image a model is shown, named by its content; whoever makes the call brings the bytes."""

    content_hash: str
    mime_type: str


@dataclass(frozen=True, slots=True)
class PromptMessage:
    role: Speaker
    content: str
    ends_cacheable: bool = False
    """Everything up to here will be the same next time; providers that take a mark get one."""
    pictures: tuple[Picture, ...] = ()
    """Shown before the text of the message, in this order."""


@dataclass(frozen=True, slots=True)
class Prompt:
    system: str
    messages: tuple[PromptMessage, ...]
