"""What kind of thing bytes are: by what they say themselves, never by what someone says of them.

A path's ending is heard only among kinds of text, where nothing else tells Markdown from a letter.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import BinaryIO

from tertulia.core.attachments import PICTURE_KINDS
from tertulia.library import zips

BINARY = "application/octet-stream"
PLAIN = "text/plain"
ZIP = "application/zip"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
EPUB = "application/epub+zip"
PDF = "application/pdf"
NOTEBOOK = "application/x-ipynb+json"
IMAGES = PICTURE_KINDS
"""What may be shown in a page."""

_MAGIC: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (0, b"II*\x00", "image/tiff"),
    (0, b"MM\x00*", "image/tiff"),
    (0, b"\x00\x00\x01\x00", "image/x-icon"),
    (0, b"8BPS", "image/vnd.adobe.photoshop"),
    (0, b"%PDF-", PDF),
    (0, b"{\\rtf", "application/rtf"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (0, b"\x1f\x8b", "application/gzip"),
    (0, b"BZh", "application/x-bzip2"),
    (0, b"\xfd7zXZ\x00", "application/x-xz"),
    (0, b"\x28\xb5\x2f\xfd", "application/zstd"),
    (0, b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (0, b"Rar!\x1a\x07", "application/vnd.rar"),
    (257, b"ustar", "application/x-tar"),
    (0, b"SQLite format 3\x00", "application/vnd.sqlite3"),
    (0, b"PAR1", "application/vnd.apache.parquet"),
    (0, b"\x7fELF", "application/x-executable"),
    (0, b"\x00asm", "application/wasm"),
    (0, b"\xca\xfe\xba\xbe", "application/java-vm"),
    (0, b"\xcf\xfa\xed\xfe", "application/x-mach-binary"),
    (0, b"wOFF", "font/woff"),
    (0, b"wOF2", "font/woff2"),
    (0, b"OTTO", "font/otf"),
    (0, b"\x00\x01\x00\x00\x00", "font/ttf"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"\xff\xfb", "audio/mpeg"),
    (0, b"OggS", "audio/ogg"),
    (0, b"fLaC", "audio/flac"),
    (8, b"WAVE", "audio/wav"),
    (8, b"AVI ", "video/x-msvideo"),
    (4, b"ftypavif", "image/avif"),
    (4, b"ftyphei", "image/heic"),
    (4, b"ftyp", "video/mp4"),
    (0, b"\x1aE\xdf\xa3", "video/x-matroska"),
)
_IN_RIFF = frozenset({"image/webp", "audio/wav", "video/x-msvideo"})

_TEXTS = {
    "md": "text/markdown",
    "markdown": "text/markdown",
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "json": "application/json",
    "ipynb": NOTEBOOK,
    "html": "text/html",
    "htm": "text/html",
    "xhtml": "text/html",
    "xml": "application/xml",
    "svg": "image/svg+xml",
    "css": "text/css",
    "js": "text/javascript",
    "mjs": "text/javascript",
    "ts": "text/x-typescript",
    "py": "text/x-python",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "toml": "application/toml",
    "tex": "text/x-tex",
    "rst": "text/x-rst",
}
_MARKUP = (
    (re.compile(rb"<svg[\s>]", re.IGNORECASE), "image/svg+xml"),
    (
        re.compile(rb"<(!doctype html|html|head|body|script|iframe|meta|img|form)[\s>/]", re.I),
        "text/html",
    ),
    (re.compile(rb"<\?xml[\s?]"), "application/xml"),
)
_CONTROLS = frozenset(range(32)) - frozenset(b"\t\n\r\f\b\x1b")


def mime_of(path: str, head: bytes, opened: Callable[[], BinaryIO]) -> str:
    """The kind, from the first bytes; of an archive also from the names inside."""
    if zips.looks_like_one(head):
        with opened() as file:
            return _archive(head, file)
    found = _magic(head)
    if found is None and head[:2] == b"BM" and not is_text(head):
        found = "image/bmp"
    return found or (text_kind(path, head) if is_text(head) else BINARY)


def _magic(head: bytes) -> str | None:
    for at, mark, kind in _MAGIC:
        if head.startswith(mark, at) and (kind not in _IN_RIFF or head.startswith(b"RIFF")):
            return None if kind in _SAID_IN_TEXT and is_text(head) else kind
    return None


_SAID_IN_TEXT = frozenset({"application/x-bzip2", "audio/mpeg", "font/otf", "application/vnd.apache.parquet"})
"""Marks so short that a text might begin with them."""


def _archive(head: bytes, file: BinaryIO) -> str:
    if head[30:58] == b"mimetypeapplication/epub+zip":
        return EPUB
    try:
        names = zips.first_names(file)
    except zips.NotAZip:
        return BINARY
    if "META-INF/container.xml" in names:  # not every book begins with what it is
        return EPUB
    if "[Content_Types].xml" in names:
        for folder, kind in (("word/", DOCX), ("xl/", XLSX), ("ppt/", PPTX)):
            if any(name.startswith(folder) for name in names):
                return kind
    return ZIP


def is_text(head: bytes) -> bool:
    """Whether a person could read it, in whatever alphabet."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")) or wide(head):
        return True
    return not any(byte in _CONTROLS for byte in set(head))


def wide(head: bytes) -> str | None:
    """UTF-16 without a mark: every other byte of mostly western text is zero."""
    sample = head[:4096]
    if len(sample) < 4 or b"\0" not in sample:
        return None
    even, odd = sample[0::2].count(0) / len(sample[0::2]), sample[1::2].count(0) / len(sample[1::2])
    found = "utf-16-le" if odd > 0.4 and even < 0.02 else "utf-16-be" if even > 0.4 and odd < 0.02 else None
    if found is None:
        return None
    written = sample[: len(sample) & ~1].decode(found, "replace")
    return None if any(ord(c) in _CONTROLS for c in written) else found


def text_kind(path: str, head: bytes = b"") -> str:
    """Of a text, by its path's ending; where that says nothing, by how it begins."""
    ending = path.rpartition("/")[2].rpartition(".")[2].lower()
    if ending in _TEXTS:
        return _TEXTS[ending]
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        for mark, kind in _MARKUP:
            if mark.search(head[:1024]):
                return kind
    return PLAIN


def is_a_text_kind(kind: str) -> bool:
    return kind == PLAIN or kind in _TEXTS.values()


# ── images


def megapixels(head: bytes) -> float | None:
    size = pixels(head)
    return None if size is None else size[0] * size[1] / 1e6


def pixels(head: bytes) -> tuple[int, int] | None:
    """How wide and how high a picture says it is; None when the first bytes do not tell."""
    size = None
    if head.startswith(b"\x89PNG") and len(head) >= 24:
        size = _numbers(head[16:24], 4, "big")
    elif head.startswith(b"GIF8") and len(head) >= 10:
        size = _numbers(head[6:10], 2, "little")
    elif head.startswith(b"\xff\xd8"):
        size = _jpeg(head)
    elif head[8:12] == b"WEBP" and len(head) >= 30:
        size = _webp(head)
    return size


def _numbers(raw: bytes, width: int, order: str) -> tuple[int, int]:
    first, second = (int.from_bytes(part, order) for part in (raw[:width], raw[width : 2 * width]))  # type: ignore[arg-type]
    return first, second


def _jpeg(head: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 < len(head) and head[at] == 0xFF:
        mark, length = head[at + 1], int.from_bytes(head[at + 2 : at + 4], "big")
        if mark in range(0xC0, 0xD0) and mark not in (0xC4, 0xC8, 0xCC):
            return _numbers(head[at + 5 : at + 9], 2, "big")
        at += 2 + length
    return None


def _webp(head: bytes) -> tuple[int, int] | None:
    match head[12:16]:
        case b"VP8X":
            return _number24(head[24:27]) + 1, _number24(head[27:30]) + 1
        case b"VP8L":
            bits = int.from_bytes(head[21:25], "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            width, height = _numbers(head[26:30], 2, "little")
            return width & 0x3FFF, height & 0x3FFF
    return None


def _number24(raw: bytes) -> int:
    return int.from_bytes(raw, "little")
