"""Office Open XML packages: zip archives of XML parts that refer to each other. EPUB uses the same reader.

An archive is opened only after its table of contents has passed the zip bomb check.
"""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from tertulia.core.files import FileLimits
from tertulia.library import zip_safety
from tertulia.library.extract.errors import Unreadable
from tertulia.library.extract.sax import XmlListener, parse_xml


class Package:
    """An office file: its parts by name, and the relations between them."""

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

    def parse_part(self, name: str, listener: XmlListener) -> None:
        """Parses a whole part for a handler that yields no text but stores what it needs."""
        with self.part(name) as file:
            for _ in parse_xml(file, listener):
                pass

    def relations(self, name: str) -> dict[str, str]:
        """The parts that a part refers to, by relation id. An empty name stands for the whole package."""
        folder, _, file = name.rpartition("/")
        rels_name = posixpath.join(folder, "_rels", f"{file}.rels")
        if not self.has(rels_name):
            return {}
        relations = RelationsParser(folder)
        self.parse_part(rels_name, relations)
        return relations.targets

    def main(self, usual: str) -> str:
        """The name of the main part: the usual name, else the one that the package's relations give."""
        if self.has(usual):
            return usual
        folder = usual.partition("/")[0]
        targets = self.relations("").values()
        return next((name for name in targets if name.startswith(f"{folder}/") and self.has(name)), usual)


@contextmanager
def opened(file: BinaryIO, limits: FileLimits) -> Iterator[Package]:
    """Opens a package after the zip bomb check; raises Unreadable if it is unsafe, damaged or encrypted."""
    try:
        zip_safety.must_be_safe(file, limits)
        with zipfile.ZipFile(file) as archive:
            yield Package(archive)
    except zip_safety.UnsafeArchive as error:
        raise Unreadable(f"This file was not opened. {error}") from None
    except (
        zip_safety.BadArchive,
        zipfile.BadZipFile,
        zipfile.LargeZipFile,
        EOFError,
        NotImplementedError,
    ) as error:
        raise Unreadable(f"This file is damaged ({error or 'its table of contents is missing'}).") from None
    except RuntimeError as error:  # zipfile raises it for an encrypted part
        raise Unreadable(f"This file is locked ({error}).") from None


class XmlHandler:
    """Base class of XML handlers: ignores every event.

    Subclasses append the text they extract to the list.
    """

    def __init__(self) -> None:
        self.taken: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None: ...
    def end(self, name: str) -> None: ...
    def data(self, text: str) -> None: ...

    def take(self) -> list[str]:
        """Returns the text that was extracted since the last call."""
        texts, self.taken = self.taken, []
        return texts


class RelationsParser(XmlHandler):
    """Reads the relations of a part, without those to external targets."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder
        self.targets: dict[str, str] = {}

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "Relationship" and attributes.get("TargetMode") != "External":
            target = posixpath.join("/" + self._folder, attributes.get("Target", ""))
            self.targets[attributes.get("Id", "")] = posixpath.normpath(target).lstrip("/")
