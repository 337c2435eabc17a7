"""Fixtures for the provider tests: a scripted upstream, and a caller that calls models and collects
replies."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import pytest

from tertulia.core.models import Model
from tertulia.core.prompts import Prompt, PromptMessage
from tertulia.core.thinking import Effort
from tertulia.providers.egress import LOOPBACK_ONLY
from tertulia.providers.interface import (
    Completed,
    ModelRequest,
    ProviderError,
    RetryPending,
    StreamItem,
    TextDelta,
    ThinkingDelta,
)
from tertulia.providers.limits import Limits
from tertulia.providers.registry import ProviderRegistry
from tests.timers import timers  # noqa: F401 - a fixture
from tests.upstream.scripted import Upstream, scripted

CHAT = "openai:gpt-4o"
RESPONSES = "openai:o3-pro"
ANTHROPIC = "anthropic:claude-sonnet-5-5"
GOOGLE = "google:gemini-2.5-pro"
EVERY_DIALECT = (CHAT, RESPONSES, ANTHROPIC, GOOGLE)


@dataclass
class Reply:
    items: list[StreamItem] = field(default_factory=list)
    error: ProviderError | None = None

    @property
    def text(self) -> str:
        return "".join(item.text for item in self.items if isinstance(item, TextDelta))

    @property
    def thinking(self) -> str:
        return "".join(item.text for item in self.items if isinstance(item, ThinkingDelta))

    @property
    def retries(self) -> list[RetryPending]:
        return [item for item in self.items if isinstance(item, RetryPending)]

    @property
    def end(self) -> Completed | None:
        return next((item for item in self.items if isinstance(item, Completed)), None)

    @property
    def code(self) -> str | None:
        return self.error.code if self.error else None


@dataclass
class Clock:
    """A clock that tests move by hand."""

    seconds: float = 1000.0

    def now(self) -> float:
        return self.seconds


@dataclass
class Caller:
    """Sends model requests. Retries do not sleep; the times are recorded in `sleeps`."""

    providers: ProviderRegistry
    sleeps: list[float]
    max_output_tokens: int = 500
    clock: Clock = field(default_factory=Clock)
    last_reply: Reply = field(default_factory=Reply)
    """The reply of the latest call, as far as it has arrived."""

    def model(self, key: str) -> Model:
        model = self.providers.find(key)
        assert model is not None, key
        return model

    def call(
        self,
        key: str = CHAT,
        prompt: Prompt | str = "Hello?",
        temperature: float | None = None,
        pictures: Mapping[str, bytes] = MappingProxyType({}),
        schema: Mapping[str, object] | None = None,
        effort: Effort | None = None,
    ) -> ModelRequest:
        if isinstance(prompt, str):
            prompt = Prompt("Be kind.", (PromptMessage("user", prompt),))
        limit = self.max_output_tokens
        return ModelRequest(self.model(key), prompt, limit, temperature, pictures, schema, effort)

    async def ask(
        self,
        key: str = CHAT,
        prompt: Prompt | str = "Hello?",
        temperature: float | None = None,
        pictures: Mapping[str, bytes] = MappingProxyType({}),
        schema: Mapping[str, object] | None = None,
        effort: Effort | None = None,
    ) -> Reply:
        reply = self.last_reply = Reply()
        call = self.call(key, prompt, temperature, pictures, schema, effort)
        try:
            async with aclosing(self.providers.stream(call)) as items:
                async for item in items:
                    reply.items.append(item)
        except ProviderError as error:
            reply.error = error
        return reply


NewCaller = Callable[..., Caller]


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with scripted() as upstream:
        yield upstream


@pytest.fixture
async def new_caller(upstream: Upstream, tmp_path: Path) -> AsyncIterator[NewCaller]:
    """Creates callers with their own limits and environment."""
    callers: list[Caller] = []

    def new(limits: Limits | None = None, **environ: str) -> Caller:
        sleeps: list[float] = []

        async def sleep(seconds: float) -> None:
            sleeps.append(seconds)

        clock = Clock()
        providers = ProviderRegistry.from_environment(
            upstream.environ() | environ,
            tmp_path,
            LOOPBACK_ONLY,
            limits=limits,
            sleep=sleep,
            random=lambda: 0.5,
            now=clock.now,
        )
        callers.append(Caller(providers, sleeps, clock=clock))
        return callers[-1]

    yield new
    for caller in callers:
        await caller.providers.close()


@pytest.fixture
def caller(new_caller: NewCaller) -> Caller:
    return new_caller()
