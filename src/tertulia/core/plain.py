"""Dataclasses as plain JSON and back: the one shape that is stored, sent and logged."""

from __future__ import annotations

import json
import types
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def to_plain(value: Any) -> Any:
    """Dictionaries, lists, strings and numbers that say the same as the value."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list | frozenset):
        return [to_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in value.items()}
    kind: Any = type(value)
    return {name: to_plain(getattr(value, name)) for name in _names(kind)}


def to_json(value: Any) -> str:
    """What `to_plain` says, written down; the encoder asks only about what JSON has no word for."""
    return _ENCODER.encode(value)


def _known_to_json(value: Any) -> Any:
    if isinstance(value, frozenset):
        return list(value)
    return unfolded(value)


def unfolded(value: Any) -> dict[str, Any]:
    """The fields of a dataclass as they are: only the outermost layer becomes plain."""
    kind: Any = type(value)
    return {name: getattr(value, name) for name in _names(kind)}


_ENCODER = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), check_circular=False, default=_known_to_json
)


def from_plain(kind: type[T], data: Any) -> T:
    """The dataclass again; fields it does not know are left out, missing ones keep their default."""
    shape: Any = kind
    made: T = _reader(shape)(data)
    return made


def from_json(kind: type[T], text: str) -> T:
    return from_plain(kind, json.loads(text))


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


@cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        inner = _reader(next(one for one in arguments if one is not type(None)))
        return _as_it_is if inner is _as_it_is else lambda data: None if data is None else inner(data)
    if origin is tuple:
        item = _reader(arguments[0])
        return lambda data: tuple(item(one) for one in data)
    if isinstance(kind, type) and is_dataclass(kind):
        return _dataclass_reader(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    return _as_it_is


def _as_it_is(data: Any) -> Any:
    return data


def _dataclass_reader(kind: type) -> Callable[[Any], Any]:
    hints = get_type_hints(kind)
    names = _names(kind)
    readers = {name: _reader(hints[name]) for name in names}
    composed = {name: reader for name, reader in readers.items() if reader is not _as_it_is}

    def read(data: Any) -> Any:
        known = {name: data[name] for name in names if name in data}
        for name, reader in composed.items():
            if name in known:
                known[name] = reader(known[name])
        return kind(**known)

    return read
