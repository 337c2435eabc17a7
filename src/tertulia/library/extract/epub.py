"""EPUB: the chapters of a book in the order they are read."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import BinaryIO
from urllib.parse import unquote

from tertulia.core.files import FileLimits
from tertulia.library.extract import markup, plain
from tertulia.library.extract.office import Listening, Package, opened
from tertulia.library.extract.outcome import Unreadable


def text(file: BinaryIO, limits: FileLimits) -> Iterator[str]:
    with opened(file, limits) as package:
        for chapter in _chapters(package):
            with package.part(chapter) as part:
                yield from markup.html_text(plain.decoded(plain.read(part)))
            yield "\n"


def _chapters(package: Package) -> list[str]:
    where = Container()
    package.tell("META-INF/container.xml", where)
    if not where.book:
        raise Unreadable("This EPUB is damaged: its table of contents is missing.")
    book = Book()
    package.tell(where.book, book)
    folder = posixpath.dirname(where.book)
    names = (book.items.get(id, "") for id in book.spine)
    places = [posixpath.normpath(posixpath.join(folder, unquote(name))) for name in names if name]
    return [place for place in places if package.has(place)]


class Container(Listening):
    def __init__(self) -> None:
        super().__init__()
        self.book = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "rootfile" and not self.book:
            self.book = attributes.get("full-path", "")


class Book(Listening):
    def __init__(self) -> None:
        super().__init__()
        self.items: dict[str, str] = {}
        self.spine: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "item":
            self.items[attributes.get("id", "")] = attributes.get("href", "")
        elif name == "itemref":
            self.spine.append(attributes.get("idref", ""))
