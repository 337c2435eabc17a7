"""HTML as text: headings, lists, tables and code keep their shape; scripts and styles are left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import BinaryIO

from tertulia.library.extract import plain

_SKIPPED = frozenset({"script", "style", "noscript", "template", "svg", "math", "iframe", "object", "head"})
_BLOCKS = frozenset(
    {"p", "div", "section", "article", "main", "header", "footer", "nav", "aside", "ul", "ol", "dl", "dt"}
    | {
        "dd",
        "table",
        "thead",
        "tbody",
        "tr",
        "blockquote",
        "figure",
        "figcaption",
        "form",
        "fieldset",
        "body",
    }
    | {"address", "details", "summary", "hr", "title"}
)
_VOID = frozenset(
    {"br", "hr", "img", "input", "meta", "link", "col", "area", "base", "source", "track", "wbr"}
)
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_SPACE = re.compile(r"[ \t\n\r\f\v\u00a0]+")
_STEP = 64 << 10


def text(file: BinaryIO) -> Iterator[str]:
    yield from html_text(plain.decoded(plain.read(file)))
    plain.must_be_all(file)


def html_text(written: str) -> Iterator[str]:
    reader = Reader()
    for start in range(0, len(written), _STEP):
        reader.feed(written[start : start + _STEP])
        yield reader.take()
    reader.close()
    reader.break_line()
    yield reader.take()


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._out: list[str] = []
        self._line = ""
        self._prefix = ""
        self._skipping: list[str] = []
        self._pre = 0
        self._blank = True
        """The last thing written was an empty line, or nothing."""

    def take(self) -> str:
        done, self._out = "".join(self._out), []
        return done

    def break_line(self) -> None:
        line = self._line.rstrip() if self._pre else self._line.strip()
        if line:
            self._out.append(f"{self._prefix}{line}\n")
            self._blank = False
            self._prefix = ""
        self._line = ""

    def _paragraph(self) -> None:
        self.break_line()
        if not self._blank:
            self._out.append("\n")
            self._blank = True

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title" and self._skipping == ["head"]:
            self._skipping.append(tag)
            return
        if tag in _SKIPPED or self._skipping:
            if tag not in _VOID:
                self._skipping.append(tag)
            return
        if tag in _HEADINGS:
            self._paragraph()
            self._prefix = _HEADINGS[tag]
        elif tag == "li":
            self.break_line()
            self._prefix = "- "
        elif tag == "pre":
            self._paragraph()
            self._pre += 1
        elif tag in ("td", "th"):
            self._line += " | " if self._line.strip() else ""
        elif tag == "br":
            self._line = self._line if self._pre else self._line.rstrip()
            self.break_line()
        elif tag == "tr":
            self.break_line()
        elif tag == "img":
            self._line += next((f" {value} " for name, value in attrs if name == "alt" and value), "")
        elif tag in _BLOCKS:
            self._paragraph()

    def handle_endtag(self, tag: str) -> None:
        if self._skipping:
            self._leave(tag)
        elif tag == "pre" and self._pre:
            self.break_line()
            self._pre -= 1
            self._paragraph()
        elif tag in _HEADINGS or tag in _BLOCKS - {"tr"}:
            self._paragraph()
        elif tag in ("li", "tr"):
            self.break_line()

    def _leave(self, tag: str) -> None:
        """An end that was never begun ends nothing; one further out ends all within."""
        if tag in self._skipping[-50:]:
            while self._skipping.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self._skipping:
            if self._skipping == ["head", "title"] and data.strip():
                self._out.append(f"# {_SPACE.sub(' ', data).strip()}\n\n")
            return
        if self._pre:
            *lines, rest = data.split("\n")
            for line in lines:
                self._out.append(f"{self._line}{line}".rstrip() + "\n")
                self._line = ""
            self._blank = self._blank and not lines
            self._line += rest
            return
        words = _SPACE.sub(" ", data)
        self._line += words.lstrip() if not self._line or self._line.endswith(" ") else words
