"""Spreadsheets: their sheets, a row a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from enum import Enum
from typing import BinaryIO

from tertulia.core.files import FileLimits
from tertulia.library.extract import tables
from tertulia.library.extract.office import Listening, Package, opened
from tertulia.library.extract.outcome import Unreadable
from tertulia.library.extract.xml import RELATION, heard

STRINGS_LIMIT = 40 << 20
"""Characters of a workbook's shared strings."""
GAP = 50
"""Empty cells between two that hold something: up to here their columns are kept apart."""


def text(file: BinaryIO, limits: FileLimits) -> Iterator[str]:
    with opened(file, limits) as package:
        main = package.main("xl/workbook.xml")
        book = Workbook()
        package.tell(main, book)
        relations = package.relations(main)
        strings = _shared_strings(package, relations)
        styles = _styles(package)
        for name, id in book.sheets:
            if package.has(relations.get(id, "")):
                yield f"## {name}\n\n"
                with package.part(relations[id]) as part:
                    yield from heard(part, Sheet(strings, styles.times, book.starts_1904))
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
        package.tell(name, strings)
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


def _styles(package: Package) -> Styles:
    styles = Styles()
    if package.has("xl/styles.xml"):
        package.tell("xl/styles.xml", styles)
    return styles


class Time(Enum):
    """What a number of days stands for."""

    MOMENT = "a date, or a time of day"
    SPAN = "so many hours"


class Styles(Listening):
    """Which cell styles show a number as a time."""

    def __init__(self) -> None:
        super().__init__()
        self.times: dict[int, Time] = {}
        moments = (*range(14, 23), *range(27, 37), 45, 47, *range(50, 59))
        self._formats = dict.fromkeys(moments, Time.MOMENT) | {46: Time.SPAN}
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


def _time(code: str) -> Time | None:
    """Hours in brackets go on past a day."""
    said = re.sub(r'"[^"]*"|\\.', "", code)
    bare = re.sub(r"\[[^\]]*\]", "", said)
    if re.search(r"\[[hms]+\]", said, re.IGNORECASE):
        return Time.SPAN
    is_moment = re.search(r"[ydhsm]", bare, re.IGNORECASE) and not re.search(r"[#?]|General", bare)
    return Time.MOMENT if is_moment else None


class Sheet(Listening):
    """Rows, a line each."""

    def __init__(self, strings: list[str], times: dict[int, Time], starts_1904: bool) -> None:
        super().__init__()
        self._strings = strings
        self._times = times
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
        if self._kind == "n" and self._style in self._times:
            return self._shown(words, self._times[self._style])
        return words

    def _shown(self, words: str, time: Time) -> str:
        try:
            days = timedelta(days=float(words), milliseconds=500)
            return _hours(days) if time is Time.SPAN else self._moment(days)
        except (ValueError, OverflowError):
            return words

    def _moment(self, days: timedelta) -> str:
        moment = (self._epoch + days).replace(microsecond=0)
        if timedelta() <= days < timedelta(days=1):
            return moment.strftime("%H:%M:%S")
        return moment.strftime("%Y-%m-%d" if moment.time() == datetime.min.time() else "%Y-%m-%d %H:%M:%S")


def _hours(span: timedelta) -> str:
    minutes, seconds = divmod(int(span.total_seconds()), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"


def _integer(words: str) -> int:
    return int(words) if words.isascii() and words.isdigit() and len(words) < 12 else -1
