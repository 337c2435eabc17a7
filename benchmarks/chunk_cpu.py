"""How much CPU time the server spends on one streamed piece, at 50 streams of 50 a second.

The same load runs through a bare relay, through Tertulia read as 50 SSE streams, and through Tertulia read
over 50 live sockets. CPU is read while all streams run, and divided by the pieces sent meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from statistics import median

import uvloop

from benchmarks.client import Caller, Endings, Tab
from benchmarks.figures import Figure, tell
from benchmarks.processes import Server
from benchmarks.stage import Stage, replies, stage
from tertulia.app import new_id
from tertulia.core.turns import RUNNING_PER_USER

STREAMS = 50
PER_SECOND = 50
PIECES = 300
MODEL = f"paced-{PER_SECOND}-{PIECES}"
RUNS = 3
START_S = 0.8
"""The streams begin over this time, so that they do not tick together."""
WINDOW_S = 4.0


async def main() -> None:
    async with stage([MODEL], people=-(-STREAMS // RUNNING_PER_USER)) as here:
        runs = [(await _relayed(here), await _by_sse(here), await _by_socket(here)) for _ in range(RUNS)]
    relay, sse, live = (median(values) for values in zip(*runs, strict=True))
    rows = [
        (name, cost, cost / relay)
        for name, cost in (("bare relay", relay), ("SSE", sse), ("live sockets", live))
    ]
    what = f"CPU per streamed piece, {STREAMS} × {PER_SECOND}/s,"
    figures = [
        Figure(f"{what} SSE", sse, "µs", 150, 100, is_cpu=True),
        Figure(f"{what} live sockets", live, "µs", 150, 100, is_cpu=True),
    ]
    tell("chunk_cpu", ("µs CPU", "× relay"), rows, figures, here.pulse)


async def _relayed(here: Stage) -> float:
    async def read(number: int) -> None:
        answer = await _ask(here.relay, here.direct(MODEL, here.relay))
        assert answer.count(b'"content":"') == PIECES, answer

    return await _measured(here, here.relay, read)


async def _by_sse(here: Stage) -> float:
    async def read(number: int) -> None:
        person = here.people[number // RUNNING_PER_USER]
        answer = await _ask(here.tertulia, here.turn(person, new_id(), MODEL).request)
        assert [len(reply.split()) for reply in replies(answer)] == [PIECES], answer

    return await _measured(here, here.tertulia, read)


async def _by_socket(here: Stage) -> float:
    """A tab of its own for each stream."""

    async def read(number: int) -> None:
        person, conversation_id = here.people[number // RUNNING_PER_USER], new_id()
        tab = await Tab.connect(here.tertulia.port, person.cookie)
        asked = here.turn(person, conversation_id, MODEL, accept="application/json")
        await _ask(here.tertulia, asked.request)
        await tab.follow(f"conversation:{conversation_id}")
        await Endings(tab).wait_for(asked.turn_id)
        tab.close()

    return await _measured(here, here.tertulia, read)


async def _measured(here: Stage, server: Server, read: Callable[[int], Awaitable[None]]) -> float:
    """Microseconds of the server's CPU per piece while all streams run."""

    async def begin(number: int) -> None:
        await asyncio.sleep(number * START_S / STREAMS)
        await read(number)

    reading = asyncio.gather(*map(begin, range(STREAMS)))
    await asyncio.sleep(START_S + 0.5)
    cpu, pieces = server.cpu_s(), await here.pieces_sent()
    await asyncio.sleep(WINDOW_S)
    cpu, pieces = server.cpu_s() - cpu, await here.pieces_sent() - pieces
    await reading
    return cpu * 1_000_000 / pieces


async def _ask(server: Server, request: bytes) -> bytes:
    caller = await Caller.connect(server.port)
    answer = await caller.ask(request)
    caller.close()
    assert answer.status in (200, 202), answer.data
    return answer.data


if __name__ == "__main__":
    uvloop.run(main())
