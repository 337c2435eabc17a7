"""Supervised processes: the time limit, the idle timer, the stop, and what a process is given."""

from __future__ import annotations

import asyncio
import json
import os
import select
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pytest

from tertulia.processes.child import ChildProcess, Process, Program, allowed_environment, spawn
from tertulia.processes.timers import IdleTimer
from tertulia.processes.worker import NICENESS
from tests.patience import PATIENCE_S
from tests.timers import Timers

ROOT = Path(__file__).parents[2]
LIMIT_S = 30.0
NOTHING = Program("nothing")


@dataclass
class FakeProcess:
    """A process that ends only when it is killed."""

    calls: list[str] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)
    pid: int = 7
    stdin: IO[bytes] | None = None
    stdout: IO[bytes] | None = None

    def poll(self) -> int | None:
        return -9 if self.ended.is_set() else None

    def wait(self, timeout: float | None = None) -> int:
        self.calls.append(f"wait {timeout}")
        if timeout is not None:
            raise subprocess.TimeoutExpired("nothing", timeout)
        return -9

    def kill(self) -> None:
        self.calls.append("kill")
        self.ended.set()


@dataclass
class Spawned:
    """Starts fake processes and records the programs."""

    process: FakeProcess = field(default_factory=FakeProcess)
    programs: list[Program] = field(default_factory=list)

    def __call__(self, program: Program) -> FakeProcess:
        self.programs.append(program)
        return self.process


def supervised(spawned: Spawned, timers: Timers) -> ChildProcess:
    return ChildProcess(NOTHING, lambda: timers, spawned)


async def test_a_process_that_exceeds_its_time_limit_is_killed() -> None:
    spawned, timers = Spawned(), Timers()
    child = supervised(spawned, timers)
    child.start()
    working = asyncio.create_task(child.within(LIMIT_S, lambda: spawned.process.ended.wait(PATIENCE_S)))
    while not timers.due:  # noqa: ASYNC110 - the task has to run first
        await asyncio.sleep(0)
    timers.move(LIMIT_S - 1)
    assert not child.has_ended
    timers.move(1)
    assert await working
    assert spawned.process.calls == ["kill"]
    assert child.has_ended


async def test_a_process_that_answers_in_time_is_not_killed_later() -> None:
    spawned, timers = Spawned(), Timers()
    child = supervised(spawned, timers)
    child.start()
    assert await child.within(LIMIT_S, lambda: "an answer") == "an answer"
    timers.move(LIMIT_S * 2)
    assert spawned.process.calls == []


def test_a_process_stopped_before_its_start_is_never_started() -> None:
    spawned = Spawned()
    child = supervised(spawned, Timers())
    assert not child.has_ended
    child.stop()
    with pytest.raises(EOFError):
        child.start()
    assert spawned.programs == []
    assert child.has_ended


def test_a_stop_with_grace_waits_before_it_kills() -> None:
    spawned = Spawned()
    child = supervised(spawned, Timers())
    child.start()
    child.stop(grace_s=0.5)
    assert spawned.process.calls == ["wait 0.5", "kill", "wait None"]


def test_a_stop_without_grace_kills_at_once() -> None:
    spawned = Spawned()
    child = supervised(spawned, Timers())
    child.start()
    child.stop()
    assert spawned.process.calls == ["kill", "wait None"]


def test_a_process_without_pipes_cannot_be_written_to() -> None:
    child = supervised(Spawned(), Timers())
    for _ in range(2):
        with pytest.raises(EOFError):
            child.stdin.write(b"hello")
        child.start()


async def test_the_idle_timer_fires_once_after_the_last_use() -> None:
    timers, fired = Timers(), []
    timer = IdleTimer(60.0, lambda: fired.append(timers.now), lambda: timers)
    timer.restart()
    timers.move(50)
    timer.restart()
    timers.move(59)
    assert fired == []
    timers.move(500)
    assert fired == [110.0]


async def test_a_cancelled_idle_timer_does_not_fire() -> None:
    timers, fired = Timers(), []
    timer = IdleTimer(60.0, lambda: fired.append(timers.now), lambda: timers)
    timer.cancel()
    timer.restart()
    timer.cancel()
    timers.move(500)
    assert fired == []


# ── a real process


@pytest.fixture
def child() -> Iterator[ChildProcess]:
    environ = {**os.environ, "OPENAI_API_KEY": "sk-canary", "PYTHONPATH": str(ROOT)}
    program = Program("tests.processes.reporting", ("an argument",), allowed_environment(environ))
    child = ChildProcess(program, asyncio.get_running_loop)
    child.start()
    yield child
    child.stop()


def report(child: ChildProcess) -> Any:
    return json.loads(child.stdout.readline())


def test_a_process_inherits_no_secret_of_the_environment(child: ChildProcess) -> None:
    environ = report(child)["environ"]
    assert environ["PYTHONPATH"] == str(ROOT)
    assert "OPENAI_API_KEY" not in environ


def test_a_process_yields_to_its_parent_and_leaves_interrupts_to_it(child: ChildProcess) -> None:
    found = report(child)
    assert found["arguments"] == ["an argument"]
    assert found["niceness"] == min(19, os.nice(0) + NICENESS)
    assert found["core_bytes"] == 0
    assert found["ignores_interrupts"]


def test_a_stop_with_grace_lets_a_process_end_by_itself() -> None:
    started: list[Process] = []

    def recording(program: Program) -> Process:
        started.append(spawn(program))
        return started[-1]

    program = Program("tests.processes.reporting", (), {"PYTHONPATH": str(ROOT)})
    child = ChildProcess(program, asyncio.get_running_loop, recording)
    child.start()
    report(child)
    child.stop(grace_s=PATIENCE_S)
    assert [process.poll() for process in started] == [0]


def test_a_process_exits_at_once_when_its_expected_parent_is_gone() -> None:
    """The parent may die before the process has asked the kernel to end with it."""
    command = [sys.executable, "-m", "tests.processes.reporting", "1"]
    ended = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
    assert (ended.returncode, ended.stdout) == (0, b"")


@pytest.mark.skipif(sys.platform != "linux", reason="the Linux kernel kills it")
def test_a_process_dies_when_its_parent_is_killed() -> None:
    code = (
        "import asyncio, os, sys\n"
        "from tertulia.processes.child import ChildProcess, Program\n"
        "program = Program('tests.processes.reporting', ('stays',), {'PYTHONPATH': os.getcwd()})\n"
        "child = ChildProcess(program, asyncio.get_running_loop)\n"
        "child.start()\n"
        "child.stdout.readline()\n"
        "print(child.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = os.pidfd_open(int(parent.stdout.readline()))
        parent.kill()
    ended, _, _ = select.select([child], [], [], PATIENCE_S)
    os.close(child)
    assert ended
