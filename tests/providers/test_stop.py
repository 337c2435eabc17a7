"""Stop reaches the provider within a second, in whatever phase (PF 12)."""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tertulia.providers.houses import Providers
from tertulia.providers.seam import End, Piece, Text
from tests.patience import PATIENCE_S, soon
from tests.providers.conftest import CHAT, EVERY_DIALECT, Listener
from tests.upstream.scripted import Finish, Hold, Say, Stall, Step, Upstream, refuses

every_dialect = pytest.mark.parametrize("key", EVERY_DIALECT)


@dataclass
class Hearing:
    """What one task has heard so far."""

    pieces: list[Piece] = field(default_factory=list)
    began: asyncio.Event = field(default_factory=asyncio.Event)

    async def listen(self, listener: Listener, key: str) -> None:
        async with aclosing(listener.providers.stream(listener.call(key))) as pieces:
            async for piece in pieces:
                self.pieces.append(piece)
                self.began.set()


async def stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@every_dialect
async def test_stopping_before_the_first_byte_closes_the_line(
    upstream: Upstream, listener: Listener, key: str
) -> None:
    upstream.plays((Stall(),))
    heard = Hearing()
    task = asyncio.create_task(heard.listen(listener, key))
    seen = await upstream.heard()
    await stop(task)
    async with soon():
        await seen.closed.wait()
    assert heard.pieces == []


@every_dialect
async def test_stopping_in_mid_sentence_closes_the_line(
    upstream: Upstream, listener: Listener, key: str
) -> None:
    upstream.plays((Say("Let me tell you"), Stall()))
    heard = Hearing()
    task = asyncio.create_task(heard.listen(listener, key))
    await asyncio.wait_for(heard.began.wait(), PATIENCE_S)
    await stop(task)
    async with soon():
        await upstream.last.closed.wait()
    assert heard.pieces == [Text("Let me tell you")]


@every_dialect
async def test_leaving_in_mid_sentence_closes_the_line_too(
    upstream: Upstream, listener: Listener, key: str
) -> None:
    upstream.plays((Say("Let me tell you"), Stall()))
    async with aclosing(listener.providers.stream(listener.call(key))) as pieces:
        async for _ in pieces:
            break
    async with soon():
        assert await upstream.last.closed.wait()


async def test_stopping_during_a_wait_asks_nobody_again(upstream: Upstream, tmp_path: Path) -> None:
    waiting = asyncio.Event()

    async def sleep(seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    upstream.plays(refuses(429, retry_after="30"))
    patient = Listener(Providers.from_environment(upstream.environ(), tmp_path, sleep=sleep), [])
    heard = Hearing()
    task = asyncio.create_task(heard.listen(patient, CHAT))
    await asyncio.wait_for(waiting.wait(), PATIENCE_S)
    await stop(task)
    await patient.providers.close()
    assert len(upstream.requests) == 1


@every_dialect
async def test_stopping_in_the_moment_of_completion_leaves_one_end_at_most(
    upstream: Upstream, listener: Listener, key: str
) -> None:
    gate = asyncio.Event()
    upstream.plays((Say("Almost"), Hold(gate), Finish()))
    heard = Hearing()
    task = asyncio.create_task(heard.listen(listener, key))
    await asyncio.wait_for(heard.began.wait(), PATIENCE_S)
    gate.set()
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task], timeout=PATIENCE_S)
    assert task.done()
    assert sum(isinstance(piece, End) for piece in heard.pieces) <= 1
    await asyncio.wait_for(upstream.last.over.wait(), PATIENCE_S)


@every_dialect
async def test_one_stopped_call_leaves_the_others_alone(
    upstream: Upstream, listener: Listener, key: str
) -> None:
    gate = asyncio.Event()
    steps: tuple[Step, ...] = (Say("One"), Hold(gate), Say(" two"), Finish())
    upstream.plays(steps)
    stopped = Hearing()
    first = asyncio.create_task(stopped.listen(listener, key))
    second = asyncio.create_task(listener.ask(key))
    await upstream.heard(2)
    await asyncio.wait_for(stopped.began.wait(), PATIENCE_S)
    await stop(first)
    gate.set()
    assert (await second).text == "One two"
