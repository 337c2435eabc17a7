"""Serialization: dataclasses to JSON and back, in the one form that is stored, sent and logged."""

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
    """The value as dictionaries, lists, strings and numbers."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list | frozenset):
        return [to_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in value.items()}
    type_: Any = type(value)
    return {name: to_plain(getattr(value, name)) for name in _names(type_)}


def to_json(value: Any) -> str:
    """The value as JSON. Same result as encoding `to_plain`, but faster: only values that JSON cannot encode
    are converted."""
    return _ENCODER.encode(value)


def _encode_unknown(value: Any) -> Any:
    if isinstance(value, frozenset):
        return list(value)
    return unfolded(value)


def unfolded(value: Any) -> dict[str, Any]:
    """The fields of a dataclass by name, without converting their values."""
    kind: Any = type(value)
    return {name: getattr(value, name) for name in _names(kind)}


_ENCODER = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), check_circular=False, default=_encode_unknown
)


def from_plain(kind: type[T], data: Any) -> T:
    """Builds the dataclass; ignores unknown fields, and missing fields keep their default."""
    shape: Any = kind
    value: T = _reader(shape)(data)
    return value


def from_json(kind: type[T], text: str) -> T:
    return from_plain(kind, json.loads(text))


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


@cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        inner = _reader(next(argument for argument in arguments if argument is not type(None)))
        return _unchanged if inner is _unchanged else lambda data: None if data is None else inner(data)
    if origin is tuple:
        item = _reader(arguments[0])
        return lambda data: tuple(item(element) for element in data)
    if isinstance(kind, type) and is_dataclass(kind):
        return _dataclass_reader(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    return _unchanged


def _unchanged(data: Any) -> Any:
    return data


def _dataclass_reader(kind: type) -> Callable[[Any], Any]:
    hints = get_type_hints(kind)
    names = _names(kind)
    readers = {name: _reader(hints[name]) for name in names}
    composed = {name: reader for name, reader in readers.items() if reader is not _unchanged}

    def read(data: Any) -> Any:
        values = {name: data[name] for name in names if name in data}
        for name, reader in composed.items():
            if name in values:
                values[name] = reader(values[name])
        return kind(**values)

    return read
