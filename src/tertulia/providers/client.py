"""Dialect client: sends one model request to an endpoint and streams the reply."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

from tertulia.providers.egress import Egress
from tertulia.providers.endpoints import Endpoint
from tertulia.providers.errors import ErrorFactory
from tertulia.providers.interface import ModelRequest, ProviderError, StreamItem
from tertulia.providers.limits import Limits
from tertulia.providers.stream_decoder import StreamDecoder
from tertulia.providers.transport import Request, Transport


class DialectClient:
    """Combines a dialect's two parts: a function that builds the request, and a decoder for the stream."""

    def __init__(
        self,
        endpoint: Endpoint,
        limits: Limits,
        egress: Egress,
        request: Callable[[ModelRequest, Endpoint], Request],
        new_decoder: Callable[[ErrorFactory], StreamDecoder],
    ) -> None:
        self._endpoint = endpoint
        self._limits = endpoint.limits(limits)
        self._request = request
        self._new_decoder = new_decoder
        self._transport = Transport(self._limits, egress)

    @property
    def name(self) -> str:
        return self._endpoint.name

    async def stream(self, call: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Sends the request and yields the reply. Raises ProviderError, even after some text."""
        errors = self._endpoint.error_factory(call.model, self._limits, self._endpoint.requested_tokens(call))
        decoder = self._new_decoder(errors)
        keep_alive = decoder.is_keep_alive if decoder.keep_alive else None
        async with self._transport.post(await self._build_request(call), errors, keep_alive) as stream:
            while not decoder.is_over:
                try:
                    events = await stream.read()
                except ProviderError as error:
                    if decoder.finish is not None:
                        break  # The finish reason has arrived; only the token count is missing.
                    decoder.error = error
                    events = []
                for item in decoder.decode(events) if events else decoder.flush():
                    yield item
                if events is None:
                    decoder.must_be_finished()
                    break
                if decoder.error is not None:
                    raise decoder.error
                if decoder.has_text:
                    stream.expect_text()
                if decoder.finish is not None:
                    stream.expect_end()
        yield decoder.completed(call.prompt)

    async def _build_request(self, call: ModelRequest) -> Request:
        """Builds the HTTP request; in a thread if it has pictures, because encoding twenty large ones takes a
        tenth of a second and more."""
        if call.pictures:
            return await asyncio.to_thread(self._request, call, self._endpoint)
        return self._request(call, self._endpoint)

    async def close(self) -> None:
        await self._transport.close()
