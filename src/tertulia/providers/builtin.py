"""The built-in models: weights on this machine, run in a process of their own."""

from __future__ import annotations

from pathlib import Path

from tertulia.core.errors import UnknownModel
from tertulia.core.models import FREE, Model, Tier
from tertulia.providers.seam import Provider
from tertulia.providers.speakers import Speakers

PROVIDER = "builtin"


class BuiltIn:
    name = "Built in"

    def __init__(self, folder: Path, speakers: Speakers) -> None:
        self._folder = folder
        self._speakers = speakers

    def models(self) -> tuple[Model, ...]:
        return (SMOLLM2,)

    def find(self, key: str) -> Model | None:
        return next((model for model in self.models() if model.key == key), None)

    def is_available(self, model: Model) -> bool:
        return self.unavailable_reason(model) is None

    def unavailable_reason(self, model: Model) -> str | None:
        return "Run `tertulia models pull smollm2` to fetch the built-in model."

    async def provider(self, model: Model) -> Provider:
        raise UnknownModel("Not yet.")

    async def close(self) -> None: ...


SMOLLM2 = Model(
    provider=PROVIDER,
    model_id="smollm2-135m-instruct",
    display_name="SmolLM2 135M (built in)",
    context_window=8192,
    max_output_tokens=2048,
    tier=Tier.CHEAP,
    prices=FREE,
    is_local=True,
    is_demo=True,
)
