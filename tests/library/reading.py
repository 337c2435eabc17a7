"""Files as the tests have them read: by the process that does it for people, within its limits."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tertulia.core.files import Extracted, FileLimits
from tertulia.library.extract.extractor import Extractor
from tertulia.library.extract.worker import MEMORY_BYTES
from tests.patience import soon

HOUR_S = 3600
LIMITS = replace(FileLimits(), parse_s=HOUR_S, compare_s=HOUR_S, text_bytes=1 << 20, pdf_pages=50)
"""Time enough on any machine: what takes longer than is allowed is tested with no time at all."""
ROOT = Path(__file__).parents[2]


@contextmanager
def kept(content: bytes) -> Iterator[Any]:
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        yield file


async def read(extractor: Extractor, content: bytes, kind: str) -> Extracted:
    """What is read of it; within its limits of memory and time, whatever it is."""
    with kept(content) as file:
        async with soon():
            found = await extractor.text(file, kind)
    assert extractor.last is None or extractor.last.peak_bytes < MEMORY_BYTES
    return found


def squeezed(begin: bytes, middle: bytes, times: int, end: bytes) -> bytes:
    """A long text, packed without ever being whole."""
    first, again, last = (zlib.compressobj(9, wbits=-15) for _ in range(3))
    head = first.compress(begin) + first.flush(zlib.Z_FULL_FLUSH)
    block = again.compress(middle) + again.flush(zlib.Z_FULL_FLUSH)
    return head + block * times + last.compress(end) + last.flush()


async def output(*arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=asyncio.subprocess.PIPE, cwd=ROOT
    )
    said, _ = await process.communicate()
    return said.decode()
