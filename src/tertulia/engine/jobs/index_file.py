"""The index job: reads a file's text, so that it can be shown and looked up."""

from __future__ import annotations

from tertulia.core.errors import NotFound
from tertulia.core.files import Extracted, Indexing, IndexState
from tertulia.engine.files import text_of
from tertulia.engine.means import Means
from tertulia.store import files


async def index_file(means: Means, file_id: str) -> None:
    """What becomes of it is written beside the file, also when that is nothing."""
    file = await means.db.read(lambda tx: files.find(tx, file_id))
    if file is None:
        return
    reading = IndexState(Indexing.READING, file.index.chunks)
    await means.db.write(lambda tx: files.set_index(tx, file_id, reading, version=file.version))
    try:
        extracted = await text_of(means, file)
    except NotFound:
        if await means.db.read(lambda tx: files.find(tx, file_id)) is not None:
            raise
        return
    done = _outcome(extracted)
    await means.db.write(lambda tx: files.set_index(tx, file_id, done, version=file.version))


def _outcome(extracted: Extracted) -> IndexState:
    if extracted.has_failed:
        return IndexState(Indexing.FAILED, reason=extracted.reason)
    if not extracted.text:
        return IndexState(Indexing.NOT_INDEXED, reason=extracted.reason)
    return IndexState(Indexing.INDEXED, percent=100, reason=extracted.reason)
