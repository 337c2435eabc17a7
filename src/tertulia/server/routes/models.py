"""Model routes: the models with their prices and abilities, and overrides of the catalogue."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import Response

from tertulia.core.models import Abilities, Model, ModelOverrides, Prices, Tier
from tertulia.core.thinking import Effort
from tertulia.engine import models
from tertulia.providers.registry import ProviderRegistry
from tertulia.server.access import Admin, CurrentActor, InjectedApp
from tertulia.server.responses import json_response, large_json_response

router = APIRouter(tags=["models"])


@dataclass(frozen=True, slots=True)
class ModelView:
    key: str
    provider: str
    provider_name: str
    model_id: str
    display_name: str
    tier: Tier
    context_window: int
    input_limit: int
    """The most tokens of a prompt: the context window, or less."""
    max_output_tokens: int
    prices: Prices
    abilities: Abilities
    efforts: tuple[Effort, ...]
    """The thinking efforts that can be chosen; empty if the model has no such option."""
    is_local: bool
    is_demo: bool
    is_available: bool
    unavailable_reason: str | None


@dataclass(frozen=True, slots=True)
class ModelList:
    items: tuple[ModelView, ...]


@dataclass(frozen=True, slots=True)
class Catalogue:
    items: tuple[Model, ...]
    overridden_keys: tuple[str, ...]
    """The keys of the models with overrides by an administrator."""


@router.get("/api/models", response_model=ModelList)
async def list_models(tertulia: InjectedApp, actor: CurrentActor, request: Request) -> Response:
    """All models, available ones first."""
    views = [_view(model, tertulia.providers) for model in tertulia.providers.models()]
    return large_json_response(
        request, ModelList(tuple(sorted(views, key=lambda view: not view.is_available)))
    )


@router.get("/api/models/metadata", response_model=Catalogue)
async def list_metadata(tertulia: InjectedApp, actor: CurrentActor, request: Request) -> Response:
    providers = tertulia.providers
    return large_json_response(request, Catalogue(providers.models(), providers.overridden_keys))


@router.put("/api/models/metadata", response_model=Model)
async def describe_model(tertulia: InjectedApp, admin: Admin, model: str, facts: ModelOverrides) -> Response:
    """Overrides the catalogue from the next question on; omitted fields keep the catalogue's values."""
    return json_response(await models.describe(tertulia.dependencies, model, facts))


@router.delete("/api/models/metadata", response_model=Model)
async def forget_description(tertulia: InjectedApp, admin: Admin, model: str) -> Response:
    """Removes the overrides of a model."""
    return json_response(await models.forget(tertulia.dependencies, model))


def _view(model: Model, providers: ProviderRegistry) -> ModelView:
    reason = providers.unavailable_reason(model)
    return ModelView(
        key=model.key,
        provider=model.provider,
        provider_name=providers.provider_name(model),
        model_id=model.model_id,
        display_name=model.display_name,
        tier=model.tier,
        context_window=model.context_window,
        input_limit=model.input_limit,
        max_output_tokens=model.max_output_tokens,
        prices=model.prices,
        abilities=model.abilities,
        efforts=model.efforts,
        is_local=model.is_local,
        is_demo=model.is_demo,
        is_available=reason is None,
        unavailable_reason=reason,
    )
