"""Builders of test documents: valid office files, PDFs, zip archives and images, and malicious ones."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
P = (
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
)
R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
RELS = "http://schemas.openxmlformats.org/package/2006/relationships"
TYPES = "<Types/>"
FORMATS = (
    '<numFmts><numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd"/>'
    '<numFmt numFmtId="165" formatCode="[h]:mm"/></numFmts><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/>'
    '<xf numFmtId="164"/><xf numFmtId="2"/><xf numFmtId="46"/><xf numFmtId="165"/></cellXfs>'
)


def zipped(parts: Mapping[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip archive without timestamps: the same parts give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return buffer.getvalue()


def docx(body: str, **more: str | bytes) -> bytes:
    document = f"<w:document {W}><w:body>{body}</w:body></w:document>"
    return zipped({"[Content_Types].xml": TYPES, "word/document.xml": document} | more)


def paragraph(text: str, style: str = "") -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f'<w:p>{properties}<w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p>'


def word_table(rows: Sequence[Sequence[str]]) -> str:
    cells = ("".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) for row in rows)
    return "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in cells) + "</w:tbl>"


def relations(**targets: str) -> str:
    inner = "".join(f'<Relationship Id="{id}" Target="{target}"/>' for id, target in targets.items())
    return f'<Relationships xmlns="{RELS}">{inner}</Relationships>'


def xlsx(sheet: str, strings: Iterable[str] = (), **more: str | bytes) -> bytes:
    shared = "".join(f"<si><t>{string}</t></si>" for string in strings)
    parts: dict[str, str | bytes] = {
        "[Content_Types].xml": TYPES,
        "xl/workbook.xml": f'<workbook {S} {R}><sheets><sheet name="Sums" sheetId="7" r:id="rId1"/></sheets>'
        "</workbook>",
        "xl/_rels/workbook.xml.rels": relations(rId1="worksheets/sheet1.xml", rId2="/xl/sharedStrings.xml"),
        "xl/sharedStrings.xml": f"<sst {S}>{shared}</sst>",
        "xl/styles.xml": f"<styleSheet {S}>{FORMATS}</styleSheet>",
        "xl/worksheets/sheet1.xml": f"<worksheet {S}><sheetData>{sheet}</sheetData></worksheet>",
    }
    return zipped(parts | more)


def pptx(slides: Sequence[str], notes: str = "") -> bytes:
    ids = "".join(f'<p:sldId id="{256 + n}" r:id="rId{n}"/>' for n in range(len(slides)))
    parts: dict[str, str | bytes] = {
        "[Content_Types].xml": TYPES,
        "ppt/presentation.xml": f"<p:presentation {P} {R}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations(
            **{f"rId{n}": f"slides/slide{n}.xml" for n in range(len(slides))}
        ),
    }
    for n, slide in enumerate(slides):
        parts[f"ppt/slides/slide{n}.xml"] = f"<p:sld {P}>{slide}</p:sld>"
    if notes:
        parts["ppt/slides/_rels/slide0.xml.rels"] = relations(rId1="../notesSlides/notesSlide1.xml")
        parts["ppt/notesSlides/notesSlide1.xml"] = f"<p:notes {P}>{shape(notes)}</p:notes>"
    return zipped(parts)


def shape(text: str, kind: str = "") -> str:
    holder = f'<p:nvSpPr><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr>' if kind else ""
    return f"<p:sp>{holder}<p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"


def epub(chapters: Sequence[str]) -> bytes:
    items = "".join(f'<item id="c{n}" href="text/c{n}.xhtml"/>' for n in range(len(chapters)))
    spine = "".join(f'<itemref idref="c{n}"/>' for n in range(len(chapters)))
    parts: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
        '<rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
        "OEBPS/book.opf": f'<package xmlns="http://www.idpf.org/2007/opf"><manifest>{items}</manifest>'
        f"<spine>{spine}</spine></package>",
    }
    for n, chapter in enumerate(chapters):
        html = f'<!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"><body>{chapter}</body></html>'
        parts[f"OEBPS/text/c{n}.xhtml"] = html
    return zipped(parts, zipfile.ZIP_STORED)


# ── PDF


def pdf(pages: Sequence[str], more: str = "", compress: bool = False) -> bytes:
    """A PDF with one line of text on each page."""
    streams = [f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode() for text in pages]
    return pdf_of(streams, more, compress)


def pdf_of(streams: Sequence[bytes], more: str = "", compress: bool = False, kids: str = "") -> bytes:
    first = 4
    page_references = " ".join(f"{first + 2 * n} 0 R" for n in range(len(streams)))
    objects = [
        f"<< /Type /Catalog /Pages 2 0 R {more} >>".encode(),
        f"<< /Type /Pages /Kids [{kids or page_references}] /Count {len(streams)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for n, stream in enumerate(streams):
        packed = zlib.compress(stream) if compress else stream
        stream_filter = "/Filter /FlateDecode " if compress else ""
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {first + 2 * n + 1} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>".encode()
        )
        objects.append(
            f"<< {stream_filter}/Length {len(packed)} >>\nstream\n".encode() + packed + b"\nendstream"
        )
    document = bytearray(b"%PDF-1.7\n")
    offsets = []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(document))
        document += f"{number} 0 obj\n".encode() + content + b"\nendobj\n"
    table = len(document)
    document += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    document += b"".join(f"{offset:010} 00000 n \n".encode() for offset in offsets)
    document += f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n".encode()
    return bytes(document)


# ── malicious files

ENDLESS_PDF = pdf_of([b"BT (x) Tj ET " * 1_000_000], compress=True, kids="4 0 R " * 1_000)
"""A thousand pages, each of which takes its parser a minute: no test waits for its end."""


def bomb(size: int, name: str = "zeros") -> bytes:
    """A zip bomb: this many zero bytes, compressed a thousand to one."""
    return zipped({name: bytes(size)})


def with_false_size(claimed: int, packed: bytes, name: bytes = b"x") -> bytes:
    """An archive of one deflated entry whose table of contents states a false size."""
    return raw_zip([(name, packed, claimed, None)])


def many_entries(count: int) -> bytes:
    """An archive with this many entries of the same name, which all are the same empty file."""
    local = struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, 0, 0, 0, 0, 0, 0, 0, 1, 0) + b"x"
    entry = struct.pack("<4s6H3L5H2L", b"PK\x01\x02", 20, 20, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"x"
    table = entry * count
    end = struct.pack(
        "<4s4H2LH", b"PK\x05\x06", 0, 0, count & 0xFFFF, count & 0xFFFF, len(table), len(local), 0
    )
    return local + table + end


def overlapping(count: int, kernel: bytes) -> bytes:
    """An archive whose entries all unpack the same bytes."""
    compressor = zlib.compressobj(9, wbits=-15)
    content = compressor.compress(kernel) + compressor.flush()
    return raw_zip(
        [(b"first", content, len(kernel), None)]
        + [(b"x%d" % n, content, len(kernel), 0) for n in range(count)]
    )


def raw_zip(entries: Sequence[tuple[bytes, bytes, int, int | None]]) -> bytes:
    """An archive of raw entries: name, packed bytes, stated size, and the offset of shared bytes or None."""
    content = bytearray()
    table = bytearray()
    for name, packed, size, shared_offset in entries:
        offset = len(content) if shared_offset is None else shared_offset
        if shared_offset is None:
            content += struct.pack(
                "<4s5H3L2H", b"PK\x03\x04", 20, 0, 8, 0, 0, 0, len(packed), size, len(name), 0
            )
            content += name + packed
        table += struct.pack(
            "<4s6H3L5H2L",
            *(b"PK\x01\x02", 20, 20, 0, 8, 0, 0, 0, len(packed), size, len(name), 0, 0, 0, 0, 0, offset),
        )
        table += name
    end = struct.pack(
        "<4s4H2LH", b"PK\x05\x06", 0, 0, len(entries), len(entries), len(table), len(content), 0
    )
    return bytes(content + table) + end


def with_hidden_table(archive: bytes, comment: bytes = b"") -> bytes:
    """An archive whose ZIP64 record points to its real table of contents.

    The ordinary table of contents names one empty file and hides the real one in that entry's comment.
    """
    start, end = archive.index(b"PK\x01\x02"), archive.rindex(b"PK\x05\x06")
    real = archive[start:end] + _zip64_end(start, end - start)
    entry = (b"PK\x01\x02", 20, 20, 0, 0, 0, 0, 0, 0, 0, 1, 0, len(real), 0, 0, 0, 0)
    table = struct.pack("<4s6H3L5H2L", *entry) + b"x" + real
    last = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, len(table), start, len(comment))
    return archive[:start] + table + last + comment


def as_zip64(archive: bytes) -> bytes:
    """The archive with the end records of ZIP64, though it is small."""
    start, end = archive.index(b"PK\x01\x02"), archive.rindex(b"PK\x05\x06")
    maxima = (0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF)
    last = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, *maxima, 0)
    return archive[:end] + _zip64_end(start, end - start) + last


def _zip64_end(start: int, size: int) -> bytes:
    record = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 1, 1, size, start)
    return record + struct.pack("<4sLQL", b"PK\x06\x07", 0, start + size, 1)


def nested(levels: int) -> bytes:
    """An archive inside an archive, this many levels deep."""
    inner = bytes(1 << 20)
    for level in range(levels):
        inner = zipped({f"level{level}.zip": inner})
    return inner


def png(width: int, height: int) -> bytes:
    """A PNG without pixels whose header states this size."""
    head = struct.pack(">2L5B", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _png_part(b"IHDR", head)
        + _png_part(b"IDAT", zlib.compress(b""))
        + _png_part(b"IEND", b"")
    )


def _png_part(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">L", len(content)) + kind + content + struct.pack(">L", zlib.crc32(kind + content))
