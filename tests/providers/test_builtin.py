"""The built-in model: really there, really answering, and gone when its server is.

These run the real weights, from the folder where `tertulia models pull` puts them; `make test` fetches them
first, and without them these tests are skipped.
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
from tertulia.providers import assets, builtin
from tertulia.providers.builtin import SMOLLM2, Deaths
from tertulia.providers.houses import Providers
from tertulia.providers.seam import Call, Text
from tests.patience import PATIENCE_S, soon, until
from tests.providers.conftest import Listener
from tests.providers.test_gguf import WHOLE

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("builtin")]
HOME = settings.read(os.environ).home
needs_weights = pytest.mark.skipif(
    not assets.is_installed(assets.get("smollm2"), HOME),
    reason="the weights are not here; `tertulia models pull smollm2` fetches them",
)
KEY = SMOLLM2.key


@pytest.fixture
async def local() -> AsyncIterator[Listener]:
    providers = Providers.from_environment({**os.environ, "OPENAI_API_KEY": "sk-canary-in-environment"}, HOME)
    yield Listener(providers, [], max_output_tokens=40)
    await providers.close()


def children() -> list[psutil.Process]:
    """The processes of built-in models that we started."""
    return [child for child in psutil.Process().children() if is_model(child)]


def is_model(process: psutil.Process) -> bool:
    try:
        return "tertulia.providers.builtin_server" in process.cmdline()
    except psutil.Error:
        return False


@needs_weights
async def test_it_answers_streams_stops_and_comes_back(local: Listener) -> None:
    """One process for the whole story: starting it is what takes the time."""
    assert children() == [], "it starts with the first call, not before"
    await answers(local)
    await stops(local)
    await says_when_a_prompt_is_too_long(local)
    keeps_no_secret_where_others_can_read_it()
    await comes_back_when_it_was_killed(local)
    await local.providers.close()
    assert children() == []


async def answers(local: Listener) -> None:
    heard = await local.ask(KEY, "What is the capital of France?")
    assert heard.fault is None
    assert heard.end is not None
    assert len(heard.text.split()) > 3, "it is a small model, but it speaks"
    assert len([piece for piece in heard.pieces if isinstance(piece, Text)]) > 1
    assert heard.end.count.input_tokens > 10
    assert not heard.end.count.is_estimated
    again = await local.ask(KEY, "What is the capital of France?")
    assert again.end is not None
    assert again.end.count.cached_tokens > 0


async def stops(local: Listener) -> None:
    call = Call(SMOLLM2, Prompt("", (PromptMessage("user", "Count from one to one thousand."),)), 2000)

    async def listen(began: asyncio.Event) -> None:
        async with aclosing(local.providers.stream(call)) as pieces:
            async for _ in pieces:
                began.set()

    began = asyncio.Event()
    task = asyncio.create_task(listen(began))
    await asyncio.wait_for(began.wait(), PATIENCE_S)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (child,) = children()
    looks = itertools.count()
    rests_since = [next(looks)]

    def has_rested() -> bool:
        """A slot that was left goes on computing: one of its threads runs, or waits for a processor to."""
        look = next(looks)
        if is_computing(child):
            rests_since[0] = look
        return look - rests_since[0] >= 50

    await until(has_rested)


def is_computing(child: psutil.Process) -> bool:
    states = Path(f"/proc/{child.pid}/task").glob("*/stat")
    return any(state.read_text().rpartition(")")[2].split()[0] == "R" for state in states)


async def says_when_a_prompt_is_too_long(local: Listener) -> None:
    heard = await local.ask(KEY, "word " * 9000)
    assert heard.code == "context_length"
    assert heard.fault is not None
    assert heard.fault.message.startswith("SmolLM2 135M holds 8,192 tokens and this needs 9,0")


def keeps_no_secret_where_others_can_read_it() -> None:
    (child,) = children()
    environ = child.environ()
    assert "sk-canary-in-environment" not in str(environ)
    assert set(environ) <= {*builtin.INHERITED, "LC_CTYPE"}
    assert child.cmdline()[1:] == ["-m", "tertulia.providers.builtin_server"]
    assert {
        connection.laddr.ip for connection in child.net_connections() if connection.status == "LISTEN"
    } == {"127.0.0.1"}


async def comes_back_when_it_was_killed(local: Listener) -> None:
    (child,) = children()
    child.kill()
    heard = await local.ask(KEY, "Say hello.")
    assert heard.fault is None
    assert heard.text
    (reborn,) = children()
    assert reborn.pid != child.pid


@needs_weights
async def test_a_second_server_key_is_not_the_first(local: Listener) -> None:
    """Whoever finds the port still needs the key."""
    await local.ask(KEY, "Hi.")
    (child,) = children()
    (port,) = {c.laddr.port for c in child.net_connections() if c.status == "LISTEN"}
    async with aiohttp.ClientSession() as session:
        body = {"messages": [{"role": "user", "content": "Hi"}]}
        async with session.post(f"http://127.0.0.1:{port}/v1/chat/completions", json=body) as response:
            assert response.status == 401


@needs_weights
async def test_one_that_is_being_born_when_its_server_closes_does_not_stay(local: Listener) -> None:
    asking = asyncio.create_task(local.ask(KEY, "Hi."))
    async with soon():
        while not children():  # noqa: ASYNC110 - a process is waited for
            await asyncio.sleep(0)
    await local.providers.close()
    await asking
    assert children() == []


@needs_weights
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_it_does_not_outlive_a_server_that_was_killed() -> None:
    program = textwrap.dedent(f"""
        import asyncio, os, pathlib
        from tertulia.core.prompts import Prompt, PromptMessage
        from tertulia.providers.builtin import SMOLLM2
        from tertulia.providers.houses import Providers
        from tertulia.providers.seam import Call

        async def main():
            providers = Providers.from_environment(os.environ, pathlib.Path({str(HOME)!r}))
            call = Call(SMOLLM2, Prompt("", (PromptMessage("user", "Count to a thousand."),)), 2000)
            async for piece in providers.stream(call):
                print("began", flush=True)

        asyncio.run(main())
    """)
    server = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert server.stdout is not None
    assert server.stdout.readline() == b"began\n"
    (model,) = [child for child in psutil.Process(server.pid).children() if is_model(child)]
    os.kill(server.pid, signal.SIGKILL)
    server.wait()
    server.stdout.close()
    model.wait(timeout=PATIENCE_S)
    assert not model.is_running()


async def test_weights_that_cannot_be_loaded_are_told(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "broken.gguf").write_bytes(WHOLE)
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    providers = Providers.from_environment(os.environ, tmp_path, sleep=sleep)
    heard = await Listener(providers, slept).ask("builtin:broken")
    await providers.close()
    assert heard.code == "unavailable"
    assert heard.fault is not None
    assert heard.fault.message == "The built-in model could not be started."
    assert children() == []


def test_a_process_that_keeps_dying_is_left_alone_for_longer_each_time() -> None:
    deaths = Deaths()
    pauses = []
    for _ in range(9):
        deaths.add(now=100.0, lived_s=1.0)
        pauses.append(max(0.0, deaths.pause_s(100.0)))
    assert pauses == [0, 2, 4, 8, 16, 32, 60, 60, 60]
    deaths.add(now=100.0, lived_s=3600.0)
    assert deaths.pause_s(100.0) <= 0


async def test_a_model_that_was_not_fetched_says_how(tmp_path: Path) -> None:
    providers = Providers.from_environment({}, tmp_path)
    heard = await Listener(providers, []).ask(KEY)
    assert heard.code == "unavailable"
    assert heard.fault is not None
    assert heard.fault.message == "Run `tertulia models pull smollm2` to fetch the built-in model."
