"""Text extraction: the text of a file by its MIME type. To add a type, add a function to EXTRACTORS.

The parsers of this package run in a sandboxed child process with limits, so a malicious file can harm only
its own parser. `extractor` and `process` are the server's side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO

from tertulia.core.files import Extracted, FileLimits
from tertulia.core.text import storable
from tertulia.library import mime
from tertulia.library.extract import csv_text, docx, epub, html, json_text, pdf, plain_text, pptx, xlsx
from tertulia.library.extract.errors import NoTextFound, Truncated, Unreadable

VERSION = 2
"""Raise this number when the extractors improve, so that files are read again."""

Extract = Callable[[BinaryIO, FileLimits], Iterator[str]]

EXTRACTORS: dict[str, Extract] = {
    "text/csv": lambda file, limits: csv_text.text(file),
    "text/tab-separated-values": lambda file, limits: csv_text.text(file),
    "application/json": lambda file, limits: json_text.json_text(file),
    mime.NOTEBOOK: lambda file, limits: json_text.notebook_text(file),
    "text/html": lambda file, limits: html.text(file),
    mime.PDF: pdf.text,
    mime.DOCX: docx.text,
    mime.XLSX: xlsx.text,
    mime.PPTX: pptx.text,
    mime.EPUB: epub.text,
}


def extract(file: BinaryIO, mime_type: str, limits: FileLimits) -> Extracted:
    """The text of a file, up to the limit. Never raises because of the file's content."""
    text = BoundedText(limits.text_bytes)
    try:
        for part in _extractor(mime_type)(file, limits):
            text.add(part)
    except NoTextFound as error:
        return Extracted("", mime_type, str(error))
    except Unreadable as error:
        return Extracted("", mime_type, str(error), has_failed=True)
    except Truncated as error:
        return Extracted(text.joined(), mime_type, str(error))
    except MemoryError:
        return Extracted("", mime_type, "Reading this file takes more memory than is allowed.", True)
    except RecursionError:
        return Extracted("", mime_type, "This file is nested too deeply to be read.", True)
    if not text.joined().strip():
        return Extracted("", mime_type, "This file holds no text.")
    return Extracted(text.joined(), mime_type)


def _extractor(mime_type: str) -> Extract:
    if mime_type in EXTRACTORS:
        return EXTRACTORS[mime_type]
    if mime.is_a_text_kind(mime_type):
        return lambda file, limits: plain_text.text(file)
    raise NoTextFound(_no_text_reason(mime_type))


def _no_text_reason(mime_type: str) -> str:
    for prefix, noun in _KINDS:
        if mime_type.startswith(prefix):
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


class BoundedText:
    """Collects text up to a size limit; raises Truncated when the limit is reached."""

    def __init__(self, limit_bytes: int) -> None:
        self._parts: list[str] = []
        self._bytes_left = limit_bytes
        self._limit = limit_bytes

    def add(self, part: str) -> None:
        part = storable(part)
        size = len(part) if part.isascii() else len(part.encode())
        if size > self._bytes_left:
            self._parts.append(part.encode()[: self._bytes_left].decode(errors="ignore"))
            raise Truncated(f"Only the first {self._limit >> 20} MiB of its text can be searched.")
        self._bytes_left -= size
        self._parts.append(part)

    def joined(self) -> str:
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""
