"""The worker process: limits, restarts, cancellation, no leaked files or processes (UP, rule 5)."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import uvloop

from tertulia.core.errors import NotFound, TooLarge
from tertulia.core.files import Extracted
from tertulia.library import mime
from tertulia.library.extract.extractor import Extractor
from tertulia.library.extract.protocol import ExitReport
from tertulia.library.extract.worker import MEMORY_BYTES
from tests.library.documents import ENDLESS_PDF
from tests.library.reading import LIMITS, output, read, temporary_file
from tests.open_files import nothing_left_open
from tests.patience import PATIENCE_S, until

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_parser_that_takes_too_long_is_killed_with_a_reason(extractor: Extractor) -> None:
    slow = Extractor(replace(LIMITS, parse_s=0), PATIENCE_S)
    try:
        extracted = await read(slow, ENDLESS_PDF, mime.PDF)
    finally:
        slow.close()
    assert extracted == Extracted("", mime.PDF, "Reading this file takes longer than is allowed.", True)
    assert slow.last is not None
    assert slow.last.code == -signal.SIGALRM


async def test_a_comparison_that_takes_too_long_is_killed_with_a_reason(extractor: Extractor) -> None:
    """The time limit is zero in one extractor and an hour in the other."""
    without_time = Extractor(replace(LIMITS, compare_s=0), PATIENCE_S)
    try:
        with pytest.raises(TooLarge, match="too large to be compared"):
            await without_time.diff("one\n", "other\n")
    finally:
        without_time.close()
    assert without_time.last is not None
    assert without_time.last.code == -signal.SIGALRM
    assert await extractor.diff("one\n", "other\n") == "@@ -1 +1 @@\n-one\n+other\n"


async def test_a_diff_beyond_the_size_limit_is_rejected() -> None:
    extractor = Extractor(replace(LIMITS, compare_bytes=10_000), PATIENCE_S)
    try:
        with pytest.raises(TooLarge, match="more than can be shown"):
            await extractor.diff("", "a line\n" * 3_000)
        assert (await extractor.diff("", "a line\n" * 1_000)).count("+a line") == 1_000
    finally:
        extractor.close()


async def test_a_parser_that_takes_too_much_memory_fails_with_a_reason(extractor: Extractor) -> None:
    deep = b'{"cells": ' + b"[" * (15 << 20)
    wide = b'{"cells": [' + b'{"":0},' * 2_900_000 + b"1]}"
    assert (await read(extractor, deep, mime.NOTEBOOK)).has_failed
    extracted = await read(extractor, wide, mime.NOTEBOOK)
    assert extracted.reason == "Reading this file takes more memory than is allowed."


async def test_a_file_is_tried_three_times_when_its_parser_dies_and_the_next_is_read(
    extractor: Extractor,
) -> None:
    """The test kills the children, as the system does when memory runs out."""
    with temporary_file(ENDLESS_PDF) as file:
        reading = asyncio.create_task(extractor.text(file, mime.PDF))
        killed: set[int] = set()

        def kill_children() -> bool:
            for child in children():
                child.kill()
                killed.add(child.pid)
            return reading.done()

        await until(kill_children)
    extracted = await reading
    assert extracted == Extracted("", mime.PDF, "This file cannot be read; it may be damaged.", True)
    assert len(killed) == 3
    assert (await read(extractor, b"Hello", mime.PLAIN)).text == "Hello"


def children() -> list[psutil.Process]:
    """The processes that are reading a file now: children of the worker processes."""
    readers = []
    for process in psutil.Process().children():
        try:
            if "tertulia.library.extract.worker" in process.cmdline():
                readers += process.children()
        except psutil.NoSuchProcess:
            continue
    return readers


async def test_a_parser_has_no_network_and_cannot_write_files(extractor: Extractor) -> None:
    with temporary_file(ENDLESS_PDF) as file:
        reading = asyncio.create_task(extractor.text(file, mime.PDF, "slow"))
        await until(lambda: [child for child in children() if limits(child)["Max file size"] == "0"])
        (child,) = children()
        assert limits(child)["Max address space"] == str(MEMORY_BYTES)
        assert not await can_unshare_network() or network_namespace(child.pid) != network_namespace(
            os.getpid()
        )
        extractor.abandon("slow")
        with pytest.raises(NotFound):
            await reading


def limits(process: psutil.Process) -> dict[str, str]:
    """The resource limits of a process by name; empty if it has ended."""
    try:
        lines = Path(f"/proc/{process.pid}/limits").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return defaultdict(str)
    return defaultdict(str, ((line[:26].strip(), line[26:].split()[0]) for line in lines))


async def can_unshare_network() -> bool:
    """False on machines that do not allow a process its own network namespace."""
    code = "import ctypes; print(ctypes.CDLL(None).unshare(0x10000000 | 0x40000000))"
    return (await output("-c", code)).strip() == "0"


def network_namespace(pid: int) -> str:
    return os.readlink(f"/proc/{pid}/ns/net")


async def test_a_killed_worker_process_is_restarted(extractor: Extractor) -> None:
    await read(extractor, b"Hello", mime.PLAIN)
    for process in psutil.Process().children():
        if "tertulia.library.extract.worker" in process.cmdline():
            process.kill()
    assert (await read(extractor, b"Hello again", mime.PLAIN)).text == "Hello again"


async def test_abandoning_a_file_kills_its_parser(extractor: Extractor) -> None:
    with temporary_file(ENDLESS_PDF) as file:
        reading = asyncio.create_task(extractor.text(file, mime.PDF, "the name"))
        await until(children)
        extractor.abandon("another name")
        assert children()
        extractor.abandon("the name")
        with pytest.raises(NotFound):
            await reading
    assert not children()


async def test_another_file_is_read_while_one_takes_long(extractor: Extractor) -> None:
    with temporary_file(ENDLESS_PDF) as file:
        reading = asyncio.create_task(extractor.text(file, mime.PDF, "slow"))
        await until(children)
        assert (await read(extractor, b"Hello", mime.PLAIN)).text == "Hello"
        assert extractor.reading == ("slow",)
        assert not reading.done()
        extractor.abandon("slow")
        with pytest.raises(NotFound):
            await reading


async def test_a_call_cancelled_at_any_moment_leaves_nothing_open(extractor: Extractor) -> None:
    with nothing_left_open():
        await cancel_at_every_step(extractor)


@pytest.mark.asyncio(loop_scope="function")
async def test_a_call_cancelled_at_any_moment_leaves_nothing_open_on_uvloop() -> None:
    """The server runs on uvloop, which handles pipes differently from the event loop of the tests."""

    def run() -> None:
        extractor = Extractor(LIMITS, PATIENCE_S)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(cancel_at_every_step(extractor))
        extractor.close()

    with nothing_left_open():
        await asyncio.to_thread(run)


async def cancel_at_every_step(extractor: Extractor) -> None:
    with temporary_file(b"Hello") as file:
        for steps in range(20):
            reading = asyncio.create_task(extractor.text(file, mime.PLAIN))
            for _ in range(steps):
                await asyncio.sleep(0)
            reading.cancel()
            await asyncio.wait([reading])
        assert (await extractor.text(file, mime.PLAIN)).text == "Hello"


async def test_a_text_that_cannot_be_encoded_leaves_nothing_open(extractor: Extractor) -> None:
    with nothing_left_open(), pytest.raises(UnicodeEncodeError):
        await extractor.diff("one", "half a character: \ud800")


async def test_the_worker_process_dies_with_the_server(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(
        "import asyncio, os, psutil, signal, tempfile\n"
        "from tertulia.core.files import FileLimits\n"
        "from tertulia.library.extract.extractor import Extractor\n"
        "async def main():\n"
        "    extractor = Extractor(FileLimits())\n"
        "    with tempfile.TemporaryFile() as file:\n"
        "        await extractor.text(file, 'text/plain')\n"
        "    print(psutil.Process().children()[0].pid, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )
    pid = int(await output(str(script)))
    assert pid > 0
    await until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)


async def test_the_exit_report_states_time_and_memory(extractor: Extractor) -> None:
    await read(extractor, b"Hello", mime.PLAIN)
    assert isinstance(extractor.last, ExitReport)
    assert extractor.last.code == 0
    assert extractor.last.cpu_s >= 0
    assert 0 < extractor.last.peak_bytes < MEMORY_BYTES
    assert (
        resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 0
    )  # the limits apply to the child, not to this process
