"""The Google dialect: Gemini."""

from __future__ import annotations

from typing import Any

import httpx2
from google.genai import Client as Genai
from google.genai.types import HttpOptions
from pydantic_ai.models import Model as Client
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.settings import ModelSettings

from tertulia.providers import direct
from tertulia.providers.bridge import Signs
from tertulia.providers.direct import Direct
from tertulia.providers.endpoints import Endpoint
from tertulia.providers.limits import Limits
from tertulia.providers.wire import Wire

VERSION = "v1beta"


def _has_finished(event: dict[str, Any]) -> bool:
    """A finish reason, or a question that was refused before it was answered."""
    candidates = event.get("candidates")
    if not isinstance(candidates, list) or not candidates:
        feedback = event.get("promptFeedback")
        return isinstance(feedback, dict) and bool(feedback.get("blockReason"))
    return isinstance(candidates[0], dict) and bool(candidates[0].get("finishReason"))


SIGNS = Signs(
    is_last_word=_has_finished,
    is_error=lambda event: "error" in event,
    is_text=lambda event: "candidates" in event,
)


def speaker(endpoint: Endpoint, limits: Limits, *, stays_inside: bool) -> Direct:
    return Direct(endpoint, limits, Wire(limits, stays_inside=stays_inside), SIGNS, client, ModelSettings())


def rehearse(endpoint: Endpoint) -> None:
    direct.rehearse(client, endpoint, "gemini", "google.sse")


def client(endpoint: Endpoint, model_id: str, http: httpx2.AsyncClient) -> Client:
    options = HttpOptions(base_url=endpoint.base_url, api_version=VERSION, httpx_async_client=http)
    own = Genai(vertexai=False, api_key=endpoint.key, http_options=options)
    return GoogleModel(model_id, provider=GoogleProvider(client=own))
