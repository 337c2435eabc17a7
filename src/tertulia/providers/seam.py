"""The seam between a turn and whoever answers: one call goes in, pieces of an answer come out.

Call ──▶ Provider.stream ──▶ Wait*  (Text | Thought)*  End        the provider said it is done
                             Wait*  (Text | Thought)*  raise ProviderFault

Stop by cancelling the task that reads; the line to the provider is closed at once. Whoever leaves the stream
in another way closes it with `contextlib.aclosing`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from tertulia.core.errors import TertuliaError
from tertulia.core.models import Model, TokenCount
from tertulia.core.prompts import Prompt
from tertulia.core.thinking import Effort


@dataclass(frozen=True, slots=True)
class Call:
    """One request to a model."""

    model: Model
    prompt: Prompt
    max_output_tokens: int
    """The room that is kept for the answer; most providers are not sent it (`Endpoint.limited`)."""
    temperature: float | None = None
    pictures: Mapping[str, bytes] = field(default_factory=dict)
    """The bytes of the prompt's pictures by their content's hash."""
    schema: Mapping[str, object] | None = None
    """The answer is JSON of this shape; only for a model that can keep to one."""
    effort: Effort | None = None
    """How much the model is to think; None: as much as it does by itself."""
    shows_thinking: bool = True
    """Whether what the model thinks is asked for, where it is not sent anyway."""
    affordable_tokens: int | None = None
    """The longest answer that the key's balance or its quota has room for, once the provider has named it."""


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Thought:
    text: str


@dataclass(frozen=True, slots=True)
class Wait:
    """A retry is pending; comes only before the first word."""

    seconds: float
    attempt: int
    """The retry that follows, counted from 1."""
    attempts: int
    reason: str
    skipped: asyncio.Event = field(default_factory=asyncio.Event, compare=False, repr=False)
    """Set by someone who does not want to wait any longer: the retry starts at once."""


Finish = Literal["stop", "length", "filtered"]


@dataclass(frozen=True, slots=True)
class Source:
    """A page that the answer refers to by its number."""

    url: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class End:
    """The provider's own word that it is done: exactly once, and last."""

    finish: Finish
    count: TokenCount
    reason: str | None = None
    """Why it ended, in the provider's own words, where it was not simply done."""
    is_early: bool = False
    """Neither done nor cut by a limit or a filter: the provider broke it off, for the reason it gives."""
    sources: tuple[Source, ...] = ()


Piece = Text | Thought | Wait | End

FaultCode = Literal[
    "rate_limited",
    "unavailable",
    "auth",
    "timeout_first_byte",
    "timeout_idle",
    "timeout_total",
    "cut",
    "malformed",
    "too_large",
    "context_length",
    "filtered",
]


class ProviderFault(TertuliaError):
    """An answer that did not come, or did not end well."""

    def __init__(
        self,
        code: FaultCode,
        message: str,
        *,
        detail: str | None = None,
        retry_after_s: float | None = None,
        retry_at: int | None = None,
        affordable_tokens: int | None = None,
        is_retryable: bool = False,
        is_outage: bool = False,
    ) -> None:
        super().__init__(message)
        self._code = code
        self.detail = detail
        """What the provider itself said: no key, no control characters, at most 500 characters."""
        self.retry_after_s = retry_after_s
        self.retry_at = retry_at
        """When it can be asked again, in milliseconds since 1970, where that is too long to wait for."""
        self.affordable_tokens = affordable_tokens
        """The longest answer the key has room for; the same question may be asked again for so much."""
        self.is_retryable = is_retryable
        """Of the kind that may pass by itself; it is tried again only if nothing has been said."""
        self.is_outage = is_outage
        """The provider is in trouble, whatever it is asked; who keeps failing so is given a rest."""

    @property
    def code(self) -> str:
        return self._code


class Provider(Protocol):
    @property
    def name(self) -> str:
        """As people know it: "OpenAI"."""

    def stream(self, call: Call) -> AsyncGenerator[Piece, None]: ...
