"""The herald: what is lost, late or told twice between servers leaves no gap and no repeat."""

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
from tertulia.engine.node_relay import UNSAID_LIMIT, NodeRelay, RelayCommand, StopRequest

ALPHA = Voice("house:alpha:0", 1, "Alpha", "house:alpha")
TURN = Turn("t", "c", 1, Purpose.ASK, "quick", (ALPHA,), Visibility.OPEN, TurnState.RUNNING, "u", 0)
DRAFT = Draft("r", "t", "c", 1, ALPHA, Role.ADVISOR, "", "", 0, 0)


class Line:
    """What servers say to each other, held up until it is let through."""

    is_shared = True

    def __init__(self) -> None:
        self.said: list[str] = []
        self.hear: Callable[[str], None] = lambda text: None

    def on_words(self, listener: Callable[[str], None]) -> None:
        self.hear = listener

    async def say(self, text: str) -> None:
        self.said.append(text)


class Server:
    def __init__(self) -> None:
        self.line, self.live = Line(), LiveHub()
        self.wishes: list[RelayCommand] = []
        self.relay = NodeRelay(self.line, self.live, new_id, str)  # type: ignore[arg-type]
        self.relay.on_wish(self.wishes.append)

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


async def test_a_reply_is_the_same_there_with_its_thoughts_and_its_waits(
    here: Server, there: Server, turn: LiveTurn, reply: LiveReply
) -> None:
    for text, is_thought in (("Hm. ", True), ("Tea", False), (", of ", False), ("No. ", True)):
        here.live.append_text(turn, reply, "r", text, is_thought)
    await here.tells(there)
    assert seen(there) == reply.draft()
    here.live.set_retry(turn, reply, "r", RetryNotice(5, 1, 2, "busy"))
    await here.tells(there)
    assert seen(there) == reply.draft()


async def test_what_was_lost_on_the_way_is_asked_for_and_told_again(
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


async def test_what_is_told_twice_is_heard_once(
    here: Server, there: Server, turn: LiveTurn, reply: LiveReply
) -> None:
    here.live.append_text(turn, reply, "r", "Tea", False)
    await here.relay.flush()
    [bundle] = here.line.said
    there.line.hear(bundle)
    there.line.hear(bundle)
    assert seen(there) == reply.draft()


async def test_a_server_does_not_mirror_itself_nor_understand_all_that_a_newer_one_says(
    here: Server, turn: LiveTurn, reply: LiveReply
) -> None:
    here.live.append_text(turn, reply, "r", "Tea", False)
    await here.relay.flush()
    here.line.hear(here.line.said[0])
    here.line.hear(json.dumps([["Unheard", {"of": 1}]]))
    assert list(here.live.mirrors()) == []
    assert seen(here).content == "Tea"


async def test_while_nothing_can_be_said_words_are_dropped_and_wishes_kept(
    here: Server, there: Server, turn: LiveTurn, reply: LiveReply
) -> None:
    stop = StopRequest("another turn", None)
    here.relay.say(stop)
    for _ in range(2 * UNSAID_LIMIT):
        here.live.append_text(turn, reply, "r", "x", False)
    await here.relay.flush()
    assert sum(map(len, here.line.said)) < 5 * UNSAID_LIMIT
    await here.tells(there)
    assert there.wishes == [stop]


async def test_who_followed_a_turn_before_its_own_engine_took_it_up_goes_on_following(here: Server) -> None:
    early = here.relay.mirrored(TURN)
    own = here.live.open(TURN)
    here.live.append_text(own, here.live.start_reply(own, DRAFT), "r", "Tea", False)
    assert early is own
    assert (own.is_here, own.number, list(here.live.mirrors())) == (True, 2, [])
