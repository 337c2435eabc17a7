"""Speaking: one call to an endpoint in one dialect, from the request to the last word."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace

from tertulia.providers.endpoints import Endpoint
from tertulia.providers.faults import Faults
from tertulia.providers.limits import Limits
from tertulia.providers.reading import Reading
from tertulia.providers.seam import Call, Piece, ProviderFault
from tertulia.providers.wire import Request, Wire


class Speaking:
    """A dialect is two plain things: how a call is asked, and how the answer is read."""

    def __init__(
        self,
        endpoint: Endpoint,
        limits: Limits,
        request: Callable[[Call, Endpoint], Request],
        reading: Callable[[Faults], Reading],
        *,
        stays_inside: bool,
        refuses_thoughts: Callable[[ProviderFault], bool] | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._limits = endpoint.limits(limits)
        self._request = request
        self._reading = reading
        self._refuses_thoughts = refuses_thoughts
        self._without_thoughts: set[str] = set()
        """Models whose thoughts the provider refuses to show."""
        self._wire = Wire(self._limits, stays_inside=stays_inside)

    @property
    def name(self) -> str:
        return self._endpoint.name

    def stream(self, call: Call) -> AsyncGenerator[Piece, None]:
        return self._stream(call) if self._refuses_thoughts is None else self._stream_anyhow(call)

    async def _stream_anyhow(self, call: Call) -> AsyncGenerator[Piece, None]:
        """Where the provider would not show what is thought, it is asked once more without that."""
        try:
            is_refused = call.model.model_id in self._without_thoughts
            allowed = replace(call, shows_thinking=call.shows_thinking and not is_refused)
            async with aclosing(self._stream(allowed)) as pieces:
                async for piece in pieces:
                    yield piece
            return
        except ProviderFault as fault:
            if not allowed.shows_thinking or not (self._refuses_thoughts and self._refuses_thoughts(fault)):
                raise
            self._without_thoughts.add(call.model.model_id)
        async with aclosing(self._stream(replace(call, shows_thinking=False))) as pieces:
            async for piece in pieces:
                yield piece

    async def _stream(self, call: Call) -> AsyncGenerator[Piece, None]:
        faults = self._endpoint.faults(call.model, self._limits, self._endpoint.asked_tokens(call))
        reading = self._reading(faults)
        keep_alive = reading.is_keep_alive if reading.keep_alive else None
        async with self._wire.ask(await self._asked(call), faults, keep_alive) as answer:
            while not reading.is_over:
                try:
                    events = await answer.read()
                except ProviderFault as fault:
                    if reading.finish is not None:
                        break  # It had said its last word; only its count is missing.
                    reading.fault = fault
                    events = []
                for piece in reading.take(events) if events else reading.rest():
                    yield piece
                if events is None:
                    reading.close()
                    break
                if reading.fault is not None:
                    raise reading.fault
                if reading.has_spoken:
                    answer.expect_words()
                if reading.finish is not None:
                    answer.expect_the_end()
        yield reading.end(call.prompt)

    async def _asked(self, call: Call) -> Request:
        """Pictures are encoded in a thread: twenty large ones take the tenth part of a second and more."""
        if call.pictures:
            return await asyncio.to_thread(self._request, call, self._endpoint)
        return self._request(call, self._endpoint)

    async def close(self) -> None:
        await self._wire.close()
