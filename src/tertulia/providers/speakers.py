"""Speakers: whoever speaks a dialect to an endpoint, loaded when first needed."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Protocol, cast

from tertulia.providers.dialects import MODULES, Dialect
from tertulia.providers.endpoints import Endpoint
from tertulia.providers.limits import Limits
from tertulia.providers.seam import Provider


class Speaker(Provider, Protocol):
    async def close(self) -> None: ...


class DialectModule(Protocol):
    def speaker(self, endpoint: Endpoint, limits: Limits, *, stays_inside: bool) -> Speaker: ...


class Speakers:
    def __init__(self, limits: Limits, *, stays_inside: bool) -> None:
        self._limits = limits
        self._stays_inside = stays_inside
        self._modules: dict[Dialect, asyncio.Task[DialectModule]] = {}
        self._speakers: dict[tuple[Endpoint, Dialect], Speaker] = {}

    async def speaker(self, endpoint: Endpoint, dialect: Dialect) -> Speaker:
        known = self._speakers.get((endpoint, dialect))
        return known or self._new(endpoint, dialect, await self.load(dialect))

    async def load(self, dialect: Dialect) -> DialectModule:
        """Imports in a thread: what opens connections takes a fifth of a second to load."""
        loading = self._modules.get(dialect)
        if loading is None or (loading.done() and loading.exception() is not None):
            loading = asyncio.create_task(asyncio.to_thread(_loaded, dialect))
            self._modules[dialect] = loading
        return await asyncio.shield(loading)

    async def forget(self, endpoint: Endpoint) -> None:
        """The endpoint is gone, and with it every connection to it."""
        for place in [place for place in self._speakers if place[0] == endpoint]:
            await self._speakers.pop(place).close()

    async def close(self) -> None:
        await asyncio.gather(*self._modules.values(), return_exceptions=True)
        for speaker in self._speakers.values():
            await speaker.close()
        self._speakers.clear()

    def _new(self, endpoint: Endpoint, dialect: Dialect, module: DialectModule) -> Speaker:
        speaker = module.speaker(endpoint, self._limits, stays_inside=self._stays_inside)
        return self._speakers.setdefault((endpoint, dialect), speaker)


def _loaded(dialect: Dialect) -> DialectModule:
    return cast(DialectModule, import_module(MODULES[dialect]))
