"""Plain text from Markdown, for titles and previews: keeps the words and drops the markup.

The interface has its own implementation in web/src/lib/markdown/plain.ts; tests/core/plain_text.json checks
both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from html import unescape
from itertools import zip_longest
from typing import assert_never

LONGEST = 4_000
"""Only this many characters of a longer text are read."""

_FENCE = re.compile(
    r"^ {0,3}(`{3,}|~{3,})[^\n]*\n?(.*?)(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.DOTALL | re.MULTILINE
)
_DISPLAY = re.compile(r"^\s*(?:\$\$(.+?)\$\$|\\\[(.+?)\\\])\s*$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]+|$)(.*?)(?:[ \t]+#+)?[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")
_RULE = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
_QUOTE = re.compile(r"^(?: {0,3}> ?)+")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])[ \t]+(?=\S)")
_TABLE_RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)+\|?\s*$|\s*\|\s*:?-+:?\s*\|\s*$")
_ENDED = re.compile(r"[.!?…:;,，。！？：；、؟۔।][\"'”’»)\]]*$")

_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_FORMULA = re.compile(
    r"\\\((.+?)\\\)|\\\[(.+?)\\\]|\$\$(.+?)\$\$|\$(?![\s$\d])((?:\\.|[^$\\\n])*?(?<!\s))\$(?![\w$])"
)
_IMAGE = re.compile(r"!\[([^\]\n]*)\]\([^)\n]*\)")
_LINK = re.compile(r"\[([^\[\]\n]+)\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?:\s+\"[^\"\n]*\")?\)")
_ADDRESS = re.compile(r"<((?:https?://|mailto:)[^\s<>]+)>|(\bhttps?://[^\s<>]+)")
_STARS = re.compile(r"(\*{1,3})(?=[^\s*])(.+?)(?<=[^\s*])\1(?!\*)", re.DOTALL)
_LOW_LINES = re.compile(r"(?<!\w)(_{1,3})(?=[^\s_])(.+?)(?<=[^\s_])\1(?!\w)", re.DOTALL)
_STRUCK = re.compile(r"~~(?=\S)(.+?)(?<=\S)~~", re.DOTALL)

_MARK = "\ue000"
"""Encloses the index of a protected text while markup is removed. A private-use character, so no script has
it."""
_MARKED = re.compile(f"{_MARK}(\\d+){_MARK}")


class _Kind(Enum):
    BLOCK = "block"
    ITEM = "item"
    ROW = "row"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class _Block:
    text: str
    kind: _Kind


def plain_text(markdown: str, limit: int | None = None) -> str:
    """The text on one line without markup, cut between words. Code blocks are left out unless the text has
    nothing else."""
    blocks = list(_blocks(markdown[:LONGEST].replace("\r\n", "\n").replace(_MARK, "")))
    prose = [block for block in blocks if block.kind is not _Kind.CODE]
    return shortened(_join_blocks(prose or blocks), limit)


def shortened(text: str, limit: int | None) -> str:
    """Cuts the text to the limit, between two words if there is a space to cut at."""
    if limit is None or len(text) <= limit:
        return text
    space = text.rfind(" ", 0, limit + 1)
    return text[: space if space > limit // 2 else limit].rstrip(" ,;:.") + "…"


def _blocks(text: str) -> Iterator[_Block]:
    """Splits the text into blocks. Code and formulas come first, because nothing in them is markup."""
    end = 0
    for fence in _FENCE.finditer(text):
        yield from _around_formulas(text[end : fence.start()])
        yield _Block(_one_line(fence[2]), _Kind.CODE)
        end = fence.end()
    yield from _around_formulas(text[end:])


def _around_formulas(text: str) -> Iterator[_Block]:
    end = 0
    for formula in _DISPLAY.finditer(text):
        yield from _paragraphs(text[end : formula.start()].split("\n"))
        yield _Block(_one_line(formula[1] or formula[2]), _Kind.BLOCK)
        end = formula.end()
    yield from _paragraphs(text[end:].split("\n"))


def _paragraphs(lines: list[str]) -> Iterator[_Block]:
    """Splits text without code and formulas into blocks, line by line."""
    pending: list[str] = []
    kind = _Kind.BLOCK

    def flush(next_kind: _Kind = _Kind.BLOCK) -> Iterator[_Block]:
        nonlocal kind
        if pending and (text := _inline("\n".join(pending))):
            yield _Block(text, kind)
        pending.clear()
        kind = next_kind

    for raw_line in lines:
        line = _QUOTE.sub("", raw_line)
        if heading := _HEADING.match(line):
            yield from flush()
            pending.append(heading[1])
            yield from flush()
        elif not line.strip() or _TABLE_RULE.match(line) or _UNDERLINE.match(line) or _RULE.match(line):
            yield from flush()
        elif item := _ITEM.match(line):
            yield from flush(_Kind.ITEM)
            pending.append(line[item.end() :])
        elif line.lstrip().startswith("|"):
            yield from flush(_Kind.ROW)
            pending.append(
                ", ".join(filter(None, (cell.strip() for cell in line.strip().strip("|").split("|"))))
            )
        else:
            pending.append(line)
    yield from flush()


def _inline(text: str) -> str:
    """Removes the inline markup of a block and joins its lines. Code, formulas, escapes and addresses are
    protected first."""
    protected: list[str] = []

    def protect(inner: str) -> str:
        protected.append(inner)
        return f"{_MARK}{len(protected) - 1}{_MARK}"

    text = _CODE.sub(lambda match: protect(match[2].strip()), text)
    text = _FORMULA.sub(lambda match: protect(next(filter(None, match.groups())).strip()), text)
    text = _ESCAPED.sub(lambda match: protect(match[1]), text)
    text = _LINK.sub(r"\1", _IMAGE.sub(lambda match: match[1] or "Image", text))
    text = _ADDRESS.sub(lambda match: protect(match[1] or match[2]), text)
    for pattern, inner in ((_STARS, r"\2"), (_LOW_LINES, r"\2"), (_STRUCK, r"\1")):
        while (stripped := pattern.sub(inner, text)) != text:
            text = stripped
    return _one_line(_restore(unescape(text), protected))


def _restore(text: str, protected: list[str]) -> str:
    """Puts the protected texts back; a protected text may contain the mark of an earlier one."""
    while _MARKED.search(text):
        text = _MARKED.sub(lambda match: protected[int(match[1])], text)
    return text


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _join_blocks(blocks: list[_Block]) -> str:
    """Joins the blocks, ending each like a sentence so that it does not run into the next."""
    pieces = []
    for block, next_block in zip_longest(blocks, blocks[1:]):
        end = "" if next_block is None or _ENDED.search(block.text) else _end(block.kind, next_block.kind)
        pieces.append(block.text + end)
    return " ".join(filter(None, pieces))


def _end(kind: _Kind, next_kind: _Kind) -> str:
    match kind:
        case _Kind.CODE:
            return ""
        case _Kind.ITEM | _Kind.ROW:
            return ";" if next_kind is kind else "."
        case _Kind.BLOCK:
            return "."
        case _:
            assert_never(kind)
