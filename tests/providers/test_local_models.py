"""Local models: the worker process starts, replies, restarts and ends with its server.

These tests run real model files from the folder of `tertulia models pull`. `make test` downloads them first;
without them these tests are skipped.
"""

import asyncio
import itertools
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import aiohttp
import psutil
import pytest

from tertulia import settings
from tertulia.core.prompts import Prompt, PromptMessage
from tertulia.processes.child import INHERITED
from tertulia.providers import model_downloads
from tertulia.providers.egress import LOOPBACK_ONLY
from tertulia.providers.interface import ModelRequest, TextDelta
from tertulia.providers.local_models import SMOLLM2, RestartBackoff
from tertulia.providers.registry import ProviderRegistry
from tests.patience import PATIENCE_S, soon, until
from tests.providers.conftest import Caller
from tests.providers.test_gguf import WHOLE

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("builtin")]
HOME = settings.read(os.environ).home
needs_weights = pytest.mark.skipif(
    not model_downloads.is_installed(model_downloads.get("smollm2"), HOME),
    reason="the weights are not here; `tertulia models pull smollm2` fetches them",
)
KEY = SMOLLM2.key


@pytest.fixture
async def local() -> AsyncIterator[Caller]:
    providers = ProviderRegistry.from_environment(
        {**os.environ, "OPENAI_API_KEY": "sk-canary-in-environment"}, HOME, LOOPBACK_ONLY
    )
    yield Caller(providers, [], max_output_tokens=40)
    await providers.close()


def children() -> list[psutil.Process]:
    """The worker processes that this test started."""
    return [process for process in psutil.Process().children() if is_model(process)]


def is_model(process: psutil.Process) -> bool:
    try:
        return "tertulia.providers.local_model_worker" in process.cmdline()
    except psutil.Error:
        return False


@needs_weights
async def test_a_local_model_replies_stops_and_restarts(local: Caller) -> None:
    """Uses a single process for the whole story, because starting it takes the time."""
    assert children() == [], "it starts with the first call, not before"
    await check_reply(local)
    await check_stop(local)
    await check_too_long_prompt(local)
    check_process_exposes_no_secret()
    await check_restart_after_kill(local)
    await local.providers.close()
    assert children() == []


async def check_reply(local: Caller) -> None:
    reply = await local.ask(KEY, "What is the capital of France?")
    assert reply.error is None
    assert reply.end is not None
    assert len(reply.text.split()) > 3, "it is a small model, but it speaks"
    assert len([item for item in reply.items if isinstance(item, TextDelta)]) > 1
    assert reply.end.count.input_tokens > 10
    assert not reply.end.count.is_estimated
    second_reply = await local.ask(KEY, "What is the capital of France?")
    assert second_reply.end is not None
    assert second_reply.end.count.cached_tokens > 0


async def check_stop(local: Caller) -> None:
    call = ModelRequest(
        SMOLLM2, Prompt("", (PromptMessage("user", "Count from one to one thousand."),)), 2000
    )

    async def listen(started: asyncio.Event) -> None:
        async with aclosing(local.providers.stream(call)) as items:
            async for _ in items:
                started.set()

    started = asyncio.Event()
    task = asyncio.create_task(listen(started))
    await asyncio.wait_for(started.wait(), PATIENCE_S)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (process,) = children()
    checks = itertools.count()
    idle_since = [next(checks)]

    def has_been_idle() -> bool:
        """An abandoned slot keeps computing: one of its threads runs or waits for a processor."""
        check = next(checks)
        if is_computing(process):
            idle_since[0] = check
        return check - idle_since[0] >= 50

    await until(has_been_idle)


def is_computing(process: psutil.Process) -> bool:
    states = Path(f"/proc/{process.pid}/task").glob("*/stat")
    return any(state.read_text().rpartition(")")[2].split()[0] == "R" for state in states)


async def check_too_long_prompt(local: Caller) -> None:
    reply = await local.ask(KEY, "word " * 9000)
    assert reply.code == "context_length"
    assert reply.error is not None
    assert reply.error.message.startswith("SmolLM2 135M holds 8,192 tokens and this needs 9,0")


def check_process_exposes_no_secret() -> None:
    (process,) = children()
    environ = process.environ()
    assert "sk-canary-in-environment" not in str(environ)
    assert set(environ) <= {*INHERITED, "LC_CTYPE"}
    assert process.cmdline()[1:] == ["-m", "tertulia.providers.local_model_worker", str(os.getpid())]
    assert {
        connection.laddr.ip for connection in process.net_connections() if connection.status == "LISTEN"
    } == {"127.0.0.1"}


async def check_restart_after_kill(local: Caller) -> None:
    (process,) = children()
    process.kill()
    reply = await local.ask(KEY, "Say hello.")
    assert reply.error is None
    assert reply.text
    (new_process,) = children()
    assert new_process.pid != process.pid


@needs_weights
async def test_the_worker_refuses_a_request_without_its_key(local: Caller) -> None:
    """Another local user who finds the port still needs the key."""
    await local.ask(KEY, "Hi.")
    (process,) = children()
    (port,) = {
        connection.laddr.port for connection in process.net_connections() if connection.status == "LISTEN"
    }
    async with aiohttp.ClientSession() as session:
        body = {"messages": [{"role": "user", "content": "Hi"}]}
        async with session.post(f"http://127.0.0.1:{port}/v1/chat/completions", json=body) as response:
            assert response.status == 401


@needs_weights
async def test_a_worker_that_is_starting_ends_when_the_server_closes(local: Caller) -> None:
    asking = asyncio.create_task(local.ask(KEY, "Hi."))
    async with soon():
        while not children():  # noqa: ASYNC110 - a process is waited for
            await asyncio.sleep(0)
    await local.providers.close()
    await asking
    assert children() == []


@needs_weights
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_worker_ends_when_its_server_is_killed() -> None:
    program = textwrap.dedent(f"""
        import asyncio, os, pathlib
        from tertulia.core.prompts import Prompt, PromptMessage
        from tertulia.providers.egress import LOOPBACK_ONLY
        from tertulia.providers.local_models import SMOLLM2
        from tertulia.providers.registry import ProviderRegistry
        from tertulia.providers.interface import ModelRequest

        async def main():
            home = pathlib.Path({str(HOME)!r})
            providers = ProviderRegistry.from_environment(os.environ, home, LOOPBACK_ONLY)
            call = ModelRequest(SMOLLM2, Prompt("", (PromptMessage("user", "Count to a thousand."),)), 2000)
            async for item in providers.stream(call):
                print("began", flush=True)

        asyncio.run(main())
    """)
    server = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert server.stdout is not None
    assert server.stdout.readline() == b"began\n"
    (worker,) = [process for process in psutil.Process(server.pid).children() if is_model(process)]
    os.kill(server.pid, signal.SIGKILL)
    server.wait()
    server.stdout.close()
    worker.wait(timeout=PATIENCE_S)
    assert not worker.is_running()


async def test_a_model_file_that_cannot_be_loaded_gives_an_error(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "broken.gguf").write_bytes(WHOLE)
    sleeps: list[float] = []

    async def sleep(seconds: float) -> None:
        sleeps.append(seconds)

    providers = ProviderRegistry.from_environment(os.environ, tmp_path, LOOPBACK_ONLY, sleep=sleep)
    reply = await Caller(providers, sleeps).ask("builtin:broken")
    await providers.close()
    assert reply.code == "unavailable"
    assert reply.error is not None
    assert reply.error.message == "The built-in model could not be started."
    assert children() == []


def test_the_restart_delay_doubles_with_each_early_death() -> None:
    backoff = RestartBackoff()
    pauses = []
    for _ in range(9):
        backoff.add(now=100.0, lived_s=1.0)
        pauses.append(max(0.0, backoff.pause_s(100.0)))
    assert pauses == [0, 2, 4, 8, 16, 32, 60, 60, 60]
    backoff.add(now=100.0, lived_s=3600.0)
    assert backoff.pause_s(100.0) <= 0


async def test_a_model_that_is_not_downloaded_names_the_command_to_fetch_it(tmp_path: Path) -> None:
    providers = ProviderRegistry.from_environment({}, tmp_path, LOOPBACK_ONLY)
    reply = await Caller(providers, []).ask(KEY)
    assert reply.code == "unavailable"
    assert reply.error is not None
    assert reply.error.message == "Run `tertulia models pull smollm2` to fetch the built-in model."
