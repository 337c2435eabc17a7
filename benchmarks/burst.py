"""200 streams started within two seconds: how many fail, and how much longer the whole takes than without us.

25 people send 8 questions each, one every 10 ms; each answer is 60 pieces at 20 a second. A stream fails
unless every word of it arrives and its turn ends as complete.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from statistics import median

import uvloop

from benchmarks.client import Caller
from benchmarks.figures import Figure, tell
from benchmarks.processes import Server
from benchmarks.stage import FIRST_PIECE, FIRST_WORDS, replies, stage
from tertulia.app import new_id
from tertulia.core.turns import RUNNING_PER_USER

STREAMS = 200
WITHIN_S = 2.0
PIECES = 60
MODEL = f"paced-20-{PIECES}"
RUNS = 3

Check = Callable[[bytes], bool]


async def main() -> None:
    async with stage([MODEL], people=-(-STREAMS // RUNNING_PER_USER)) as here:
        runs = []
        for _ in range(RUNS):
            turns = [
                here.turn(here.people[number // RUNNING_PER_USER], new_id(), MODEL).request
                for number in range(STREAMS)
            ]
            runs.append(
                (
                    await _all(here.upstream, [here.direct(MODEL)] * STREAMS, FIRST_PIECE, _is_whole),
                    await _all(
                        here.relay, [here.direct(MODEL, here.relay)] * STREAMS, FIRST_PIECE, _is_whole
                    ),
                    await _all(here.tertulia, turns, FIRST_WORDS, _is_complete),
                )
            )
    direct, relay, tertulia = ([run[way] for run in runs] for way in range(3))
    rows = [
        _row(name, outcomes, direct)
        for name, outcomes in (("direct", direct), ("bare relay", relay), ("Tertulia", tertulia))
    ]
    ratios = [ours.wall_s / theirs.wall_s for ours, theirs in zip(tertulia, direct, strict=True)]
    failed = max(outcome.failed for outcome in tertulia)
    tell(
        "burst",
        ("failed", "wall s", "× direct", "first ms p50", "first ms p99"),
        rows,
        [Figure("wall against direct", median(ratios), "×", 1.2), Figure("failed streams", failed, "", 0)],
        here.pulse,
    )


class Outcome:
    def __init__(self, wall_s: float, firsts: Sequence[float]) -> None:
        self.wall_s = wall_s
        self.failed = STREAMS - len(firsts)
        ordered = sorted(firsts) or [0.0]
        self.p50_ms = ordered[len(ordered) // 2] * 1000
        self.p99_ms = ordered[len(ordered) * 99 // 100] * 1000


def _row(name: str, outcomes: Sequence[Outcome], direct: Sequence[Outcome]) -> tuple[object, ...]:
    return (
        name,
        max(outcome.failed for outcome in outcomes),
        median(outcome.wall_s for outcome in outcomes),
        median(ours.wall_s / theirs.wall_s for ours, theirs in zip(outcomes, direct, strict=True)),
        median(outcome.p50_ms for outcome in outcomes),
        median(outcome.p99_ms for outcome in outcomes),
    )


async def _all(server: Server, requests: Sequence[bytes], awaited: bytes, is_good: Check) -> Outcome:
    began = time.perf_counter()
    pause = WITHIN_S / len(requests)
    firsts = await asyncio.gather(
        *(
            _one(server.port, request, number * pause, awaited, is_good)
            for number, request in enumerate(requests)
        )
    )
    return Outcome(time.perf_counter() - began, [first for first in firsts if first is not None])


async def _one(port: int, request: bytes, after_s: float, awaited: bytes, is_good: Check) -> float | None:
    """Seconds to the first word; None when the stream failed."""
    await asyncio.sleep(after_s)
    try:
        caller = await Caller.connect(port)
        answer = await caller.ask(request, awaited)
    except (OSError, TimeoutError):
        return None
    caller.close()
    return answer.first_s if answer.status == 200 and is_good(answer.data) else None


def _is_whole(data: bytes) -> bool:
    return data.count(FIRST_PIECE) == PIECES and b"[DONE]" in data


def _is_complete(data: bytes) -> bool:
    return [len(reply.split()) for reply in replies(data)] == [PIECES]


if __name__ == "__main__":
    uvloop.run(main())
