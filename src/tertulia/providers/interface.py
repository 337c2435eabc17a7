"""Provider interface: a model request goes in, stream items come out.

ModelRequest ──▶ Provider.stream ──▶ RetryPending*  (TextDelta | ThinkingDelta)*  Completed
                                     RetryPending*  (TextDelta | ThinkingDelta)*  raise ProviderError

To stop a reply, cancel the task that reads the stream: the connection to the provider is closed at once. Code
that leaves the stream in another way closes it with `contextlib.aclosing`.
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
class ModelRequest:
    """A request for one reply of a model."""

    model: Model
    prompt: Prompt
    max_output_tokens: int
    """The tokens of the window reserved for the reply. Most providers are not sent this limit
    (`Endpoint.output_limit_field`)."""
    temperature: float | None = None
    pictures: Mapping[str, bytes] = field(default_factory=dict)
    """The bytes of the prompt's pictures, by content hash."""
    schema: Mapping[str, object] | None = None
    """A JSON schema that the reply must match. Only for models that support structured output."""
    effort: Effort | None = None
    """How much the model should think. None: the model's own default."""
    shows_thinking: bool = True
    """Whether to ask for the model's thinking where it is not sent by default."""
    affordable_tokens: int | None = None
    """The longest reply that the key's balance or quota allows, known once the provider has named it."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    text: str


@dataclass(frozen=True, slots=True)
class RetryPending:
    """A retry is scheduled. Comes only before the first text."""

    seconds: float
    attempt: int
    """The number of the coming retry, starting at 1."""
    attempts: int
    reason: str
    skipped: asyncio.Event = field(default_factory=asyncio.Event, compare=False, repr=False)
    """Set this event to start the retry at once."""


Finish = Literal["stop", "length", "filtered"]


@dataclass(frozen=True, slots=True)
class WebSource:
    """A web page that the reply cites by number."""

    url: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Completed:
    """The provider has finished the reply. Comes exactly once, as the last item."""

    finish: Finish
    count: TokenCount
    reason: str | None = None
    """The provider's explanation if the reply was cut, broke off or has no text; None after a normal stop."""
    is_early: bool = False
    """True if the provider broke the reply off for another reason than a limit or a filter; `reason` names
    it."""
    sources: tuple[WebSource, ...] = ()


StreamItem = TextDelta | ThinkingDelta | RetryPending | Completed

ErrorCode = Literal[
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


class ProviderError(TertuliaError):
    """A reply that failed or broke off."""

    def __init__(
        self,
        code: ErrorCode,
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
        """The provider's own error message, without keys and control characters, at most 500 characters."""
        self.retry_after_s = retry_after_s
        self.retry_at = retry_at
        """When the provider can be called again, in milliseconds since 1970. Set if that is too long to wait
        for."""
        self.affordable_tokens = affordable_tokens
        """The longest reply that the key allows. The same call may be repeated with this limit."""
        self.is_retryable = is_retryable
        """True if the error may pass by itself. The call is repeated only if no text has arrived."""
        self.is_outage = is_outage
        """True if the provider itself is failing, whatever the request. Repeated outages open the circuit
        breaker."""

    @property
    def code(self) -> str:
        return self._code


class Provider(Protocol):
    @property
    def name(self) -> str:
        """The name shown to people, for example "OpenAI"."""

    def stream(self, call: ModelRequest) -> AsyncGenerator[StreamItem, None]: ...
