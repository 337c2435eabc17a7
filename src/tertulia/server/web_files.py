"""Web files: serves the built interface from memory, compressed, with its content security policy."""

from __future__ import annotations

import hashlib
import mimetypes
import re
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from tertulia.server.errors import body

FOREVER = "public, max-age=31536000, immutable"
_SCRIPT = re.compile(rb"<script(?![^>]*\bsrc=)[^>]*>(.+?)</script>", re.DOTALL)
_ENCODINGS = (("br", ".br"), ("gzip", ".gz"))


@dataclass(frozen=True, slots=True)
class BuiltFile:
    body: bytes
    media_type: str
    etag: str
    compressed: tuple[tuple[str, bytes], ...]
    cache: str


class WebFiles:
    """All files of the built interface, in memory, since they are few and small."""

    def __init__(self, folder: Path | None) -> None:
        self._files, self._reason = _load(folder)
        self._index = self._files.get("/index.html")

    @property
    def policy(self) -> str:
        """The content security policy: this origin only, and inline scripts by their hashes."""
        inline = _SCRIPT.findall(self._index.body) if self._index else []
        hashes = "".join(
            f" 'sha256-{b64encode(hashlib.sha256(script).digest()).decode()}'" for script in inline
        )
        return (
            f"default-src 'none'; script-src 'self'{hashes}; style-src 'self'; img-src 'self' data: blob:; "
            "font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; "
            "frame-ancestors 'none'; require-trusted-types-for 'script'; "
            "trusted-types svelte-trusted-html tertulia"
        )

    async def get(self, request: Request) -> Response:
        """The file at this path. Any other path is a page, for which the interface has its own router."""
        path = request.url.path
        file = self._files.get(path)
        if file is None:
            if path.startswith(("/api/", "/_app/", "/v1/")) or "." in path.rsplit("/", 1)[-1]:
                return body(404, "not_found", "There is nothing at this address.")
            file = self._index
        if file is None:
            return body(503, "no_interface", self._reason)
        return _respond(request, file)


NOT_BUILT = "The interface is not built. Run `make web`, then start again."
BEING_BUILT = "The interface was being built when the server started. Start the server again."


def _load(folder: Path | None) -> tuple[dict[str, BuiltFile], str]:
    """All files or none, and the message to show if there are none."""
    if folder is None:
        return {}, NOT_BUILT
    try:
        return _read_all(folder), NOT_BUILT
    except FileNotFoundError:
        return {}, BEING_BUILT


def _read_all(folder: Path) -> dict[str, BuiltFile]:
    paths = [path for path in folder.rglob("*") if path.is_file() and path.suffix not in (".br", ".gz")]
    return {"/" + path.relative_to(folder).as_posix(): _file(path) for path in paths}


def _file(path: Path) -> BuiltFile:
    content = path.read_bytes()
    siblings = [(name, path.with_name(path.name + suffix)) for name, suffix in _ENCODINGS]
    return BuiltFile(
        content,
        mimetypes.guess_type(path.name)[0] or "application/octet-stream",
        f'"{hashlib.sha256(content).hexdigest()[:32]}"',
        tuple((name, sibling.read_bytes()) for name, sibling in siblings if sibling.exists()),
        FOREVER if "immutable" in path.parts else "no-cache",
    )


def _respond(request: Request, file: BuiltFile) -> Response:
    headers = {"ETag": file.etag, "Cache-Control": file.cache, "Vary": "Accept-Encoding"}
    if request.headers.get("if-none-match") == file.etag:
        return Response(status_code=304, headers=headers)
    accepted = request.headers.get("accept-encoding", "")
    for name, content in file.compressed:
        if name in accepted:
            return Response(content, headers=headers | {"Content-Encoding": name}, media_type=file.media_type)
    return Response(file.body, headers=headers, media_type=file.media_type)
