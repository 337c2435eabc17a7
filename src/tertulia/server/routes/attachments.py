"""Attachments: brought along before a message is sent, read by whoever may see the message."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from tertulia.core.attachments import Attachment
from tertulia.core.errors import Invalid
from tertulia.server.access import CurrentActor, InjectedApp
from tertulia.server.downloads import ABOUT, CONTENT, download
from tertulia.server.responses import json_response, no_content
from tertulia.server.routes.files import LAST_LINE, FileText, Line
from tertulia.server.uploads import RAW, UploadKey, body, must_be_raw
from tertulia.store import attachments

router = APIRouter(tags=["attachments"])


@router.post(
    "/api/projects/{project_id}/attachments", response_model=Attachment, status_code=201, openapi_extra=RAW
)
async def add_attachment(
    tertulia: InjectedApp,
    actor: CurrentActor,
    project_id: str,
    request: Request,
    name: Annotated[str, Query(max_length=1024)],
    upload_key: UploadKey = None,
) -> Response:
    """One file as it is; it is kept a day for the message it is sent with."""
    must_be_raw(request, tertulia.dependencies.limits)
    made = await tertulia.attachments.add(actor, project_id, name, body(request), upload_key)
    return json_response(made, 201)


@router.head("/api/attachments/{attachment_id}", responses=ABOUT, response_class=Response)
@router.get("/api/attachments/{attachment_id}", responses=CONTENT, response_class=Response)
async def get_attachment(
    tertulia: InjectedApp, actor: CurrentActor, attachment_id: str, request: Request, inline: bool = False
) -> Response:
    """The file itself or a range of it, to be saved; of pictures also to be shown."""
    found = await tertulia.db.read(lambda tx: attachments.get(tx, actor, attachment_id))
    return await download(request, tertulia.dependencies.blobs, found.name, found, inline=inline)


@router.get("/api/attachments/{attachment_id}/text", response_model=FileText)
async def get_attachment_text(
    tertulia: InjectedApp,
    actor: CurrentActor,
    attachment_id: str,
    start_line: Line = 1,
    end_line: Line = LAST_LINE,
) -> Response:
    """The extracted text, as models receive it."""
    if end_line < start_line:
        raise Invalid("The last line does not come before the first.")
    found, lines = await tertulia.attachments.lines(actor, attachment_id, start_line, end_line)
    return json_response(
        FileText(found.name, lines.text, lines.start_line, lines.end_line, lines.total_lines)
    )


@router.delete("/api/attachments/{attachment_id}", status_code=204)
async def remove_attachment(tertulia: InjectedApp, actor: CurrentActor, attachment_id: str) -> Response:
    """Only while it was not sent with a message."""
    await tertulia.db.write(lambda tx: attachments.remove(tx, actor, attachment_id))
    return no_content()
