"""Node relay: bundles that are lost, late or repeated leave no gap and no duplicate."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tertulia.app import new_id
from tertulia.core.conversations import Visibility
from tertulia.core.messages import Role
from tertulia.core.turns import Draft, Purpose, RetryNotice, Turn, TurnState
from tertulia.core.voices import Voice
from tertulia.engine.live import LiveHub
from tertulia.engine.live_turn import LiveReply, LiveTurn
from tertulia.engine.node_relay import UNSENT_LIMIT, NodeRelay, RelayCommand, StopRequest

ALPHA = Voice("house:alpha:0", 1, "Alpha", "house:alpha")
TURN = Turn("t", "c", 1, Purpose.ASK, "quick", (ALPHA,), Visibility.OPEN, TurnState.RUNNING, "u", 0)
DRAFT = Draft("r", "t", "c", 1, ALPHA, Role.ADVISOR, "", "", 0, 0)


class Line:
    """The channel between two nodes; its messages wait until a test delivers them."""

    is_shared = True

    def __init__(self) -> None:
        self.said: list[str] = []
        self.hear: Callable[[str], None] = lambda text: None

    def on_notify(self, listener: Callable[[str], None]) -> None:
        self.hear = listener

    async def notify(self, text: str) -> None:
        self.said.append(text)


class Server:
    def __init__(self) -> None:
        self.line, self.live = Line(), LiveHub()
        self.wishes: list[RelayCommand] = []
        self.relay = NodeRelay(self.line, self.live, new_id, str)  # type: ignore[arg-type]
        self.relay.on_command(self.wishes.append)

    async def tells(self, other: Server) -> None:
        await self.relay.flush()
        for text in self.line.said:
            other.line.hear(text)
        self.line.said.clear()


@pytest.fixture
def here() -> Server:
    return Server()


@pytest.fixture
def there() -> Server:
    return Server()


@pytest.fixture
def turn(here: Server) -> LiveTurn:
    return here.live.open(TURN)


@pytest.fixture
def reply(here: Server, turn: LiveTurn) -> LiveReply:
    return here.live.start_reply(turn, DRAFT)


def seen(server: Server) -> Draft:
    live = server.live.find(TURN.id)
    assert live is not None
    [draft] = live.drafts()
    return draft


async def test_a_mirrored_reply_has_the_same_text_thinking_and_retry_notices(
    here: Server, there: Server, turn: LiveTurn, reply: LiveReply
) -> None:
    for text, is_thought in (("Hm. ", True), ("Tea", False), (", of ", False), ("No. ", True)):
        here.live.append_text(turn, reply, "r", text, is_thought)
    await here.tells(there)
    assert seen(there) == reply.draft()
    here.live.set_retry(turn, reply, "r", RetryNotice(5, 1, 2, "busy"))
    await here.tells(there)
    assert seen(there) == reply.draft()


async def test_a_lost_bundle_is_requested_and_sent_again(
    here: Server, there: Server, turn: LiveTurn, reply: LiveReply
) -> None:
    await here.tells(there)
    here.live.append_text(turn, reply, "r", "Tea, ", False)
    await here.tells(Server())  # there, nobody hears it
    here.live.append_text(turn, reply, "r", "of course", False)
    await here.tells(there)
    assert seen(there).content == ""
    await there.tells(here)
    here.live.append_text(turn, reply, "r", ".", False)
    await here.tells(there)
    assert seen(there) == reply.draft()


async def test_a_bundle_received_twice_is_applied_once(
    here: Server, there: Server, turn: LiveTurn, reply: LiveReply
) -> None:
    here.live.append_text(turn, reply, "r", "Tea", False)
    await here.relay.flush()
    [bundle] = here.line.said
    there.line.hear(bundle)
    there.line.hear(bundle)
    assert seen(there) == reply.draft()


async def test_a_node_ignores_its_own_messages_and_kinds_that_it_does_not_know(
    here: Server, turn: LiveTurn, reply: LiveReply
) -> None:
    here.live.append_text(turn, reply, "r", "Tea", False)
    await here.relay.flush()
    here.line.hear(here.line.said[0])
    here.line.hear(json.dumps([["Unheard", {"of": 1}]]))
    assert list(here.live.mirrors()) == []
    assert seen(here).content == "Tea"


async def test_a_full_outbox_drops_text_and_keeps_commands(
    here: Server, there: Server, turn: LiveTurn, reply: LiveReply
) -> None:
    stop = StopRequest("another turn", None)
    here.relay.send(stop)
    for _ in range(2 * UNSENT_LIMIT):
        here.live.append_text(turn, reply, "r", "x", False)
    await here.relay.flush()
    assert sum(map(len, here.line.said)) < 5 * UNSENT_LIMIT
    await here.tells(there)
    assert there.wishes == [stop]


async def test_a_watcher_keeps_its_log_when_the_mirror_becomes_an_own_turn(here: Server) -> None:
    early = here.relay.mirror(TURN)
    own = here.live.open(TURN)
    here.live.append_text(own, here.live.start_reply(own, DRAFT), "r", "Tea", False)
    assert early is own
    assert (own.is_here, own.number, list(here.live.mirrors())) == (True, 2, [])
