"""Prompts: the exact input of one model call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Speaker = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class Picture:
    """An image in a prompt, named by its content hash; the model client loads the bytes."""

    content_hash: str
    mime_type: str


@dataclass(frozen=True, slots=True)
class PromptMessage:
    role: Speaker
    content: str
    ends_cacheable: bool = False
    """Everything up to here is the same in the next call; for providers that take cache breakpoints."""
    pictures: tuple[Picture, ...] = ()
    """The images before the message's text, in this order."""


@dataclass(frozen=True, slots=True)
class Prompt:
    system: str
    messages: tuple[PromptMessage, ...]
