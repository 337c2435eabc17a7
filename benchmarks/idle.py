"""What it takes to have it: CPU from the start to the first answer, memory at rest, size installed."""

from __future__ import annotations

import asyncio
import re
import tempfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from statistics import median

import uvloop

from benchmarks.client import Caller
from benchmarks.figures import Figure, tell
from benchmarks.processes import ROOT, free_port, running
from benchmarks.pulse import Pulse
from benchmarks.stage import serving, stage
from tertulia.app import new_id

RUNS = 5
MODEL = "burst-8"
REST_S = 3.0
"""The providers at hand are loaded after the first answer."""
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==", re.MULTILINE)


async def main() -> None:
    with Pulse() as pulse:
        starts = [await _start() for _ in range(RUNS)]
    cpu, memory = (median(values) for values in zip(*starts, strict=True))
    used = await _after_some_messages()
    size = installed_mb()
    rows = [
        ("CPU to the first answer, s", cpu),
        ("memory at rest, MB", memory),
        ("memory after 50 messages, MB", used),
        ("installed, MB", size),
    ]
    figures = [
        Figure("CPU to healthy", cpu, "s", 2, is_cpu=True),
        Figure("idle memory", memory, "MB", 150),
        Figure("installed size", size, "MB", 450),
    ]
    tell("idle", ("",), rows, figures, pulse)


async def _start() -> tuple[float, float]:
    """A first start: the database is made, and a provider is at hand."""
    with tempfile.TemporaryDirectory(prefix="tertulia-bench-") as folder:
        port = free_port()
        async with (
            running(["benchmarks.upstream", str(port)], port) as upstream,
            serving(Path(folder), upstream, [MODEL]) as tertulia,
        ):
            cpu = tertulia.cpu_s()
            await asyncio.sleep(REST_S)
            return cpu, tertulia.memory_mb()


async def _after_some_messages() -> float:
    async with stage([MODEL]) as here:
        caller = await Caller.connect(here.tertulia.port)
        for conversation_id in [new_id() for _ in range(10)] * 5:
            await caller.ask(here.turn(here.people[0], conversation_id, MODEL).request)
        await asyncio.sleep(REST_S)
        return here.tertulia.memory_mb()


def installed_mb() -> float:
    """Every package of requirements/run.txt with its bytecode, and Tertulia with its web interface."""
    names = set(_PIN.findall((ROOT / "requirements" / "run.txt").read_text()))
    packages = sum(_package_bytes(name) for name in names)
    own = sum(_folder_bytes(ROOT / part) for part in ("src/tertulia", "web/build"))
    return (packages + own) / 1_000_000


def _package_bytes(name: str) -> int:
    try:
        files = distribution(name).files or ()
    except PackageNotFoundError:  # for another system
        return 0
    paths = (Path(str(file.locate())) for file in files)
    return sum(path.stat().st_size for path in paths if path.is_file())


def _folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    uvloop.run(main())
