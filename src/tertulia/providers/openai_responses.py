"""The OpenAI responses dialect, for models that speak no other."""

from __future__ import annotations

import httpx2
from openai import AsyncOpenAI
from pydantic_ai.models import Model as Client
from pydantic_ai.models.openai import OpenAIResponsesModel, OpenAIResponsesModelSettings
from pydantic_ai.providers.openai import OpenAIProvider

from tertulia.providers import direct
from tertulia.providers.bridge import Signs
from tertulia.providers.direct import Direct
from tertulia.providers.endpoints import Endpoint
from tertulia.providers.limits import Limits
from tertulia.providers.wire import Wire

SIGNS = Signs(
    is_last_word=lambda event: event.get("type") in ("response.completed", "response.incomplete"),
    is_error=lambda event: event.get("type") in ("error", "response.failed") or "error" in event,
    is_text=lambda event: str(event.get("type")).endswith(".delta"),
)


def speaker(endpoint: Endpoint, limits: Limits, *, stays_inside: bool) -> Direct:
    # Otherwise OpenAI keeps what was said for a month.
    settings = OpenAIResponsesModelSettings(openai_store=False)
    return Direct(endpoint, limits, Wire(limits, stays_inside=stays_inside), SIGNS, client, settings)


def rehearse(endpoint: Endpoint) -> None:
    direct.rehearse(client, endpoint, "gpt", "openai_responses.sse")


def client(endpoint: Endpoint, model_id: str, http: httpx2.AsyncClient) -> Client:
    own = AsyncOpenAI(api_key=endpoint.key, base_url=endpoint.base_url, max_retries=0, http_client=http)
    return OpenAIResponsesModel(model_id, provider=OpenAIProvider(openai_client=own))
