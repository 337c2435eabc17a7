"""The same turns against a double of the providers that somebody else wrote.

Our scripted upstream and our dialects could share a misunderstanding; `@copilotkit/aimock` does not know us.
"""

import asyncio
import fcntl
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tertulia.providers.houses import Providers
from tests.providers.conftest import ANTHROPIC, CHAT, EVERY_DIALECT, GOOGLE, Listener

HERE = Path(__file__).parent.parent / "aimock"
NODE = [sys.executable, str(HERE.parent.parent / "scripts" / "node.py")]
PROGRAM = HERE / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"

pytestmark = pytest.mark.slow
every_dialect = pytest.mark.parametrize("key", EVERY_DIALECT)


@pytest.fixture(scope="module")
def aimock() -> Iterator[str]:
    install()
    options = ["-p", "0", "-f", "fixtures.json", "--latency", "5"]
    double = subprocess.Popen(
        [*NODE, "node", str(PROGRAM), *options], cwd=HERE, stdout=subprocess.PIPE, text=True
    )
    assert double.stdout is not None
    for line in double.stdout:
        if "listening on " in line:
            yield line.rpartition("listening on ")[2].strip()
            break
    double.terminate()
    double.wait(10)
    double.stdout.close()


def install() -> None:
    with (HERE / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not PROGRAM.exists():
            subprocess.run([*NODE, "npm", "ci", "--ignore-scripts", "--silent"], cwd=HERE, check=True)


@pytest.fixture
async def listener(aimock: str, tmp_path: Path) -> AsyncIterator[Listener]:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await asyncio.sleep(0)

    names = ("OPENAI", "ANTHROPIC", "GOOGLE")
    environ = {f"{name}_API_KEY": "any" for name in names} | {f"{name}_BASE_URL": aimock for name in names}
    environ["OPENAI_BASE_URL"] += "/v1"
    listener = Listener(Providers.from_environment(environ, tmp_path, sleep=sleep), slept)
    yield listener
    await listener.providers.close()


@every_dialect
async def test_an_answer_and_its_count(listener: Listener, key: str) -> None:
    heard = await listener.ask(key, "Greet the table.")
    assert heard.fault is None
    assert heard.end is not None
    assert heard.text == "Good evening to everyone at the table, and welcome."
    assert heard.end.finish == "stop"
    assert (heard.end.count.input_tokens, heard.end.count.output_tokens) == (31, 12)


@every_dialect
async def test_thoughts_and_words(listener: Listener, key: str) -> None:
    heard = await listener.ask(key, "Think first.")
    assert (heard.thinking, heard.text) == ("Three and four make seven.", "Then it is seven.")


@pytest.mark.parametrize("key", [CHAT, ANTHROPIC, GOOGLE])  # It tells this of responses as nobody else does.
async def test_an_answer_that_reached_its_limit(listener: Listener, key: str) -> None:
    heard = await listener.ask(key, "Go on and on.")
    assert heard.end is not None
    assert (heard.text, heard.end.finish) == ("Once upon a time there was", "length")


@every_dialect
async def test_an_answer_that_broke_off(listener: Listener, key: str) -> None:
    heard = await listener.ask(key, "Break off.")
    assert (heard.code, heard.end) == ("cut", None)
    assert "This sentence is much too long".startswith(heard.text[:20])


@every_dialect
async def test_a_key_that_was_refused(listener: Listener, key: str) -> None:
    heard = await listener.ask(key, "Refuse me.")
    assert (heard.code, heard.waits) == ("auth", [])


@every_dialect
async def test_a_provider_that_is_busy(listener: Listener, key: str) -> None:
    heard = await listener.ask(key, "Be busy.")
    assert (heard.code, len(heard.waits)) == ("rate_limited", 2)
