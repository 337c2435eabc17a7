"""EPUB text extraction: the chapters of a book in reading order."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import BinaryIO
from urllib.parse import unquote

from tertulia.core.files import FileLimits
from tertulia.library.extract import html, plain_text
from tertulia.library.extract.errors import Unreadable
from tertulia.library.extract.ooxml import Package, XmlHandler, opened


def text(file: BinaryIO, limits: FileLimits) -> Iterator[str]:
    with opened(file, limits) as package:
        for chapter in _chapters(package):
            with package.part(chapter) as part:
                yield from html.html_text(plain_text.decoded(plain_text.read(part)))
            yield "\n"


def _chapters(package: Package) -> list[str]:
    container = ContainerParser()
    package.parse_part("META-INF/container.xml", container)
    if not container.book_path:
        raise Unreadable("This EPUB is damaged: its table of contents is missing.")
    book = BookParser()
    package.parse_part(container.book_path, book)
    folder = posixpath.dirname(container.book_path)
    names = (book.items.get(id, "") for id in book.spine)
    paths = [posixpath.normpath(posixpath.join(folder, unquote(name))) for name in names if name]
    return [path for path in paths if package.has(path)]


class ContainerParser(XmlHandler):
    """Finds the path of the book's package document in META-INF/container.xml."""

    def __init__(self) -> None:
        super().__init__()
        self.book_path = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "rootfile" and not self.book_path:
            self.book_path = attributes.get("full-path", "")


class BookParser(XmlHandler):
    """Reads the package document: the path of each item by its id, and the ids in reading order."""

    def __init__(self) -> None:
        super().__init__()
        self.items: dict[str, str] = {}
        self.spine: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "item":
            self.items[attributes.get("id", "")] = attributes.get("href", "")
        elif name == "itemref":
            self.spine.append(attributes.get("idref", ""))
