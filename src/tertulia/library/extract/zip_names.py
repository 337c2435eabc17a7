"""Zip entry names: decodes them in whatever encoding they were written.

A flag of an entry marks its name as UTF-8. Many programs write UTF-8 without the flag; others use the
encoding of their machine. All names in an archive come from one machine, so their encoding is guessed from
all of them.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable

from tertulia.library.extract import plain_text

_UTF8_FLAG = 0x800
_PYTHON_DEFAULT = "cp437"
"""The encoding in which zipfile decodes a name without the flag; reversible, since it maps every byte."""
_TERMINAL_ENCODINGS = ("cp437", "cp866", "cp932", "gb18030", "big5", "cp949")
"""The encodings of Windows terminals, the Western one first."""


def named(entries: Iterable[zipfile.ZipInfo]) -> list[tuple[str, zipfile.ZipInfo]]:
    """Each entry with its decoded name."""
    all_entries = list(entries)
    encoding = _encoding_of(b"/".join(_raw(entry) for entry in all_entries if not _is_marked(entry)))
    return [(_name(entry, encoding), entry) for entry in all_entries]


def _encoding_of(names: bytes) -> str:
    try:
        names.decode("utf-8")
    except UnicodeDecodeError:
        return plain_text.guessed(names, _TERMINAL_ENCODINGS)
    return "utf-8"


def _name(entry: zipfile.ZipInfo, encoding: str) -> str:
    return entry.filename if _is_marked(entry) else _raw(entry).decode(encoding, "replace")


def _is_marked(entry: zipfile.ZipInfo) -> bool:
    return bool(entry.flag_bits & _UTF8_FLAG)


def _raw(entry: zipfile.ZipInfo) -> bytes:
    return entry.filename.encode(_PYTHON_DEFAULT)
