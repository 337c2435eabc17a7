"""How much CPU time the server spends on one short message, from the request to the end of its reply.

Once as the web asks (202 at once, the reply over a live socket that stays open) and once as one SSE request.
A conversation has five rounds; opening it, naming it and all its bookkeeping are in the figure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from statistics import median

import uvloop

from benchmarks.client import Caller, Endings, Tab
from benchmarks.figures import Figure, tell
from benchmarks.processes import Server
from benchmarks.stage import Stage, stage
from tertulia.app import new_id

MODEL = "burst-8"
RUNS = 5
MESSAGES = 100
ROUNDS = 5
SETTLE_S = 0.3
"""For what happens after a reply: the title, the last frames."""


async def main() -> None:
    async with stage([MODEL]) as here:
        tertulia = await Caller.connect(here.tertulia.port)
        tab = await Tab.connect(here.tertulia.port, here.people[0].cookie)
        relay = await Caller.connect(here.relay.port)
        ways: dict[str, tuple[Server, Callable[[], Awaitable[None]]]] = {
            "bare relay": (here.relay, lambda: _relayed(here, relay)),
            "202 and live socket": (here.tertulia, lambda: _by_socket(here, tertulia, tab)),
            "SSE": (here.tertulia, lambda: _by_sse(here, tertulia)),
        }
        for server, ask in ways.values():
            await _cpu_ms(server, ask, 10)
        runs = [[await _cpu_ms(server, ask, MESSAGES) for server, ask in ways.values()] for _ in range(RUNS)]
    middle = [median(values) for values in zip(*runs, strict=True)]
    rows = [(name, cost, cost / middle[0]) for name, cost in zip(ways, middle, strict=True)]
    figure = Figure("server CPU per short message", max(middle[1:]), "ms", bar=10, aim=6, is_cpu=True)
    tell("message_cpu", ("ms CPU", "× relay"), rows, [figure], here.pulse)


async def _cpu_ms(server: Server, ask: Callable[[], Awaitable[None]], messages: int) -> float:
    """Per message; `ask` sends a conversation's worth of them."""
    before = server.cpu_s()
    for _ in range(messages // ROUNDS):
        await ask()
    await asyncio.sleep(SETTLE_S)
    return (server.cpu_s() - before) * 1000 / messages


async def _relayed(here: Stage, relay: Caller) -> None:
    for _ in range(ROUNDS):
        await relay.ask(here.direct(MODEL, here.relay))


async def _by_sse(here: Stage, tertulia: Caller) -> None:
    conversation_id = new_id()
    for _ in range(ROUNDS):
        answer = await tertulia.ask(here.turn(here.people[0], conversation_id, MODEL).request)
        assert b'"state":"complete"' in answer.data, answer.data


async def _by_socket(here: Stage, tertulia: Caller, tab: Tab) -> None:
    conversation_id = new_id()
    place = f"conversation:{conversation_id}"
    over = Endings(tab)
    for number in range(ROUNDS):
        asked = here.turn(here.people[0], conversation_id, MODEL, accept="application/json")
        answer = await tertulia.ask(asked.request)
        assert answer.status == 202, answer.data
        if number == 0:
            tab.send({"type": "follow", "place": place, "after": 0})
        await over.wait_for(asked.turn_id)
    tab.send({"type": "leave", "place": place})


if __name__ == "__main__":
    uvloop.run(main())
