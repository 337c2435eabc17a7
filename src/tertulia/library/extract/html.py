"""HTML text extraction: keeps the layout of headings, lists, tables and code; drops scripts and styles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import BinaryIO

from tertulia.library.extract import plain_text

_SKIPPED = frozenset({"script", "style", "noscript", "template", "svg", "math", "iframe", "object", "head"})
_IN_HEAD = frozenset({"title", "meta", "link", "base", "script", "style", "noscript", "template"})
"""Any other element ends the head of a page, even without a closing tag."""
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
    yield from html_text(plain_text.decoded(plain_text.read(file)))
    plain_text.must_be_all(file)


def html_text(html: str) -> Iterator[str]:
    parser = HtmlTextParser()
    for start in range(0, len(html), _STEP):
        parser.feed(html[start : start + _STEP])
        yield parser.drain()
    parser.close()
    parser.break_line()
    yield parser.drain()


class HtmlTextParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._out: list[str] = []
        self._line: list[str] = []
        """The parts of the current line, not joined: a paragraph may arrive in a million parts."""
        self._prefix = ""
        self._skipping: list[str] = []
        """The open elements whose content is dropped, outermost first."""
        self._pre = 0
        """How many <pre> elements are open."""
        self._blank = True
        """True if the output ends with an empty line, or is empty."""

    def drain(self) -> str:
        """Returns the text that was parsed since the last call."""
        text, self._out = "".join(self._out), []
        return text

    def break_line(self) -> None:
        joined = "".join(self._line)
        line = joined.rstrip() if self._pre else joined.strip()
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
            self._open_tag(tag, attrs)

    def _open_tag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
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
            self._close_skipped(tag)
        elif tag == "pre" and self._pre:
            self.break_line()
            self._pre -= 1
            self._paragraph()
        elif tag in _HEADINGS or (tag in _BLOCKS and tag != "tr"):
            self._paragraph()
        elif tag in ("li", "tr"):
            self.break_line()

    def _close_skipped(self, tag: str) -> None:
        """Closes a skipped element and all elements inside it.

        A closing tag without an opening tag is ignored.
        """
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
            self._add_preformatted(data)
        else:
            self._add_flowing(_SPACE.sub(" ", data))

    def _add_preformatted(self, data: str) -> None:
        *lines, rest = data.split("\n")
        for line in lines:
            self._out.append(f"{''.join(self._line)}{line}".rstrip() + "\n")
            self._line = []
        self._blank = self._blank and not lines
        self._line.append(rest)

    def _add_flowing(self, text: str) -> None:
        if not self._line or self._line[-1].endswith(" "):
            text = text.lstrip()
        if text:
            self._line.append(text)
