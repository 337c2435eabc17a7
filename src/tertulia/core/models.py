"""Models: context window, abilities, prices and thinking efforts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from tertulia.core.errors import Invalid
from tertulia.core.thinking import Effort, ThinkingForm

CONTEXT_WINDOWS = range(1_000, 100_000_001)
"""The context windows that an administrator may enter, in tokens."""
PRICES = range(10**12 + 1)
NAME_LIMIT = 100


class Tier(StrEnum):
    SMART = "smart"
    BALANCED = "balanced"
    FAST = "fast"
    CHEAP = "cheap"


WORKING_ROUNDS = {Tier.SMART: 20, Tier.BALANCED: 10, Tier.FAST: 5, Tier.CHEAP: 5}
"""How many of the last rounds the prompt of each tier contains."""

RETRIEVED = {Tier.SMART: 10, Tier.BALANCED: 5, Tier.FAST: 3, Tier.CHEAP: 3}
"""How many search results the prompt of each tier contains, at most."""


@dataclass(frozen=True, slots=True)
class Abilities:
    tools: bool = False
    vision: bool = False
    streaming: bool = True
    thinking: bool = False
    code_execution: bool = False
    structured: bool = False
    """Whether the model keeps to a JSON schema that the request names."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Micro-dollars per million tokens; an unknown price is None, never 0."""

    input_micros: int | None = None
    cached_micros: int | None = None
    output_micros: int | None = None
    written_micros: int | None = None
    """The price of writing to the provider's cache, if it is higher than that of other input."""


FREE = Prices(0, 0, 0)


@dataclass(frozen=True, slots=True)
class Model:
    provider: str
    model_id: str
    display_name: str
    context_window: int
    max_output_tokens: int
    tier: Tier
    abilities: Abilities = Abilities()
    prices: Prices = Prices()
    is_local: bool = False
    """Whether it runs on this machine: it is free, and no data leaves the machine."""
    is_demo: bool = False
    vocabulary: str = "o200k_base"
    max_input_tokens: int | None = None
    """The most input tokens, if that is less than the context window; None: the whole window."""

    efforts: tuple[Effort, ...] = ()
    """The thinking efforts that a request can ask for; empty if the model has none."""
    thinking_form: ThinkingForm = ThinkingForm.NONE

    def effort(self, requested: Effort | None) -> Effort | None:
        """The requested effort if the model supports it, else None."""
        return requested if requested in self.efforts else None

    @property
    def input_limit(self) -> int:
        return min(self.max_input_tokens or self.context_window, self.context_window)

    @property
    def key(self) -> str:
        return f"{self.provider}:{self.model_id}"


@dataclass(frozen=True, slots=True)
class ModelOverrides:
    """An administrator's corrections to a model; a field without a value keeps the catalogue's."""

    display_name: str | None = None
    context_window: int | None = None
    max_output_tokens: int | None = None
    tier: Tier | None = None
    abilities: Abilities | None = None
    input_micros: int | None = None
    cached_micros: int | None = None
    output_micros: int | None = None


def with_overrides(model: Model, overrides: ModelOverrides) -> Model:
    """The model with the corrections. The price of writing to the provider's cache changes in proportion."""
    attributes = {name: value for name in _ATTRIBUTES if (value := getattr(overrides, name)) is not None}
    prices = {name: value for name in _PRICES if (value := getattr(overrides, name)) is not None}
    corrected = replace(
        model, **attributes, prices=in_proportion(replace(model.prices, **prices), model.prices)
    )
    _check_model(corrected)
    return corrected


_ATTRIBUTES = ("display_name", "context_window", "max_output_tokens", "tier", "abilities")
_PRICES = ("input_micros", "cached_micros", "output_micros")


def in_proportion(prices: Prices, original: Prices) -> Prices:
    """Scales the price of writing to the provider's cache with the input price."""
    if prices.input_micros is None or not original.input_micros or original.written_micros is None:
        return prices
    return replace(
        prices, written_micros=original.written_micros * prices.input_micros // original.input_micros
    )


def _check_model(model: Model) -> None:
    if not model.display_name.strip() or len(model.display_name) > NAME_LIMIT:
        raise Invalid(f"A model's name has 1 to {NAME_LIMIT} characters.")
    if model.context_window not in CONTEXT_WINDOWS:
        raise Invalid(
            f"A model's window is {CONTEXT_WINDOWS.start:,} to {CONTEXT_WINDOWS.stop - 1:,} tokens."
        )
    if not 1 <= model.max_output_tokens <= model.context_window:
        raise Invalid("A model writes at least one token, and no more than its window holds.")
    prices = (model.prices.input_micros, model.prices.cached_micros, model.prices.output_micros)
    if any(price is not None and price not in PRICES for price in prices):
        raise Invalid("A price is 0 or more, in millionths of a dollar for a million tokens.")


@dataclass(frozen=True, slots=True)
class TokenCount:
    """The tokens of one call, as its provider counted them."""

    input_tokens: int = 0
    cached_tokens: int = 0
    """The part of input_tokens that came from the provider's cache."""
    output_tokens: int = 0
    reasoning_tokens: int = 0
    """The part of output_tokens spent thinking."""
    is_estimated: bool = False
    """Whether this is our own estimate, because the provider sent no plausible count."""
    written_tokens: int = 0
    """The part of input_tokens that was written to the provider's cache."""


def cost_micros(count: TokenCount, prices: Prices) -> int | None:
    """The cost of a call; None if a price that it needs is unknown."""
    if prices.input_micros is None or prices.output_micros is None:
        return None
    cached_price = prices.input_micros if prices.cached_micros is None else prices.cached_micros
    fresh = max(0, count.input_tokens - count.cached_tokens)
    total = (
        fresh * prices.input_micros
        + count.written_tokens * _surcharge(prices.written_micros, prices.input_micros)
        + count.cached_tokens * cached_price
        + count.output_tokens * prices.output_micros
    )
    return -(-total // 1_000_000)


def _surcharge(written_micros: int | None, input_micros: int) -> int:
    return 0 if written_micros is None else max(0, written_micros - input_micros)
