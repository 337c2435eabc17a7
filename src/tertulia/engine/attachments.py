"""What people bring along with a message: taken in, read, and made ready to be shown."""

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
from tertulia.engine.files import NOT_READ, lines_of, readable_within, text_of, texts_kept
from tertulia.engine.uploads import Chunks, Uploads, arrived
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
        """What arrives waits for its message, within the same limits as files."""
        cleaned = clean_file_name(name)
        async with self._uploads.received(actor, project_id, chunks) as incoming:
            size = pixels(incoming.head)
            one = await arrived(
                cleaned,
                incoming,
                lambda tx, content: attachments.add(
                    tx, actor, project_id, cleaned, content, size, upload_key
                ),
            )
            [made] = await self._uploads.save(actor, [one], upload_key)
            return made

    async def lines(
        self, actor: Actor, attachment_id: str, start_line: int, end_line: int
    ) -> tuple[Attachment, TextLines]:
        attachment = await self._dependencies.db.read(lambda tx: attachments.get(tx, actor, attachment_id))
        return attachment, await lines_of(self._dependencies, attachment, start_line, end_line)


async def read_all(
    dependencies: Dependencies, said: Iterable[Message], most_bytes: int
) -> tuple[AttachedText, ...]:
    """The text of everything that was brought along, the latest first; what cannot be read says why."""
    brought = [one for message in said for one in message.attachments if not one.is_picture]
    readable = readable_within(most_bytes, reversed(brought))
    kept = await dependencies.db.read(lambda tx: texts_kept(tx, brought, readable)) if brought else ()
    return tuple([await _read(dependencies, one, text) for one, text in zip(brought, kept, strict=True)])


async def _read(dependencies: Dependencies, attachment: Attachment, kept: Extracted | None) -> AttachedText:
    if kept is NOT_READ:
        return AttachedText(attachment.id, "", is_over_budget=True)
    try:
        extracted = kept or await text_of(dependencies, attachment)
    except TertuliaError as error:
        return AttachedText(attachment.id, "", error.message)
    return AttachedText(attachment.id, extracted.text, extracted.reason)


async def pictures_of(dependencies: Dependencies, prompt: Prompt) -> dict[str, bytes]:
    """The bytes of all pictures that the prompt shows, by their hash."""
    hashes = {picture.content_hash for message in prompt.messages for picture in message.pictures}
    return {
        hash: b"".join([block async for block in dependencies.blobs.read(hash)]) for hash in sorted(hashes)
    }
