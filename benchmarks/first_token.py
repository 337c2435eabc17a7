"""How much later the first word comes than from the provider itself.

The same question goes straight to the provider, through a bare relay and through Tertulia, in turn, so that
all three meet the same moments of the machine. Read as SSE and, as the web does, over the live socket.
"""

from __future__ import annotations

import asyncio
import json
import time
from statistics import median
from typing import Any

import uvloop

from benchmarks.client import Caller, Tab
from benchmarks.figures import Figure, tell
from benchmarks.stage import FIRST_PIECE, FIRST_WORDS, Stage, stage
from tertulia.app import new_id

MODEL = "paced-100-5"
RUNS = 5
QUESTIONS = 30
ROUNDS = 5
"""Questions asked in one conversation before the next begins."""


async def main() -> None:
    async with stage([MODEL]) as here:
        asking = await Asking.begin(here)
        await asking.run(ROUNDS)  # connections, caches, the tokenizer: what only a first question pays
        runs = [await asking.run(QUESTIONS) for _ in range(RUNS)]
    direct, relay, sse, live = (median(values) for values in zip(*runs, strict=True))
    rows = [
        (name, value, value - direct)
        for name, value in (("direct", direct), ("bare relay", relay), ("SSE", sse), ("live socket", live))
    ]
    figure = Figure("first word by SSE over a direct call", sse - direct, "ms", bar=8, aim=5)
    tell("first_token", ("ms", "over direct"), rows, [figure], here.pulse)


class Asking:
    """One person with three open connections and a tab."""

    def __init__(self, here: Stage, direct: Caller, relay: Caller, tertulia: Caller, tab: Tab) -> None:
        self._here = here
        self._direct, self._relay, self._tertulia, self._tab = direct, relay, tertulia, tab
        self._asked = 0
        self._spoken = self._silent = new_id()

    @classmethod
    async def begin(cls, here: Stage) -> Asking:
        return cls(
            here,
            await Caller.connect(here.upstream.port),
            await Caller.connect(here.relay.port),
            await Caller.connect(here.tertulia.port),
            await Tab.connect(here.tertulia.port, here.people[0].cookie),
        )

    async def run(self, questions: int) -> tuple[float, ...]:
        """Median milliseconds of each way."""
        times = [await self._each_way() for _ in range(questions)]
        return tuple(median(way) * 1000 for way in zip(*times, strict=True))

    async def _each_way(self) -> tuple[float, float, float, float]:
        is_new = self._asked % ROUNDS == 0
        self._asked += 1
        if is_new:
            self._spoken, self._silent = new_id(), new_id()
        return (
            (await self._direct.ask(self._here.direct(MODEL), FIRST_PIECE)).first_s,
            (await self._relay.ask(self._here.direct(MODEL, self._here.relay), FIRST_PIECE)).first_s,
            await self._by_sse(),
            await self._by_socket(is_new),
        )

    async def _by_sse(self) -> float:
        request = self._here.turn(self._here.people[0], self._spoken, MODEL).request
        answer = await self._tertulia.ask(request, FIRST_WORDS)
        assert b'"state":"complete"' in answer.data, answer.data
        return answer.first_s

    async def _by_socket(self, is_new: bool) -> float:
        """Asked in a conversation the tab follows; a new one gets a first round to be followed by."""
        first: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def listen(frame: bytes) -> None:
            items = json.loads(frame)
            if any(map(_has_words, items)) and not first.done():
                first.set_result(time.perf_counter())
            if any(map(_is_the_end, items)) and not ended.done():
                ended.set_result(None)

        request = self._here.turn(
            self._here.people[0], self._silent, MODEL, accept="application/json"
        ).request
        began = time.perf_counter()
        if is_new:
            await self._tertulia.ask(request)
            await self._tab.follow(f"conversation:{self._silent}")
            self._tab.heard = listen
            await asyncio.wait_for(ended, 10)
            return await self._by_socket(is_new=False)
        self._tab.heard = listen
        await self._tertulia.ask(request)
        await asyncio.wait_for(asyncio.gather(first, ended), 10)
        return first.result() - began


def _has_words(item: dict[str, Any]) -> bool:
    """A piece of the reply; or all of it, when it began and ended between two frames."""
    is_whole = item.get("noun") == "message" and item["value"]["role"] != "user"
    return item["type"] == "delta" or is_whole


def _is_the_end(item: dict[str, Any]) -> bool:
    return item.get("noun") == "turn" and item["value"]["state"] == "complete"


if __name__ == "__main__":
    uvloop.run(main())
