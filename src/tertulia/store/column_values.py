"""Column values: turns text and JSON into a form that both databases can store and read back unchanged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tertulia.core.serialization import to_json
from tertulia.core.text import storable


def as_json(value: object) -> str:
    """The value as JSON without characters that a database cannot store, so that it reads back unchanged."""
    json_text = to_json(value)
    if "\\u0000" in json_text:
        json_text = json.dumps(_without_nul(json.loads(json_text)), ensure_ascii=False, separators=(",", ":"))
    return storable(json_text)


def _without_nul(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [_without_nul(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): _without_nul(item) for key, item in value.items()}
    return value


def storable_params(params: Mapping[str, object]) -> Mapping[str, object]:
    """The parameters without unstorable characters. Plain ASCII, the usual case, is not copied."""
    for value in params.values():
        if isinstance(value, str) and (not value.isascii() or "\0" in value):
            return {
                name: storable(param) if isinstance(param, str) else param for name, param in params.items()
            }
    return params
