"""Embedding client: turns texts into vectors at an OpenAI-compatible endpoint, under the same limits as a
reply."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tertulia.core.errors import CannotStart, Invalid
from tertulia.core.models import FREE, Model, Prices, Tier, TokenCount
from tertulia.providers.egress import Egress, checked_address, is_loopback
from tertulia.providers.endpoints import Endpoint
from tertulia.providers.interface import ProviderError
from tertulia.providers.limits import Limits
from tertulia.providers.transport import Request, Transport

VARIABLE = "TERTULIA_EMBEDDINGS"
_SHAPE = '{"base_url": "https://…/v1", "key": "…", "model": "…", "dimensions": 1536, "price": 0.02}'


@dataclass(frozen=True, slots=True)
class EmbeddingEndpoint:
    base_url: str
    model: str
    dimensions: int
    key: str | None = field(default=None, repr=False)
    price: float | None = None
    """Dollars per million tokens. None if the operator did not set a price."""

    @property
    def prices(self) -> Prices:
        if self.price is None:
            return FREE if is_loopback(self.base_url) and not self.key else Prices()
        return Prices(input_micros=round(self.price * 1_000_000), output_micros=0)


@dataclass(frozen=True, slots=True)
class Embeddings:
    vectors: list[list[float]]
    """The vectors in the order of the texts, as the endpoint sends them."""
    count: TokenCount


def read(setting: str) -> EmbeddingEndpoint | None:
    """The embedding endpoint from the operator's setting, or None if texts are embedded on this machine."""
    if not setting:
        return None
    try:
        fields = json.loads(setting)
        endpoint = EmbeddingEndpoint(**fields)
        float(endpoint.price or 0)
        address = checked_address(endpoint.base_url)
    except Invalid as error:
        raise CannotStart(f"{VARIABLE}: {error.message}") from None
    except (ValueError, TypeError, AttributeError):
        raise CannotStart(
            f"{VARIABLE} cannot be read. It looks like {_SHAPE}; key and price may be left out."
        ) from None
    if not (isinstance(endpoint.model, str) and endpoint.model) or not (
        isinstance(endpoint.dimensions, int) and 8 <= endpoint.dimensions <= 8192
    ):
        raise CannotStart(
            f"{VARIABLE} names no model, or dimensions beyond 8 to 8192. It looks like {_SHAPE}."
        )
    price = endpoint.price
    if price is not None and (isinstance(price, bool) or not 0 <= price < 1_000_000):
        raise CannotStart(f"{VARIABLE}: the price is in dollars for a million tokens, 0.02 for example.")
    return replace(endpoint, base_url=address)


class EmbeddingClient:
    def __init__(self, endpoint: EmbeddingEndpoint, egress: Egress, limits: Limits | None = None) -> None:
        limits = limits or Limits(first_byte_s=30, idle_s=30, total_s=60, line_bytes=16 << 20)
        self._endpoint = endpoint
        self._transport = Transport(limits, egress)
        provider = Endpoint("embeddings", "The embedding endpoint", endpoint.base_url, key=endpoint.key)
        self._errors = provider.error_factory(_as_model(endpoint), limits)

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """Embeds the texts. Raises ProviderError."""
        async with self._transport.post(self._request(texts), self._errors) as stream:
            events = await stream.read() or []
            while more_events := await stream.read():
                events += more_events
        try:
            response = json.loads(events[0].data)
            return Embeddings(self._vectors(response, len(texts)), _count(response, texts))
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError):
            size = self._endpoint.dimensions
            raise ProviderError(
                "malformed",
                f"The embedding endpoint did not send {size} numbers for each text. If its vectors are "
                f"of another length, {VARIABLE} must say which.",
            ) from None

    def _request(self, texts: Sequence[str]) -> Request:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._endpoint.key:
            headers["Authorization"] = f"Bearer {self._endpoint.key}"
        body = json.dumps({"model": self._endpoint.model, "input": list(texts), "encoding_format": "float"})
        return Request(f"{self._endpoint.base_url}/embeddings", body.encode(), headers)

    def _vectors(self, response: Any, count: int) -> list[list[float]]:
        rows = {int(row["index"]): [float(value) for value in row["embedding"]] for row in response["data"]}
        if sorted(rows) != list(range(count)):
            raise ValueError("not one vector for each text")
        for vector in rows.values():
            if len(vector) != self._endpoint.dimensions or not all(map(math.isfinite, vector)):
                raise ValueError("not as many numbers as were asked for")
        return [rows[index] for index in range(count)]

    async def close(self) -> None:
        await self._transport.close()


def _count(response: Any, texts: Sequence[str]) -> TokenCount:
    """The endpoint's token count, or our own estimate if the count is missing or implausible."""
    usage = response.get("usage")
    tokens = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    characters = sum(map(len, texts))
    if isinstance(tokens, int) and not isinstance(tokens, bool) and 0 < tokens <= 8 * characters + 100:
        return TokenCount(input_tokens=tokens)
    return TokenCount(input_tokens=max(1, characters // 4), is_estimated=True)


def _as_model(endpoint: EmbeddingEndpoint) -> Model:
    return Model(
        provider="embeddings",
        model_id=endpoint.model,
        display_name=endpoint.model,
        context_window=8192,
        max_output_tokens=1,
        tier=Tier.CHEAP,
        prices=endpoint.prices,
    )
