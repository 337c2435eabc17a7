"""What of a file is asked for: a part of it, or nothing when it is known already, as HTTP writes that."""

from __future__ import annotations

import re
from dataclasses import dataclass

from starlette.datastructures import Headers

from tertulia.core.errors import RangeNotSatisfiable

_RANGE = re.compile(r"bytes=([0-9]{0,30})-([0-9]{0,30})", re.IGNORECASE)
_TAG = re.compile(r'"[^"]*"')


@dataclass(frozen=True, slots=True)
class ByteRange:
    start: int
    end: int
    """The first byte that is not in it."""


def is_known(headers: Headers, tag: str) -> bool:
    """Whether the one who asks has these very bytes."""
    given = ", ".join(headers.getlist("if-none-match"))
    return given.strip() == "*" or tag in _TAG.findall(given)


def requested_range(headers: Headers, tag: str, size_bytes: int) -> ByteRange | None:
    """None for all of it: also when several parts are asked for, or one of what these bytes no longer are."""
    if headers.get("if-range", tag).strip() != tag:
        return None
    match = _RANGE.fullmatch(headers.get("range", "").strip())
    if match is None or match.groups() == ("", ""):
        return None
    first, last = (int(digits) if digits else None for digits in match.groups())
    if first is None:
        assert last is not None
        return _existing(ByteRange(max(0, size_bytes - last), size_bytes), size_bytes)
    if last is not None and last < first:
        return None
    end = size_bytes if last is None else min(last + 1, size_bytes)
    return _existing(ByteRange(first, end), size_bytes)


def _existing(part: ByteRange, size_bytes: int) -> ByteRange:
    if part.start >= part.end:
        raise RangeNotSatisfiable(f"The file has {size_bytes} bytes. Ask for some of these.", size_bytes)
    return part
