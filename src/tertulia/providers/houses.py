"""Providers: every model that can be asked, whether it can be asked now, and the asking."""

from __future__ import annotations

import asyncio
import random as chance
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tertulia.core.models import Model, in_proportion
from tertulia.providers import catalogue, endpoints, smaller_limit
from tertulia.providers.builtin import BuiltIn
from tertulia.providers.dialects import Dialect
from tertulia.providers.egress import is_rehearsal
from tertulia.providers.endpoints import Endpoint
from tertulia.providers.limits import Limits
from tertulia.providers.patience import Patience
from tertulia.providers.rest import Rest
from tertulia.providers.seam import Call, Piece, Provider, ProviderFault
from tertulia.providers.speakers import Speakers
from tertulia.providers.tokens import counter


@dataclass(frozen=True, slots=True)
class Listing:
    """A model, where it is asked and how it is spoken to."""

    model: Model
    endpoint: Endpoint
    dialect: Dialect
    is_retired: bool = False


class Providers:
    def __init__(
        self,
        listings: Iterable[Listing],
        speakers: Speakers,
        builtin: BuiltIn,
        patience: Patience,
        now: Callable[[], float],
    ) -> None:
        self._listings = {listing.model.key: listing for listing in listings}
        self._speakers = speakers
        self._builtin = builtin
        self._patience = patience
        self._now = now
        self._rests: dict[str, Rest] = {}
        self._better: dict[str, Model] = {}
        """What an administrator knows better than the catalogue, by the model's key."""

    @classmethod
    def from_environment(
        cls,
        environ: Mapping[str, str],
        home: Path,
        *,
        limits: Limits | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        random: Callable[[], float] = chance.random,
        now: Callable[[], float] = time.monotonic,
    ) -> Providers:
        limits = limits or Limits()
        speakers = Speakers(limits, stays_inside=is_rehearsal(environ))
        builtin = BuiltIn(home, speakers, environ)
        return cls(_listings(environ), speakers, builtin, Patience(limits, sleep, random), now)

    # --- what there is -------------------------------------------------------------------------------------

    def models(self) -> tuple[Model, ...]:
        """All models known, whether or not they can be asked now."""
        offered = (listing.model for listing in self._listings.values() if not listing.is_retired)
        return *self._builtin.models(), *(self._better.get(model.key, model) for model in offered)

    def available(self) -> tuple[Model, ...]:
        """Those that can be asked now: their keys are set, and their providers are not resting."""
        return tuple(filter(self.can_answer, self.models()))

    def can_answer(self, model: Model) -> bool:
        """Its key is set, and its provider is not resting."""
        return self.is_available(model) and not self._rest(model).is_resting

    def find(self, key: str) -> Model | None:
        return self._better.get(key) or self.in_catalogue(key) or self._builtin.find(key)

    def in_catalogue(self, key: str) -> Model | None:
        """As it came, whatever anybody knows better."""
        listing = self._listings.get(key)
        return listing.model if listing else None

    def know_better(self, models: Iterable[Model]) -> None:
        """What an administrator says of these counts instead; what was said before is forgotten."""
        known = {model.key: model for model in models if model.key in self._listings}
        self._better = {key: _with_the_rest(model, self._listings[key].model) for key, model in known.items()}

    @property
    def known_better(self) -> tuple[str, ...]:
        return tuple(sorted(self._better))

    def is_available(self, model: Model) -> bool:
        return self.unavailable_reason(model) is None

    def unavailable_reason(self, model: Model) -> str | None:
        """What to do before this model can be asked; None when it can."""
        listing = self._listings.get(model.key)
        if listing is None:
            return self._builtin.unavailable_reason(model)
        endpoint = listing.endpoint
        return None if endpoint.has_key else f"Set {endpoint.key_names[0]} to use {endpoint.name}'s models."

    def provider_name(self, model: Model) -> str:
        listing = self._listings.get(model.key)
        return listing.endpoint.name if listing else self._builtin.name

    def dialect_of(self, model: Model) -> Dialect | None:
        listing = self._listings.get(model.key)
        return listing.dialect if listing else None

    # --- asking --------------------------------------------------------------------------------------------

    def stream(self, call: Call) -> AsyncGenerator[Piece, None]:
        """The answer, piece by piece; tried again while nothing has been said."""
        return self._patience.keep_trying(partial(self._attempt, call), self._rest(call.model))

    async def _attempt(self, call: Call) -> AsyncGenerator[Piece, None]:
        return smaller_limit.stream(await self._provider(call.model), call)

    def _rest(self, model: Model) -> Rest:
        rest = self._rests.get(model.provider)
        if rest is None:
            rest = self._rests[model.provider] = Rest(self.provider_name(model), self._now)
        return rest

    async def _provider(self, model: Model) -> Provider:
        if reason := self.unavailable_reason(model):
            raise ProviderFault("auth" if model.key in self._listings else "unavailable", reason)
        listing = self._listings.get(model.key)
        if listing is None:
            return await self._builtin.provider(model)
        return await self._speakers.speaker(listing.endpoint, listing.dialect)

    # --- beginning and end ---------------------------------------------------------------------------------

    async def warm(self) -> None:
        """Loads what most models at hand will need, in a thread, so that the first call need not."""
        ready = {listing.endpoint for listing in self._listings.values() if listing.endpoint.has_key}
        if any(self._builtin.is_available(model) for model in self._builtin.models()):
            ready.add(self._builtin.endpoint)
        for dialect in sorted({dialect for endpoint in ready for dialect in endpoint.dialects}):
            await self._speakers.load(dialect)
        for model in self.available()[:1]:
            await asyncio.to_thread(counter, model)

    async def close(self) -> None:
        await self._builtin.close()
        await self._speakers.close()


def _with_the_rest(better: Model, known: Model) -> Model:
    """With what only the catalogue says."""
    prices = in_proportion(better.prices, known.prices)
    return replace(
        better,
        prices=prices,
        max_input_tokens=known.max_input_tokens,
        efforts=known.efforts,
        thinking_form=known.thinking_form,
    )


def _listings(environ: Mapping[str, str]) -> Iterable[Listing]:
    known = {endpoint.provider: endpoint for endpoint in endpoints.from_environment(environ)}
    for entry in catalogue.entries():
        endpoint = known[entry.model.provider]
        yield Listing(
            entry.model, endpoint, entry.dialect or endpoint.dialect_of(entry.model), entry.is_retired
        )
    for own in endpoints.own_endpoints(environ):
        for model in own.models:
            yield Listing(model, own.endpoint, own.endpoint.dialect_of(model))
