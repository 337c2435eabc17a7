"""Helpers that read files with the real worker process, within its limits."""

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
"""A time limit that no machine reaches; tests of the time limit set it to zero."""
ROOT = Path(__file__).parents[2]


@contextmanager
def temporary_file(content: bytes) -> Iterator[Any]:
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        yield file


async def read(extractor: Extractor, content: bytes, kind: str) -> Extracted:
    """Extracts the text and checks that the child stayed within its memory."""
    with temporary_file(content) as file:
        async with soon():
            extracted = await extractor.text(file, kind)
    assert extractor.last is None or extractor.last.peak_bytes < MEMORY_BYTES
    return extracted


def deflated(begin: bytes, middle: bytes, times: int, end: bytes) -> bytes:
    """A deflate stream of a long text with a repeated middle, made without holding the text in memory."""
    begin_part, middle_part, end_part = (zlib.compressobj(9, wbits=-15) for _ in range(3))
    head = begin_part.compress(begin) + begin_part.flush(zlib.Z_FULL_FLUSH)
    block = middle_part.compress(middle) + middle_part.flush(zlib.Z_FULL_FLUSH)
    return head + block * times + end_part.compress(end) + end_part.flush()


async def output(*arguments: str) -> str:
    """The standard output of Python with these arguments."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=asyncio.subprocess.PIPE, cwd=ROOT
    )
    stdout, _ = await process.communicate()
    return stdout.decode()
