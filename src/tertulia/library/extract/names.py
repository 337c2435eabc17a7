"""The names in a zip archive, in whatever alphabet they were packed.

An entry says whether its name is UTF-8. Many programs write UTF-8 and do not say so; others write what their
machine speaks. All names of an archive come from one machine, so they are looked at together.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable

from tertulia.library.extract import plain

_SAYS_UTF8 = 0x800
_AS_READ = "cp437"
"""What Python takes an unmarked name for: it has a letter for every byte, so that nothing is lost by it."""
_SPOKEN = ("cp437", "cp866", "cp932", "gb18030", "big5", "cp949")
"""By the terminals of Windows, in the West first."""


def named(entries: Iterable[zipfile.ZipInfo]) -> list[tuple[str, zipfile.ZipInfo]]:
    """Each entry under its name."""
    listed = list(entries)
    spoken = _spoken(b"/".join(_raw(entry) for entry in listed if not _is_marked(entry)))
    return [(_name(entry, spoken), entry) for entry in listed]


def _spoken(names: bytes) -> str:
    try:
        names.decode("utf-8")
    except UnicodeDecodeError:
        return plain.guessed(names, _SPOKEN)
    return "utf-8"


def _name(entry: zipfile.ZipInfo, spoken: str) -> str:
    return entry.filename if _is_marked(entry) else _raw(entry).decode(spoken, "replace")


def _is_marked(entry: zipfile.ZipInfo) -> bool:
    return bool(entry.flag_bits & _SAYS_UTF8)


def _raw(entry: zipfile.ZipInfo) -> bytes:
    return entry.filename.encode(_AS_READ)
