"""Attachment routes: upload before a message is sent, download, text, removal."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from tertulia.core.attachments import Attachment
from tertulia.core.errors import Invalid
from tertulia.server.access import CurrentActor, InjectedApp
from tertulia.server.downloads import CONTENT, HEAD, download
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
    """Uploads a file as the body. It is deleted after a day if no message is sent with it."""
    must_be_raw(request, tertulia.dependencies.limits)
    attachment = await tertulia.attachments.add(actor, project_id, name, body(request), upload_key)
    return json_response(attachment, 201)


@router.head("/api/attachments/{attachment_id}", responses=HEAD, response_class=Response)
@router.get("/api/attachments/{attachment_id}", responses=CONTENT, response_class=Response)
async def get_attachment(
    tertulia: InjectedApp, actor: CurrentActor, attachment_id: str, request: Request, inline: bool = False
) -> Response:
    """Downloads the file or a range of it; with `inline`, images are sent to be shown in a page."""
    attachment = await tertulia.db.read(lambda tx: attachments.get(tx, actor, attachment_id))
    return await download(request, tertulia.dependencies.blobs, attachment.name, attachment, inline=inline)


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
    attachment, lines = await tertulia.attachments.lines(actor, attachment_id, start_line, end_line)
    return json_response(
        FileText(attachment.name, lines.text, lines.start_line, lines.end_line, lines.total_lines)
    )


@router.delete("/api/attachments/{attachment_id}", status_code=204)
async def remove_attachment(tertulia: InjectedApp, actor: CurrentActor, attachment_id: str) -> Response:
    """Removes an attachment that was not sent with a message."""
    await tertulia.db.write(lambda tx: attachments.remove(tx, actor, attachment_id))
    return no_content()
