"""Provider registry: which models exist, which are available, and what to do about the others."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tertulia.core.errors import CannotStart
from tertulia.core.models import FREE, Prices, Tier
from tertulia.providers import catalogue, endpoints
from tertulia.providers.egress import LOOPBACK_ONLY
from tertulia.providers.registry import ProviderRegistry
from tests.providers.conftest import NewCaller
from tests.upstream.scripted import Upstream

OLLAMA = {
    "name": "Ollama",
    "base_url": "http://127.0.0.1:11434/v1/",
    "models": [
        {"id": "llama3.2", "window": 131072, "output": 4000, "name": "Llama 3.2", "tier": "fast"},
        "phi4",
    ],
}
GATEWAY = {
    "name": "Our gateway",
    "base_url": "https://models.example.org/v1",
    "key": "k",
    "models": ["gpt-4o", "house-blend"],
}


def with_environ(tmp_path: Path, **environ: str) -> ProviderRegistry:
    return ProviderRegistry.from_environment(environ, tmp_path, LOOPBACK_ONLY)


def test_a_key_in_the_environment_makes_its_models_available(tmp_path: Path) -> None:
    providers = with_environ(tmp_path, OPENAI_API_KEY="k", GEMINI_API_KEY="g")
    available = {model.provider for model in providers.available()}
    assert available == {"openai", "google"}


def test_an_unavailable_model_says_what_to_do(tmp_path: Path) -> None:
    providers = with_environ(tmp_path)
    gpt, smol = providers.find("openai:gpt-4o"), providers.find("builtin:smollm2-135m-instruct")
    assert gpt is not None
    assert smol is not None
    assert providers.unavailable_reason(gpt) == "Set OPENAI_API_KEY to use OpenAI's models."
    assert providers.unavailable_reason(smol) == (
        "Run `tertulia models pull smollm2` to fetch the built-in model."
    )
    assert not providers.is_available(gpt)
    assert providers.available() == ()


def test_a_blank_key_counts_as_no_key(tmp_path: Path) -> None:
    assert with_environ(tmp_path, OPENAI_API_KEY="  ").available() == ()


def test_every_model_has_a_unique_key_and_is_found_by_it(tmp_path: Path) -> None:
    providers = with_environ(tmp_path)
    models = providers.models()
    assert len({model.key for model in models}) == len(models) > 100
    assert all(providers.find(model.key) == model for model in models)


@pytest.mark.parametrize("key", ["", "openai", "openai:", "openai:gpt-none", "nobody:gpt-4o", "builtin:none"])
def test_an_unknown_model_key_is_not_found(tmp_path: Path, key: str) -> None:
    assert with_environ(tmp_path).find(key) is None


def test_a_retired_model_is_found_but_not_listed(tmp_path: Path) -> None:
    providers = with_environ(tmp_path)
    assert providers.find("openai:gpt-4") is not None
    assert "openai:gpt-4" not in {model.key for model in providers.models()}


def test_a_custom_endpoint_is_defined_by_one_row(tmp_path: Path) -> None:
    providers = with_environ(tmp_path, TERTULIA_ENDPOINTS=json.dumps([OLLAMA, GATEWAY]))
    llama, phi = providers.find("ollama:llama3.2"), providers.find("ollama:phi4")
    blend, gpt = providers.find("our-gateway:house-blend"), providers.find("our-gateway:gpt-4o")
    assert llama is not None
    assert phi is not None
    assert blend is not None
    assert gpt is not None
    assert (llama.display_name, llama.context_window, llama.max_output_tokens) == ("Llama 3.2", 131072, 4000)
    assert (llama.tier, llama.is_local, llama.prices) == (Tier.FAST, True, FREE)
    assert (phi.tier, phi.context_window) == (Tier.BALANCED, 8192)
    assert (blend.tier, blend.is_local, blend.prices) == (Tier.BALANCED, False, Prices())
    assert gpt.tier is Tier.SMART
    assert {model.key for model in providers.available()} == {llama.key, phi.key, blend.key, gpt.key}
    assert providers.provider_name(llama) == "Ollama"


async def test_a_model_of_a_custom_endpoint_replies(upstream: Upstream, new_caller: NewCaller) -> None:
    row = {"name": "Mine", "base_url": f"{upstream.url}/v1", "key": "s3cret", "models": ["blend"]}
    caller = new_caller(TERTULIA_ENDPOINTS=json.dumps([row]))
    upstream.says("From next door.", model="blend")
    assert (await caller.ask("mine:blend")).text == "From next door."
    assert upstream.last.headers["authorization"] == "Bearer s3cret"


async def test_a_custom_endpoint_without_a_key_receives_none(
    upstream: Upstream, new_caller: NewCaller
) -> None:
    row = {"name": "Mine", "base_url": f"{upstream.url}/v1", "models": ["blend"]}
    await new_caller(TERTULIA_ENDPOINTS=json.dumps([row])).ask("mine:blend")
    assert "authorization" not in upstream.last.headers


@pytest.mark.parametrize(
    "text",
    [
        "not json",
        "{}",
        "[1]",
        '[{"name": "x"}]',
        '[{"name": "OpenAI", "base_url": "http://x", "models": []}]',
        '[{"name": "!", "base_url": "http://x", "models": []}]',
        '[{"name": "x", "base_url": "ftp://x", "models": []}]',
        '[{"name": "x", "base_url": "http://user:pass@x", "models": []}]',
        '[{"name": "x", "base_url": "http://x", "models": [{"id": "m", "tier": "genius"}]}]',
    ],
)
def test_an_unreadable_endpoint_row_stops_the_start_with_a_message(tmp_path: Path, text: str) -> None:
    with pytest.raises(CannotStart, match="TERTULIA_ENDPOINTS"):
        with_environ(tmp_path, TERTULIA_ENDPOINTS=text)


@pytest.mark.parametrize(
    "address",
    [
        "localhost:8000",
        "http://",
        "http:///v1",
        "file:///etc/passwd",
        "http://good.test\\@127.0.0.1/",
        "http://127.0.0.1 .test/",
        "http://ⓔxample.com/",
        "http://[::1/",
        "http://x:99999/",
        "http://a%2eb/",
        "http://x/?q=1",
        "http://x/#f",
    ],
)
def test_an_ambiguous_address_is_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(CannotStart, match="OPENAI_BASE_URL"):
        with_environ(tmp_path, OPENAI_BASE_URL=address)


def test_the_repr_of_an_endpoint_does_not_contain_its_key() -> None:
    (openai, *_) = endpoints.from_environment({"OPENAI_API_KEY": "sk-very-secret"})
    assert openai.key == "sk-very-secret"
    assert "sk-very-secret" not in repr(openai)


# --- the catalogue -----------------------------------------------------------------------------------------

TIERS = {
    Tier.SMART: "gpt-4 gpt-4-turbo gpt-4o claude-opus-4 claude-opus-4-1 claude-sonnet-4 claude-sonnet-4-5 "
    "gemini-2.0-pro gemini-2.5-pro",
    Tier.BALANCED: "gpt-4o-mini claude-sonnet-3.5 gemini-1.5-pro nobody-knows-this-one",
    Tier.FAST: "gpt-3.5-turbo claude-haiku-3.5 gemini-1.5-flash gemini-2.0-flash",
}


@pytest.mark.parametrize(
    ("model_id", "tier"), [(model_id, tier) for tier, ids in TIERS.items() for model_id in ids.split()]
)
def test_the_tier_of_a_model_follows_from_its_name(model_id: str, tier: Tier) -> None:
    assert catalogue.tier_of(model_id) is tier
    assert catalogue.tier_of(f"somebody/{model_id}") is tier


def test_an_unknown_model_has_an_unknown_price() -> None:
    assert catalogue.unknown("openai", "gpt-99").prices == Prices(None, None, None)


def test_the_catalogue_is_complete_and_plausible() -> None:
    provider_names = {endpoint.provider for endpoint in endpoints.ENDPOINTS}
    for entry in catalogue.entries():
        model = entry.model
        assert model.provider in provider_names
        assert 1_000 <= model.max_output_tokens <= model.context_window <= 10_000_000, model.key
        prices = model.prices
        if prices.input_micros is not None and prices.output_micros is not None:
            assert 0 < prices.input_micros <= prices.output_micros * 1.01, model.key
            assert prices.cached_micros is None or prices.cached_micros <= prices.input_micros, model.key


@pytest.mark.parametrize(
    "key", ["openai:gpt-5", "openai:gpt-5-mini", "openai:gpt-5.2", "openai:gpt-5.3-codex"]
)
def test_an_administrators_override_keeps_the_input_limit_of_the_catalogue(key: str, tmp_path: Path) -> None:
    providers = ProviderRegistry.from_environment({"OPENAI_API_KEY": "k"}, tmp_path, LOOPBACK_ONLY)
    model = providers.catalogue_model(key)
    assert model is not None
    assert (model.context_window, model.input_limit) == (400_000, 272_000)
    # An override is stored without the facts that only the catalogue has.
    providers.apply_overrides([replace(model, display_name="Ours", max_input_tokens=None)])
    overridden = providers.find(key)
    assert overridden is not None
    assert (overridden.display_name, overridden.input_limit) == ("Ours", 272_000)


def test_a_custom_model_has_the_input_limit_from_its_row(tmp_path: Path) -> None:
    models = [{"id": "gpt-5", "window": 400_000, "input": 272_000}, {"id": "blend", "window": 400_000}]
    providers = with_environ(tmp_path, TERTULIA_ENDPOINTS=json.dumps([GATEWAY | {"models": models}]))
    limits = {model.model_id: model.input_limit for model in providers.available()}
    assert limits == {"gpt-5": 272_000, "blend": 400_000}


def test_a_model_has_the_same_vision_ability_at_every_provider() -> None:
    """A model wrongly listed without vision never gets pictures; one wrongly listed with vision refuses the
    whole call."""
    abilities_by_name: dict[str, set[bool]] = {}
    for entry in catalogue.entries():
        name = entry.model.model_id.rpartition("/")[2].replace(".", "-")
        abilities_by_name.setdefault(name, set()).add(entry.model.abilities.vision)
    assert [name for name, abilities in abilities_by_name.items() if len(abilities) > 1] == []


# --- imports -----------------------------------------------------------------------------------------------

KEY_NAMES = [name for endpoint in endpoints.ENDPOINTS for name in endpoint.key_variables]
HEAVY = {"pydantic", "aiohttp", "splintr", "xllamacpp", "numpy"}


def test_listing_the_models_imports_no_heavy_library(tmp_path: Path) -> None:
    program = (
        "import sys, json; from pathlib import Path\n"
        "from tertulia.providers.egress import LOOPBACK_ONLY\n"
        "from tertulia.providers.registry import ProviderRegistry\n"
        "from tertulia.providers.tokens import counter\n"
        f"home, environ = Path({str(tmp_path)!r}), {{'OPENAI_API_KEY': 'k'}}\n"
        "providers = ProviderRegistry.from_environment(environ, home, LOOPBACK_ONLY)\n"
        "assert len(providers.available()) > 20\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert HEAVY & set(json.loads(result.stdout)) == set()


def test_no_dialect_imports_a_providers_client_library(tmp_path: Path) -> None:
    program = (
        "import sys, json, asyncio; from pathlib import Path\n"
        "from tertulia.providers.egress import LOOPBACK_ONLY\n"
        "from tertulia.providers.registry import ProviderRegistry\n"
        f"keys = dict.fromkeys({KEY_NAMES!r}, 'k')\n"
        f"providers = ProviderRegistry.from_environment(keys, Path({str(tmp_path)!r}), LOOPBACK_ONLY)\n"
        "asyncio.run(providers.warm())\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(json.loads(result.stdout))
    assert {"aiohttp", "tertulia.providers.anthropic", "tertulia.providers.google"} <= loaded
    assert loaded & {"pydantic", "pydantic_ai", "openai", "anthropic", "google.genai", "httpx2"} == set()
