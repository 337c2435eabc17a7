"""Extracting: the text of a file, by its kind. To add a kind, write a function and a line in EXTRACTORS.

Everything in this package but `extractor` runs in a process of its own, within limits: what a file does to
its parser, it does to nobody else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO

from tertulia.core.files import Extracted, FileLimits
from tertulia.core.text import storable
from tertulia.library import mime
from tertulia.library.extract import data, epub, markup, pdf, plain, sheets, slides, tables, word
from tertulia.library.extract.outcome import Enough, NoText, Unreadable

VERSION = 2
"""Raised when files should be read again, because more can be made of them."""

Extract = Callable[[BinaryIO, FileLimits], Iterator[str]]

EXTRACTORS: dict[str, Extract] = {
    "text/csv": lambda file, limits: tables.text(file),
    "text/tab-separated-values": lambda file, limits: tables.text(file),
    "application/json": lambda file, limits: data.json_text(file),
    mime.NOTEBOOK: lambda file, limits: data.notebook_text(file),
    "text/html": lambda file, limits: markup.text(file),
    mime.PDF: pdf.text,
    mime.DOCX: word.text,
    mime.XLSX: sheets.text,
    mime.PPTX: slides.text,
    mime.EPUB: epub.text,
}


def extract(file: BinaryIO, mime_type: str, limits: FileLimits) -> Extracted:
    """All that can be read, up to the limit; never raises for what is in the file."""
    text = Text(limits.text_bytes)
    try:
        for words in _extractor(mime_type)(file, limits):
            text.add(words)
    except NoText as end:
        return Extracted("", mime_type, str(end))
    except Unreadable as end:
        return Extracted("", mime_type, str(end), has_failed=True)
    except Enough as end:
        return Extracted(text.whole(), mime_type, str(end))
    except MemoryError:
        return Extracted("", mime_type, "Reading this file takes more memory than is allowed.", True)
    except RecursionError:
        return Extracted("", mime_type, "This file is nested too deeply to be read.", True)
    if not text.whole().strip():
        return Extracted("", mime_type, "This file holds no text.")
    return Extracted(text.whole(), mime_type)


def _extractor(mime_type: str) -> Extract:
    if mime_type in EXTRACTORS:
        return EXTRACTORS[mime_type]
    if mime.is_a_text_kind(mime_type):
        return lambda file, limits: plain.text(file)
    raise NoText(_nothing(mime_type))


def _nothing(mime_type: str) -> str:
    for beginning, noun in _KINDS:
        if mime_type.startswith(beginning):
            return f"{noun} holds no text that can be searched."
    return "No text can be read from this kind of file."


_KINDS = (
    ("image/", "An image"),
    ("audio/", "An audio file"),
    ("video/", "A video"),
    ("font/", "A font"),
    (mime.ZIP, "An archive"),
    ("application/gzip", "An archive"),
    ("application/x-ole-storage", "An office file of the old format"),
)


class Text:
    """Text as it grows, until it is enough."""

    def __init__(self, limit_bytes: int) -> None:
        self._parts: list[str] = []
        self._left = limit_bytes
        self._limit = limit_bytes

    def add(self, words: str) -> None:
        words = storable(words)
        size = len(words) if words.isascii() else len(words.encode())
        if size > self._left:
            self._parts.append(words.encode()[: self._left].decode(errors="ignore"))
            raise Enough(f"Only the first {self._limit >> 20} MiB of its text can be searched.")
        self._left -= size
        self._parts.append(words)

    def whole(self) -> str:
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""
