"""Endpoints: the address, key, dialect and requirements of each provider. A new provider is one row."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from tertulia.core.errors import CannotStart, Invalid
from tertulia.core.models import FREE, Abilities, Model, Prices, Tier
from tertulia.core.thinking import Effort, ThinkingForm
from tertulia.providers import catalogue
from tertulia.providers.catalogue import Dialect
from tertulia.providers.egress import checked_address, is_loopback
from tertulia.providers.errors import ErrorFactory
from tertulia.providers.interface import ModelRequest
from tertulia.providers.limits import Limits

OUTPUT_LIMITS: dict[Dialect, str] = {
    "openai_chat": "max_tokens",
    "openai_responses": "max_output_tokens",
    "anthropic": "max_tokens",
    "google": "maxOutputTokens",
}
"""The request field that limits the reply in each dialect, unless an endpoint uses another name."""

EffortField = Literal["reasoning_effort", "reasoning", "thinking"]
"""The field for the effort: a field of its own (most providers), an object (OpenRouter), or a switch and a
level (DeepSeek)."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    provider: str
    name: str
    base_url: str
    key_variables: tuple[str, ...] = ()
    """Environment variables of the key; the first one that is set is used. Empty: no key is needed."""
    dialect: Dialect = "openai_chat"
    key: str | None = field(default=None, repr=False)
    output_limit: str | None = None
    """The request field that limits the reply. None: no limit is sent."""
    largest_limit: int | None = None
    """The largest output limit to request, because the provider reserves that many tokens."""
    thinking_dialect: Dialect | None = None
    """The dialect of the provider's thinking models, if it is a different one."""
    effort_field: EffortField = "reasoning_effort"
    """The field of a chat request that holds the effort."""
    requests_usage: bool = True
    """Whether the token count must be requested. Strict servers refuse the request for it."""
    refuses_temperature: bool = False
    """Whether the provider's thinking models refuse a temperature."""
    is_free: bool = False
    """The provider never charges, so no message says that nothing was charged."""
    is_self_hosted: bool = False
    """A self-hosted server: it may take any time before the first text, as a server on loopback may."""

    @property
    def dialects(self) -> tuple[Dialect, ...]:
        return (self.dialect, self.thinking_dialect) if self.thinking_dialect else (self.dialect,)

    def dialect_of(self, model: Model) -> Dialect:
        thinks = model.abilities.thinking or is_openai_thinking_model(model.model_id)
        return self.thinking_dialect if self.thinking_dialect and thinks else self.dialect

    @property
    def has_key(self) -> bool:
        return bool(self.key) or not self.key_variables

    def requested_tokens(self, call: ModelRequest) -> int | None:
        """The output limit to send; None if none is sent."""
        if self.output_limit is None and call.affordable_tokens is None:
            return None
        limits = (call.max_output_tokens, self.largest_limit, call.affordable_tokens)
        return min(limit for limit in limits if limit is not None)

    def output_limit_field(self, call: ModelRequest) -> dict[str, int]:
        """The request field with the output limit, or nothing if none is sent."""
        limit = self.requested_tokens(call)
        return (
            {} if limit is None else {self.output_limit or OUTPUT_LIMITS[self.dialect_of(call.model)]: limit}
        )

    def takes_temperature(self, model: Model) -> bool:
        return not (self.refuses_temperature and model.abilities.thinking)

    def limits(self, limits: Limits) -> Limits:
        is_local = self.is_self_hosted or is_loopback(self.base_url)
        return replace(limits, first_byte_s=math.inf) if is_local and limits.first_byte_s is None else limits

    def error_factory(
        self, model: Model, limits: Limits, requested_tokens: int | None = None
    ) -> ErrorFactory:
        return ErrorFactory(self.name, model, limits, self.key, self.is_free, requested_tokens)


_SERIES = re.compile(r"o\d|gpt-(?P<number>\d+)", re.IGNORECASE)
FIRST_THINKING_GPT = 5


def is_openai_thinking_model(model_id: str) -> bool:
    """Whether an OpenAI model thinks, by its name alone: o1 and later, GPT-5 and later, including unreleased
    ones."""
    series = _SERIES.match(model_id)
    return series is not None and int(series["number"] or FIRST_THINKING_GPT) >= FIRST_THINKING_GPT


ENDPOINTS = (
    Endpoint("openai", "OpenAI", "https://api.openai.com/v1", ("OPENAI_API_KEY",),
             thinking_dialect="openai_responses", refuses_temperature=True),
    Endpoint("anthropic", "Anthropic", "https://api.anthropic.com", ("ANTHROPIC_API_KEY",), "anthropic"),
    Endpoint("google", "Google", "https://generativelanguage.googleapis.com",
             ("GOOGLE_API_KEY", "GEMINI_API_KEY"), "google"),
    Endpoint("xai", "xAI", "https://api.x.ai/v1", ("XAI_API_KEY",)),
    Endpoint("openrouter", "OpenRouter", "https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",),
             output_limit="max_tokens", largest_limit=16_384, effort_field="reasoning"),
    Endpoint("groq", "Groq", "https://api.groq.com/openai/v1", ("GROQ_API_KEY",),
             output_limit="max_completion_tokens", largest_limit=8_192),
    Endpoint("mistral", "Mistral", "https://api.mistral.ai/v1", ("MISTRAL_API_KEY",), requests_usage=False),
    Endpoint("deepseek", "DeepSeek", "https://api.deepseek.com/v1", ("DEEPSEEK_API_KEY",),
             effort_field="thinking"),
)  # fmt: skip


CEREBRAS = Endpoint(
    "cerebras",
    "Cerebras",
    "https://api.cerebras.ai/v1",
    output_limit="max_completion_tokens",
    largest_limit=8_192,
)
"""Not in the catalogue. Listed because it reserves output tokens, for people who add it as a
custom endpoint."""
RESERVING = (*(endpoint for endpoint in ENDPOINTS if endpoint.largest_limit is not None), CEREBRAS)
"""Providers that count the requested output tokens before they run a request and refuse what
exceeds a limit."""


def from_environment(environ: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """The built-in endpoints with the keys and addresses from the environment."""
    return tuple(_with_settings(endpoint, environ) for endpoint in ENDPOINTS)


def _with_settings(endpoint: Endpoint, environ: Mapping[str, str]) -> Endpoint:
    key = next(
        (environ[name].strip() for name in endpoint.key_variables if environ.get(name, "").strip()), None
    )
    address_name = f"{endpoint.provider.upper()}_BASE_URL"
    address = environ.get(address_name, "").strip() or endpoint.base_url
    try:
        return replace(endpoint, key=key, base_url=checked_address(address))
    except Invalid as error:
        raise CannotStart(f"{address_name}: {error.message}") from None


@dataclass(frozen=True, slots=True)
class CustomEndpoint:
    """An OpenAI-compatible server that someone runs or rents, with its models."""

    endpoint: Endpoint
    models: tuple[Model, ...]


CUSTOM_ENDPOINTS_NAME = "TERTULIA_ENDPOINTS"
DEFAULT_WINDOW = 8192


def custom_endpoints(environ: Mapping[str, str]) -> tuple[CustomEndpoint, ...]:
    """Parses TERTULIA_ENDPOINTS: [{"name", "base_url", "key"?, "models": [{"id", "window"?, …}]}]."""
    text = environ.get(CUSTOM_ENDPOINTS_NAME, "").strip()
    if not text:
        return ()
    try:
        rows = json.loads(text)
        if not isinstance(rows, list):
            raise TypeError(type(rows).__name__)
        return tuple(_custom_endpoint(row) for row in rows)
    except Invalid as error:
        raise CannotStart(f"{CUSTOM_ENDPOINTS_NAME}: {error.message}") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CannotStart(
            f"{CUSTOM_ENDPOINTS_NAME} must be a JSON list of objects with name, base_url and models "
            f"({error!r})."
        ) from None


def _custom_endpoint(row: Mapping[str, Any]) -> CustomEndpoint:
    name = str(row["name"]).strip()
    base_url = checked_address(str(row["base_url"]))
    output_limit, largest_limit = _custom_output_limit(row, base_url)
    key = row.get("key") or None
    # A loopback server without a key counts as local, unless its row says that it is a gateway.
    is_local = bool(row.get("is_local", is_loopback(base_url) and not key))
    options = {
        "output_limit": output_limit,
        "largest_limit": largest_limit,
        "is_self_hosted": is_local,
        **_options(row, base_url),
    }
    endpoint = Endpoint(_slug(name), name, base_url, key=key, **options)
    models = tuple(_custom_model(endpoint, model, is_local) for model in row["models"])
    return CustomEndpoint(endpoint, models)


def _options(row: Mapping[str, Any], base_url: str) -> dict[str, Any]:
    """The requirements from the row, else those of the provider at this address."""
    provider = next((provider for provider in ENDPOINTS if _host(provider.base_url) == _host(base_url)), None)
    options: dict[str, Any] = {"dialect": row.get("dialect", "openai_chat")}
    if options["dialect"] not in get_args(Dialect):
        raise Invalid(f"dialect is one of {', '.join(get_args(Dialect))}, not {row['dialect']!r}.")
    if provider is not None:
        options |= {"effort_field": provider.effort_field, "requests_usage": provider.requests_usage}
        options |= {"refuses_temperature": provider.refuses_temperature}
        options |= {} if "dialect" in row else {"thinking_dialect": provider.thinking_dialect}
    if "counts" in row:
        options["requests_usage"] = _flag(row, "counts")
    return options


def _flag(row: Mapping[str, Any], name: str) -> bool:
    value = row[name]
    if not isinstance(value, bool):
        raise Invalid(f"{name} is true or false, not {value!r}.")
    return value


def _custom_output_limit(row: Mapping[str, Any], base_url: str) -> tuple[str | None, int | None]:
    """The limit's field name and the largest limit, from the row or from the provider at this address."""
    provider = next((provider for provider in RESERVING if _host(provider.base_url) == _host(base_url)), None)
    largest_limit = provider.largest_limit if provider else None
    if "output_limit" not in row:
        return _usual_limit_field(provider, row) if provider else None, largest_limit
    name = str(row["output_limit"] or "").strip()
    if name and not name.isidentifier():
        raise Invalid(f"output_limit is the name of a field such as max_tokens, not {name!r}.")
    return (name if name and name.lower() != "none" else None), largest_limit


def _usual_limit_field(provider: Endpoint, row: Mapping[str, Any]) -> str | None:
    """The provider's field name for the limit, or the default of the dialect that the row names."""
    dialect = row.get("dialect", provider.dialect)
    return provider.output_limit if dialect == provider.dialect else OUTPUT_LIMITS.get(dialect)


def _host(address: str) -> str | None:
    return urlsplit(address).hostname


def _custom_model(endpoint: Endpoint, row: Mapping[str, Any] | str, is_local: bool) -> Model:
    fields: Mapping[str, Any] = {"id": row} if isinstance(row, str) else row
    model_id = str(fields["id"])
    window = int(fields.get("window") or DEFAULT_WINDOW)
    efforts = tuple(Effort(name) for name in fields.get("efforts") or ())
    is_known_thinker = endpoint.thinking_dialect is not None and is_openai_thinking_model(model_id)
    thinks = bool(fields.get("thinking", efforts or is_known_thinker))
    return Model(
        provider=endpoint.provider,
        model_id=model_id,
        display_name=str(fields.get("name") or model_id),
        context_window=window,
        max_output_tokens=int(fields.get("output") or min(catalogue.DEFAULT_OUTPUT, window // 2)),
        max_input_tokens=int(fields["input"]) if fields.get("input") else None,
        tier=Tier(fields.get("tier") or catalogue.tier_of(model_id)),
        abilities=Abilities(
            tools=bool(fields.get("tools")), vision=bool(fields.get("vision")), thinking=thinks
        ),
        prices=FREE if is_local else Prices(),
        is_local=is_local,
        efforts=efforts,
        thinking_form=_thinking_form(endpoint, fields) if thinks else ThinkingForm.NONE,
    )


def _thinking_form(endpoint: Endpoint, fields: Mapping[str, Any]) -> ThinkingForm:
    """The form of the dialect's newest models, or a number of tokens (`"thinks": "budget"`)."""
    return ThinkingForm(fields.get("thinks") or catalogue.FORMS.get(endpoint.dialect, ThinkingForm.EFFORT))


def _slug(name: str) -> str:
    slug = "".join(character if character.isalnum() else "-" for character in name.lower()).strip("-")
    if not slug or slug in {endpoint.provider for endpoint in ENDPOINTS} | {"builtin"}:
        raise Invalid(f"An endpoint cannot be called {name!r}; choose a name of its own.")
    return slug
