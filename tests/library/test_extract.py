"""Text extraction: the text of each type of file, and the reasons if there is none."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import replace
from functools import partial
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypdf import PdfReader, PdfWriter

from tertulia.core.files import Extracted, FileLimits
from tertulia.library import mime
from tertulia.library.extract import EXTRACTORS, extract
from tertulia.library.extract import pdf as pdf_
from tertulia.library.extract.errors import Truncated
from tertulia.library.extract.json_text import pretty
from tests.library.documents import (
    TYPES,
    W,
    docx,
    epub,
    paragraph,
    pdf,
    pdf_of,
    pptx,
    relations,
    shape,
    word_table,
    xlsx,
    zipped,
)

LIMITS = FileLimits()


def read(content: bytes, kind: str = mime.PLAIN, limits: FileLimits = LIMITS) -> Extracted:
    return extract(io.BytesIO(content), kind, limits)


def text(content: bytes, kind: str = mime.PLAIN) -> str:
    extracted = read(content, kind)
    assert (extracted.reason, extracted.has_failed) == (None, False)
    return extracted.text


# ── plain text

LANGUAGES = {
    "German": ("Die Grüße aus München sind schön.\n", ["latin-1", "cp1252", "utf-16", "utf-32"]),
    "French": ("L'été, Hélène mange des crêpes — à l'école.\n", ["cp1252", "utf-16-le", "utf-16-be"]),
    "Polish": ("Zażółć gęślą jaźń.\n", ["cp1250", "iso8859-2", "utf-8-sig"]),
    "Turkish": ("Bütün insanlar hür doğarlar, eşit bakımından.\n", ["cp1254"]),
    "Russian": ("Съешь ещё этих мягких булок.\n", ["cp1251", "koi8-r", "cp866"]),
    "Russian with letters that Hebrew has": ("Привет мир, как дела\n", ["cp1251", "koi8-r", "cp866"]),
    "Greek": ("Οι άνθρωποι γεννιούνται ίσοι.\n", ["cp1253"]),
    "Hebrew": ("כל בני האדם נולדו.\n", ["cp1255"]),
    "Japanese": ("吾輩は猫である。名前はまだ無い。\n", ["shift_jis", "euc_jp", "iso2022_jp"]),
    "Chinese": ("我们在北京的会议上讨论了这个问题。\n", ["gb18030"]),
    "Korean": ("모든 인간은 태어날 때부터 자유로우며.\n", ["euc_kr"]),
}


@pytest.mark.parametrize(
    ("content", "encoding"),
    [(words, encoding) for words, encodings in LANGUAGES.values() for encoding in ["utf-8", *encodings]],
    ids=[f"{name}-{e}" for name, (_, encodings) in LANGUAGES.items() for e in ["utf-8", *encodings]],
)
def test_text_is_decoded_from_any_common_encoding(content: str, encoding: str) -> None:
    assert text(content.encode(encoding)) == content


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"one\r\ntwo\rthree\n", "one\ntwo\nthree\n"),
        (b"# -*- coding: koi8-r -*-\n\xd0\xd2\xc9\xd7\xc5\xd4", "# -*- coding: koi8-r -*-\nпривет"),
        (b"+ADw-script+AD4- charset=utf-7", "+ADw-script+AD4- charset=utf-7"),
        (b"coding: rot13, caf\xe9", "coding: rot13, café"),
        ("été ".encode() * 20 + b"\xff", "été " * 20 + "\ufffd"),
    ],
)
def test_line_ends_declared_encodings_and_damaged_bytes_are_handled(raw: bytes, expected: str) -> None:
    assert text(raw) == expected


@given(st.binary(max_size=2000))
def test_any_bytes_give_text_that_a_database_can_store(raw: bytes) -> None:
    for kind in (mime.PLAIN, "text/csv", "application/json", "text/html", mime.NOTEBOOK):
        extracted = read(raw, kind)
        assert "\0" not in extracted.text
        assert "\r" not in extracted.text
        extracted.text.encode()


@given(st.binary(max_size=300), st.sampled_from(sorted(EXTRACTORS)))
def test_no_extractor_raises_because_of_a_files_content(raw: bytes, kind: str) -> None:
    for content in (raw, b"PK\x03\x04" + raw, b"%PDF-1.7\n" + raw):
        assert read(content, kind).mime_type == kind


def test_a_long_text_is_read_up_to_the_limit() -> None:
    extracted = read("\u00e9t\u00e9\n".encode() * 1000, limits=replace(LIMITS, text_bytes=1 << 10))
    assert len(extracted.text.encode()) in (1023, 1024)
    assert extracted.reason == "Only the first 0 MiB of its text can be searched."
    assert not extracted.has_failed


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("image/png", "An image holds no text that can be searched."),
        ("application/zip", "An archive holds no text that can be searched."),
        ("application/octet-stream", "No text can be read from this kind of file."),
    ],
)
def test_a_file_type_without_text_gives_a_reason_and_has_not_failed(kind: str, reason: str) -> None:
    assert read(b"anything", kind) == Extracted("", kind, reason, has_failed=False)


def test_an_empty_file_gives_the_reason_that_it_has_no_text() -> None:
    assert read(b" \n ").reason == "This file holds no text."


# ── data


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_a_csv_table_becomes_one_line_per_row(mark: str) -> None:
    raw = f'name{mark}note\nAda{mark}"first{mark} and\nforemost"\nBob{mark}\n'.encode()
    quoted_mark = "" if mark == "\t" else mark
    assert text(raw, "text/csv") == f"name | note\nAda | first{quoted_mark} and foremost\nBob\n"


def test_json_with_short_lines_is_unchanged() -> None:
    raw = b'{\n "a": 1.0,\n "b": []}\n'
    assert text(raw, "application/json") == raw.decode()


def test_deeply_nested_brackets_do_not_become_megabytes_of_blanks() -> None:
    extracted = text(b"[" * 10_000 + b"]" * 10_000, "application/json")
    assert extracted.replace("\n", "").replace(" ", "") == "[" * 10_000 + "]" * 10_000
    assert len(extracted) < 1 << 20


def test_json_on_one_long_line_gets_one_line_per_value() -> None:
    value = {"name": "a, {b}: [c]", "list": [1.50, [], {}, None], "long": "x" * 1000}
    extracted = text(json.dumps(value).encode(), "application/json")
    assert extracted.startswith(
        '{\n  "name": "a, {b}: [c]",\n  "list": [\n    1.5,\n    [],\n    {},\n    null\n  ],'
    )


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


@given(VALUES)
def test_reformatted_json_has_the_same_value(value: object) -> None:
    assert json.loads("".join(pretty(json.dumps(value)))) == value


def test_a_notebook_becomes_its_cells_and_outputs() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Study\n", "Why?"]},
        {
            "cell_type": "code",
            "source": "print(6 * 7)",
            "outputs": [
                {"output_type": "stream", "text": ["42\n"]},
                {"output_type": "execute_result", "data": {"text/plain": "42", "image/png": "iVBOR"}},
                {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": ["x"]},
            ],
        },
    ]
    extracted = text(json.dumps({"cells": cells}).encode(), mime.NOTEBOOK)
    assert extracted == "# Study\nWhy?\n\n```python\nprint(6 * 7)\n```\n\n42\n\n42\n\nValueError: no\n\n"


@pytest.mark.parametrize(
    "raw", [b"{", b"[]", b"null", b'{"cells": 1}', b'{"cells": [1, null, {"source": {}}]}']
)
def test_a_broken_notebook_raises_nothing(raw: bytes) -> None:
    assert read(raw, mime.NOTEBOOK).mime_type == mime.NOTEBOOK


# ── HTML


def test_an_html_page_keeps_its_layout_and_loses_its_scripts() -> None:
    page = b"""<!doctype html><html><head><title>The  page</title><style>p{color:red}</style>
        <script>alert("no")</script></head><body onload="alert(1)"><h1>Top</h1><p>One <b>bold</b>
        word&nbsp;&amp; more.<br>Next line.</p><script>alert("no")</script><ul><li>first<li>second</ul>
        <table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
        <pre>  def f():\n    return 1</pre><svg><text>no</text></svg><noscript>no</noscript>
        <p>last<img alt="a cat" src="https://canary.invalid/x.png"></p></body></html>"""
    assert text(page, "text/html") == (
        "# The page\n\n# Top\n\nOne bold word & more.\nNext line.\n\n- first\n- second\n\na | b\n1 | 2\n\n"
        "  def f():\n    return 1\n\nlast a cat\n\n"
    )


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (
            "<!doctype html><head><title>T</title><meta charset=utf-8><body><p>one<p>two",
            "# T\n\none\n\ntwo\n",
        ),
        ("<head><title>T</title><script>x()</script><h1>one</h1>", "# T\n\n# one\n\n"),
        ("<head><link rel=x>only words", "only words\n"),
    ],
)
def test_an_unclosed_html_head_ends_where_the_content_begins(page: str, expected: str) -> None:
    assert text(page.encode(), "text/html") == expected


@pytest.mark.parametrize("page", [b"<script>" + b"<p>never closed", b"</div></p></script>words", b"<" * 5000])
def test_broken_html_is_read_without_failing(page: bytes) -> None:
    assert not read(page, "text/html").has_failed


# ── office files


def test_a_word_document_becomes_its_paragraphs_and_notes() -> None:
    body = (
        paragraph("Plan", "Heading1")
        + paragraph("Tea &amp; coffee")
        + "<w:p><w:pPr><w:numPr/></w:pPr><w:r><w:t>first</w:t></w:r></w:p>"
        + "<w:p><w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t></w:r>"
        + "<w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>"
        + word_table([["x", "y"], ["1", ""], ["", ""]])
        + "<w:p/>"
    )
    notes = f"<w:footnotes {W}><w:footnote>{paragraph('See page 3.')}</w:footnote></w:footnotes>"
    extracted = text(docx(body, **{"word/footnotes.xml": notes}), mime.DOCX)
    assert extracted == "# Plan\n\nTea & coffee\n\n- first\na\tb\nc\n\nx | y\n1\n\nSee page 3.\n\n"


def test_a_text_box_does_not_split_the_paragraph_around_it() -> None:
    box = f"<w:r><w:pict><w:txbxContent>{paragraph('in the box')}</w:txbxContent></w:pict></w:r>"
    body = f"<w:p><w:r><w:t>before </w:t></w:r>{box}<w:r><w:t>and after</w:t></w:r></w:p>"
    assert text(docx(body), mime.DOCX) == "in the box\n\nbefore and after\n\n"


def test_the_main_part_of_a_document_is_found_by_its_relation() -> None:
    main = f"<w:document {W}><w:body>{paragraph('Written online.')}</w:body></w:document>"
    parts = {"[Content_Types].xml": TYPES, "word/document2.xml": main}
    assert text(zipped(parts | {"_rels/.rels": relations(rId1="/word/document2.xml")}), mime.DOCX) == (
        "Written online.\n\n"
    )


def test_a_list_is_recognised_by_its_paragraph_style() -> None:
    body = paragraph("first", "ListBullet") + paragraph("second", "ListNumber2")
    assert text(docx(body), mime.DOCX) == "- first\n- second\n"


def test_a_formula_without_a_computed_value_is_shown_itself() -> None:
    cells = '<c r="A1"><v>2</v></c><c r="B1"><f>SUM(A1:A9)</f><v/></c><c r="C1"><f>A1*2</f><v>4</v></c>'
    assert text(xlsx(f"<row>{cells}</row>"), mime.XLSX) == "## Sums\n\n2 | =SUM(A1:A9) | 4\n\n"


def test_a_spreadsheet_becomes_one_line_per_row() -> None:
    sheet = (
        '<row><c r="A1" t="s"><v>0</v></c><c r="C1" t="s"><v>1</v></c></row>'
        '<row><c r="A2" s="2"><v>45000</v></c><c r="B2" s="1"><v>45000.5</v></c>'
        '<c r="C2" s="3"><v>2.50</v></c></row>'
        '<row><c r="A3" t="b"><v>1</v></c><c r="B3" t="inlineStr"><is><t>in place</t></is></c>'
        '<c r="C3" t="str"><f>A1&amp;"x"</f><v>formula</v></c><c r="D3" t="s"><v>99</v></c></row>'
        '<row><c r="A4"/></row>'
    )
    extracted = text(xlsx(sheet, ["What", "How &lt;much&gt;"]), mime.XLSX)
    assert extracted == (
        "## Sums\n\nWhat |  | How <much>\n2023-03-15 | 2023-03-15 12:00:00 | 2.50\n"
        "TRUE | in place | formula\n\n"
    )


def test_a_number_with_a_time_style_is_shown_as_date_or_time() -> None:
    styled = [(2, "0.5"), (2, "2958465.9999999"), (2, "1e99"), (4, "1.25"), (5, "0.0625"), (5, "x")]
    cells = "".join(f'<c s="{style}"><v>{value}</v></c>' for style, value in styled)
    expected = "12:00:00 | 2958465.9999999 | 1e99 | 30:00:00 | 1:30:00 | x"
    assert text(xlsx(f"<row>{cells}</row>"), mime.XLSX) == f"## Sums\n\n{expected}\n\n"


def test_a_presentation_becomes_its_slides_in_order() -> None:
    slides = [shape("Welcome", "ctrTitle") + shape("to all") + shape("1", "sldNum"), shape("Second")]
    extracted = text(pptx(slides, notes="Smile."), mime.PPTX)
    assert extracted == "## Slide 1\n\n### Welcome\nto all\nNotes: Smile.\n\n## Slide 2\n\nSecond\n\n"


def test_a_book_becomes_its_chapters_in_order() -> None:
    extracted = text(epub(["<h1>One</h1><p>Call me.</p>", "<h1>Two</h1><p>The end.</p>"]), mime.EPUB)
    assert extracted == "# One\n\nCall me.\n\n\n# Two\n\nThe end.\n\n\n"


@pytest.mark.parametrize("kind", [mime.DOCX, mime.XLSX, mime.PPTX, mime.EPUB])
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x05\x06" + b"\0" * 18,
        zipped({"a": "b"}),
        b"no zip at all",
        docx("<w:p><w:r>"),
        docx("x")[:200],
    ],
)
def test_a_broken_office_file_fails_with_a_reason(kind: str, content: bytes) -> None:
    extracted = read(content, kind)
    assert extracted.text == ""
    assert extracted.reason
    if kind != mime.DOCX or content != docx("x"):
        assert extracted.has_failed


def test_an_encrypted_office_file_fails_with_a_reason() -> None:
    content = bytearray(docx(paragraph("secret")))
    for mark, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        position = -1
        while (position := content.find(mark, position + 1)) >= 0:
            content[position + offset] |= 1
    extracted = read(bytes(content), mime.DOCX)
    assert extracted.has_failed
    assert "locked" in (extracted.reason or "")


# ── PDF


def test_a_pdf_becomes_its_pages_with_page_numbers() -> None:
    assert text(pdf(["Hello", "World"]), mime.PDF) == "[Page 1]\nHello\n\n[Page 2]\nWorld\n\n"


def test_a_pdf_without_text_gives_a_reason_and_has_not_failed() -> None:
    assert read(pdf_of([b"", b""]), mime.PDF) == Extracted(
        "", mime.PDF, "This PDF holds no text, only pictures of pages."
    )


def test_a_slow_pdf_is_read_until_its_time_is_used_up() -> None:
    """The clock advances by a second with each reading: once at the start, and once per page."""
    limits = replace(LIMITS, parse_s=4 / pdf_.SHARE)
    pages = pdf_.text(io.BytesIO(pdf([f"p{n}" for n in range(200)])), limits, partial(next, count()))
    assert [next(pages) for _ in range(3)] == [f"[Page {n + 1}]\np{n}\n\n" for n in range(3)]
    with pytest.raises(Truncated, match="Only its first 3 pages can be searched."):
        next(pages)


def test_an_unreadable_pdf_page_does_not_affect_the_others() -> None:
    broken = pdf_of([b"BT /F1 12 Tf (one) Tj ET", b"BT /F1 12 Tf (two) Tj ET"])
    broken = broken.replace(b"/Contents 7 0 R", b"/Contents /NotA")
    extracted = read(broken, mime.PDF)
    assert extracted.text == "[Page 1]\none\n\n"


@pytest.mark.parametrize(("password", "has_failed"), [("", False), ("secret", True)])
def test_an_encrypted_pdf_is_read_only_if_its_password_is_empty(password: str, has_failed: bool) -> None:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf(["Hello"]))))
    writer.encrypt(user_password=password, owner_password="owner", algorithm="AES-256")
    buffer = io.BytesIO()
    writer.write(buffer)
    extracted = read(buffer.getvalue(), mime.PDF)
    assert extracted.has_failed is has_failed
    assert extracted.reason == ("This PDF is locked with a password." if has_failed else None)


@pytest.mark.parametrize(
    "content", [b"%PDF-", b"%PDF-1.7\n%%EOF", pdf(["x"])[:300], b"%PDF-1.4\n" + b"(" * 10_000]
)
def test_a_broken_pdf_fails_with_a_reason(content: bytes) -> None:
    extracted = read(content, mime.PDF)
    assert (extracted.text, extracted.has_failed) == ("", True)
    assert "PDF" in (extracted.reason or "")


def test_the_documents_of_these_tests_are_valid_archives() -> None:
    for content in (docx("x"), xlsx(""), pptx([]), epub([])):
        assert zipfile.ZipFile(io.BytesIO(content)).testzip() is None
