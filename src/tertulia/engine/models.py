"""Model overrides: the facts of a model that an administrator has changed; valid from the next question."""

from __future__ import annotations

from tertulia.core.errors import NotFound
from tertulia.core.models import Model, ModelOverrides, with_overrides
from tertulia.engine.dependencies import Dependencies
from tertulia.store import models


async def describe(dependencies: Dependencies, key: str, facts: ModelOverrides) -> Model:
    model = with_overrides(_in_catalogue(dependencies, key), facts)
    await dependencies.db.write(lambda tx: models.save(tx, model))
    await reread(dependencies)
    return model


async def forget(dependencies: Dependencies, key: str) -> Model:
    """Removes the overrides, so that the catalogue is valid again."""
    model = _in_catalogue(dependencies, key)
    await dependencies.db.write(lambda tx: models.remove(tx, model.provider, model.model_id))
    await reread(dependencies)
    return model


async def reread(dependencies: Dependencies) -> None:
    """Loads the overrides: at the start, after a change, and with each heartbeat."""
    dependencies.providers.apply_overrides(await dependencies.db.read(models.overrides))


def _in_catalogue(dependencies: Dependencies, key: str) -> Model:
    model = dependencies.providers.catalogue_model(key)
    if model is None:
        raise NotFound("Only models of the catalogue and of own endpoints can be described differently.")
    return model
