"""XML and PDF that mean harm: the parser may die of them, and nobody else does (UP 5, 7)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tertulia.library import mime
from tertulia.library.extract.extractor import Extractor
from tests.library.documents import S, W, docx, paragraph, pdf, pdf_of, xlsx
from tests.library.reading import output, read, squeezed

pytestmark = pytest.mark.asyncio(loop_scope="module")


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


async def test_xml_nested_without_end_is_given_up(extractor: Extractor) -> None:
    found = await read(extractor, docx("<w:p>" * 10_000 + "</w:p>" * 10_000), mime.DOCX)
    assert (found.has_failed, found.reason) == (True, "Its XML is nested too deeply.")


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
    assert found.reason == "Only its first 50 pages can be searched."
    assert found.text.endswith("[Page 50]\np49\n\n")


async def test_a_script_in_a_pdf_is_never_run(extractor: Extractor) -> None:
    action = "/OpenAction << /S /JavaScript /JS (app.launchURL('http://canary.invalid')) >>"
    assert (await read(extractor, pdf(["Hello"], action), mime.PDF)).text == "[Page 1]\nHello\n\n"
