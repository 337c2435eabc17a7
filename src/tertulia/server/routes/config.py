"""Configuration routes: settings of the whole server, for administrators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from tertulia.core.errors import Invalid, UnknownSetting
from tertulia.core.voices import SEATS
from tertulia.server.access import Admin, InjectedApp
from tertulia.server.responses import json_response
from tertulia.store import config
from tertulia.store.database import Tx

router = APIRouter(tags=["config"])

VALUE_LIMIT = 200


@dataclass(frozen=True, slots=True)
class Rule:
    """The values that a setting accepts: a description for people, and the check."""

    description: str
    accepts: Callable[[Any], bool]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= VALUE_LIMIT


def _is_model_list(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= SEATS and all(map(_is_text, value))


RULES = {
    "instance_name": Rule(f"a text of at most {VALUE_LIMIT} characters", _is_text),
    "default_models": Rule(f"a list of at most {SEATS} models", _is_model_list),
}


@dataclass(frozen=True, slots=True)
class NewValue:
    key: str
    value: Any


@router.get("/api/config", response_model=dict[str, Any])
async def get_config(tertulia: InjectedApp, admin: Admin) -> Response:
    return json_response(await tertulia.db.read(config.get_all))


@router.post("/api/config", response_model=dict[str, Any])
async def set_config(tertulia: InjectedApp, admin: Admin, new: NewValue) -> Response:
    return await _save(tertulia, {new.key: new.value})


@router.post("/api/config/bulk", response_model=dict[str, Any])
async def set_config_bulk(tertulia: InjectedApp, admin: Admin, new: dict[str, Any]) -> Response:
    return await _save(tertulia, new)


async def _save(tertulia: InjectedApp, values: dict[str, Any]) -> Response:
    for key, value in values.items():
        _check(key, value)

    def save(tx: Tx) -> dict[str, Any]:
        for key, value in values.items():
            config.set(tx, key, value)
        return dict(config.get_all(tx))

    return json_response(await tertulia.db.write(save))


def _check(key: str, value: Any) -> None:
    if key not in RULES:
        raise UnknownSetting(f"There is no setting {key[:100]!r}. The settings are: {', '.join(RULES)}.")
    if not RULES[key].accepts(value):
        raise Invalid(f"The setting {key} must be {RULES[key].description}.")
