"""PPTX text extraction: the slides of a presentation in order, each with its speaker notes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from tertulia.core.files import FileLimits
from tertulia.library.extract import csv_text
from tertulia.library.extract.ooxml import Package, XmlHandler, opened
from tertulia.library.extract.sax import RELATION, parse_xml


def text(file: BinaryIO, limits: FileLimits) -> Iterator[str]:
    with opened(file, limits) as package:
        main = package.main("ppt/presentation.xml")
        slides = SlidesParser()
        package.parse_part(main, slides)
        relations = package.relations(main)
        names = [relations[id] for id in slides.ids if package.has(relations.get(id, ""))]
        for number, name in enumerate(names, start=1):
            yield f"## Slide {number}\n\n"
            yield from _slide(package, name)
            yield "\n"


def _slide(package: Package, name: str) -> Iterator[str]:
    with package.part(name) as part:
        yield from parse_xml(part, SlideTextParser())
    for notes in package.relations(name).values():
        if "notesslides/" in notes.lower() and package.has(notes):
            with package.part(notes) as part:
                notes_text = "".join(parse_xml(part, SlideTextParser(is_notes=True)))
            if notes_text.strip():
                yield f"Notes: {notes_text}"


class SlidesParser(XmlHandler):
    """Reads the ids of the slides in the order of the presentation."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "sldId":
            self.ids.append(attributes.get(RELATION, ""))


class SlideTextParser(XmlHandler):
    """Extracts the paragraphs of all shapes in document order, with one line per table row."""

    def __init__(self, is_notes: bool = False) -> None:
        super().__init__()
        self._is_notes = is_notes
        self._text_parts: list[str] = []
        self._row: list[str] | None = None
        self._in_text = False
        self._kind = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        match name:
            case "sp":
                self._kind = ""
            case "ph":
                self._kind = attributes.get("type", "body")
            case "p":
                self._text_parts = []
            case "t":
                self._in_text = True
            case "br":
                self._text_parts.append(" ")
            case "tr":
                self._row = []
            case "tc" if self._row is not None:
                self._row.append("")

    def end(self, name: str) -> None:
        match name:
            case "t":
                self._in_text = False
            case "p":
                self._paragraph("".join(self._text_parts).strip())
                self._text_parts = []
            case "tr":
                if self._row:
                    self.taken.append(csv_text.line(self._row))
                self._row = None

    def data(self, text: str) -> None:
        if self._in_text:
            self._text_parts.append(text)

    def _paragraph(self, text: str) -> None:
        if not text or self._kind in ("sldNum", "dt", "ftr", "sldImg"):
            return
        if self._row:
            self._row[-1] += " " + text
        else:
            heading = "### " if self._kind in ("title", "ctrTitle") and not self._is_notes else ""
            self.taken.append(f"{heading}{text}\n")
