"""Archives that mean harm are not unpacked, and of honest ones nothing but files is (UP 4)."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable

import pytest

from tertulia.core.errors import Invalid
from tertulia.library import mime
from tertulia.library.extract.extractor import Contents, End, Entry, Extractor, Spoilt
from tests.library.documents import (
    bomb,
    docx,
    large,
    lying,
    many_entries,
    nested,
    overlapping,
    raw_zip,
    two_faced,
    xlsx,
    zipped,
)
from tests.library.reading import LIMITS, kept, read, squeezed
from tests.patience import soon

GIGABYTE = 1 << 30

pytestmark = pytest.mark.asyncio(loop_scope="module")

BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "a document of two gigabytes": (
        mime.DOCX,
        lambda: lying(
            2 * GIGABYTE - 1, squeezed(b"<w>", bytes(1 << 20), 2047, b"</w>"), b"word/document.xml"
        ),
    ),
    "a document a thousand times its size": (mime.DOCX, lambda: docx("<!--" + " " * (64 << 20) + "-->")),
    "a million entries": (mime.DOCX, lambda: many_entries(1_000_000)),
    "entries over each other": (mime.DOCX, lambda: overlapping(900, bytes(1 << 20))),
    "a book that is a bomb": (mime.EPUB, lambda: bomb(64 << 20)),
}


@pytest.mark.parametrize(("kind", "make"), BOMBS.values(), ids=BOMBS.keys())
async def test_a_bomb_is_not_set_off(extractor: Extractor, kind: str, make: Callable[[], bytes]) -> None:
    found = await read(extractor, make(), kind)
    assert (found.text, found.has_failed) == ("", True)
    assert (found.reason or "").startswith("This file was not opened. It")


async def test_a_sheet_that_never_ends_is_read_up_to_the_limit(extractor: Extractor) -> None:
    """Within the ratio an honest file may have, and far more than anyone may read."""
    row = "".join(f'<c r="A1" t="inlineStr"><is><t>{n * 7919:09}</t></is></c>' for n in range(2000))
    content = xlsx(f"<row>{row}</row>" * 60)
    found = await read(extractor, content, mime.XLSX)
    assert found.reason == "Only the first 1 MiB of its text can be searched."
    assert len(found.text) <= LIMITS.text_bytes


async def test_a_workbook_that_says_the_same_again_and_again_stays_within_its_text(
    extractor: Extractor,
) -> None:
    """A short row that refers a million times to a long string."""
    cells = '<c r="A1" t="s"><v>0</v></c>' * 1000
    found = await read(extractor, xlsx(f"<row>{cells}</row>" * 200, ["x" * 30_000]), mime.XLSX)
    assert len(found.text) <= LIMITS.text_bytes


async def test_archives_within_an_archive_are_files_like_any_other(extractor: Extractor) -> None:
    with kept(nested(6)) as file:
        unpacked = [one async for one in extractor.unzip(file) if not isinstance(one, bytes)]
    assert unpacked[1:] == [Entry("level5.zip"), End()]


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: bomb(64 << 20), "more than 100 times its size"),
        (lambda: lying(2 * GIGABYTE - 1, b""), "more than 1,024 MiB"),
        (lambda: many_entries(10_001), "more than 10,000 entries"),
        (lambda: many_entries(1_000_000), "more than 10,000 entries"),
        (lambda: many_entries(2), "over each other"),
        (lambda: overlapping(20, b"x"), "over each other"),
        (lambda: two_faced(bomb(64 << 20)), "more than 100 times its size"),
        (lambda: two_faced(bomb(64 << 20), bytes(65_535)), "more than 100 times its size"),
        (lambda: two_faced(overlapping(20, b"x")), "over each other"),
        (lambda: b"PK\x03\x04" + b"x" * 1000, "no zip archive"),
        (lambda: b"", "no zip archive"),
        (lambda: zipped({"a": "b"})[:-30], "no zip archive"),
    ],
)
async def test_a_harmful_archive_is_not_unpacked(
    extractor: Extractor, make: Callable[[], bytes], reason: str
) -> None:
    async with soon():
        with kept(make()) as file, pytest.raises(Invalid, match=reason):
            async for _ in extractor.unzip(file):
                pass


async def test_an_archive_that_ends_as_large_ones_do_is_unpacked(extractor: Extractor) -> None:
    with kept(large(zipped({"a.txt": "x"}))) as file:
        assert [one async for one in extractor.unzip(file)] == [Contents(1), Entry("a.txt"), b"x", End()]


async def test_an_entry_that_lies_about_its_size_is_spoilt_and_the_next_is_not(
    extractor: Extractor,
) -> None:
    good = bytearray(zipped({"bad.txt": "a lie", "good.txt": "the truth"}))
    good[good.find(b"PK\x01\x02") + 24] = 2  # the table of contents claims two bytes
    with kept(bytes(good)) as file:
        unpacked = [one async for one in extractor.unzip(file)]
    assert unpacked[0] == Contents(11)
    assert Spoilt("It is damaged, or packed in a way that cannot be read.") in unpacked
    assert unpacked[-3:] == [Entry("good.txt"), b"the truth", End()]


async def test_links_and_folders_in_an_archive_are_left_out(extractor: Extractor) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        link = zipfile.ZipInfo("link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
        device = zipfile.ZipInfo("device")
        device.external_attr = 0o060666 << 16
        archive.writestr(device, "")
        archive.mkdir("folder")
        archive.writestr("__MACOSX/._a", "x")
        archive.writestr("folder/a.txt", "x")
    with kept(made.getvalue()) as file:
        unpacked = [one async for one in extractor.unzip(file)]
    assert [one for one in unpacked if isinstance(one, Entry)] == [Entry("folder/a.txt")]


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
async def test_an_entry_that_does_not_say_how_its_name_is_written_is_called_what_it_is(
    extractor: Extractor, name: str, encoding: str
) -> None:
    packed = zlib.compress(b"x", wbits=-15)
    with kept(raw_zip([(name.encode(encoding), packed, 1, None)])) as file:
        unpacked = [one async for one in extractor.unzip(file)]
    assert Entry(name) in unpacked
