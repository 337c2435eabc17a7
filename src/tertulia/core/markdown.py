"""Plain text from Markdown, for titles and previews: the words without the marks they were set by.

The interface does the same with its own reader, in web/src/lib/markdown/plain.ts; both keep to the cases in
tests/core/plain_text.json.
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
"""Of a longer text only the beginning is read."""

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

_KEPT = "\ue000"
"""Stands before the number of what is kept as it is, while marks are looked for; no letter of any script."""
_PLACE = re.compile(f"{_KEPT}(\\d+){_KEPT}")


class _Kind(Enum):
    BLOCK = "block"
    ITEM = "item"
    ROW = "row"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class _Block:
    text: str
    kind: _Kind


def plain_text(markdown: str, most: int | None = None) -> str:
    """One line of plain text, cut between words. Programs are left out unless there is nothing else."""
    blocks = list(_blocks(markdown[:LONGEST].replace("\r\n", "\n").replace(_KEPT, "")))
    words = [block for block in blocks if block.kind is not _Kind.CODE]
    return shortened(_in_one_line(words or blocks), most)


def shortened(text: str, most: int | None) -> str:
    """Cut between words where there is a space to cut at."""
    if most is None or len(text) <= most:
        return text
    space = text.rfind(" ", 0, most + 1)
    return text[: space if space > most // 2 else most].rstrip(" ,;:.") + "…"


def _blocks(text: str) -> Iterator[_Block]:
    """Programs and formulas first: nothing in them is a mark."""
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
    """Line by line: what begins a block of its own, and what goes on with the one before."""
    held: list[str] = []
    kind = _Kind.BLOCK

    def flushed(next_kind: _Kind = _Kind.BLOCK) -> Iterator[_Block]:
        nonlocal kind
        if held and (text := _inline("\n".join(held))):
            yield _Block(text, kind)
        held.clear()
        kind = next_kind

    for written in lines:
        line = _QUOTE.sub("", written)
        if heading := _HEADING.match(line):
            yield from flushed()
            held.append(heading[1])
            yield from flushed()
        elif not line.strip() or _TABLE_RULE.match(line) or _UNDERLINE.match(line) or _RULE.match(line):
            yield from flushed()
        elif item := _ITEM.match(line):
            yield from flushed(_Kind.ITEM)
            held.append(line[item.end() :])
        elif line.lstrip().startswith("|"):
            yield from flushed(_Kind.ROW)
            held.append(
                ", ".join(filter(None, (cell.strip() for cell in line.strip().strip("|").split("|"))))
            )
        else:
            held.append(line)
    yield from flushed()


def _inline(text: str) -> str:
    """The words of a block on one line."""
    kept: list[str] = []

    def keep(words: str) -> str:
        kept.append(words)
        return f"{_KEPT}{len(kept) - 1}{_KEPT}"

    text = _CODE.sub(lambda found: keep(found[2].strip()), text)
    text = _FORMULA.sub(lambda found: keep(next(filter(None, found.groups())).strip()), text)
    text = _ESCAPED.sub(lambda found: keep(found[1]), text)
    text = _LINK.sub(r"\1", _IMAGE.sub(lambda found: found[1] or "Image", text))
    text = _ADDRESS.sub(lambda found: keep(found[1] or found[2]), text)
    for mark, words in ((_STARS, r"\2"), (_LOW_LINES, r"\2"), (_STRUCK, r"\1")):
        while (without := mark.sub(words, text)) != text:
            text = without
    return _one_line(_restored(unescape(text), kept))


def _restored(text: str, kept: list[str]) -> str:
    """What was kept may hold places of what was kept before it."""
    while _PLACE.search(text):
        text = _PLACE.sub(lambda found: kept[int(found[1])], text)
    return text


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _in_one_line(blocks: list[_Block]) -> str:
    """Each block ends as a sentence, so that it does not run into the next."""
    pieces = []
    for block, after in zip_longest(blocks, blocks[1:]):
        end = "" if after is None or _ENDED.search(block.text) else _end(block.kind, after.kind)
        pieces.append(block.text + end)
    return " ".join(filter(None, pieces))


def _end(kind: _Kind, after: _Kind) -> str:
    match kind:
        case _Kind.CODE:
            return ""
        case _Kind.ITEM | _Kind.ROW:
            return ";" if after is kind else "."
        case _Kind.BLOCK:
            return "."
        case _:
            assert_never(kind)
