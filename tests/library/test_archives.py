"""Unpacking archives: malicious archives are rejected, and only files are unpacked from the others (UP 4)."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable

import pytest

from tertulia.core.errors import Invalid
from tertulia.library import mime
from tertulia.library.extract.extractor import ArchiveEnd, ArchiveEntry, ArchiveSize, CorruptEntry, Extractor
from tests.library.documents import (
    as_zip64,
    bomb,
    docx,
    many_entries,
    nested,
    overlapping,
    raw_zip,
    with_false_size,
    with_hidden_table,
    xlsx,
    zipped,
)
from tests.library.reading import LIMITS, deflated, read, temporary_file
from tests.patience import soon

GIGABYTE = 1 << 30

pytestmark = pytest.mark.asyncio(loop_scope="module")

BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "a document of two gigabytes": (
        mime.DOCX,
        lambda: with_false_size(
            2 * GIGABYTE - 1, deflated(b"<w>", bytes(1 << 20), 2047, b"</w>"), b"word/document.xml"
        ),
    ),
    "a document that unpacks to a thousand times its size": (
        mime.DOCX,
        lambda: docx("<!--" + " " * (64 << 20) + "-->"),
    ),
    "a million entries": (mime.DOCX, lambda: many_entries(1_000_000)),
    "overlapping entries": (mime.DOCX, lambda: overlapping(900, bytes(1 << 20))),
    "a book that is a zip bomb": (mime.EPUB, lambda: bomb(64 << 20)),
}


@pytest.mark.parametrize(("kind", "make"), BOMBS.values(), ids=BOMBS.keys())
async def test_a_zip_bomb_inside_a_document_is_not_unpacked(
    extractor: Extractor, kind: str, make: Callable[[], bytes]
) -> None:
    extracted = await read(extractor, make(), kind)
    assert (extracted.text, extracted.has_failed) == ("", True)
    assert (extracted.reason or "").startswith("This file was not opened. It")


async def test_a_huge_sheet_is_read_up_to_the_text_limit(extractor: Extractor) -> None:
    """Its compression ratio is normal, and its text is far larger than the limit."""
    row = "".join(f'<c r="A1" t="inlineStr"><is><t>{n * 7919:09}</t></is></c>' for n in range(2000))
    content = xlsx(f"<row>{row}</row>" * 60)
    extracted = await read(extractor, content, mime.XLSX)
    assert extracted.reason == "Only the first 1 MiB of its text can be searched."
    assert len(extracted.text) <= LIMITS.text_bytes


async def test_a_workbook_that_repeats_a_long_shared_string_stays_within_the_text_limit(
    extractor: Extractor,
) -> None:
    """Short rows with 200,000 references to one long shared string."""
    cells = '<c r="A1" t="s"><v>0</v></c>' * 1000
    extracted = await read(extractor, xlsx(f"<row>{cells}</row>" * 200, ["x" * 30_000]), mime.XLSX)
    assert len(extracted.text) <= LIMITS.text_bytes


async def test_archives_inside_an_archive_stay_packed(extractor: Extractor) -> None:
    with temporary_file(nested(6)) as file:
        unpacked = [part async for part in extractor.unzip(file) if not isinstance(part, bytes)]
    assert unpacked[1:] == [ArchiveEntry("level5.zip"), ArchiveEnd()]


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: bomb(64 << 20), "more than 100 times its size"),
        (lambda: with_false_size(2 * GIGABYTE - 1, b""), "more than 1,024 MiB"),
        (lambda: many_entries(10_001), "more than 10,000 entries"),
        (lambda: many_entries(1_000_000), "more than 10,000 entries"),
        (lambda: many_entries(2), "entries overlap"),
        (lambda: overlapping(20, b"x"), "entries overlap"),
        (lambda: with_hidden_table(bomb(64 << 20)), "more than 100 times its size"),
        (lambda: with_hidden_table(bomb(64 << 20), bytes(65_535)), "more than 100 times its size"),
        (lambda: with_hidden_table(overlapping(20, b"x")), "entries overlap"),
        (lambda: b"PK\x03\x04" + b"x" * 1000, "no zip archive"),
        (lambda: b"", "no zip archive"),
        (lambda: zipped({"a": "b"})[:-30], "no zip archive"),
    ],
)
async def test_an_unsafe_or_broken_archive_is_rejected_with_a_reason(
    extractor: Extractor, make: Callable[[], bytes], reason: str
) -> None:
    async with soon():
        with temporary_file(make()) as file, pytest.raises(Invalid, match=reason):
            async for _ in extractor.unzip(file):
                pass


async def test_a_small_archive_in_zip64_format_is_unpacked(extractor: Extractor) -> None:
    with temporary_file(as_zip64(zipped({"a.txt": "x"}))) as file:
        assert [part async for part in extractor.unzip(file)] == [
            ArchiveSize(1),
            ArchiveEntry("a.txt"),
            b"x",
            ArchiveEnd(),
        ]


async def test_an_entry_with_a_false_size_is_reported_as_corrupt_and_the_next_entry_is_unpacked(
    extractor: Extractor,
) -> None:
    good = bytearray(zipped({"bad.txt": "a lie", "good.txt": "the truth"}))
    good[good.find(b"PK\x01\x02") + 24] = 2  # the table of contents claims two bytes
    with temporary_file(bytes(good)) as file:
        unpacked = [part async for part in extractor.unzip(file)]
    assert unpacked[0] == ArchiveSize(11)
    assert CorruptEntry("It is damaged, or packed in a way that cannot be read.") in unpacked
    assert unpacked[-3:] == [ArchiveEntry("good.txt"), b"the truth", ArchiveEnd()]


async def test_links_devices_and_folders_in_an_archive_are_left_out(extractor: Extractor) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        link = zipfile.ZipInfo("link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
        device = zipfile.ZipInfo("device")
        device.external_attr = 0o060666 << 16
        archive.writestr(device, "")
        archive.mkdir("folder")
        archive.writestr("__MACOSX/._a", "x")
        archive.writestr("folder/a.txt", "x")
    with temporary_file(buffer.getvalue()) as file:
        unpacked = [part async for part in extractor.unzip(file)]
    assert [part for part in unpacked if isinstance(part, ArchiveEntry)] == [ArchiveEntry("folder/a.txt")]


@pytest.mark.parametrize(
    ("name", "encoding"),
    [
        ("отчёт.txt", "utf-8"),
        ("отчёт.txt", "cp866"),
        ("Größe.txt", "cp850"),
        ("これはメモです.txt", "cp932"),
        ("报告书文件.txt", "gb18030"),
    ],
)
async def test_an_entry_name_without_an_encoding_flag_is_decoded_correctly(
    extractor: Extractor, name: str, encoding: str
) -> None:
    packed = zlib.compress(b"x", wbits=-15)
    with temporary_file(raw_zip([(name.encode(encoding), packed, 1, None)])) as file:
        unpacked = [part async for part in extractor.unzip(file)]
    assert ArchiveEntry(name) in unpacked
