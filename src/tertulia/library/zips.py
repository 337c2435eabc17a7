"""Zip archives, looked at before anything of them is unpacked: how much they hold, and whether they lie."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from tertulia.core.files import FileLimits

HARMLESS_BYTES = 16 << 20
"""What unpacks to no more than this is no bomb, however well it was packed."""
_END = struct.Struct("<4s4H2LH")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_LOCAL_BYTES = 30
_POINTER_BYTES = 20
_TAIL = _POINTER_BYTES + _END.size + 65_536
"""Where an archive ends, with the longest note there can be."""
_LOOK_BYTES = 256 << 10


class NotAZip(Exception):
    """The archive is broken: its table of contents cannot be read."""


class Harmful(Exception):
    """The archive would unpack to more than anyone means; the message says how."""


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    size: int
    packed: int
    offset: int


def looks_like_one(head: bytes) -> bool:
    return head.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def first_names(file: BinaryIO) -> tuple[str, ...]:
    """The names at the beginning of the table of contents: enough to know an office file by."""
    start, size = _contents(file)
    file.seek(start)
    return tuple(entry.name for entry in _entries(file.read(min(size, _LOOK_BYTES))))


def must_be_harmless(file: BinaryIO, limits: FileLimits) -> None:
    """Counts and adds up what the table of contents says; unpacking trusts none of it either."""
    start, size = _contents(file)
    if size > limits.archive_entries * (_ENTRY.size + 1024):
        raise Harmful(_too_many(limits))
    file.seek(start)
    entries: list[Entry] = []
    for entry in _entries(file.read(size)):
        entries.append(entry)
        if len(entries) > limits.archive_entries:
            raise Harmful(_too_many(limits))
    _must_be_of_size(entries, file, limits)
    _must_not_overlap(entries)


def _too_many(limits: FileLimits) -> str:
    return f"It holds more than {limits.archive_entries:,} entries."


def _must_be_of_size(entries: list[Entry], file: BinaryIO, limits: FileLimits) -> None:
    total = sum(entry.size for entry in entries)
    if total > limits.archive_bytes:
        raise Harmful(f"It would unpack to more than {limits.archive_bytes >> 20:,} MiB.")
    if total > HARMLESS_BYTES and total > limits.archive_ratio * file.seek(0, 2):
        raise Harmful(f"It would unpack to more than {limits.archive_ratio} times its size.")


def _must_not_overlap(entries: list[Entry]) -> None:
    end = -1
    for entry in sorted(entries, key=lambda one: one.offset):
        if entry.offset < end:
            raise Harmful("Its entries overlap, so that the same bytes unpack many times.")
        end = entry.offset + _LOCAL_BYTES + entry.packed


def _contents(file: BinaryIO) -> tuple[int, int]:
    """Where the table of contents stands, and its size."""
    length = file.seek(0, 2)
    file.seek(max(0, length - _TAIL))
    tail = file.read(_TAIL)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < _END.size:
        raise NotAZip
    end = length - len(tail) + at
    size: int = _END.unpack_from(tail, at)[5]
    if tail[:at][-_POINTER_BYTES:].startswith(b"PK\x06\x07"):
        size, end = _contents_64(file, end)
    if size > end:
        raise NotAZip
    return end - size, size


def _contents_64(file: BinaryIO, end: int) -> tuple[int, int]:
    """Large archives say it in a second record, right before a pointer to it.

    Whoever unpacks goes where the pointer leads, also when the archive is small: so must whoever counts.
    """
    at = end - _POINTER_BYTES - _END_64.size
    file.seek(max(0, at))
    record = file.read(_END_64.size)
    if len(record) < _END_64.size or not record.startswith(b"PK\x06\x06"):
        raise NotAZip
    return _END_64.unpack(record)[8], at


def _entries(table: bytes) -> Iterator[Entry]:
    at = 0
    while at + _ENTRY.size <= len(table):
        fields = _ENTRY.unpack_from(table, at)
        if fields[0] != b"PK\x01\x02":
            raise NotAZip
        packed, size, name_size, extra_size, note_size, offset = (*fields[8:13], fields[16])
        at += _ENTRY.size
        name = table[at : at + name_size].decode("utf-8", "replace")
        extra = table[at + name_size : at + name_size + extra_size]
        yield Entry(name, *_sizes_64(extra, size, packed, offset))
        at += name_size + extra_size + note_size


def _sizes_64(extra: bytes, size: int, packed: int, offset: int) -> tuple[int, int, int]:
    """Sizes that do not fit their field stand in an extra one, in this order, each only if it is needed."""
    given = [size, packed, offset]
    if 0xFFFFFFFF in given:
        at = 0
        while at + 4 <= len(extra):
            kind, length = struct.unpack_from("<HH", extra, at)
            if kind == 1:
                wide = iter(struct.iter_unpack("<Q", extra[at + 4 : at + 4 + length // 8 * 8]))
                given = [next(wide, (one,))[0] if one == 0xFFFFFFFF else one for one in given]
                break
            at += 4 + length
    return given[0], given[1], given[2]
