"""Presentations: their slides in order, each with what the speaker noted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from tertulia.core.files import FileLimits
from tertulia.library.extract import tables
from tertulia.library.extract.office import Listening, Package, opened
from tertulia.library.extract.xml import RELATION, heard


def text(file: BinaryIO, limits: FileLimits) -> Iterator[str]:
    with opened(file, limits) as package:
        main = package.main("ppt/presentation.xml")
        show = Slides()
        package.tell(main, show)
        relations = package.relations(main)
        names = [relations[id] for id in show.ids if package.has(relations.get(id, ""))]
        for number, name in enumerate(names, start=1):
            yield f"## Slide {number}\n\n"
            yield from _slide(package, name)
            yield "\n"


def _slide(package: Package, name: str) -> Iterator[str]:
    with package.part(name) as part:
        yield from heard(part, SlideText())
    for notes in package.relations(name).values():
        if "notesslides/" in notes.lower() and package.has(notes):
            with package.part(notes) as part:
                said = "".join(heard(part, SlideText(is_notes=True)))
            if said.strip():
                yield f"Notes: {said}"


class Slides(Listening):
    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "sldId":
            self.ids.append(attributes.get(RELATION, ""))


class SlideText(Listening):
    """Paragraphs of all shapes, in the order they were drawn; rows of tables on one line."""

    def __init__(self, is_notes: bool = False) -> None:
        super().__init__()
        self._is_notes = is_notes
        self._words: list[str] = []
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
                self._words = []
            case "t":
                self._in_text = True
            case "br":
                self._words.append(" ")
            case "tr":
                self._row = []
            case "tc" if self._row is not None:
                self._row.append("")

    def end(self, name: str) -> None:
        match name:
            case "t":
                self._in_text = False
            case "p":
                self._paragraph("".join(self._words).strip())
                self._words = []
            case "tr":
                if self._row:
                    self.taken.append(tables.line(self._row))
                self._row = None

    def data(self, words: str) -> None:
        if self._in_text:
            self._words.append(words)

    def _paragraph(self, words: str) -> None:
        if not words or self._kind in ("sldNum", "dt", "ftr", "sldImg"):
            return
        if self._row:
            self._row[-1] += " " + words
        else:
            heading = "### " if self._kind in ("title", "ctrTitle") and not self._is_notes else ""
            self.taken.append(f"{heading}{words}\n")
