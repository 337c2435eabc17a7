"""File routes: upload, list, read, change and delete project files; compare and restore versions."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request
from starlette.responses import Response

from tertulia.app import Tertulia
from tertulia.core.errors import Invalid
from tertulia.core.events import project_topic
from tertulia.core.files import FileVersion, MetadataChange, ProjectFile
from tertulia.core.text import storable
from tertulia.core.users import Actor
from tertulia.engine.uploads import RejectedFile, UploadResult
from tertulia.server.access import CurrentActor, InjectedApp
from tertulia.server.downloads import CONTENT, HEAD, download
from tertulia.server.multipart import FormReader
from tertulia.server.responses import json_response, no_content
from tertulia.server.uploads import BYTES, RAW, UPLOAD_KEY, UploadKey, body, is_form, must_be_raw
from tertulia.store import events, file_listing, files, versions
from tertulia.store.database import Tx

router = APIRouter(tags=["files"])

LAST_LINE = 1 << 31

Limit = Annotated[int, Query(ge=1, le=100)]
Line = Annotated[int, Query(ge=1, le=LAST_LINE)]
Number = Annotated[int, Path(ge=1, le=LAST_LINE)]


@dataclass(frozen=True, slots=True)
class FileList:
    items: tuple[ProjectFile, ...]
    next: str | None
    cursor: int
    """The last event of the project's topic that this response includes."""
    used_bytes: int
    """The space that the user's files take up in all projects."""
    quota_bytes: int


@dataclass(frozen=True, slots=True)
class Uploaded:
    items: tuple[ProjectFile, ...]
    refused: tuple[RejectedFile, ...]


@dataclass(frozen=True, slots=True)
class FileText:
    path: str
    text: str
    start_line: int
    end_line: int
    """The last line of the text; it comes before the requested one if the range is very long."""
    total_lines: int


@dataclass(frozen=True, slots=True)
class NewPath:
    path: str


@dataclass(frozen=True, slots=True)
class VersionList:
    items: tuple[FileVersion, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    unified: str


_FORM = {
    "schema": {
        "type": "object",
        "properties": {
            "path": {
                "type": "string",
                "description": "Path of the next file or, with a slash at its end, folder of all others.",
            },
            "file": {"type": "array", "items": {"type": "string", "format": "binary"}},
        },
        "required": ["file"],
    }
}
_RAW_OR_FORM = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": BYTES, "multipart/form-data": _FORM},
    }
}


# ── all files of a project


@router.get("/api/projects/{project_id}/files", response_model=FileList)
async def list_files(
    tertulia: InjectedApp,
    actor: CurrentActor,
    project_id: str,
    prefix: str = "",
    tag: str | None = None,
    limit: Limit = 100,
    cursor: str | None = None,
) -> Response:
    def read(tx: Tx) -> FileList:
        number = events.last_number(tx, project_topic(project_id))
        page = file_listing.page(tx, actor, project_id, limit=limit, cursor=cursor, prefix=prefix, tag=tag)
        used = files.used_bytes(tx, actor.user_id)
        return FileList(page.items, page.next, number, used, tertulia.dependencies.limits.quota_bytes)

    return json_response(await tertulia.db.read(read))


@router.post(
    "/api/projects/{project_id}/files",
    response_model=Uploaded,
    status_code=201,
    openapi_extra=_RAW_OR_FORM,
)
async def add_files(
    tertulia: InjectedApp,
    actor: CurrentActor,
    project_id: str,
    request: Request,
    path: str | None = None,
    unzip: bool = False,
    upload_key: UploadKey = None,
) -> Response:
    """Uploads one file as the body, or several in a form; with `unzip`, archives are unpacked."""
    upload = Upload(tertulia, actor, project_id, unzip, upload_key)
    if is_form(request):
        form = FormReader(request.headers.get("content-type", ""), body(request))
        await _receive_form(upload, form, path)
    else:
        must_be_raw(request, tertulia.dependencies.limits)
        if not path and not unzip:
            raise Invalid("The path is missing. Send it as ?path=, like docs/plan.md.")
        await _receive(upload, path or "", body(request))
    result = upload.result
    if result.refused and not result.items:
        raise Invalid(_rejection(result.refused[0]))
    return json_response(Uploaded(tuple(result.items), tuple(result.refused)), 201)


def _rejection(file: RejectedFile) -> str:
    return f"{file.path} was not uploaded. {file.reason}" if file.path else file.reason


@dataclass(frozen=True, slots=True)
class Upload:
    """An upload request with the files that it has saved and refused so far."""

    tertulia: Tertulia
    actor: Actor
    project_id: str
    unzip: bool
    key: str | None
    result: UploadResult = field(default_factory=UploadResult)


async def _receive_form(upload: Upload, form: FormReader, path: str | None) -> None:
    """A field "path" names the next file or, if it ends in a slash, the folder of all files that follow."""
    await upload.tertulia.db.read(lambda tx: files.begin(tx, upload.actor, upload.project_id))
    has_files = False
    async for part in form.parts():
        if part.filename is None:
            path = await form.text() if part.name == "path" else path
            continue
        has_files = True
        file_path = _path_of(part.filename, path, upload.unzip)
        try:
            await _receive(upload, file_path, form.content())
        except Invalid as error:
            upload.result.reject(storable(file_path), error.message)
        path = path if path and path.endswith("/") else None
    if not has_files:
        raise Invalid("Send at least one file, in a field called file.")


def _path_of(filename: str, path: str | None, unzip: bool) -> str:
    """The path of a file in a form; for an archive, the folder to unpack it into."""
    if path is None or path == "":
        return "" if unzip else filename
    return path if unzip or not path.endswith("/") else path + filename


async def _receive(upload: Upload, path: str, chunks: AsyncIterator[bytes]) -> None:
    """Saves one file, or the files of one archive."""
    project_files, actor, project_id = upload.tertulia.files, upload.actor, upload.project_id
    if not upload.unzip:
        upload.result.items.append(await project_files.add(actor, project_id, path, chunks, upload.key))
        return
    unpacked = await project_files.unzip(actor, project_id, path, chunks, upload.key)
    upload.result.items += unpacked.items
    upload.result.refused += unpacked.refused


@router.delete("/api/projects/{project_id}/uploads/{upload_key}", status_code=204)
async def cancel_upload(
    tertulia: InjectedApp,
    actor: CurrentActor,
    project_id: str,
    upload_key: Annotated[str, Path(pattern=f"^{UPLOAD_KEY}$")],
) -> Response:
    """Cancels an upload: removes its files if they are saved already, and refuses what still arrives."""
    await tertulia.files.cancel_upload(actor, project_id, upload_key)
    return no_content()


# ── one file


@router.head("/api/projects/{project_id}/files/{file_id}", responses=HEAD, response_class=Response)
@router.get("/api/projects/{project_id}/files/{file_id}", responses=CONTENT, response_class=Response)
async def get_file(
    tertulia: InjectedApp,
    actor: CurrentActor,
    project_id: str,
    file_id: str,
    request: Request,
    inline: bool = False,
) -> Response:
    """Downloads the file or a range of it; with `inline`, images are sent to be shown in a page."""
    file = await tertulia.db.read(lambda tx: files.get(tx, actor, project_id, file_id))
    return await download(request, tertulia.dependencies.blobs, file.path, file, inline=inline)


@router.get("/api/projects/{project_id}/files/{file_id}/info", response_model=ProjectFile)
async def get_info(tertulia: InjectedApp, actor: CurrentActor, project_id: str, file_id: str) -> Response:
    return json_response(await tertulia.db.read(lambda tx: files.get(tx, actor, project_id, file_id)))


@router.get("/api/projects/{project_id}/files/{file_id}/text", response_model=FileText)
async def get_text(
    tertulia: InjectedApp,
    actor: CurrentActor,
    project_id: str,
    file_id: str,
    start_line: Line = 1,
    end_line: Line = LAST_LINE,
) -> Response:
    """The extracted text, with the line numbers that search hits and citations name."""
    if end_line < start_line:
        raise Invalid("The last line does not come before the first.")
    file, lines = await tertulia.files.lines(actor, project_id, file_id, start_line, end_line)
    return json_response(FileText(file.path, lines.text, lines.start_line, lines.end_line, lines.total_lines))


@router.put("/api/projects/{project_id}/files/{file_id}", response_model=ProjectFile, openapi_extra=RAW)
async def change_file(
    tertulia: InjectedApp,
    actor: CurrentActor,
    project_id: str,
    file_id: str,
    request: Request,
    if_match: Annotated[str | None, Header()] = None,
) -> Response:
    """Saves new content as the next version. If-Match names the version that the client has read."""
    must_be_raw(request, tertulia.dependencies.limits)
    expected = _expected_version(if_match)
    return json_response(await tertulia.files.change(actor, project_id, file_id, body(request), expected))


def _expected_version(if_match: str | None) -> int | str | None:
    """The version number or the content hash in If-Match; None for any version."""
    if if_match is None or if_match.strip() == "*":
        return None
    match = re.fullmatch(r'\s*(?:W/)?"?([0-9]{1,9}|[0-9a-f]{64})"?\s*', if_match)
    if match is None:
        raise Invalid('If-Match must be a version, like "3", or the ETag of a download.')
    return match[1] if len(match[1]) == 64 else int(match[1])


@router.put("/api/projects/{project_id}/files/{file_id}/path", response_model=ProjectFile)
async def rename_file(
    tertulia: InjectedApp, actor: CurrentActor, project_id: str, file_id: str, new: NewPath
) -> Response:
    return json_response(await tertulia.files.rename(actor, project_id, file_id, new.path))


@router.patch("/api/projects/{project_id}/files/{file_id}/metadata", response_model=ProjectFile)
async def change_metadata(
    tertulia: InjectedApp, actor: CurrentActor, project_id: str, file_id: str, change: MetadataChange
) -> Response:
    """Changes the fields that are sent, and no others."""
    return json_response(await tertulia.files.set_metadata(actor, project_id, file_id, change))


@router.delete("/api/projects/{project_id}/files/{file_id}", status_code=204)
async def remove_file(tertulia: InjectedApp, actor: CurrentActor, project_id: str, file_id: str) -> Response:
    """Deletes a file with all its versions."""
    await tertulia.files.remove(actor, project_id, file_id)
    return no_content()


# ── versions


@router.get("/api/projects/{project_id}/files/{file_id}/versions", response_model=VersionList)
async def list_versions(
    tertulia: InjectedApp, actor: CurrentActor, project_id: str, file_id: str
) -> Response:
    items = await tertulia.db.read(lambda tx: versions.of_file(tx, actor, project_id, file_id))
    return json_response(VersionList(items))


@router.head(
    "/api/projects/{project_id}/files/{file_id}/versions/{number}",
    responses=HEAD,
    response_class=Response,
)
@router.get(
    "/api/projects/{project_id}/files/{file_id}/versions/{number}",
    responses=CONTENT,
    response_class=Response,
)
async def get_version(
    tertulia: InjectedApp,
    actor: CurrentActor,
    project_id: str,
    file_id: str,
    number: Number,
    request: Request,
    inline: bool = False,
) -> Response:
    """Downloads the content of a version."""

    def read(tx: Tx) -> tuple[ProjectFile, FileVersion]:
        file = files.get(tx, actor, project_id, file_id)
        return file, versions.get(tx, actor, project_id, file_id, number)

    file, version = await tertulia.db.read(read)
    return await download(request, tertulia.dependencies.blobs, file.path, version, inline=inline)


@router.get("/api/projects/{project_id}/files/{file_id}/versions/{number}/diff", response_model=Difference)
async def compare_versions(
    tertulia: InjectedApp,
    actor: CurrentActor,
    project_id: str,
    file_id: str,
    number: Number,
    against: Annotated[int | None, Query(ge=0, le=LAST_LINE)] = None,
) -> Response:
    """The changes of the text since another version, by default the previous one; 0 is the empty text."""
    before = number - 1 if against is None else against
    return json_response(Difference(await tertulia.files.diff(actor, project_id, file_id, number, before)))


@router.post(
    "/api/projects/{project_id}/files/{file_id}/versions/{number}/restore", response_model=ProjectFile
)
async def restore_version(
    tertulia: InjectedApp, actor: CurrentActor, project_id: str, file_id: str, number: Number
) -> Response:
    """Saves the content of an old version as the next version."""
    return json_response(await tertulia.files.restore(actor, project_id, file_id, number))
