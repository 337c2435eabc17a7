"""DOCX text extraction: the paragraphs of a Word document, then its footnotes, endnotes and comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from tertulia.core.files import FileLimits
from tertulia.library.extract import csv_text
from tertulia.library.extract.ooxml import XmlHandler, opened
from tertulia.library.extract.sax import parse_xml


def text(file: BinaryIO, limits: FileLimits) -> Iterator[str]:
    with opened(file, limits) as package:
        main = package.main("word/document.xml")
        with package.part(main) as part:
            yield from parse_xml(part, ParagraphsParser())
        for notes in ("word/footnotes.xml", "word/endnotes.xml", "word/comments.xml"):
            if package.has(notes):
                with package.part(notes) as part:
                    yield from parse_xml(part, ParagraphsParser())


class ParagraphsParser(XmlHandler):
    """Extracts one line per paragraph and per table row, with Markdown signs for headings and lists."""

    def __init__(self) -> None:
        super().__init__()
        self._text_parts: list[str] = []
        self._prefix = ""
        self._outer: list[tuple[list[str], str]] = []
        """The enclosing paragraphs that are still open: a text box is inside a paragraph."""
        self._cells: list[list[str]] = []
        """The open table rows, innermost last: a table may be inside a cell of another table."""
        self._hidden = 0
        self._in_text = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name in ("Fallback", "del", "moveFrom"):  # a copy for old programs, or deleted text
            self._hidden += 1
        match name:
            case "p":
                self._outer.append((self._text_parts, self._prefix))
                self._text_parts, self._prefix = [], ""
            case "pStyle":
                self._prefix = _mark(attributes.get("val", "")) or self._prefix
            case "numPr":
                self._prefix = self._prefix or "- "
            case "t":
                self._in_text = True
            case "tab":
                self._text_parts.append("\t")
            case "br" | "cr":
                self._text_parts.append("\n")
            case "noBreakHyphen":
                self._text_parts.append("-")
            case "tr":
                self._cells.append([])
            case "tc":
                if self._cells:
                    self._cells[-1].append("")

    def end(self, name: str) -> None:
        if name in ("Fallback", "del", "moveFrom"):
            self._hidden -= 1
        match name:
            case "t":
                self._in_text = False
            case "p":
                self._paragraph("".join(self._text_parts))
                self._text_parts, self._prefix = self._outer.pop() if self._outer else ([], "")
            case "tr":
                row = self._cells.pop() if self._cells else []
                if self._cells and self._cells[-1]:
                    self._cells[-1][-1] += " " + " ".join(row)
                elif any(cell.strip() for cell in row):
                    self.taken.append(csv_text.line(row))
            case "tbl":
                if not self._cells:
                    self.taken.append("\n")

    def data(self, text: str) -> None:
        if self._in_text and not self._hidden:
            self._text_parts.append(text)

    def _paragraph(self, text: str) -> None:
        if self._cells and self._cells[-1]:
            self._cells[-1][-1] += " " + text
        elif text.strip():
            self.taken.append(f"{self._prefix}{text.strip()}\n" + ("" if self._prefix == "- " else "\n"))


def _mark(style: str) -> str:
    """The Markdown sign for a paragraph style.

    Styles are named in the author's language, but most programs keep the English id.
    """
    if style.lower().startswith(("listbullet", "listnumber")):
        return "- "
    match = re.fullmatch(r"(?i)(?:heading|berschrift|überschrift|titre|titolo|título|ttulo)\s?([1-6])", style)
    return "#" * int(match[1]) + " " if match else "# " if style.lower() in ("title", "titel") else ""
