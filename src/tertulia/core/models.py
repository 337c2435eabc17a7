"""Models: what each can hold, do and cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from tertulia.core.errors import Invalid
from tertulia.core.thinking import Effort, ThinkingForm

WINDOWS = range(1_000, 100_000_001)
"""Tokens a model may be said to hold."""
PRICES = range(10**12 + 1)
NAME_LIMIT = 100


class Tier(StrEnum):
    SMART = "smart"
    BALANCED = "balanced"
    FAST = "fast"
    CHEAP = "cheap"


WORKING_ROUNDS = {Tier.SMART: 20, Tier.BALANCED: 10, Tier.FAST: 5, Tier.CHEAP: 5}
"""How many of the last rounds a model of each tier is shown."""

RETRIEVED = {Tier.SMART: 10, Tier.BALANCED: 5, Tier.FAST: 3, Tier.CHEAP: 3}
"""How many pieces of what was looked up."""


@dataclass(frozen=True, slots=True)
class Abilities:
    tools: bool = False
    vision: bool = False
    streaming: bool = True
    thinking: bool = False
    code_execution: bool = False
    structured: bool = False
    """Keeps to a JSON schema when it is given one."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Micro-dollars per million tokens; a price nobody knows is None, never 0."""

    input_micros: int | None = None
    cached_micros: int | None = None
    output_micros: int | None = None
    written_micros: int | None = None
    """Of what is put into the provider's cache, where it charges more for that than for other input."""


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
    """Runs on this machine: free, and nothing leaves."""
    is_demo: bool = False
    vocabulary: str = "o200k_base"
    max_input_tokens: int | None = None
    """The most that may be sent, where that is less than the window; None: as much as the window holds."""

    efforts: tuple[Effort, ...] = ()
    """How much it can be told to think; empty where it cannot be told."""
    thinking_form: ThinkingForm = ThinkingForm.NONE

    def effort(self, wanted: Effort | None) -> Effort | None:
        """What is wanted, where the model can be told so."""
        return wanted if wanted in self.efforts else None

    @property
    def input_limit(self) -> int:
        return min(self.max_input_tokens or self.context_window, self.context_window)

    @property
    def key(self) -> str:
        return f"{self.provider}:{self.model_id}"


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What an administrator knows better of a model; what is left out is as the catalogue says."""

    display_name: str | None = None
    context_window: int | None = None
    max_output_tokens: int | None = None
    tier: Tier | None = None
    abilities: Abilities | None = None
    input_micros: int | None = None
    cached_micros: int | None = None
    output_micros: int | None = None


def described(model: Model, facts: ModelFacts) -> Model:
    """The model as it is known better; filling its provider's cache costs more in the same proportion."""
    given = {name: value for name in _DESCRIBED if (value := getattr(facts, name)) is not None}
    prices = {name: value for name in _PRICED if (value := getattr(facts, name)) is not None}
    better = replace(model, **given, prices=in_proportion(replace(model.prices, **prices), model.prices))
    _check(better)
    return better


_DESCRIBED = ("display_name", "context_window", "max_output_tokens", "tier", "abilities")
_PRICED = ("input_micros", "cached_micros", "output_micros")


def in_proportion(prices: Prices, to: Prices) -> Prices:
    """The price of filling a cache, by that of input."""
    if prices.input_micros is None or not to.input_micros or to.written_micros is None:
        return prices
    return replace(prices, written_micros=to.written_micros * prices.input_micros // to.input_micros)


def _check(model: Model) -> None:
    if not model.display_name.strip() or len(model.display_name) > NAME_LIMIT:
        raise Invalid(f"A model's name has 1 to {NAME_LIMIT} characters.")
    if model.context_window not in WINDOWS:
        raise Invalid(f"A model's window is {WINDOWS.start:,} to {WINDOWS.stop - 1:,} tokens.")
    if not 1 <= model.max_output_tokens <= model.context_window:
        raise Invalid("A model writes at least one token, and no more than its window holds.")
    prices = (model.prices.input_micros, model.prices.cached_micros, model.prices.output_micros)
    if any(price is not None and price not in PRICES for price in prices):
        raise Invalid("A price is 0 or more, in millionths of a dollar for a million tokens.")


@dataclass(frozen=True, slots=True)
class TokenCount:
    """What one call used, as its provider counted."""

    input_tokens: int = 0
    cached_tokens: int = 0
    """The part of input_tokens that came from the provider's cache."""
    output_tokens: int = 0
    reasoning_tokens: int = 0
    """The part of output_tokens spent thinking."""
    is_estimated: bool = False
    """The provider gave no count that could be true; this one is ours."""
    written_tokens: int = 0
    """The part of input_tokens that was put into the provider's cache."""


def cost_micros(count: TokenCount, prices: Prices) -> int | None:
    """What a call cost; None when a price it needs is unknown."""
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
