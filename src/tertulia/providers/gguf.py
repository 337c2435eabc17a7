"""GGUF header: reads a model's name and context length from its file."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

MAGIC = b"GGUF"
SCALARS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
STRING, ARRAY = 8, 9
HEADER_LIMIT_BYTES = 64 << 20


class NotGguf(Exception):
    """The file is not a GGUF file."""


@dataclass(frozen=True, slots=True)
class GgufHeader:
    name: str | None
    context_length: int | None


def read_header(path: Path) -> GgufHeader:
    try:
        with path.open("rb") as file:
            metadata = _metadata(file)
    except (OSError, struct.error, UnicodeDecodeError, MemoryError) as error:
        raise NotGguf(str(error)) from None
    length = metadata.get(f"{metadata.get('general.architecture')}.context_length")
    name = metadata.get("general.name")
    return GgufHeader(name if isinstance(name, str) else None, length if isinstance(length, int) else None)


def _metadata(file: BinaryIO) -> dict[str, object]:
    magic, version, _, count = struct.unpack("<4sIQQ", file.read(24))
    if magic != MAGIC or version < 2 or count > 100_000:
        raise NotGguf("it does not begin like one")
    metadata: dict[str, object] = {}
    for _ in range(count):
        key = _string(file)
        metadata[key] = _value(file, _scalar(file, 4))
    return metadata


def _value(file: BinaryIO, kind: int) -> object:
    if kind == STRING:
        return _string(file)
    if kind == ARRAY:
        _skip_array(file)
        return None
    return _scalar(file, kind)


def _scalar(file: BinaryIO, kind: int) -> int:
    if kind not in SCALARS:
        raise NotGguf(f"it holds values of an unknown kind, {kind}")
    form = SCALARS[kind]
    value: int = struct.unpack(form, file.read(struct.calcsize(form)))[0]
    return value


def _string(file: BinaryIO) -> str:
    length = _scalar(file, 10)
    if length > HEADER_LIMIT_BYTES:
        raise NotGguf("it holds a string longer than its head can be")
    return file.read(length).decode("utf-8", "replace")


def _skip_array(file: BinaryIO) -> None:
    """Skips an array. Vocabularies are arrays of a hundred thousand strings, which are not needed here."""
    kind, count = _scalar(file, 4), _scalar(file, 10)
    if kind in SCALARS:
        file.seek(struct.calcsize(SCALARS[kind]) * count, 1)
        return
    for _ in range(count):
        if file.tell() > HEADER_LIMIT_BYTES:
            raise NotGguf("its head has no end")
        file.seek(_scalar(file, 10), 1)
