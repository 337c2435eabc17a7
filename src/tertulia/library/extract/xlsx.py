"""XLSX text extraction: the sheets of a workbook, one line per row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from enum import Enum
from typing import BinaryIO

from tertulia.core.files import FileLimits
from tertulia.library.extract import csv_text
from tertulia.library.extract.errors import Unreadable
from tertulia.library.extract.ooxml import Package, XmlHandler, opened
from tertulia.library.extract.sax import RELATION, parse_xml

STRINGS_LIMIT = 40 << 20
"""The maximum number of characters in a workbook's shared strings."""
GAP = 50
"""At most this many empty cells in a row are kept; longer gaps are closed."""


def text(file: BinaryIO, limits: FileLimits) -> Iterator[str]:
    with opened(file, limits) as package:
        main = package.main("xl/workbook.xml")
        book = WorkbookParser()
        package.parse_part(main, book)
        relations = package.relations(main)
        strings = _shared_strings(package, relations)
        styles = _styles(package)
        for name, id in book.sheets:
            if package.has(relations.get(id, "")):
                yield f"## {name}\n\n"
                with package.part(relations[id]) as part:
                    yield from parse_xml(part, SheetParser(strings, styles.times, book.uses_1904_dates))
                yield "\n"


class WorkbookParser(XmlHandler):
    """Reads the names of the sheets, the ids of their parts and the date system of a workbook."""

    def __init__(self) -> None:
        super().__init__()
        self.sheets: list[tuple[str, str]] = []
        self.uses_1904_dates = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "sheet":
            self.sheets.append((attributes.get("name", ""), attributes.get(RELATION, "")))
        elif name == "workbookPr":
            self.uses_1904_dates = attributes.get("date1904") in ("1", "true")


def _shared_strings(package: Package, relations: dict[str, str]) -> list[str]:
    name = next((path for path in relations.values() if path.lower().endswith("sharedstrings.xml")), "")
    strings = StringsParser()
    if name and package.has(name):
        package.parse_part(name, strings)
    return strings.found


class StringsParser(XmlHandler):
    """Reads the shared strings, the texts that cells refer to by number."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._text_parts: list[str] = []
        self._size = 0
        self._in_text = self._in_phonetic = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "si":
            self._text_parts = []
        elif name == "rPh":  # the pronunciation of the text
            self._in_phonetic = True
        elif name == "t":
            self._in_text = not self._in_phonetic

    def end(self, name: str) -> None:
        if name == "t":
            self._in_text = False
        elif name == "rPh":
            self._in_phonetic = False
        elif name == "si":
            self.found.append("".join(self._text_parts))

    def data(self, text: str) -> None:
        if self._in_text:
            self._text_parts.append(text)
            self._size += len(text)
            if self._size > STRINGS_LIMIT:
                raise Unreadable("This spreadsheet holds more text than can be read.")


def _styles(package: Package) -> StylesParser:
    styles = StylesParser()
    if package.has("xl/styles.xml"):
        package.parse_part("xl/styles.xml", styles)
    return styles


class TimeFormat(Enum):
    """How a number of days is displayed."""

    MOMENT = "a date, or a time of day"
    SPAN = "so many hours"


class StylesParser(XmlHandler):
    """Finds the cell styles that display a number as a date or a time."""

    def __init__(self) -> None:
        super().__init__()
        self.times: dict[int, TimeFormat] = {}
        moments = (*range(14, 23), *range(27, 37), 45, 47, *range(50, 59))
        self._formats = dict.fromkeys(moments, TimeFormat.MOMENT) | {46: TimeFormat.SPAN}
        self._is_in_cells = False
        self._number = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        id = _integer(attributes.get("numFmtId", ""))
        if name == "numFmt" and (time := _time(attributes.get("formatCode", ""))):
            self._formats[id] = time
        elif name == "cellXfs":
            self._is_in_cells = True
        elif name == "xf" and self._is_in_cells:
            if id in self._formats:
                self.times[self._number] = self._formats[id]
            self._number += 1

    def end(self, name: str) -> None:
        if name == "cellXfs":
            self._is_in_cells = False


def _time(code: str) -> TimeFormat | None:
    """The kind of time that a number format shows, such as a date or a duration ([h]); None for a number."""
    unquoted = re.sub(r'"[^"]*"|\\.', "", code)
    unbracketed = re.sub(r"\[[^\]]*\]", "", unquoted)
    if re.search(r"\[[hms]+\]", unquoted, re.IGNORECASE):
        return TimeFormat.SPAN
    is_moment = re.search(r"[ydhsm]", unbracketed, re.IGNORECASE) and not re.search(
        r"[#?]|General", unbracketed
    )
    return TimeFormat.MOMENT if is_moment else None


class SheetParser(XmlHandler):
    """Turns the rows of a sheet into lines of text."""

    def __init__(self, strings: list[str], times: dict[int, TimeFormat], uses_1904_dates: bool) -> None:
        super().__init__()
        self._strings = strings
        self._times = times
        self._epoch = datetime(1904, 1, 1) if uses_1904_dates else datetime(1899, 12, 30)
        self._cells: list[str] = []
        self._kind, self._style = "", 0
        self._text_parts: list[str] = []
        self._formula: list[str] = []
        self._target: list[str] | None = None
        """The list that receives character data; None outside of a value or a formula."""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        match name:
            case "row":
                self._cells = []
            case "c":
                self._kind, self._style = attributes.get("t", "n"), _integer(attributes.get("s", ""))
                self._text_parts, self._formula = [], []
                self._pad(attributes.get("r", ""))
            case "v" | "t":
                self._target = self._text_parts
            case "f":
                self._target = self._formula

    def end(self, name: str) -> None:
        match name:
            case "v" | "t" | "f":
                self._target = None
            case "c":
                self._cells.append(self._cell())
            case "row" if any(self._cells):
                self.taken.append(csv_text.line(self._cells))

    def data(self, text: str) -> None:
        if self._target is not None:
            self._target.append(text)

    def _cell(self) -> str:
        """The displayed value; the formula if no program has computed its value yet."""
        if self._text_parts or not self._formula:
            return self._value("".join(self._text_parts))
        return f"={''.join(self._formula)}"

    def _pad(self, reference: str) -> None:
        """Adds empty cells up to the column of a cell reference such as C7."""
        letters = reference.rstrip("0123456789")
        column = 0
        for letter in letters[:3]:
            column = column * 26 + ord(letter) - 64
        gap = column - 1 - len(self._cells)
        if 0 < gap <= GAP:
            self._cells += [""] * gap

    def _value(self, text: str) -> str:
        if self._kind == "s":
            number = _integer(text)
            return self._strings[number] if 0 <= number < len(self._strings) else ""
        if self._kind == "b":
            return "TRUE" if text == "1" else "FALSE"
        if self._kind == "n" and self._style in self._times:
            return self._displayed(text, self._times[self._style])
        return text

    def _displayed(self, text: str, time: TimeFormat) -> str:
        try:
            days = timedelta(days=float(text), milliseconds=500)
            return _hours(days) if time is TimeFormat.SPAN else self._moment(days)
        except (ValueError, OverflowError):
            return text

    def _moment(self, days: timedelta) -> str:
        moment = (self._epoch + days).replace(microsecond=0)
        if timedelta() <= days < timedelta(days=1):
            return moment.strftime("%H:%M:%S")
        return moment.strftime("%Y-%m-%d" if moment.time() == datetime.min.time() else "%Y-%m-%d %H:%M:%S")


def _hours(span: timedelta) -> str:
    minutes, seconds = divmod(int(span.total_seconds()), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"


def _integer(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else -1
