"""What the tests of providers share: a scripted upstream, and someone who asks it and listens."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import pytest

from tertulia.core.models import Model
from tertulia.core.prompts import Prompt, PromptMessage
from tertulia.core.thinking import Effort
from tertulia.providers.houses import Providers
from tertulia.providers.limits import Limits
from tertulia.providers.seam import Call, End, Piece, ProviderFault, Text, Thought, Wait
from tests.timers import timers  # noqa: F401 - a fixture
from tests.upstream.scripted import Upstream, scripted

CHAT = "openai:gpt-4o"
RESPONSES = "openai:o3-pro"
ANTHROPIC = "anthropic:claude-sonnet-5-5"
GOOGLE = "google:gemini-2.5-pro"
EVERY_DIALECT = (CHAT, RESPONSES, ANTHROPIC, GOOGLE)


@dataclass
class Heard:
    pieces: list[Piece] = field(default_factory=list)
    fault: ProviderFault | None = None

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces if isinstance(piece, Text))

    @property
    def thinking(self) -> str:
        return "".join(piece.text for piece in self.pieces if isinstance(piece, Thought))

    @property
    def waits(self) -> list[Wait]:
        return [piece for piece in self.pieces if isinstance(piece, Wait)]

    @property
    def end(self) -> End | None:
        return next((piece for piece in self.pieces if isinstance(piece, End)), None)

    @property
    def code(self) -> str | None:
        return self.fault.code if self.fault else None


@dataclass
class Clock:
    """Moved by hand."""

    seconds: float = 1000.0

    def now(self) -> float:
        return self.seconds


@dataclass
class Listener:
    """Asks, and waits for a retry without waiting."""

    providers: Providers
    slept: list[float]
    max_output_tokens: int = 500
    clock: Clock = field(default_factory=Clock)
    hearing: Heard = field(default_factory=Heard)
    """What was heard so far of the last call."""

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
    ) -> Call:
        if isinstance(prompt, str):
            prompt = Prompt("Be kind.", (PromptMessage("user", prompt),))
        limit = self.max_output_tokens
        return Call(self.model(key), prompt, limit, temperature, pictures, schema, effort)

    async def ask(
        self,
        key: str = CHAT,
        prompt: Prompt | str = "Hello?",
        temperature: float | None = None,
        pictures: Mapping[str, bytes] = MappingProxyType({}),
        schema: Mapping[str, object] | None = None,
        effort: Effort | None = None,
    ) -> Heard:
        heard = self.hearing = Heard()
        call = self.call(key, prompt, temperature, pictures, schema, effort)
        try:
            async with aclosing(self.providers.stream(call)) as pieces:
                async for piece in pieces:
                    heard.pieces.append(piece)
        except ProviderFault as fault:
            heard.fault = fault
        return heard


NewListener = Callable[..., Listener]


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with scripted() as upstream:
        yield upstream


@pytest.fixture
async def new_listener(upstream: Upstream, tmp_path: Path) -> AsyncIterator[NewListener]:
    """Makes listeners with limits or an environment of their own."""
    made: list[Listener] = []

    def new(limits: Limits | None = None, **environ: str) -> Listener:
        slept: list[float] = []

        async def sleep(seconds: float) -> None:
            slept.append(seconds)

        clock = Clock()
        providers = Providers.from_environment(
            upstream.environ() | environ,
            tmp_path,
            limits=limits,
            sleep=sleep,
            random=lambda: 0.5,
            now=clock.now,
        )
        made.append(Listener(providers, slept, clock=clock))
        return made[-1]

    yield new
    for listener in made:
        await listener.providers.close()


@pytest.fixture
def listener(new_listener: NewListener) -> Listener:
    return new_listener()
