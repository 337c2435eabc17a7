"""Stop: cancelling a call closes the connection to the provider within a second, in every phase (PF 12)."""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tertulia.providers.egress import LOOPBACK_ONLY
from tertulia.providers.interface import Completed, StreamItem, TextDelta
from tertulia.providers.registry import ProviderRegistry
from tests.patience import PATIENCE_S, soon
from tests.providers.conftest import CHAT, EVERY_DIALECT, Caller
from tests.upstream.scripted import Finish, Hold, Say, Stall, Step, Upstream, refuses

every_dialect = pytest.mark.parametrize("key", EVERY_DIALECT)


@dataclass
class Consumer:
    """Collects the stream items of one call."""

    items: list[StreamItem] = field(default_factory=list)
    started: asyncio.Event = field(default_factory=asyncio.Event)

    async def consume(self, caller: Caller, key: str) -> None:
        async with aclosing(caller.providers.stream(caller.call(key))) as items:
            async for item in items:
                self.items.append(item)
                self.started.set()


async def stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@every_dialect
async def test_stopping_before_the_first_byte_closes_the_connection(
    upstream: Upstream, caller: Caller, key: str
) -> None:
    upstream.plays((Stall(),))
    consumer = Consumer()
    task = asyncio.create_task(consumer.consume(caller, key))
    request = await upstream.wait_for_request()
    await stop(task)
    async with soon():
        await request.closed.wait()
    assert consumer.items == []


@every_dialect
async def test_stopping_in_mid_reply_closes_the_connection(
    upstream: Upstream, caller: Caller, key: str
) -> None:
    upstream.plays((Say("Let me tell you"), Stall()))
    consumer = Consumer()
    task = asyncio.create_task(consumer.consume(caller, key))
    await asyncio.wait_for(consumer.started.wait(), PATIENCE_S)
    await stop(task)
    async with soon():
        await upstream.last.closed.wait()
    assert consumer.items == [TextDelta("Let me tell you")]


@every_dialect
async def test_closing_the_stream_in_mid_reply_closes_the_connection(
    upstream: Upstream, caller: Caller, key: str
) -> None:
    upstream.plays((Say("Let me tell you"), Stall()))
    async with aclosing(caller.providers.stream(caller.call(key))) as items:
        async for _ in items:
            break
    async with soon():
        assert await upstream.last.closed.wait()


async def test_stopping_while_a_retry_is_pending_sends_no_further_request(
    upstream: Upstream, tmp_path: Path
) -> None:
    is_waiting = asyncio.Event()

    async def sleep(seconds: float) -> None:
        is_waiting.set()
        await asyncio.Event().wait()

    upstream.plays(refuses(429, retry_after="30"))
    caller = Caller(
        ProviderRegistry.from_environment(upstream.environ(), tmp_path, LOOPBACK_ONLY, sleep=sleep), []
    )
    consumer = Consumer()
    task = asyncio.create_task(consumer.consume(caller, CHAT))
    await asyncio.wait_for(is_waiting.wait(), PATIENCE_S)
    await stop(task)
    await caller.providers.close()
    assert len(upstream.requests) == 1


@every_dialect
async def test_stopping_at_the_moment_of_completion_completes_at_most_once(
    upstream: Upstream, caller: Caller, key: str
) -> None:
    gate = asyncio.Event()
    upstream.plays((Say("Almost"), Hold(gate), Finish()))
    consumer = Consumer()
    task = asyncio.create_task(consumer.consume(caller, key))
    await asyncio.wait_for(consumer.started.wait(), PATIENCE_S)
    gate.set()
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task], timeout=PATIENCE_S)
    assert task.done()
    assert sum(isinstance(item, Completed) for item in consumer.items) <= 1
    await asyncio.wait_for(upstream.last.over.wait(), PATIENCE_S)


@every_dialect
async def test_stopping_one_call_does_not_affect_another(
    upstream: Upstream, caller: Caller, key: str
) -> None:
    gate = asyncio.Event()
    steps: tuple[Step, ...] = (Say("One"), Hold(gate), Say(" two"), Finish())
    upstream.plays(steps)
    stopped_consumer = Consumer()
    stopped_task = asyncio.create_task(stopped_consumer.consume(caller, key))
    other_task = asyncio.create_task(caller.ask(key))
    await upstream.wait_for_request(2)
    await asyncio.wait_for(stopped_consumer.started.wait(), PATIENCE_S)
    await stop(stopped_task)
    gate.set()
    assert (await other_task).text == "One two"
