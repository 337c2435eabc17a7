"""The speed of indexing: a gigabyte of text becomes chunks and words, in memory that does not grow with it.

    python -m benchmarks.indexing          48 MB
    python -m benchmarks.indexing 1024     so many megabytes

Files of 8 MB each, cut outside the transaction and written in batches, as the job does it.
"""

from __future__ import annotations

import asyncio
import hashlib
import resource
import sys
import tempfile
import time

from sqlalchemy import text

from benchmarks.figures import Figure, tell
from benchmarks.pulse import Pulse
from benchmarks.search import Language
from tertulia.app import new_id, now_ms
from tertulia.core.files import Content, ProjectFile
from tertulia.core.users import Actor, Standing
from tertulia.engine.jobs.index_file import BATCH
from tertulia.library.chunk import LINES
from tertulia.library.index import of_file
from tertulia.store import chunks, files, projects, users
from tertulia.store.database import Database, Tx

FILE_MB = 8
MEGABYTES = 48


async def main(megabytes: int) -> None:
    language = Language.spoken()
    paragraphs = [language.text(110) for _ in range(2_000)]
    made, peaks = 0, []
    with tempfile.TemporaryDirectory() as folder:
        db = Database.open(f"sqlite:///{folder}/bench.db", clock=now_ms, new_id=new_id)
        user = db.write_now(lambda tx: users.add(tx, "Ada", "ada@example.org", "", Standing.MEMBER))
        actor = Actor(user.id, Standing.MEMBER)
        project_id = db.write_now(lambda tx: projects.add(tx, actor, "Large")).id
        spent = 0.0
        with Pulse() as pulse:
            for number in range(max(2, megabytes // FILE_MB)):
                written = _text(language, paragraphs)
                began = time.process_time()
                made += await _index(db, actor, project_id, f"{number}.md", written)
                spent += time.process_time() - began
                peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        db.close()
    indexed = FILE_MB * len(peaks)
    figures = [
        Figure("CPU for each chunk", spent / made * 1e6, "µs", 1_000, is_cpu=True),
        Figure("memory at the end", peaks[-1] / peaks[0], "× that after the first file", 1.5),
        Figure("most memory", peaks[-1], "MB", 600),
    ]
    rows = [(f"{indexed} MB", made / spent, indexed / spent, peaks[0], peaks[-1])]
    heads = ("chunks per CPU s", "MB per CPU s", "MB after one file", "MB after all")
    tell("indexing", heads, rows, figures, pulse)


def _text(language: Language, paragraphs: list[str]) -> str:
    parts: list[str] = []
    size = 0
    while size < FILE_MB << 20:
        parts.append(language.chance.choice(paragraphs))
        size += len(parts[-1]) + 2
    return "\n\n".join(parts)


async def _index(db: Database, actor: Actor, project_id: str, path: str, written: str) -> int:
    content = Content(hashlib.sha256(written.encode()).hexdigest(), len(written), "text/markdown")

    def put(tx: Tx) -> ProjectFile:
        tx.execute(_BLOB, hash=content.hash)
        return files.put(tx, actor, project_id, path, content)

    file = await db.write(put)
    new = await asyncio.to_thread(lambda: tuple(of_file(file, written, LINES)))
    for start in range(0, len(new), BATCH):
        batch = new[start : start + BATCH]
        await db.write(lambda tx, s=start, b=batch: chunks.add_to_file(tx, file.id, project_id, s, b))  # type: ignore[misc]
    return len(new)


_BLOB = text("""
    INSERT INTO blobs (hash, size_bytes, keeping, used_at, content) VALUES (:hash, 0, 'row', 0, NULL)
""")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else MEGABYTES))
