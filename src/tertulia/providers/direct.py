"""What the dialects spoken through pydantic-ai have in common: a prompt goes in, pieces come out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from importlib import resources

import httpx2
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import AgentRunError, UserError
from pydantic_ai.messages import (
    CachePoint,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    SystemPromptPart,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import Model as Client
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from tertulia.core.models import TokenCount
from tertulia.core.prompts import Prompt, PromptMessage
from tertulia.providers.bridge import STREAM, WATCH, Bridge, Signs, Watch
from tertulia.providers.cleaning import Whole
from tertulia.providers.counting import estimated, number, size_bytes
from tertulia.providers.endpoints import Endpoint
from tertulia.providers.limits import Limits
from tertulia.providers.seam import Call, End, Finish, Piece, Text, Thought
from tertulia.providers.wire import Wire

FINISHES: dict[str | None, Finish] = {"length": "length", "content_filter": "filtered"}


NewClient = Callable[[Endpoint, str, httpx2.AsyncClient], Client]


class Direct:
    """A company's own client, behind our seam and on our wire."""

    def __init__(
        self,
        endpoint: Endpoint,
        limits: Limits,
        wire: Wire,
        signs: Signs,
        client: NewClient,
        settings: ModelSettings,
    ) -> None:
        self._endpoint = endpoint
        self._limits = limits
        self._wire = wire
        self._signs = signs
        self._client = client
        self._settings = settings
        self._http = httpx2.AsyncClient(transport=Bridge(wire), timeout=None, trust_env=False)
        self._clients: dict[str, Client] = {}

    @property
    def name(self) -> str:
        return self._endpoint.name

    async def stream(self, call: Call) -> AsyncGenerator[Piece, None]:
        watch = Watch(self._endpoint.faults(call.model, self._limits), self._signs)
        said = Said()
        finish, usage = None, RequestUsage()
        WATCH.set(watch)
        try:
            async with model_request_stream(
                await self._client_for(call.model.model_id),
                messages(call.prompt),
                model_settings=self._settings_for(call),
                instrument=False,
            ) as response:
                async for event in response:
                    if (piece := said.take(event)) is not None:
                        yield piece
                finish, usage = response.finish_reason, response.usage
        except (AgentRunError, UserError, httpx2.HTTPError) as error:
            if watch.fault is None and not watch.has_ended:
                raise watch.faults.malformed(str(error)) from None
        finally:
            await watch.leave()
        if watch.fault is not None:
            raise watch.fault
        if rest := said.rest():
            yield rest
        yield End(FINISHES.get(finish, "stop"), _counted(usage) or estimated(call.prompt, said.bytes))

    async def close(self) -> None:
        await self._http.aclose()
        await self._wire.close()

    async def _client_for(self, model_id: str) -> Client:
        """Made in a thread: their clients take up to a quarter of a second to set up."""
        if model_id not in self._clients:
            client = await asyncio.to_thread(self._client, self._endpoint, model_id, self._http)
            self._clients.setdefault(model_id, client)
        return self._clients[model_id]

    def _settings_for(self, call: Call) -> ModelSettings:
        settings = self._settings | ModelSettings(max_tokens=call.max_output_tokens)
        return (
            settings if call.temperature is None else settings | ModelSettings(temperature=call.temperature)
        )


def rehearse(client: NewClient, endpoint: Endpoint, model_id: str, name: str) -> None:
    """Reads one answer that was never sent, in the thread that loads the dialect.

    Their clients build what they need when they first need it, for up to a second and a half, and would do so
    on the loop where everyone else is waiting.
    """
    answer = resources.files(__package__).joinpath("rehearsals", name).read_text("utf-8")
    nowhere = httpx2.MockTransport(lambda request: httpx2.Response(200, headers=STREAM, text=answer))

    async def read() -> None:
        async with httpx2.AsyncClient(transport=nowhere, trust_env=False) as http:
            prompt = messages(Prompt("", (PromptMessage("user", "?"),)))
            own = client(endpoint, model_id, http)
            async with model_request_stream(own, prompt, instrument=False) as said:
                async for _ in said:
                    pass

    asyncio.run(read())


def messages(prompt: Prompt) -> list[ModelMessage]:
    """Empty messages are left out: strict servers refuse them, and they say nothing."""
    shown: list[ModelMessage] = []
    if prompt.system.strip():
        shown.append(ModelRequest(parts=[SystemPromptPart(prompt.system)]))
    before: PromptMessage | None = None
    for message in prompt.messages:
        if not message.content.strip():
            continue
        if message.role == "assistant":
            shown.append(ModelResponse(parts=[TextPart(message.content)]))
        else:
            shown.append(ModelRequest(parts=[UserPromptPart(_marked(message, before))]))
        before = message
    return shown


def _marked(message: PromptMessage, before: PromptMessage | None) -> list[UserContent]:
    """A cache mark can stand in what a user says only; one at the start closes the reply before it."""
    content: list[UserContent] = [message.content]
    if before is not None and before.role == "assistant" and before.ends_cacheable:
        content.insert(0, CachePoint())
    if message.ends_cacheable:
        content.append(CachePoint())
    return content


class Said:
    """What has been said so far, as pieces of ours."""

    def __init__(self) -> None:
        self._text = Whole()
        self._thought = Whole()
        self.bytes = 0

    def take(self, event: ModelResponseStreamEvent) -> Text | Thought | None:
        match event:
            case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                return self._says(text)
            case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(text))):
                return self._thinks(text)
            case PartStartEvent(part=TextPart(content=text)):
                return self._says(text)
            case PartStartEvent(part=ThinkingPart(content=text)):
                return self._thinks(text)
        return None

    def rest(self) -> Text | None:
        rest = self._text.rest()
        return Text(rest) if rest else None

    def _says(self, text: str) -> Text | None:
        self.bytes += size_bytes(text)
        whole = self._text.take(text)
        return Text(whole) if whole else None

    def _thinks(self, text: str) -> Thought | None:
        self.bytes += size_bytes(text)
        whole = self._thought.take(text)
        return Thought(whole) if whole else None


def _counted(usage: RequestUsage) -> TokenCount | None:
    sent, said = number(usage.input_tokens), number(usage.output_tokens)
    if not sent or said is None:
        return None
    cached = number(usage.cache_read_tokens) or 0
    thought = number(usage.details.get("reasoning_tokens") or usage.details.get("thoughts_tokens")) or 0
    return TokenCount(sent, min(cached, sent), said, min(thought, said))
