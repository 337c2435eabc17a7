"""Durability: what a response acknowledges is synced to the disk, not only written."""

from __future__ import annotations

import asyncio
import re
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

from tertulia.store.sql import sql
from tests.engine.serving import Sender, served
from tests.patience import soon
from tests.upstream.scripted import Hold
from tests.world import endpoints

TRACED = "openat,pwrite64,fdatasync,fsync,write,writev,sendto,sendmsg"
FULL = 2


async def test_the_database_syncs_on_every_commit(engine):
    sync, journal = await engine.db.write(
        lambda tx: (tx.one(sql("PRAGMA synchronous"))[0], tx.one(sql("PRAGMA journal_mode"))[0])
    )
    assert (sync, journal) == (FULL, "wal")


async def test_a_round_is_on_disk_when_its_request_is_answered(engine, tmp_path, upstream):
    """Reads the database from another connection at the moment of the response."""
    held = asyncio.Event()
    upstream.plays((Hold(held),))
    for number in range(1, 6):
        opened = await engine.open(f"Round {number}")
        copy = tmp_path / str(number)
        copy.mkdir()
        for name in ("tertulia.db", "tertulia.db-wal"):
            shutil.copyfile(tmp_path / name, copy / name)
        found = sqlite3.connect(copy / "tertulia.db")
        [(content, state)] = found.execute(
            "SELECT m.content, t.state FROM turns AS t "
            "JOIN conversation_messages AS m ON m.turn_id = t.id WHERE t.id = ?",
            [opened.turn.id],
        ).fetchall()
        found.close()
        assert (content, state) == (f"Round {number}", "running")


@pytest.mark.slow
async def test_the_journal_is_synced_before_the_first_byte_of_the_response(tmp_path: Path, upstream):
    """The system calls of a server, in order."""
    trace = tmp_path / "trace"
    # -D: the tracer stands beside the server, so that a signal to the server is one to the server.
    tracer = ("strace", "-D", "-f", "--seccomp-bpf", "-s", "40", "-e", f"trace={TRACED}", "-o", str(trace))
    if not can_trace(tracer):
        pytest.skip("strace is missing or not allowed here: the order of sync and answer was NOT checked")
    held = asyncio.Event()
    upstream.plays((Hold(held),))
    async with served(tmp_path / "home", {"TERTULIA_ENDPOINTS": endpoints(upstream)}, *tracer) as server:
        ada = Sender(server)
        await ada.set_up()
        for number in range(5):
            assert (await ada.send(f"Round {number}", "alpha")).opened is not None
        assert await server.terminate() == 0
    answers = before_each_answer(await written(trace))
    assert len(answers) >= 6
    assert set(answers) == {"synced"}


async def written(trace: Path) -> str:
    """The trace, once it is complete."""
    said = ""
    async with soon():
        while "+++ exited with 0 +++" not in said[-200:]:
            said = await asyncio.to_thread(trace.read_text, "utf-8", "replace")
    return said


def before_each_answer(trace: str) -> list[str]:
    """For each response 201 and 202, the last action on the journal before it: "written" or "synced"."""
    journal, last, answers = None, "", []
    for line in trace.splitlines():
        if opened := re.search(r'openat\(.*tertulia\.db-wal".*= (\d+)', line):
            journal = opened[1]
        elif journal and f"pwrite64({journal}," in line:
            last = "written"
        elif re.search(rf"fdatasync\({journal}\)\s+= 0|<\.\.\. fdatasync resumed>.*= 0", line):
            last = "synced"
        elif re.search(r'"HTTP/1\.1 20[12] ', line):
            answers.append(last)
    return answers


def can_trace(tracer: tuple[str, ...]) -> bool:
    try:
        return subprocess.run([*tracer, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False
