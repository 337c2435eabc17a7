"""Processes under measurement: started on a free port, their CPU time and memory read from /proc, ended."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
START_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Server:
    """A server in a process of its own."""

    pid: int
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def cpu_s(self) -> float:
        """CPU time so far, of the process with its threads and of all its children, living and ended."""
        return sum(_cpu_s(pid) for pid in family(self.pid))

    def memory_mb(self) -> float:
        return sum(_resident_mb(pid) for pid in family(self.pid))


@asynccontextmanager
async def running(
    module: Sequence[str], port: int, environ: Mapping[str, str] | None = None, path: str = "/stats"
) -> AsyncIterator[Server]:
    """`python -m module…`, from its first answer on `path` to the end of the block."""
    process = _started(module, environ or {})
    server = Server(process.pid, port)
    try:
        await _until_it_answers(process, port, path)
        yield server
    finally:
        await asyncio.to_thread(_end, process)


def _started(module: Sequence[str], environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", *module],
        cwd=ROOT,
        env=_environment(environ),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    """Nothing of the person's own: a key in the environment would bring in a provider, and its cost."""
    kept = {
        name: os.environ[name]
        for name in ("PATH", "PYTHONPATH", "HOME", "LANG", "TMPDIR")
        if name in os.environ
    }
    return kept | {"NO_PROXY": "*"} | dict(given)


async def _until_it_answers(process: subprocess.Popen[bytes], port: int, path: str) -> None:
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode()
    until = time.monotonic() + START_LIMIT_S
    while time.monotonic() < until:
        if process.poll() is not None:
            assert process.stderr is not None
            raise SystemExit(f"{process.args!r} did not start:\n{process.stderr.read().decode()[-2000:]}")
        if await _answers(port, request):
            return
        await asyncio.sleep(0.01)
    raise SystemExit(f"{process.args!r} did not answer within {START_LIMIT_S:.0f} s.")


async def _answers(port: int, request: bytes) -> bool:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        status = await asyncio.wait_for(reader.readline(), 5)
        writer.close()
    except (OSError, TimeoutError):
        return False
    return b" 200 " in status


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def free_port() -> int:
    """Below the ports of outgoing connections: whoever waits for a server must not be given its port."""
    while True:
        port = random.randrange(20_000, 30_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def family(pid: int) -> list[int]:
    """The process and all that descend from it."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(one for child in children for one in family(int(child)))]


def _cpu_s(pid: int) -> float:
    """User and system time, its ended children's included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) * TICK_S


def _resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1000
