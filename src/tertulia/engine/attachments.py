"""Attachments: uploaded before their message is sent, and read when a prompt shows them."""

from __future__ import annotations

from collections.abc import Iterable

from tertulia.context.prompt_inputs import AttachedText
from tertulia.core.attachments import Attachment, clean_file_name
from tertulia.core.errors import TertuliaError
from tertulia.core.files import Extracted
from tertulia.core.messages import Message
from tertulia.core.prompts import Prompt
from tertulia.core.users import Actor
from tertulia.engine.dependencies import Dependencies
from tertulia.engine.files import NOT_READ, lines_of, readable_within, stored_texts, text_of
from tertulia.engine.uploads import Chunks, Uploads, stage
from tertulia.library.mime import pixels
from tertulia.store import attachments
from tertulia.store.extracted_texts import TextLines


class Attachments:
    def __init__(self, dependencies: Dependencies, uploads: Uploads) -> None:
        self._dependencies = dependencies
        self._uploads = uploads

    async def add(
        self, actor: Actor, project_id: str, name: str, chunks: Chunks, upload_key: str | None = None
    ) -> Attachment:
        """Stores an unsent attachment, within the same limits as files."""
        cleaned = clean_file_name(name)
        async with self._uploads.receive(actor, project_id, chunks) as upload:
            size = pixels(upload.head)
            staged = await stage(
                cleaned,
                upload,
                lambda tx, content: attachments.add(
                    tx, actor, project_id, cleaned, content, size, upload_key
                ),
            )
            [attachment] = await self._uploads.save(actor, [staged], upload_key)
            return attachment

    async def lines(
        self, actor: Actor, attachment_id: str, start_line: int, end_line: int
    ) -> tuple[Attachment, TextLines]:
        attachment = await self._dependencies.db.read(lambda tx: attachments.get(tx, actor, attachment_id))
        return attachment, await lines_of(self._dependencies, attachment, start_line, end_line)


async def read_all(
    dependencies: Dependencies, messages: Iterable[Message], limit_bytes: int
) -> tuple[AttachedText, ...]:
    """The texts of all attachments of these messages; one that cannot be read has a reason instead.

    If not all fit the limit, the newest ones are read."""
    attached = [item for message in messages for item in message.attachments if not item.is_picture]
    if not attached:
        return ()
    readable = readable_within(limit_bytes, reversed(attached))
    stored = await dependencies.db.read(lambda tx: stored_texts(tx, attached, readable))
    return tuple([await _read(dependencies, *pair) for pair in zip(attached, stored, strict=True)])


async def _read(dependencies: Dependencies, attachment: Attachment, stored: Extracted | None) -> AttachedText:
    if stored is NOT_READ:
        return AttachedText(attachment.id, "", is_over_budget=True)
    try:
        extracted = stored or await text_of(dependencies, attachment)
    except TertuliaError as error:
        return AttachedText(attachment.id, "", error.message)
    return AttachedText(attachment.id, extracted.text, extracted.reason)


async def pictures_of(dependencies: Dependencies, prompt: Prompt) -> dict[str, bytes]:
    """The bytes of all pictures in the prompt, by their hash."""
    hashes = {picture.content_hash for message in prompt.messages for picture in message.pictures}
    return {
        hash: b"".join([block async for block in dependencies.blobs.read(hash)]) for hash in sorted(hashes)
    }
