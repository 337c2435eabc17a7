"""Endpoints: where a provider is asked, with which key, in which dialect. A new company is one row."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from tertulia.core.errors import CannotStart, Invalid
from tertulia.core.models import FREE, Abilities, Model, Prices, Tier
from tertulia.core.thinking import Effort, ThinkingForm
from tertulia.providers import catalogue
from tertulia.providers.dialects import OUTPUT_LIMITS, Dialect, is_openai_thinker
from tertulia.providers.egress import checked_address, is_loopback
from tertulia.providers.faults import Faults
from tertulia.providers.limits import Limits
from tertulia.providers.seam import Call

EffortField = Literal["reasoning_effort", "reasoning", "thinking"]
"""A level in a field of its own, as most have it; an object (OpenRouter); a switch and a level (DeepSeek)."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    provider: str
    name: str
    base_url: str
    key_names: tuple[str, ...] = ()
    """Environment names of the key, the first that is set wins; none: no key is needed."""
    dialect: Dialect = "openai_chat"
    key: str | None = field(default=None, repr=False)
    output_limit: str | None = None
    """The name of the request's field for the most tokens an answer may have; None: the field is left out."""
    most_output: int | None = None
    """Never asked for more tokens than this: the provider reserves as many as are asked for."""
    thinkers_dialect: Dialect | None = None
    """The dialect of its models that think, where that is another one."""
    effort_field: EffortField = "reasoning_effort"
    """Where a chat request says how much to think."""
    asks_for_count: bool = True
    """Whether tokens are counted only when asked; strict servers refuse to be asked."""
    fixes_temperature: bool = False
    """Whether its thinking models refuse a temperature."""
    is_free: bool = False
    """Nothing is ever charged, so nobody is told that nothing was."""

    is_near: bool = False
    """Somebody's own machine: it may take any time before the first word, as one on loopback may."""

    @property
    def dialects(self) -> tuple[Dialect, ...]:
        return (self.dialect, self.thinkers_dialect) if self.thinkers_dialect else (self.dialect,)

    def dialect_of(self, model: Model) -> Dialect:
        thinks = model.abilities.thinking or is_openai_thinker(model.model_id)
        return self.thinkers_dialect if self.thinkers_dialect and thinks else self.dialect

    @property
    def has_key(self) -> bool:
        return bool(self.key) or not self.key_names

    def asked_tokens(self, call: Call) -> int | None:
        """The limit that is sent for the answer; None when none is."""
        if self.output_limit is None and call.affordable_tokens is None:
            return None
        limits = (call.max_output_tokens, self.most_output, call.affordable_tokens)
        return min(limit for limit in limits if limit is not None)

    def limited(self, call: Call) -> dict[str, int]:
        """The field that limits the answer, where this endpoint is sent one."""
        limit = self.asked_tokens(call)
        return (
            {} if limit is None else {self.output_limit or OUTPUT_LIMITS[self.dialect_of(call.model)]: limit}
        )

    def takes_temperature(self, model: Model) -> bool:
        return not (self.fixes_temperature and model.abilities.thinking)

    def limits(self, limits: Limits) -> Limits:
        is_patient = self.is_near or is_loopback(self.base_url)
        return (
            replace(limits, first_byte_s=math.inf) if is_patient and limits.first_byte_s is None else limits
        )

    def faults(self, model: Model, limits: Limits, asked_tokens: int | None = None) -> Faults:
        return Faults(self.name, model, limits, self.key, self.is_free, asked_tokens)


ENDPOINTS = (
    Endpoint("openai", "OpenAI", "https://api.openai.com/v1", ("OPENAI_API_KEY",),
             thinkers_dialect="openai_responses", fixes_temperature=True),
    Endpoint("anthropic", "Anthropic", "https://api.anthropic.com", ("ANTHROPIC_API_KEY",), "anthropic"),
    Endpoint("google", "Google", "https://generativelanguage.googleapis.com",
             ("GOOGLE_API_KEY", "GEMINI_API_KEY"), "google"),
    Endpoint("xai", "xAI", "https://api.x.ai/v1", ("XAI_API_KEY",)),
    Endpoint("openrouter", "OpenRouter", "https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",),
             output_limit="max_tokens", most_output=16_384, effort_field="reasoning"),
    Endpoint("groq", "Groq", "https://api.groq.com/openai/v1", ("GROQ_API_KEY",),
             output_limit="max_completion_tokens", most_output=8_192),
    Endpoint("mistral", "Mistral", "https://api.mistral.ai/v1", ("MISTRAL_API_KEY",), asks_for_count=False),
    Endpoint("deepseek", "DeepSeek", "https://api.deepseek.com/v1", ("DEEPSEEK_API_KEY",),
             effort_field="thinking"),
)  # fmt: skip


CEREBRAS = Endpoint(
    "cerebras",
    "Cerebras",
    "https://api.cerebras.ai/v1",
    output_limit="max_completion_tokens",
    most_output=8_192,
)
"""Without models in the catalogue: known for its habit, for those who name it as an endpoint of their own."""
RESERVING = (*(endpoint for endpoint in ENDPOINTS if endpoint.most_output is not None), CEREBRAS)
"""They count the tokens that are asked for before they run a request, and refuse what is too much."""


def from_environment(environ: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """The known endpoints with the keys and addresses that are set."""
    return tuple(_settled(endpoint, environ) for endpoint in ENDPOINTS)


def _settled(endpoint: Endpoint, environ: Mapping[str, str]) -> Endpoint:
    key = next((environ[name].strip() for name in endpoint.key_names if environ.get(name, "").strip()), None)
    address_name = f"{endpoint.provider.upper()}_BASE_URL"
    address = environ.get(address_name, "").strip() or endpoint.base_url
    try:
        return replace(endpoint, key=key, base_url=checked_address(address))
    except Invalid as error:
        raise CannotStart(f"{address_name}: {error.message}") from None


@dataclass(frozen=True, slots=True)
class OwnEndpoint:
    """An OpenAI-compatible server someone runs or rents, with its models."""

    endpoint: Endpoint
    models: tuple[Model, ...]


OWN_ENDPOINTS_NAME = "TERTULIA_ENDPOINTS"
DEFAULT_WINDOW = 8192


def own_endpoints(environ: Mapping[str, str]) -> tuple[OwnEndpoint, ...]:
    """The rows of TERTULIA_ENDPOINTS: [{"name", "base_url", "key"?, "models": [{"id", "window"?, …}]}]."""
    text = environ.get(OWN_ENDPOINTS_NAME, "").strip()
    if not text:
        return ()
    try:
        rows = json.loads(text)
        if not isinstance(rows, list):
            raise TypeError(type(rows).__name__)
        return tuple(_own_endpoint(row) for row in rows)
    except Invalid as error:
        raise CannotStart(f"{OWN_ENDPOINTS_NAME}: {error.message}") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CannotStart(
            f"{OWN_ENDPOINTS_NAME} must be a JSON list of objects with name, base_url and models ({error!r})."
        ) from None


def _own_endpoint(row: Mapping[str, Any]) -> OwnEndpoint:
    name = str(row["name"]).strip()
    base_url = checked_address(str(row["base_url"]))
    limit, most = _own_output_limit(row, base_url)
    key = row.get("key") or None
    # A server on this machine that wants no key is taken for a local one; a gateway to others says otherwise.
    is_local = bool(row.get("is_local", is_loopback(base_url) and not key))
    habits = {"output_limit": limit, "most_output": most, "is_near": is_local, **_habits(row, base_url)}
    endpoint = Endpoint(_slug(name), name, base_url, key=key, **habits)
    models = tuple(_own_model(endpoint, model, is_local) for model in row["models"])
    return OwnEndpoint(endpoint, models)


def _habits(row: Mapping[str, Any], base_url: str) -> dict[str, Any]:
    """What the row says, else the habits of the company whose address it is."""
    known = next((known for known in ENDPOINTS if _host(known.base_url) == _host(base_url)), None)
    habits: dict[str, Any] = {"dialect": row.get("dialect", "openai_chat")}
    if habits["dialect"] not in get_args(Dialect):
        raise Invalid(f"dialect is one of {', '.join(get_args(Dialect))}, not {row['dialect']!r}.")
    if known is not None:
        habits |= {"effort_field": known.effort_field, "asks_for_count": known.asks_for_count}
        habits |= {"fixes_temperature": known.fixes_temperature}
        habits |= {} if "dialect" in row else {"thinkers_dialect": known.thinkers_dialect}
    if "counts" in row:
        habits["asks_for_count"] = _flag(row, "counts")
    return habits


def _flag(row: Mapping[str, Any], name: str) -> bool:
    value = row[name]
    if not isinstance(value, bool):
        raise Invalid(f"{name} is true or false, not {value!r}.")
    return value


def _own_output_limit(row: Mapping[str, Any], base_url: str) -> tuple[str | None, int | None]:
    """The name of the field and the most that is asked for, by the row or by the company's habit."""
    known = next((known for known in RESERVING if _host(known.base_url) == _host(base_url)), None)
    most = known.most_output if known else None
    if "output_limit" not in row:
        return _habitual_limit(known, row) if known else None, most
    name = str(row["output_limit"] or "").strip()
    if name and not name.isidentifier():
        raise Invalid(f"output_limit is the name of a field such as max_tokens, not {name!r}.")
    return (name if name and name.lower() != "none" else None), most


def _habitual_limit(known: Endpoint, row: Mapping[str, Any]) -> str | None:
    """The company's own name for it, or that of another dialect it is asked in."""
    dialect = row.get("dialect", known.dialect)
    return known.output_limit if dialect == known.dialect else OUTPUT_LIMITS.get(dialect)


def _host(address: str) -> str | None:
    return urlsplit(address).hostname


def _own_model(endpoint: Endpoint, row: Mapping[str, Any] | str, is_local: bool) -> Model:
    facts: Mapping[str, Any] = {"id": row} if isinstance(row, str) else row
    model_id = str(facts["id"])
    window = int(facts.get("window") or DEFAULT_WINDOW)
    efforts = tuple(Effort(name) for name in facts.get("efforts") or ())
    is_known_thinker = endpoint.thinkers_dialect is not None and is_openai_thinker(model_id)
    thinks = bool(facts.get("thinking", efforts or is_known_thinker))
    return Model(
        provider=endpoint.provider,
        model_id=model_id,
        display_name=str(facts.get("name") or model_id),
        context_window=window,
        max_output_tokens=int(facts.get("output") or min(catalogue.DEFAULT_OUTPUT, window // 2)),
        max_input_tokens=int(facts["input"]) if facts.get("input") else None,
        tier=Tier(facts.get("tier") or catalogue.tier_of(model_id)),
        abilities=Abilities(
            tools=bool(facts.get("tools")), vision=bool(facts.get("vision")), thinking=thinks
        ),
        prices=FREE if is_local else Prices(),
        is_local=is_local,
        efforts=efforts,
        thinking_form=_form(endpoint, facts) if thinks else ThinkingForm.NONE,
    )


def _form(endpoint: Endpoint, facts: Mapping[str, Any]) -> ThinkingForm:
    """As the newest models of its dialect, or with a number of tokens (`"thinks": "budget"`)."""
    return ThinkingForm(facts.get("thinks") or catalogue.FORMS.get(endpoint.dialect, ThinkingForm.EFFORT))


def _slug(name: str) -> str:
    slug = "".join(character if character.isalnum() else "-" for character in name.lower()).strip("-")
    if not slug or slug in {endpoint.provider for endpoint in ENDPOINTS} | {"builtin"}:
        raise Invalid(f"An endpoint cannot be called {name!r}; choose a name of its own.")
    return slug
