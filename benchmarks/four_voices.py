"""Four models in one round: how much later the last of them is complete than four direct calls at once."""

from __future__ import annotations

import asyncio
import time
from statistics import median

import uvloop

from benchmarks.client import Caller
from benchmarks.figures import Figure, tell
from benchmarks.processes import Server
from benchmarks.stage import Stage, replies, stage
from tertulia.app import new_id

PIECES = (7, 8, 9, 10)
MODELS = tuple(f"paced-100-{pieces}" for pieces in PIECES)
RUNS = 5
QUESTIONS = 20
ROUNDS = 5


async def main() -> None:
    async with stage(MODELS) as here:
        direct = [await Caller.connect(here.upstream.port) for _ in MODELS]
        relay = [await Caller.connect(here.relay.port) for _ in MODELS]
        tertulia = await Caller.connect(here.tertulia.port)
        runs = []
        for _ in range(RUNS + 1):
            times = [
                (
                    await _together(here, here.upstream, direct),
                    await _together(here, here.relay, relay),
                    await _round(here, tertulia, conversation_id),
                )
                for conversation_id in [new_id() for _ in range(QUESTIONS // ROUNDS)] * ROUNDS
            ]
            runs.append([median(way) * 1000 for way in zip(*times, strict=True)])
    # The first run pays for connections, caches and the tokenizer.
    direct_ms, relay_ms, ours = (median(values) for values in zip(*runs[1:], strict=True))
    rows = [
        (name, value, value - direct_ms)
        for name, value in (("direct", direct_ms), ("bare relay", relay_ms), ("Tertulia", ours))
    ]
    figure = Figure("four voices, all complete, over direct", ours - direct_ms, "ms", bar=20)
    tell("four_voices", ("ms", "over direct"), rows, [figure], here.pulse)


async def _together(here: Stage, server: Server, callers: list[Caller]) -> float:
    began = time.perf_counter()
    requests = [here.direct(model, server) for model in MODELS]
    await asyncio.gather(*(caller.ask(request) for caller, request in zip(callers, requests, strict=True)))
    return time.perf_counter() - began


async def _round(here: Stage, tertulia: Caller, conversation_id: str) -> float:
    answer = await tertulia.ask(here.turn(here.people[0], conversation_id, *MODELS).request)
    assert {len(reply.split()) for reply in replies(answer.data)} == set(PIECES), answer.data
    return answer.whole_s


if __name__ == "__main__":
    uvloop.run(main())
