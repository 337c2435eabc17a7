"""MIME type detection: by the content, and for texts by the file extension."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.library import mime
from tertulia.library.mime import DOCX, EPUB, NOTEBOOK, PDF, PPTX, XLSX, megapixels, mime_of, pixels
from tests.library.documents import docx, epub, many_entries, pdf, png, pptx, xlsx, zipped


def detected(path: str, content: bytes) -> str:
    return mime_of(path, content[: 64 << 10], lambda: io.BytesIO(content))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (png(1, 1), "image/png"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", "image/jpeg"),
        (b"GIF89a\x01\x00\x01\x00", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"RIFF\x00\x00\x00\x00WAVEfmt ", "audio/wav"),
        (pdf(["x"]), PDF),
        (docx(""), DOCX),
        (xlsx(""), XLSX),
        (pptx([]), PPTX),
        (epub([]), EPUB),
        (zipped({"META-INF/container.xml": "", "mimetype": "application/epub+zip"}), EPUB),
        (zipped({"a.txt": "x"}), "application/zip"),
        (zipped({}), "application/zip"),
        (many_entries(100_000), "application/zip"),
        (b"PK\x03\x04 and nothing else", "application/octet-stream"),
        (b"\x1f\x8b\x08\x00", "application/gzip"),
        (b"MZ\x90\x00\x03\x00\x00\x00", "application/octet-stream"),
        (b"\x7fELF\x02\x01\x01\x00", "application/x-executable"),
        (b"\x00\x01\x02\x03", "application/octet-stream"),
        (b"", "text/plain"),
        (b"Hello", "text/plain"),
        ("Gr\u00fc\u00dfe".encode("latin-1"), "text/plain"),
        ("Gr\u00fc\u00dfe".encode("utf-16"), "text/plain"),
        ("Plain words".encode("utf-16-le"), "text/plain"),
        ("\u3053\u3093\u306b\u3061\u306f".encode("shift_jis"), "text/plain"),
        (b"BZh is how this letter begins", "text/plain"),
        (b"<!doctype html><p>", "text/html"),
        (b"  <svg xmlns='x'><script/></svg>", "image/svg+xml"),
        (b"<?xml version='1.0'?><a/>", "application/xml"),
    ],
    ids=lambda value: repr(value[:12]) if isinstance(value, bytes) else value,
)
@pytest.mark.parametrize("path", ["file", "photo.png", "tool.exe", "a.b/c.pdf"])
def test_the_mime_type_follows_the_content_not_the_file_name(
    path: str, content: bytes, expected: str
) -> None:
    assert detected(path, content) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("README.md", "text/markdown"),
        ("data.CSV", "text/csv"),
        ("a/b.json", "application/json"),
        ("note.ipynb", NOTEBOOK),
        ("page.html", "text/html"),
        ("notes", "text/plain"),
        ("main.rs", "text/plain"),
        (".md", "text/markdown"),
    ],
)
def test_the_mime_type_of_a_text_follows_the_file_extension(path: str, expected: str) -> None:
    assert detected(path, b"some words") == expected
    assert detected(path, png(1, 1)) == "image/png"


def test_a_markdown_file_that_begins_with_a_tag_is_markdown() -> None:
    assert detected("README.md", b'<div align="center"><img src="x"></div>') == "text/markdown"


def test_an_image_that_is_also_a_valid_script_is_an_image() -> None:
    assert detected("x.js", b"GIF89a/*\x00\x00*/=1;alert(1)//") == "image/gif"


JPEG = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x11\x08\x03\xe8\x07\xd0\x03\x01\x22\x00"
TURNED = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"


@pytest.mark.parametrize(
    ("content", "size"),
    [
        (png(30_000, 20_000), (30_000, 20_000)),
        (b"GIF89a\x10\x27\x11\x27", (10_000, 10_001)),
        (JPEG, (2000, 1000)),
        (JPEG.replace(b"\xff\xc0", b"\xff\xff\xff\xc0"), (2000, 1000)),
        (JPEG.replace(b"\xe0\x00\x04ab", b"\xe1\x00\x22" + TURNED), (1000, 2000)),
        (b"RIFF\x00\x00\x00\x00WEBPVP8X\x0a" + bytes(7) + b"\xe7\x03\x00\xcf\x07\x00", (1000, 2000)),
        (b"RIFF\x00\x00\x00\x00WEBPVP8L\x0a\x00\x00\x00\x2f\xe7\xc3\xf3\x01" + bytes(5), (1000, 2000)),
        (b"\xff\xd8\xff\xe0", None),
        (png(0, 7), None),
        (b"GIF89a\x10\x27\xff\xff", None),
        (b"<svg width='10' height='10' xmlns='http://www.w3.org/2000/svg'/>", None),
        (b"II*\x00\x08\x00\x00\x00" + bytes(100), None),
        (b"words", None),
        (b"", None),
    ],
)
def test_the_size_of_an_image_is_read_from_its_header(content: bytes, size: tuple[int, int] | None) -> None:
    assert pixels(content) == size


def test_the_megapixels_of_an_image_are_computed_from_its_size() -> None:
    assert megapixels(png(30_000, 30_000)) == 900.0
    assert megapixels(b"words") is None


@given(st.sampled_from([png(4, 4), JPEG, b"GIF89a", b"RIFF\0\0\0\0WEBPVP8 "]), st.binary(max_size=100))
def test_a_damaged_image_has_a_positive_size_or_none(head: bytes, damage: bytes) -> None:
    for content in (head + damage, head[:10] + damage, head[:12] + damage + head[12:]):
        size = pixels(content)
        assert size is None or min(size) > 0


def test_text_mime_types_are_recognised() -> None:
    assert mime.is_a_text_kind("text/plain")
    assert mime.is_a_text_kind("text/x-python")
    assert not mime.is_a_text_kind("image/png")
    assert not mime.is_a_text_kind(PDF)
