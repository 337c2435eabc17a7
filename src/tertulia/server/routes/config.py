"""Config: what an administrator sets for the whole server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from tertulia.core.errors import Invalid, UnknownSetting
from tertulia.server.access import Admin, TheHouse
from tertulia.server.answers import answer
from tertulia.store import config
from tertulia.store.database import Tx

router = APIRouter(tags=["config"])

KEYS: dict[str, type[str] | type[list[Any]]] = {"instance_name": str, "default_models": list}
"""What may be set, and what kind of value it takes."""


@dataclass(frozen=True, slots=True)
class NewValue:
    key: str
    value: Any


@router.get("/api/config", response_model=dict[str, Any])
async def get_config(house: TheHouse, admin: Admin) -> Response:
    return answer(await house.db.read(config.get_all))


@router.post("/api/config", response_model=dict[str, Any])
async def set_config(house: TheHouse, admin: Admin, new: NewValue) -> Response:
    return await _save(house, {new.key: new.value})


@router.post("/api/config/bulk", response_model=dict[str, Any])
async def set_config_bulk(house: TheHouse, admin: Admin, new: dict[str, Any]) -> Response:
    return await _save(house, new)


async def _save(house: TheHouse, values: dict[str, Any]) -> Response:
    for key, value in values.items():
        _check(key, value)

    def save(tx: Tx) -> dict[str, Any]:
        for key, value in values.items():
            config.set(tx, key, value)
        return dict(config.get_all(tx))

    return answer(await house.db.write(save))


def _check(key: str, value: Any) -> None:
    if key not in KEYS:
        raise UnknownSetting(f"There is no setting {key[:100]!r}. The settings are: {', '.join(KEYS)}.")
    if not isinstance(value, KEYS[key]) or len(value) > 200:
        raise Invalid(f"The setting {key} takes a {KEYS[key].__name__} of at most 200 elements.")
