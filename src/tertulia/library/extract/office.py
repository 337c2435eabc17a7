"""Office files: Word documents, spreadsheets and presentations, read straight from their XML."""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import BinaryIO

from tertulia.core.files import FileLimits
from tertulia.library import zips
from tertulia.library.extract import tables
from tertulia.library.extract.outcome import Unreadable
from tertulia.library.extract.xml import RELATION, heard

STRINGS_LIMIT = 40 << 20
"""Characters of a workbook's shared strings."""
GAP = 50
"""Empty cells between two that hold something: up to here their columns are kept apart."""


class Package:
    """An office file: parts by name, and how one refers to others."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._names = {name.lower(): name for name in archive.namelist()}

    def has(self, name: str) -> bool:
        return name.lower() in self._names

    @contextmanager
    def part(self, name: str) -> Iterator[BinaryIO]:
        if not self.has(name):
            raise Unreadable(f"Its part {name} is missing.")
        with self._archive.open(self._names[name.lower()]) as file:
            yield file  # type: ignore[misc]

    def relations(self, name: str) -> dict[str, str]:
        """Of a part: the names of those it refers to, by the id it calls them."""
        folder, _, file = name.rpartition("/")
        listed = f"{folder}/_rels/{file}.rels"
        if not self.has(listed):
            return {}
        found = Relations(folder)
        with self.part(listed) as opened:
            list(heard(opened, found))
        return found.targets


@contextmanager
def opened(file: BinaryIO, limits: FileLimits) -> Iterator[Package]:
    """The archive, once it is known to be harmless."""
    try:
        zips.must_be_harmless(file, limits)
        with zipfile.ZipFile(file) as archive:
            yield Package(archive)
    except zips.Harmful as harm:
        raise Unreadable(f"This file was not opened. {harm}") from None
    except (zips.NotAZip, zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, NotImplementedError) as error:
        raise Unreadable(f"This file is damaged ({error or 'its table of contents is missing'}).") from None
    except RuntimeError as error:  # zipfile says so of an encrypted part
        raise Unreadable(f"This file is locked ({error}).") from None


class Listening:
    """Hears everything and takes nothing from it."""

    def __init__(self) -> None:
        self.taken: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None: ...
    def end(self, name: str) -> None: ...
    def data(self, words: str) -> None: ...

    def take(self) -> list[str]:
        done, self.taken = self.taken, []
        return done


class Relations(Listening):
    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder
        self.targets: dict[str, str] = {}

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "Relationship" and attributes.get("TargetMode") != "External":
            target = posixpath.join("/" + self._folder, attributes.get("Target", ""))
            self.targets[attributes.get("Id", "")] = posixpath.normpath(target).lstrip("/")


# ── Word


def docx_text(file: BinaryIO, limits: FileLimits) -> Iterator[str]:
    with opened(file, limits) as package:
        main = _main_part(package, "word/document.xml")
        with package.part(main) as part:
            yield from heard(part, Paragraphs())
        for notes in ("word/footnotes.xml", "word/endnotes.xml", "word/comments.xml"):
            if package.has(notes):
                with package.part(notes) as part:
                    yield from heard(part, Paragraphs())


def _main_part(package: Package, usual: str) -> str:
    """Where the file says its content is; most say the usual place, some programs name another."""
    if package.has(usual):
        return usual
    folder = usual.partition("/")[0]
    targets = package.relations("").values()
    return next((name for name in targets if name.startswith(f"{folder}/") and package.has(name)), usual)


class Paragraphs(Listening):
    """Paragraphs of a Word document, a line each; headings and lists marked, rows of tables on one line."""

    def __init__(self) -> None:
        super().__init__()
        self._words: list[str] = []
        self._prefix = ""
        self._outer: list[tuple[list[str], str]] = []
        """Paragraphs that are open around this one: a text box stands within one."""
        self._cells: list[list[str]] = []
        """Rows that are open, the innermost last: a table may stand in a cell of another."""
        self._hidden = 0
        self._in_text = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name in ("Fallback", "del", "moveFrom"):  # said again for old programs; struck out
            self._hidden += 1
        match name:
            case "p":
                self._outer.append((self._words, self._prefix))
                self._words, self._prefix = [], ""
            case "pStyle":
                self._prefix = _mark(attributes.get("val", "")) or self._prefix
            case "numPr":
                self._prefix = self._prefix or "- "
            case "t":
                self._in_text = True
            case "tab":
                self._words.append("\t")
            case "br" | "cr":
                self._words.append("\n")
            case "noBreakHyphen":
                self._words.append("-")
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
                self._paragraph("".join(self._words))
                self._words, self._prefix = self._outer.pop() if self._outer else ([], "")
            case "tr":
                row = self._cells.pop() if self._cells else []
                if self._cells and self._cells[-1]:
                    self._cells[-1][-1] += " " + " ".join(row)
                elif any(cell.strip() for cell in row):
                    self.taken.append(tables.line(row))
            case "tbl":
                if not self._cells:
                    self.taken.append("\n")

    def data(self, words: str) -> None:
        if self._in_text and not self._hidden:
            self._words.append(words)

    def _paragraph(self, words: str) -> None:
        if self._cells and self._cells[-1]:
            self._cells[-1][-1] += " " + words
        elif words.strip():
            self.taken.append(f"{self._prefix}{words.strip()}\n" + ("" if self._prefix == "- " else "\n"))


def _mark(style: str) -> str:
    """Styles are named in the language of whoever wrote them, but most keep the English id."""
    if style.lower().startswith(("listbullet", "listnumber")):
        return "- "
    match = re.fullmatch(r"(?i)(?:heading|berschrift|überschrift|titre|titolo|título|ttulo)\s?([1-6])", style)
    return "#" * int(match[1]) + " " if match else "# " if style.lower() in ("title", "titel") else ""


# ── spreadsheets


def xlsx_text(file: BinaryIO, limits: FileLimits) -> Iterator[str]:
    with opened(file, limits) as package:
        main = _main_part(package, "xl/workbook.xml")
        book = Workbook()
        with package.part(main) as part:
            list(heard(part, book))
        relations = package.relations(main)
        strings = _shared_strings(package, relations)
        dates = _date_styles(package)
        for name, id in book.sheets:
            if package.has(relations.get(id, "")):
                yield f"## {name}\n\n"
                with package.part(relations[id]) as part:
                    yield from heard(part, Sheet(strings, dates, book.starts_1904))
                yield "\n"


class Workbook(Listening):
    def __init__(self) -> None:
        super().__init__()
        self.sheets: list[tuple[str, str]] = []
        self.starts_1904 = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "sheet":
            self.sheets.append((attributes.get("name", ""), attributes.get(RELATION, "")))
        elif name == "workbookPr":
            self.starts_1904 = attributes.get("date1904") in ("1", "true")


def _shared_strings(package: Package, relations: dict[str, str]) -> list[str]:
    name = next((one for one in relations.values() if one.lower().endswith("sharedstrings.xml")), "")
    strings = Strings()
    if name and package.has(name):
        with package.part(name) as part:
            list(heard(part, strings))
    return strings.found


class Strings(Listening):
    """The texts that cells refer to by number."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._words: list[str] = []
        self._size = 0
        self._in_text = self._in_reading = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "si":
            self._words = []
        elif name == "rPh":  # how it is pronounced
            self._in_reading = True
        elif name == "t":
            self._in_text = not self._in_reading

    def end(self, name: str) -> None:
        if name == "t":
            self._in_text = False
        elif name == "rPh":
            self._in_reading = False
        elif name == "si":
            self.found.append("".join(self._words))

    def data(self, words: str) -> None:
        if self._in_text:
            self._words.append(words)
            self._size += len(words)
            if self._size > STRINGS_LIMIT:
                raise Unreadable("This spreadsheet holds more text than can be read.")


def _date_styles(package: Package) -> frozenset[int]:
    styles = Styles()
    if package.has("xl/styles.xml"):
        with package.part("xl/styles.xml") as part:
            list(heard(part, styles))
    return frozenset(styles.dates)


class Styles(Listening):
    """Which cell styles show a number as a date."""

    def __init__(self) -> None:
        super().__init__()
        self.dates: list[int] = []
        self._formats = {*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)}
        self._is_in_cells = False
        self._number = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "numFmt" and _is_date(attributes.get("formatCode", "")):
            self._formats.add(_integer(attributes.get("numFmtId", "")))
        elif name == "cellXfs":
            self._is_in_cells = True
        elif name == "xf" and self._is_in_cells:
            if _integer(attributes.get("numFmtId", "")) in self._formats:
                self.dates.append(self._number)
            self._number += 1

    def end(self, name: str) -> None:
        if name == "cellXfs":
            self._is_in_cells = False


def _is_date(code: str) -> bool:
    bare = re.sub(r'"[^"]*"|\[[^\]]*\]|\\.', "", code)
    return bool(re.search(r"[ydhs]|m", bare, re.IGNORECASE)) and not re.search(r"[#?]|General", bare)


class Sheet(Listening):
    """Rows, a line each."""

    def __init__(self, strings: list[str], dates: frozenset[int], starts_1904: bool) -> None:
        super().__init__()
        self._strings = strings
        self._dates = dates
        self._epoch = datetime(1904, 1, 1) if starts_1904 else datetime(1899, 12, 30)
        self._cells: list[str] = []
        self._kind, self._style = "", 0
        self._words: list[str] = []
        self._formula: list[str] = []
        self._heard: list[str] | None = None
        """Where words go; None between the parts of a cell."""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        match name:
            case "row":
                self._cells = []
            case "c":
                self._kind, self._style = attributes.get("t", "n"), _integer(attributes.get("s", ""))
                self._words, self._formula = [], []
                self._pad(attributes.get("r", ""))
            case "v" | "t":
                self._heard = self._words
            case "f":
                self._heard = self._formula

    def end(self, name: str) -> None:
        match name:
            case "v" | "t" | "f":
                self._heard = None
            case "c":
                self._cells.append(self._cell())
            case "row" if any(self._cells):
                self.taken.append(tables.line(self._cells))

    def data(self, words: str) -> None:
        if self._heard is not None:
            self._heard.append(words)

    def _cell(self) -> str:
        """What it shows; the formula where no program has worked it out yet."""
        if self._words or not self._formula:
            return self._value("".join(self._words))
        return f"={''.join(self._formula)}"

    def _pad(self, place: str) -> None:
        letters = place.rstrip("0123456789")
        column = 0
        for letter in letters[:3]:
            column = column * 26 + ord(letter) - 64
        gap = column - 1 - len(self._cells)
        if 0 < gap <= GAP:
            self._cells += [""] * gap

    def _value(self, words: str) -> str:
        if self._kind == "s":
            number = _integer(words)
            return self._strings[number] if 0 <= number < len(self._strings) else ""
        if self._kind == "b":
            return "TRUE" if words == "1" else "FALSE"
        if self._kind == "n" and self._style in self._dates:
            return self._date(words)
        return words

    def _date(self, words: str) -> str:
        try:
            days = float(words)
            moment = self._epoch + timedelta(days=days)
        except (ValueError, OverflowError):
            return words
        moment = (moment + timedelta(milliseconds=500)).replace(microsecond=0)
        if 0 <= days < 1:
            return moment.strftime("%H:%M:%S")
        return moment.strftime("%Y-%m-%d" if moment.time() == datetime.min.time() else "%Y-%m-%d %H:%M:%S")


def _integer(words: str) -> int:
    return int(words) if words.isascii() and words.isdigit() and len(words) < 12 else -1


# ── presentations


def pptx_text(file: BinaryIO, limits: FileLimits) -> Iterator[str]:
    with opened(file, limits) as package:
        main = _main_part(package, "ppt/presentation.xml")
        show = Slides()
        with package.part(main) as part:
            list(heard(part, show))
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
