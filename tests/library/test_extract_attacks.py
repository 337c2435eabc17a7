"""Files that mean harm: the parser may die of them, and nobody else does (UP 4 to 7)."""

from __future__ import annotations

import asyncio
import io
import resource
import signal
import sys
import tempfile
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio

from tertulia.core.errors import Invalid, NotFound, TooLarge
from tertulia.core.files import Extracted, FileLimits
from tertulia.library import mime
from tertulia.library.extract.extractor import Contents, End, Entry, Extractor, Spoilt
from tertulia.library.extract.orders import Ending
from tertulia.library.extract.worker import MEMORY_BYTES
from tests.library.documents import (
    S,
    W,
    bomb,
    docx,
    large,
    lying,
    many_entries,
    nested,
    overlapping,
    paragraph,
    pdf,
    pdf_of,
    raw_zip,
    two_faced,
    xlsx,
    zipped,
)
from tests.patience import soon

LIMITS = replace(FileLimits(), parse_s=20, text_bytes=1 << 20, pdf_pages=50)
GIGABYTE = 1 << 30
ROOT = Path(__file__).parents[2]
SLOW = pdf_of([b"BT (x) Tj ET " * 1_000_000], compress=True)
"""One page that keeps its parser busy for a minute."""


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def extractor() -> AsyncIterator[Extractor]:
    made = Extractor(LIMITS)
    yield made
    made.close()


pytestmark = pytest.mark.asyncio(loop_scope="module")


@contextmanager
def kept(content: bytes) -> Iterator[Any]:
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        yield file


async def read(extractor: Extractor, content: bytes, kind: str) -> Extracted:
    """What is read of it; within its limits of memory and time, whatever it is."""
    with kept(content) as file:
        async with soon():
            found = await extractor.text(file, kind)
    assert extractor.last is None or extractor.last.peak_bytes < MEMORY_BYTES
    return found


def squeezed(begin: bytes, middle: bytes, times: int, end: bytes) -> bytes:
    """A long text, packed without ever being whole."""
    first, again, last = (zlib.compressobj(9, wbits=-15) for _ in range(3))
    head = first.compress(begin) + first.flush(zlib.Z_FULL_FLUSH)
    block = again.compress(middle) + again.flush(zlib.Z_FULL_FLUSH)
    return head + block * times + last.compress(end) + last.flush()


# ── archives

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
    assert found.reason == "Only the first 1 MiB of its text can be looked up."
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
    import zipfile

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


# ── XML

LAUGHS = "<!DOCTYPE l [<!ENTITY a 'ha'>" + "".join(
    f"<!ENTITY {chr(98 + n)} '{('&' + chr(97 + n) + ';') * 10}'>" for n in range(9)
) + "]>"  # fmt: skip
LOCAL = "<!DOCTYPE l [<!ENTITY j SYSTEM 'file:///etc/passwd'>]>"
REMOTE = "<!DOCTYPE l SYSTEM 'http://canary.invalid/evil.dtd'>"
PARAMETER = "<!DOCTYPE l [<!ENTITY % p SYSTEM 'http://canary.invalid/p'> %p;]>"


@pytest.mark.parametrize("declared", [LAUGHS, LOCAL, REMOTE, PARAMETER])
@pytest.mark.parametrize("entity", ["&j;", ""])
async def test_entities_are_neither_expanded_nor_fetched(
    extractor: Extractor, declared: str, entity: str
) -> None:
    word = f"{declared}<w:document {W}><w:body>{paragraph(entity)}</w:body></w:document>"
    book = f"{declared}<sst {S}><si><t>{entity}</t></si></sst>"
    for content, kind in (
        (docx("", **{"word/document.xml": word}), mime.DOCX),
        (xlsx("", **{"xl/sharedStrings.xml": book}), mime.XLSX),
    ):
        found = await read(extractor, content, kind)
        assert (found.text, found.has_failed) == ("", True)
        assert "root:" not in repr(found)


@pytest.mark.parametrize("kind", ["application/xml", "image/svg+xml", "text/html"])
async def test_xml_by_itself_is_only_looked_at(extractor: Extractor, kind: str) -> None:
    content = (
        LOCAL + "<?xml-stylesheet href='http://canary.invalid/x.xsl'?>"
        "<x xmlns:xi='http://www.w3.org/2001/XInclude'><xi:include href='file:///etc/passwd'/>&j;</x>"
    )
    found = await read(extractor, content.encode(), kind)
    assert "root:" not in found.text


async def test_an_external_relation_is_not_followed(extractor: Extractor) -> None:
    relation = (
        '<Relationships xmlns="x"><Relationship Id="rId1" Target="file:///etc/passwd" TargetMode="External"/>'
        '<Relationship Id="rId2" Target="../../../../etc/passwd"/></Relationships>'
    )
    content = xlsx("", **{"xl/_rels/workbook.xml.rels": relation})
    assert "root:" not in repr(await read(extractor, content, mime.XLSX))


async def test_nothing_is_looked_up_connected_to_or_opened_while_files_are_read() -> None:
    """Python itself tells of every file, name and address its parsers ask for."""
    said = await output("-m", "tests.library.audited")
    assert said.strip() == "[]"


async def output(*arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=asyncio.subprocess.PIPE, cwd=ROOT
    )
    said, _ = await process.communicate()
    return said.decode()


async def test_xml_nested_without_end_is_given_up(extractor: Extractor) -> None:
    found = await read(extractor, docx("<w:p>" * 100_000), mime.DOCX)
    assert found.has_failed


# ── PDF


def loop() -> bytes:
    return pdf_of([b""], kids="2 0 R 2 0 R")


def stream_bomb() -> bytes:
    packed = squeezed(b"", bytes(1 << 20), 500, b"")
    wrapped = b"\x78\xda" + packed + b"\0\0\0\0"
    content = pdf_of([b"MARK"])
    return content.replace(
        b"<< /Length 4 >>", b"<< /Filter /FlateDecode /Length %d >>" % len(wrapped)
    ).replace(b"MARK", wrapped)


@pytest.mark.parametrize(
    "make",
    [
        loop,
        stream_bomb,
        lambda: pdf_of([b"q " * 2_000_000], compress=True),
        lambda: pdf(["x"], "/Outlines 1 0 R"),
    ],
    ids=["a page tree that holds itself", "half a gigabyte in a stream", "two million operators", "outlines"],
)
async def test_a_pdf_that_means_harm_ends_in_time(extractor: Extractor, make: Callable[[], bytes]) -> None:
    found = await read(extractor, make(), mime.PDF)
    assert found.reason or found.text


async def test_a_pdf_of_many_pages_is_read_in_part(extractor: Extractor) -> None:
    found = await read(extractor, pdf([f"p{n}" for n in range(100)]), mime.PDF)
    assert found.reason == "Only its first 50 pages can be looked up."
    assert found.text.endswith("[Page 50]\np49\n\n")


async def test_a_script_in_a_pdf_is_never_run(extractor: Extractor) -> None:
    action = "/OpenAction << /S /JavaScript /JS (app.launchURL('http://canary.invalid')) >>"
    assert (await read(extractor, pdf(["Hello"], action), mime.PDF)).text == "[Page 1]\nHello\n\n"


# ── the process


async def test_whoever_takes_too_long_is_ended_with_a_reason(extractor: Extractor) -> None:
    slow = Extractor(replace(LIMITS, parse_s=0.3))
    try:
        found = await read(slow, SLOW, mime.PDF)
    finally:
        slow.close()
    assert found == Extracted("", mime.PDF, "Reading this file takes longer than is allowed.", True)
    assert slow.last is not None
    assert slow.last.code == -signal.SIGALRM


async def test_versions_that_differ_everywhere_are_compared_for_so_long() -> None:
    one, other = ("".join(f"{n * step % 9_973}\n" for n in range(60_000)) for step in (7_919, 104_729))
    hurried = Extractor(replace(LIMITS, compare_s=0.3))
    try:
        with pytest.raises(TooLarge):
            await hurried.diff(one, other)
    finally:
        hurried.close()


async def test_versions_that_differ_in_more_than_anyone_reads_are_not_shown() -> None:
    extractor = Extractor(replace(LIMITS, compare_bytes=10_000))
    try:
        with pytest.raises(TooLarge, match="more than can be shown"):
            await extractor.diff("", "a line\n" * 3_000)
        assert (await extractor.diff("", "a line\n" * 1_000)).count("+a line") == 1_000
    finally:
        extractor.close()


async def test_whoever_takes_too_much_memory_has_failed(extractor: Extractor) -> None:
    deep = b'{"cells": ' + b"[" * (15 << 20)
    wide = b'{"cells": [' + b'{"":0},' * 2_900_000 + b"1]}"
    assert (await read(extractor, deep, mime.NOTEBOOK)).has_failed
    found = await read(extractor, wide, mime.NOTEBOOK)
    assert found.reason == "Reading this file takes more memory than is allowed."


async def test_a_parser_that_dies_is_tried_three_times_and_the_next_file_is_read(
    extractor: Extractor,
) -> None:
    """Killed from outside, as the system does when memory runs out."""
    with kept(SLOW) as file:
        reading = asyncio.create_task(extractor.text(file, mime.PDF))
        killed = 0
        async with soon():
            while not reading.done():
                for child in children():
                    child.kill()
                    killed += 1
                await asyncio.sleep(0.01)
    found = await reading
    assert found == Extracted("", mime.PDF, "This file cannot be read; it may be damaged.", True)
    assert killed >= 3
    assert (await read(extractor, b"Hello", mime.PLAIN)).text == "Hello"


async def until(found: Callable[[], object]) -> None:
    async with soon():
        while True:
            if found():
                return
            await asyncio.sleep(0.005)


def children() -> list[psutil.Process]:
    """The processes that read a file right now: children of our children."""
    found = []
    for process in psutil.Process().children():
        try:
            if "tertulia.library.extract.worker" in process.cmdline():
                found += process.children()
        except psutil.NoSuchProcess:
            continue
    return found


async def test_the_process_that_forks_them_may_die_too(extractor: Extractor) -> None:
    await read(extractor, b"Hello", mime.PLAIN)
    for process in psutil.Process().children():
        if "tertulia.library.extract.worker" in process.cmdline():
            process.kill()
    assert (await read(extractor, b"Hello again", mime.PLAIN)).text == "Hello again"


async def test_a_file_nobody_wants_any_more_is_read_no_further(extractor: Extractor) -> None:
    with kept(SLOW) as file:
        reading = asyncio.create_task(extractor.text(file, mime.PDF, "the name"))
        await until(children)
        extractor.abandon("another name")
        assert children()
        extractor.abandon("the name")
        with pytest.raises(NotFound):
            await reading
    assert not children()


async def test_nobody_waits_for_a_file_that_takes_long(extractor: Extractor) -> None:
    with kept(SLOW) as file:
        reading = asyncio.create_task(extractor.text(file, mime.PDF, "slow"))
        await until(children)
        assert (await read(extractor, b"Hello", mime.PLAIN)).text == "Hello"
        assert extractor.reading == ("slow",)
        assert not reading.done()
        extractor.abandon("slow")
        with pytest.raises(NotFound):
            await reading


async def test_it_ends_with_the_server(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(
        "import asyncio, os, psutil, signal, tempfile\n"
        "from tertulia.core.files import FileLimits\n"
        "from tertulia.library.extract.extractor import Extractor\n"
        "async def main():\n"
        "    extractor = Extractor(FileLimits())\n"
        "    with tempfile.TemporaryFile() as file:\n"
        "        await extractor.text(file, 'text/plain')\n"
        "    print(psutil.Process().children()[0].pid, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )
    pid = int(await output(str(script)))
    await until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)


async def test_what_reading_took_is_known(extractor: Extractor) -> None:
    await read(extractor, b"Hello", mime.PLAIN)
    assert isinstance(extractor.last, Ending)
    assert extractor.last.code == 0
    assert extractor.last.cpu_s < 2
    assert 0 < extractor.last.peak_bytes < MEMORY_BYTES
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 0  # the limits are the child's, not ours
