"""Tasks of the worker process: extract text, unpack an archive, compare two texts."""

from __future__ import annotations

import difflib
import itertools
import lzma
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO

from tertulia.core.files import FileLimits
from tertulia.library import zip_safety
from tertulia.library.extract import extract
from tertulia.library.extract.frames import Frame, send, send_json
from tertulia.library.extract.zip_names import named

BLOCK = 256 << 10
CONTEXT_LINES = 3


def text(pipe: int, files: Sequence[BinaryIO], mime_type: str, limits: FileLimits) -> None:
    extracted = extract(files[0], mime_type, limits)
    if extracted.text:
        send(pipe, Frame.TEXT, extracted.text.encode())
    send_json(pipe, Frame.OUTCOME, {"reason": extracted.reason, "has_failed": extracted.has_failed})


# ── unpacking


def unzip(pipe: int, files: Sequence[BinaryIO], mime_type: str, limits: FileLimits) -> None:
    """Sends every file of an archive. Links, devices and folders are left out; inner archives stay packed."""
    reason = None
    try:
        zip_safety.must_be_safe(files[0], limits)
        with zipfile.ZipFile(files[0]) as archive:
            _send_all(pipe, archive)
    except zip_safety.UnsafeArchive as error:
        reason = f"This archive was not unpacked. {error}"
    except (zip_safety.BadArchive, zipfile.BadZipFile, zipfile.LargeZipFile):
        reason = "This is no zip archive, or it is damaged."
    send_json(pipe, Frame.OUTCOME, {"reason": reason, "has_failed": reason is not None})


def _send_all(pipe: int, archive: zipfile.ZipFile) -> None:
    entries = named(entry for entry in archive.infolist() if _is_file(entry))
    send_json(pipe, Frame.CONTENTS, {"size_bytes": sum(entry.file_size for _, entry in entries)})
    for path, entry in entries:
        send_json(pipe, Frame.ENTRY, {"path": path})
        if reason := _send_entry(pipe, archive, entry):
            send_json(pipe, Frame.SPOILT, {"reason": reason})


def _is_file(entry: zipfile.ZipInfo) -> bool:
    kind = stat.S_IFMT(entry.external_attr >> 16)
    is_litter = entry.filename.startswith("__MACOSX/") or entry.filename.endswith("/.DS_Store")
    return not entry.is_dir() and kind in (0, stat.S_IFREG) and not is_litter


def _send_entry(pipe: int, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> str | None:
    """Sends the bytes of an entry; returns why it cannot be unpacked, or None.

    zipfile reads no more bytes than the table of contents states.
    """
    try:
        with archive.open(entry) as file:
            while block := file.read(BLOCK):
                send(pipe, Frame.DATA, block)
    except RuntimeError as error:  # zipfile raises it for an encrypted entry
        return "It is locked with a password." if "password" in str(error) else "It cannot be unpacked."
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, OSError):
        return "It is damaged, or packed in a way that cannot be read."
    return None


# ── comparing


def diff(pipe: int, files: Sequence[BinaryIO], mime_type: str, limits: FileLimits) -> None:
    """Sends the unified diff of two texts, up to the limit of bytes."""
    before, after = (_lines(file.read().decode()) for file in files)
    changes = difflib.unified_diff(before, after, lineterm="", n=CONTEXT_LINES)
    bytes_left = limits.compare_bytes
    for lines in _batches(itertools.islice(changes, 2, None)):  # without the two lines of file names
        bytes_left -= len(lines.encode())
        if bytes_left < 0:
            break
        send(pipe, Frame.TEXT, lines.encode())
    send_json(pipe, Frame.OUTCOME, {"reason": None, "has_failed": bytes_left < 0})


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _batches(lines: Iterator[str]) -> Iterator[str]:
    while batch := "".join(line + "\n" for line in itertools.islice(lines, 1000)):
        yield batch


Task = Callable[[int, Sequence[BinaryIO], str, FileLimits], None]
TASKS: dict[str, Task] = {"text": text, "unzip": unzip, "diff": diff}
