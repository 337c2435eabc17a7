"""Provider registry: all models, whether each is available now, and the entry point for model requests."""

from __future__ import annotations

import asyncio
import random as chance
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tertulia.core.models import Model, in_proportion
from tertulia.providers import catalogue, endpoints
from tertulia.providers.catalogue import Dialect
from tertulia.providers.circuit_breaker import CircuitBreaker
from tertulia.providers.client_pool import ClientPool
from tertulia.providers.egress import Egress
from tertulia.providers.endpoints import Endpoint
from tertulia.providers.interface import ModelRequest, Provider, ProviderError, StreamItem
from tertulia.providers.limits import Limits
from tertulia.providers.local_models import LocalModels
from tertulia.providers.retry import RetryPolicy
from tertulia.providers.tokens import counter


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """A model with the endpoint and the dialect that serve it."""

    model: Model
    endpoint: Endpoint
    dialect: Dialect
    is_retired: bool = False


class ProviderRegistry:
    def __init__(
        self,
        entries: Iterable[CatalogueEntry],
        clients: ClientPool,
        local_models: LocalModels,
        retry: RetryPolicy,
        now: Callable[[], float],
    ) -> None:
        self._entries = {entry.model.key: entry for entry in entries}
        self._clients = clients
        self._local_models = local_models
        self._retry = retry
        self._now = now
        self._breakers: dict[str, CircuitBreaker] = {}
        self._overrides: dict[str, Model] = {}
        """An administrator's overrides of the catalogue, by the model's key."""

    @classmethod
    def from_environment(
        cls,
        environ: Mapping[str, str],
        home: Path,
        egress: Egress,
        *,
        limits: Limits | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        random: Callable[[], float] = chance.random,
        now: Callable[[], float] = time.monotonic,
    ) -> ProviderRegistry:
        limits = limits or Limits()
        clients = ClientPool(limits, egress)
        local_models = LocalModels(home, clients, environ)
        return cls(_entries(environ), clients, local_models, RetryPolicy(limits, sleep, random), now)

    # --- models --------------------------------------------------------------------------------------------

    def models(self) -> tuple[Model, ...]:
        """All known models, whether or not they are available now."""
        offered = (entry.model for entry in self._entries.values() if not entry.is_retired)
        return *self._local_models.models(), *(self._overrides.get(model.key, model) for model in offered)

    def available(self) -> tuple[Model, ...]:
        """The models that can reply now: their key is set and their circuit breaker is closed."""
        return tuple(filter(self.is_ready, self.models()))

    def is_ready(self, model: Model) -> bool:
        """True if the model's key is set and its provider's circuit breaker is closed."""
        return self.is_available(model) and not self._breaker(model).is_open

    def find(self, key: str) -> Model | None:
        return self._overrides.get(key) or self.catalogue_model(key) or self._local_models.find(key)

    def catalogue_model(self, key: str) -> Model | None:
        """The model as the catalogue describes it, without overrides."""
        entry = self._entries.get(key)
        return entry.model if entry else None

    def apply_overrides(self, models: Iterable[Model]) -> None:
        """Replaces the administrator's overrides of the catalogue."""
        overrides = {model.key: model for model in models if model.key in self._entries}
        self._overrides = {
            key: _with_catalogue_facts(model, self._entries[key].model) for key, model in overrides.items()
        }

    @property
    def overridden_keys(self) -> tuple[str, ...]:
        return tuple(sorted(self._overrides))

    def is_available(self, model: Model) -> bool:
        return self.unavailable_reason(model) is None

    def unavailable_reason(self, model: Model) -> str | None:
        """The step that makes this model available; None if it is available already."""
        entry = self._entries.get(model.key)
        if entry is None:
            return self._local_models.unavailable_reason(model)
        endpoint = entry.endpoint
        return (
            None if endpoint.has_key else f"Set {endpoint.key_variables[0]} to use {endpoint.name}'s models."
        )

    def provider_name(self, model: Model) -> str:
        entry = self._entries.get(model.key)
        return entry.endpoint.name if entry else self._local_models.name

    def dialect_of(self, model: Model) -> Dialect | None:
        entry = self._entries.get(model.key)
        return entry.dialect if entry else None

    # --- requests ------------------------------------------------------------------------------------------

    def stream(self, call: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """The reply as stream items. A failed call is retried until its first output."""
        find_client = partial(self._client, call.model)
        return self._retry.stream_with_retries(call, find_client, self._breaker(call.model))

    def _breaker(self, model: Model) -> CircuitBreaker:
        breaker = self._breakers.get(model.provider)
        if breaker is None:
            breaker = self._breakers[model.provider] = CircuitBreaker(self.provider_name(model), self._now)
        return breaker

    async def _client(self, model: Model) -> Provider:
        if reason := self.unavailable_reason(model):
            raise ProviderError("auth" if model.key in self._entries else "unavailable", reason)
        entry = self._entries.get(model.key)
        if entry is None:
            return await self._local_models.client_for(model)
        return await self._clients.client_for(entry.endpoint, entry.dialect)

    # --- start and stop ------------------------------------------------------------------------------------

    async def warm(self) -> None:
        """Imports the dialects of the available models in a thread and loads a tokenizer, so that the first
        call is fast."""
        ready = {entry.endpoint for entry in self._entries.values() if entry.endpoint.has_key}
        if any(self._local_models.is_available(model) for model in self._local_models.models()):
            ready.add(self._local_models.endpoint)
        for dialect in sorted({dialect for endpoint in ready for dialect in endpoint.dialects}):
            await self._clients.load(dialect)
        for model in self.available()[:1]:
            await asyncio.to_thread(counter, model)

    async def close(self) -> None:
        await self._local_models.close()
        await self._clients.close()


def _with_catalogue_facts(override: Model, catalogued: Model) -> Model:
    """Adds the facts that only the catalogue has to an administrator's override."""
    prices = in_proportion(override.prices, catalogued.prices)
    return replace(
        override,
        prices=prices,
        max_input_tokens=catalogued.max_input_tokens,
        efforts=catalogued.efforts,
        thinking_form=catalogued.thinking_form,
    )


def _entries(environ: Mapping[str, str]) -> Iterable[CatalogueEntry]:
    by_provider = {endpoint.provider: endpoint for endpoint in endpoints.from_environment(environ)}
    for entry in catalogue.entries():
        endpoint = by_provider[entry.model.provider]
        yield CatalogueEntry(
            entry.model, endpoint, entry.dialect or endpoint.dialect_of(entry.model), entry.is_retired
        )
    for custom in endpoints.custom_endpoints(environ):
        for model in custom.models:
            yield CatalogueEntry(model, custom.endpoint, custom.endpoint.dialect_of(model))
