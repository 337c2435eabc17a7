"""All dialects against aimock, a provider double that another project wrote.

Our scripted upstream and our dialects could share a misunderstanding; `@copilotkit/aimock` is independent of
both.
"""

import asyncio
import fcntl
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tertulia.providers.egress import LOOPBACK_ONLY
from tertulia.providers.registry import ProviderRegistry
from tests.providers.conftest import ANTHROPIC, CHAT, EVERY_DIALECT, GOOGLE, Caller

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
async def caller(aimock: str, tmp_path: Path) -> AsyncIterator[Caller]:
    sleeps: list[float] = []

    async def sleep(seconds: float) -> None:
        sleeps.append(seconds)
        await asyncio.sleep(0)

    names = ("OPENAI", "ANTHROPIC", "GOOGLE")
    environ = {f"{name}_API_KEY": "any" for name in names} | {f"{name}_BASE_URL": aimock for name in names}
    environ["OPENAI_BASE_URL"] += "/v1"
    caller = Caller(ProviderRegistry.from_environment(environ, tmp_path, LOOPBACK_ONLY, sleep=sleep), sleeps)
    yield caller
    await caller.providers.close()


@every_dialect
async def test_a_reply_arrives_with_its_token_count(caller: Caller, key: str) -> None:
    reply = await caller.ask(key, "Greet the table.")
    assert reply.error is None
    assert reply.end is not None
    assert reply.text == "Good evening to everyone at the table, and welcome."
    assert reply.end.finish == "stop"
    assert (reply.end.count.input_tokens, reply.end.count.output_tokens) == (31, 12)


@every_dialect
async def test_thinking_arrives_apart_from_text(caller: Caller, key: str) -> None:
    reply = await caller.ask(key, "Think first.")
    assert (reply.thinking, reply.text) == ("Three and four make seven.", "Then it is seven.")


# Not RESPONSES: aimock's responses dialect differs from OpenAI's here.
@pytest.mark.parametrize("key", [CHAT, ANTHROPIC, GOOGLE])
async def test_a_reply_at_its_output_limit_finishes_with_length(caller: Caller, key: str) -> None:
    reply = await caller.ask(key, "Go on and on.")
    assert reply.end is not None
    assert (reply.text, reply.end.finish) == ("Once upon a time there was", "length")


@every_dialect
async def test_a_truncated_stream_ends_with_code_cut(caller: Caller, key: str) -> None:
    reply = await caller.ask(key, "Break off.")
    assert (reply.code, reply.end) == ("cut", None)
    assert "This sentence is much too long".startswith(reply.text[:20])


@every_dialect
async def test_a_refused_key_is_not_retried(caller: Caller, key: str) -> None:
    reply = await caller.ask(key, "Refuse me.")
    assert (reply.code, reply.retries) == ("auth", [])


@every_dialect
async def test_a_rate_limit_is_retried_twice(caller: Caller, key: str) -> None:
    reply = await caller.ask(key, "Be busy.")
    assert (reply.code, len(reply.retries)) == ("rate_limited", 2)
