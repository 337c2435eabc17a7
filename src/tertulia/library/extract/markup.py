"""HTML as text: headings, lists, tables and code keep their shape; scripts and styles are left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import BinaryIO

from tertulia.library.extract import plain

_SKIPPED = frozenset({"script", "style", "noscript", "template", "svg", "math", "iframe", "object", "head"})
_IN_HEAD = frozenset({"title", "meta", "link", "base", "script", "style", "noscript", "template"})
"""Anything else ends a page's head, whether that says so or not."""
_BLOCKS = frozenset(
    {"address", "article", "aside", "blockquote", "body", "dd", "details", "div", "dl", "dt", "fieldset"}
    | {"figcaption", "figure", "footer", "form", "header", "hr", "main", "nav", "ol", "p", "section"}
    | {"summary", "table", "tbody", "thead", "title", "tr", "ul"}
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
        self._line: list[str] = []
        """In pieces: a paragraph may be written in a million of them."""
        self._prefix = ""
        self._skipping: list[str] = []
        self._pre = 0
        self._blank = True
        """The last thing written was an empty line, or nothing."""

    def take(self) -> str:
        done, self._out = "".join(self._out), []
        return done

    def break_line(self) -> None:
        whole = "".join(self._line)
        line = whole.rstrip() if self._pre else whole.strip()
        if line:
            self._out.append(f"{self._prefix}{line}\n")
            self._blank = False
            self._prefix = ""
        self._line = []

    def _paragraph(self) -> None:
        self.break_line()
        if not self._blank:
            self._out.append("\n")
            self._blank = True

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._skipping == ["head"] and tag not in _IN_HEAD:
            self._skipping.clear()
        if tag == "title" and self._skipping == ["head"]:
            self._skipping.append(tag)
        elif tag in _SKIPPED or self._skipping:
            if tag not in _VOID:
                self._skipping.append(tag)
        else:
            self._begin(tag, attrs)

    def _begin(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
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
            self._line += [" | "] if self._line else []
        elif tag in ("br", "tr"):
            self.break_line()
        elif tag == "img":
            self._line += [f" {value} " for name, value in attrs if name == "alt" and value]
        elif tag in _BLOCKS:
            self._paragraph()

    def handle_endtag(self, tag: str) -> None:
        if self._skipping:
            self._leave(tag)
        elif tag == "pre" and self._pre:
            self.break_line()
            self._pre -= 1
            self._paragraph()
        elif tag in _HEADINGS or (tag in _BLOCKS and tag != "tr"):
            self._paragraph()
        elif tag in ("li", "tr"):
            self.break_line()

    def _leave(self, tag: str) -> None:
        """An end that was never begun ends nothing; one further out ends all within."""
        if tag in self._skipping[-50:]:
            while self._skipping.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self._skipping == ["head"] and data.strip():
            self._skipping.clear()
        if self._skipping:
            if self._skipping == ["head", "title"] and data.strip():
                self._out.append(f"# {_SPACE.sub(' ', data).strip()}\n\n")
        elif self._pre:
            self._as_it_is(data)
        else:
            self._flowing(_SPACE.sub(" ", data))

    def _as_it_is(self, data: str) -> None:
        *lines, rest = data.split("\n")
        for line in lines:
            self._out.append(f"{''.join(self._line)}{line}".rstrip() + "\n")
            self._line = []
        self._blank = self._blank and not lines
        self._line.append(rest)

    def _flowing(self, words: str) -> None:
        if not self._line or self._line[-1].endswith(" "):
            words = words.lstrip()
        if words:
            self._line.append(words)
