"""HTTP ranges and conditional requests: reads Range, If-Range and If-None-Match."""

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
    """The first byte after the range."""


def is_known(headers: Headers, tag: str) -> bool:
    """True if If-None-Match says that the client already has the content with this ETag."""
    tags = ", ".join(headers.getlist("if-none-match"))
    return tags.strip() == "*" or tag in _TAG.findall(tags)


def requested_range(headers: Headers, tag: str, size_bytes: int) -> ByteRange | None:
    """The requested range; None to send the whole file.

    That is the case without a Range header, with several ranges, and with an If-Range for an older version.
    """
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


def _existing(byte_range: ByteRange, size_bytes: int) -> ByteRange:
    if byte_range.start >= byte_range.end:
        raise RangeNotSatisfiable(f"The file has {size_bytes} bytes. Request some of these.", size_bytes)
    return byte_range
