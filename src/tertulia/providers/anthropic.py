"""The Anthropic dialect."""

from __future__ import annotations

import httpx2
from anthropic import AsyncAnthropic
from pydantic_ai.models import Model as Client
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.settings import ModelSettings

from tertulia.providers import direct
from tertulia.providers.bridge import Signs
from tertulia.providers.direct import Direct
from tertulia.providers.endpoints import Endpoint
from tertulia.providers.limits import Limits
from tertulia.providers.wire import Wire

SIGNS = Signs(
    is_last_word=lambda event: event.get("type") == "message_stop",
    is_error=lambda event: event.get("type") == "error" or "error" in event,
    is_text=lambda event: event.get("type") == "content_block_delta",
    keep_alive="ping",
)


def speaker(endpoint: Endpoint, limits: Limits, *, stays_inside: bool) -> Direct:
    return Direct(endpoint, limits, Wire(limits, stays_inside=stays_inside), SIGNS, client, ModelSettings())


def rehearse(endpoint: Endpoint) -> None:
    direct.rehearse(client, endpoint, "claude", "anthropic.sse")


def client(endpoint: Endpoint, model_id: str, http: httpx2.AsyncClient) -> Client:
    own = AsyncAnthropic(api_key=endpoint.key, base_url=endpoint.base_url, max_retries=0, http_client=http)
    return AnthropicModel(model_id, provider=AnthropicProvider(anthropic_client=own))
