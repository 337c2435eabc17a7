"""Project files: brought in, listed, read, changed, deleted; their versions compared and restored."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
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
from tertulia.server.downloads import ABOUT, CONTENT, download
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
    """How far the events of the project's place are contained in this answer."""
    used_bytes: int
    """What the files of the one who asks take up, in all projects."""
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
    """The last line shown; it may come before the one asked for when that is far."""
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
                "description": "Where the next file goes; with a slash at its end, where all that follow go.",
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


# ── many


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
    """One file as it is, at the path of the query, or several in a form; a zip may be unpacked on its way."""
    upload, taken = Upload(tertulia, actor, project_id, unzip, upload_key), UploadResult()
    if is_form(request):
        form = FormReader(request.headers.get("content-type", ""), body(request))
        await _take_form(upload, form, path, taken)
    else:
        must_be_raw(request, tertulia.dependencies.limits)
        if not path and not unzip:
            raise Invalid("Say where the file goes: send ?path=, like docs/plan.md.")
        await _take(upload, path or "", body(request), taken)
    if taken.refused and not taken.items:
        raise Invalid(_why(taken.refused[0]))
    return json_response(Uploaded(tuple(taken.items), tuple(taken.refused)), 201)


def _why(refused: RejectedFile) -> str:
    return f"{refused.path} was not uploaded. {refused.reason}" if refused.path else refused.reason


@dataclass(frozen=True, slots=True)
class Upload:
    """Who brings files where, and how."""

    tertulia: Tertulia
    actor: Actor
    project_id: str
    unzip: bool
    key: str | None


async def _take_form(upload: Upload, form: FormReader, path: str | None, taken: UploadResult) -> None:
    """A field "path" names the file after it, or with a slash at its end the folder of all that follow."""
    await upload.tertulia.db.read(lambda tx: files.begin(tx, upload.actor, upload.project_id))
    has_files = False
    async for part in form.parts():
        if part.filename is None:
            path = await form.text() if part.name == "path" else path
            continue
        has_files = True
        where = _placed(path, part.filename, upload.unzip)
        try:
            await _take(upload, where, form.content(), taken)
        except Invalid as wrong:
            taken.reject(storable(where), wrong.message)
        path = path if path and path.endswith("/") else None
    if not has_files:
        raise Invalid("Send at least one file, in a field called file.")


def _placed(path: str | None, filename: str, unzip: bool) -> str:
    if path is None or path == "":
        return "" if unzip else filename
    return path if unzip or not path.endswith("/") else path + filename


async def _take(upload: Upload, path: str, chunks: AsyncIterator[bytes], taken: UploadResult) -> None:
    shelf, actor, project_id = upload.tertulia.files, upload.actor, upload.project_id
    if not upload.unzip:
        taken.items.append(await shelf.add(actor, project_id, path, chunks, upload.key))
        return
    unpacked = await shelf.unzip(actor, project_id, path, chunks, upload.key)
    taken.items += unpacked.items
    taken.refused += unpacked.refused


@router.delete("/api/projects/{project_id}/uploads/{upload_key}", status_code=204)
async def cancel_upload(
    tertulia: InjectedApp,
    actor: CurrentActor,
    project_id: str,
    upload_key: Annotated[str, Path(pattern=f"^{UPLOAD_KEY}$")],
) -> Response:
    """Nothing of it is kept, whether it was already saved or is still arriving."""
    await tertulia.files.cancel_upload(actor, project_id, upload_key)
    return no_content()


# ── one


@router.head("/api/projects/{project_id}/files/{file_id}", responses=ABOUT, response_class=Response)
@router.get("/api/projects/{project_id}/files/{file_id}", responses=CONTENT, response_class=Response)
async def get_file(
    tertulia: InjectedApp,
    actor: CurrentActor,
    project_id: str,
    file_id: str,
    request: Request,
    inline: bool = False,
) -> Response:
    """The file itself or a range of it, to be saved; of pictures also to be shown."""
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
    """The text that was read from the file, in the lines that hits and citations name."""
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
    """New content, as the next version; If-Match names the version that was read, or its ETag."""
    must_be_raw(request, tertulia.dependencies.limits)
    seen = _seen(if_match)
    return json_response(await tertulia.files.change(actor, project_id, file_id, body(request), seen))


def _seen(if_match: str | None) -> int | str | None:
    if if_match is None or if_match.strip() == "*":
        return None
    match = re.fullmatch(r'\s*(?:W/)?"?([0-9]{1,9}|[0-9a-f]{64})"?\s*', if_match)
    if match is None:
        raise Invalid('If-Match names the version that was read, like "3", or the ETag it came with.')
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
    """What is named is changed; the rest stays."""
    return json_response(await tertulia.files.set_metadata(actor, project_id, file_id, change))


@router.delete("/api/projects/{project_id}/files/{file_id}", status_code=204)
async def remove_file(tertulia: InjectedApp, actor: CurrentActor, project_id: str, file_id: str) -> Response:
    """With all its versions."""
    await tertulia.files.remove(actor, project_id, file_id)
    return no_content()


# ── versions


@router.get("/api/projects/{project_id}/files/{file_id}/versions", response_model=VersionList)
async def list_versions(
    tertulia: InjectedApp, actor: CurrentActor, project_id: str, file_id: str
) -> Response:
    found = await tertulia.db.read(lambda tx: versions.of_file(tx, actor, project_id, file_id))
    return json_response(VersionList(found))


@router.head(
    "/api/projects/{project_id}/files/{file_id}/versions/{number}",
    responses=ABOUT,
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
    """What the file held then."""

    def read(tx: Tx) -> tuple[ProjectFile, FileVersion]:
        file = files.get(tx, actor, project_id, file_id)
        return file, versions.get(tx, actor, project_id, file_id, number)

    file, then = await tertulia.db.read(read)
    return await download(request, tertulia.dependencies.blobs, file.path, then, inline=inline)


@router.get("/api/projects/{project_id}/files/{file_id}/versions/{number}/diff", response_model=Difference)
async def compare_versions(
    tertulia: InjectedApp,
    actor: CurrentActor,
    project_id: str,
    file_id: str,
    number: Number,
    against: Annotated[int | None, Query(ge=0, le=LAST_LINE)] = None,
) -> Response:
    """What changed in its text since another version, or the one before; 0 stands for nothing at all."""
    before = number - 1 if against is None else against
    return json_response(Difference(await tertulia.files.diff(actor, project_id, file_id, number, before)))


@router.post(
    "/api/projects/{project_id}/files/{file_id}/versions/{number}/restore", response_model=ProjectFile
)
async def restore_version(
    tertulia: InjectedApp, actor: CurrentActor, project_id: str, file_id: str, number: Number
) -> Response:
    """What it held then becomes its next version."""
    return json_response(await tertulia.files.restore(actor, project_id, file_id, number))
