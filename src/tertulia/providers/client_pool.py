"""Client pool: one client for each endpoint and dialect, loaded when first needed."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Protocol, cast

from tertulia.providers.catalogue import Dialect
from tertulia.providers.egress import Egress
from tertulia.providers.endpoints import Endpoint
from tertulia.providers.interface import Provider
from tertulia.providers.limits import Limits

DIALECT_MODULES: dict[Dialect, str] = {
    "openai_chat": "tertulia.providers.openai_chat",
    "openai_responses": "tertulia.providers.openai_responses",
    "anthropic": "tertulia.providers.anthropic",
    "google": "tertulia.providers.google",
}
"""Each module has a function `create_client`. Modules are imported by name when first needed: an HTTP client
is slow to import, and many dialects stay unused."""


class ModelClient(Provider, Protocol):
    async def close(self) -> None: ...


class DialectModule(Protocol):
    def create_client(self, endpoint: Endpoint, limits: Limits, egress: Egress) -> ModelClient: ...


class ClientPool:
    def __init__(self, limits: Limits, egress: Egress) -> None:
        self._limits = limits
        self._egress = egress
        self._modules: dict[Dialect, asyncio.Task[DialectModule]] = {}
        self._clients: dict[tuple[Endpoint, Dialect], ModelClient] = {}

    async def client_for(self, endpoint: Endpoint, dialect: Dialect) -> ModelClient:
        """The client of this endpoint and dialect, created by the first call and kept."""
        client = self._clients.get((endpoint, dialect))
        return client or self._create(endpoint, dialect, await self.load(dialect))

    async def load(self, dialect: Dialect) -> DialectModule:
        """Imports the dialect's module in a thread: the HTTP library takes a fifth of a second to import."""
        import_task = self._modules.get(dialect)
        if import_task is None or (import_task.done() and import_task.exception() is not None):
            import_task = asyncio.create_task(asyncio.to_thread(_import_module, dialect))
            self._modules[dialect] = import_task
        return await asyncio.shield(import_task)

    async def forget(self, endpoint: Endpoint) -> None:
        """Closes all clients of an endpoint that no longer exists."""
        for key in [key for key in self._clients if key[0] == endpoint]:
            await self._clients.pop(key).close()

    async def close(self) -> None:
        await asyncio.gather(*self._modules.values(), return_exceptions=True)
        for client in self._clients.values():
            await client.close()
        self._clients.clear()

    def _create(self, endpoint: Endpoint, dialect: Dialect, module: DialectModule) -> ModelClient:
        client = module.create_client(endpoint, self._limits, self._egress)
        return self._clients.setdefault((endpoint, dialect), client)


def _import_module(dialect: Dialect) -> DialectModule:
    return cast(DialectModule, import_module(DIALECT_MODULES[dialect]))
