"""Office files: archives of XML parts that refer to each other, opened once they are known to be harmless."""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from tertulia.core.files import FileLimits
from tertulia.library import zips
from tertulia.library.extract.outcome import Unreadable
from tertulia.library.extract.xml import Listener, heard


class Package:
    """An office file: parts by name, and how one refers to others."""

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

    def tell(self, name: str, listener: Listener) -> None:
        """Lets one who only takes note hear a part to its end."""
        with self.part(name) as file:
            for _ in heard(file, listener):
                pass

    def relations(self, name: str) -> dict[str, str]:
        """Of a part, or of the whole file: the names of those it refers to, by the id it calls them."""
        folder, _, file = name.rpartition("/")
        listed = posixpath.join(folder, "_rels", f"{file}.rels")
        if not self.has(listed):
            return {}
        found = Relations(folder)
        self.tell(listed, found)
        return found.targets

    def main(self, usual: str) -> str:
        """Where the file says its content is; most say the usual place, some programs name another."""
        if self.has(usual):
            return usual
        folder = usual.partition("/")[0]
        targets = self.relations("").values()
        return next((name for name in targets if name.startswith(f"{folder}/") and self.has(name)), usual)


@contextmanager
def opened(file: BinaryIO, limits: FileLimits) -> Iterator[Package]:
    """The archive, once it is known to be harmless."""
    try:
        zips.must_be_harmless(file, limits)
        with zipfile.ZipFile(file) as archive:
            yield Package(archive)
    except zips.Harmful as harm:
        raise Unreadable(f"This file was not opened. {harm}") from None
    except (zips.NotAZip, zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, NotImplementedError) as error:
        raise Unreadable(f"This file is damaged ({error or 'its table of contents is missing'}).") from None
    except RuntimeError as error:  # zipfile says so of an encrypted part
        raise Unreadable(f"This file is locked ({error}).") from None


class Listening:
    """Hears everything and takes nothing from it."""

    def __init__(self) -> None:
        self.taken: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None: ...
    def end(self, name: str) -> None: ...
    def data(self, words: str) -> None: ...

    def take(self) -> list[str]:
        done, self.taken = self.taken, []
        return done


class Relations(Listening):
    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder
        self.targets: dict[str, str] = {}

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "Relationship" and attributes.get("TargetMode") != "External":
            target = posixpath.join("/" + self._folder, attributes.get("Target", ""))
            self.targets[attributes.get("Id", "")] = posixpath.normpath(target).lstrip("/")
