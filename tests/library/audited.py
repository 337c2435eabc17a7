"""Reads malicious files under an audit hook, and prints every access to files, sockets and processes."""

from __future__ import annotations

import io
import sys

from tertulia.core.files import FileLimits
from tertulia.library import mime
from tertulia.library.extract import extract
from tests.library.documents import W, docx, epub, paragraph, pdf, pptx, shape, xlsx

OUTSIDE = ("socket.", "open", "os.", "subprocess.", "urllib.", "ctypes.dlopen", "shutil.", "glob.")
CANARY = "http://canary.invalid/x"
ENTITIES = f"<!DOCTYPE d SYSTEM '{CANARY}' [<!ENTITY j SYSTEM 'file:///etc/passwd'>]>"
FILES = {
    mime.DOCX: [
        docx(paragraph("Hello")),
        docx("", **{"word/document.xml": f"{ENTITIES}<w:document {W}>&j;</w:document>"}),
    ],
    mime.XLSX: [
        xlsx("<row><c t='str'><v>1</v></c></row>"),
        xlsx("", **{"xl/styles.xml": f"{ENTITIES}<a>&j;</a>"}),
    ],
    mime.PPTX: [pptx([shape("Hello")])],
    mime.EPUB: [epub([f"<p>Hello<img src='{CANARY}'/></p>"])],
    mime.PDF: [pdf(["Hello"], f"/OpenAction << /S /URI /URI ({CANARY}) >>")],
    "text/html": [f"<link rel=stylesheet href='{CANARY}'><iframe src='{CANARY}'></iframe>Hello".encode()],
    "application/xml": [f"{ENTITIES}<?xml-stylesheet href='{CANARY}'?><d>&j;</d>".encode()],
    "text/plain": ["Grüße".encode("cp1252")],
}


def main() -> None:
    for _ in range(2):  # in the first pass the parsers import modules, which opens files
        events.clear()
        for kind, contents in FILES.items():
            for content in contents:
                extract(io.BytesIO(content), kind, FileLimits())
    print(events)


events: list[str] = []


def hook(event: str, arguments: tuple[object, ...]) -> None:
    if event.startswith(OUTSIDE):
        events.append(f"{event}{arguments}")


if __name__ == "__main__":
    sys.addaudithook(hook)
    main()
