"""Zip bomb protection: checks an archive's table of contents before anything is unpacked."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from tertulia.core.files import FileLimits

SAFE_BYTES = 16 << 20
"""An archive that unpacks to at most this size is safe, whatever its compression ratio."""
_END = struct.Struct("<4s4H2LH")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_LOCAL_BYTES = 30
_POINTER_BYTES = 20
_TAIL_BYTES = _POINTER_BYTES + _END.size + 65_536
"""The end records of an archive with the longest possible comment."""
_PEEK_BYTES = 256 << 10


class BadArchive(Exception):
    """The bytes are no zip archive, or its table of contents is broken."""


class UnsafeArchive(Exception):
    """The archive exceeds a limit or has overlapping entries; the message says which."""


@dataclass(frozen=True, slots=True)
class ZipEntry:
    name: str
    size: int
    packed_size: int
    offset: int


def looks_like_one(head: bytes) -> bool:
    return head.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def first_names(file: BinaryIO) -> tuple[str, ...]:
    """The first entry names of the table of contents: enough to recognise an office file."""
    start, size = _contents(file)
    file.seek(start)
    return tuple(entry.name for entry in _entries(file.read(min(size, _PEEK_BYTES))))


def must_be_safe(file: BinaryIO, limits: FileLimits) -> None:
    """Raises UnsafeArchive if the table of contents exceeds the limits or has overlapping entries.

    Unpacking does not trust the stated sizes either.
    """
    start, size = _contents(file)
    if size > limits.archive_entries * (_ENTRY.size + 1024):
        raise UnsafeArchive(_too_many(limits))
    file.seek(start)
    entries: list[ZipEntry] = []
    for entry in _entries(file.read(size)):
        entries.append(entry)
        if len(entries) > limits.archive_entries:
            raise UnsafeArchive(_too_many(limits))
    _must_fit_limits(entries, file, limits)
    _must_not_overlap(entries)


def _too_many(limits: FileLimits) -> str:
    return f"It holds more than {limits.archive_entries:,} entries."


def _must_fit_limits(entries: list[ZipEntry], file: BinaryIO, limits: FileLimits) -> None:
    total = sum(entry.size for entry in entries)
    if total > limits.archive_bytes:
        raise UnsafeArchive(f"It would unpack to more than {limits.archive_bytes >> 20:,} MiB.")
    if total > SAFE_BYTES and total > limits.archive_ratio * file.seek(0, 2):
        raise UnsafeArchive(f"It would unpack to more than {limits.archive_ratio} times its size.")


def _must_not_overlap(entries: list[ZipEntry]) -> None:
    end = -1
    for entry in sorted(entries, key=lambda entry: entry.offset):
        if entry.offset < end:
            raise UnsafeArchive("Its entries overlap, so that the same bytes unpack many times.")
        end = entry.offset + _LOCAL_BYTES + entry.packed_size


def _contents(file: BinaryIO) -> tuple[int, int]:
    """The position and the size of the table of contents."""
    length = file.seek(0, 2)
    file.seek(max(0, length - _TAIL_BYTES))
    tail = file.read(_TAIL_BYTES)
    offset = tail.rfind(b"PK\x05\x06")
    if offset < 0 or len(tail) - offset < _END.size:
        raise BadArchive
    end = length - len(tail) + offset
    size: int = _END.unpack_from(tail, offset)[5]
    if tail[:offset][-_POINTER_BYTES:].startswith(b"PK\x06\x07"):
        size, end = _contents_64(file, end)
    if size > end:
        raise BadArchive
    return end - size, size


def _contents_64(file: BinaryIO, end: int) -> tuple[int, int]:
    """The size and the end of a ZIP64 table of contents, from the record before the pointer.

    Programs that unpack follow the pointer even in a small archive, so this check must follow it as well.
    """
    start = end - _POINTER_BYTES - _END_64.size
    file.seek(max(0, start))
    record = file.read(_END_64.size)
    if len(record) < _END_64.size or not record.startswith(b"PK\x06\x06"):
        raise BadArchive
    return _END_64.unpack(record)[8], start


def _entries(table: bytes) -> Iterator[ZipEntry]:
    position = 0
    while position + _ENTRY.size <= len(table):
        fields = _ENTRY.unpack_from(table, position)
        if fields[0] != b"PK\x01\x02":
            raise BadArchive
        packed_size, size, name_size, extra_size, comment_size, offset = (*fields[8:13], fields[16])
        position += _ENTRY.size
        name = table[position : position + name_size].decode("utf-8", "replace")
        extra = table[position + name_size : position + name_size + extra_size]
        yield ZipEntry(name, *_sizes_64(extra, size, packed_size, offset))
        position += name_size + extra_size + comment_size


def _sizes_64(extra: bytes, size: int, packed_size: int, offset: int) -> tuple[int, int, int]:
    """The size, the packed size and the offset of an entry.

    A value that does not fit its field is in the ZIP64 extra field, which holds only such values, in this
    order.
    """
    values = [size, packed_size, offset]
    if 0xFFFFFFFF in values:
        position = 0
        while position + 4 <= len(extra):
            kind, length = struct.unpack_from("<HH", extra, position)
            if kind == 1:
                wide = iter(struct.iter_unpack("<Q", extra[position + 4 : position + 4 + length // 8 * 8]))
                values = [next(wide, (value,))[0] if value == 0xFFFFFFFF else value for value in values]
                break
            position += 4 + length
    return values[0], values[1], values[2]
