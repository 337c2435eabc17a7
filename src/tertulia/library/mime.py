"""MIME type detection: from the bytes of a file; the client's Content-Type is ignored.

The extension of the path counts only among text types, where nothing else tells Markdown from plain text.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import BinaryIO

import imagesize  # type: ignore[import-untyped]

from tertulia.core.attachments import PICTURE_KINDS
from tertulia.library import zip_safety

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
"""The types that a browser may show inside a page."""

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
_RIFF_TYPES = frozenset({"image/webp", "audio/wav", "video/x-msvideo"})

_BY_EXTENSION = {
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


def mime_of(path: str, head: bytes, open_file: Callable[[], BinaryIO]) -> str:
    """The MIME type by the first bytes; for a zip archive also by the names of its entries."""
    if zip_safety.looks_like_one(head):
        with open_file() as file:
            return _archive(head, file)
    mime_type = _by_magic_number(head)
    if mime_type is None and head[:2] == b"BM" and not is_text(head):
        mime_type = "image/bmp"
    return mime_type or (text_kind(path, head) if is_text(head) else BINARY)


def _by_magic_number(head: bytes) -> str | None:
    for offset, magic, mime_type in _MAGIC:
        if head.startswith(magic, offset) and (mime_type not in _RIFF_TYPES or head.startswith(b"RIFF")):
            return None if mime_type in _AMBIGUOUS and is_text(head) else mime_type
    return None


_AMBIGUOUS = frozenset({"application/x-bzip2", "audio/mpeg", "font/otf", "application/vnd.apache.parquet"})
"""Their magic numbers are a few letters, so that a text may begin with them."""


def _archive(head: bytes, file: BinaryIO) -> str:
    if head[30:58] == b"mimetypeapplication/epub+zip":
        return EPUB
    try:
        names = zip_safety.first_names(file)
    except zip_safety.BadArchive:
        return BINARY
    if "META-INF/container.xml" in names:  # not every EPUB has the mimetype entry first
        return EPUB
    if "[Content_Types].xml" in names:
        for folder, mime_type in (("word/", DOCX), ("xl/", XLSX), ("ppt/", PPTX)):
            if any(name.startswith(folder) for name in names):
                return mime_type
    return ZIP


def is_text(head: bytes) -> bool:
    """True if the bytes are text in any encoding: they have a byte order mark or no control characters."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")) or wide(head):
        return True
    return not any(byte in _CONTROLS for byte in set(head))


def wide(head: bytes) -> str | None:
    """The encoding of UTF-16 text without a byte order mark, else None.

    In UTF-16 every second byte of a mostly Western text is zero.
    """
    sample = head[:4096]
    if len(sample) < 4 or b"\0" not in sample:
        return None
    even, odd = sample[0::2].count(0) / len(sample[0::2]), sample[1::2].count(0) / len(sample[1::2])
    encoding = (
        "utf-16-le" if odd > 0.4 and even < 0.02 else "utf-16-be" if even > 0.4 and odd < 0.02 else None
    )
    if encoding is None:
        return None
    text = sample[: len(sample) & ~1].decode(encoding, "replace")
    return None if any(ord(c) in _CONTROLS for c in text) else encoding


def text_kind(path: str, head: bytes = b"") -> str:
    """The MIME type of a text by its path's extension; for an unknown extension by its first bytes."""
    extension = path.rpartition("/")[2].rpartition(".")[2].lower()
    if extension in _BY_EXTENSION:
        return _BY_EXTENSION[extension]
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        for pattern, mime_type in _MARKUP:
            if pattern.search(head[:1024]):
                return mime_type
    return PLAIN


def is_a_text_kind(mime_type: str) -> bool:
    return mime_type == PLAIN or mime_type in _BY_EXTENSION.values()


# ── images


def megapixels(head: bytes) -> float | None:
    size = pixels(head)
    return None if size is None else size[0] * size[1] / 1e6


def pixels(head: bytes) -> tuple[int, int] | None:
    """The width and height of an image as it is shown; None if the first bytes do not contain them.

    The magic number is checked first, so that `imagesize` never runs its readers of other formats, among them
    SVG and TIFF, on untrusted bytes. For a damaged header it may return a negative size.
    """
    if _by_magic_number(head) not in IMAGES:
        return None
    width, height = imagesize.get(io.BytesIO(head))
    return (width, height) if width > 0 and height > 0 else None
