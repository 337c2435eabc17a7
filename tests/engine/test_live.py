"""Live turns: a reader who is cut off at any byte and comes back ends with the same text."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tertulia.core.conversations import Visibility
from tertulia.core.events import Event, EventKind
from tertulia.core.messages import Message, Role, Status
from tertulia.core.turns import Draft, Purpose, RetryNotice, Turn, TurnState
from tertulia.core.voices import SeatRequest, assign_seats
from tertulia.engine.commit_listener import publish
from tertulia.engine.live import LOG_ENTRIES_KEPT, LiveHub
from tertulia.engine.live_turn import FRAME_CHARS, LiveTurn
from tertulia.engine.topic_feeds import TopicFeed
from tertulia.engine.turn_events import Delta
from tertulia.server.encodings import Encoding, event_id, joined, number_of
from tertulia.server.encodings.ndjson import NDJSON
from tertulia.server.encodings.sse import SSE

TABLE = assign_seats([SeatRequest("v:a", "A"), SeatRequest("v:a", "A"), SeatRequest("v:b", "B")])
TURN = Turn(
    id="01JD0000000000000000000000",
    conversation_id="01JD0000000000000000000001",
    round_number=1,
    purpose=Purpose.ASK,
    mode="parallel",
    table=TABLE,
    visibility=Visibility.OPEN,
    state=TurnState.RUNNING,
    created_by="01JD0000000000000000000002",
    created_at=1,
)


class Told:
    """A turn that is played step by step, and the texts of its replies."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.live = LiveHub()
        self.turn = self.live.open(TURN)
        self.texts = {f"R{voice.seat}": "" for voice in TABLE}
        self.thoughts = dict(self.texts)
        self._silent = list(TABLE)
        self._speaking: list[Draft] = []

    def step(self) -> None:
        """Plays one more event, until the turn is over."""
        if self.turn.is_over:
            return
        if self._silent and (not self._speaking or self.chance.random() < 0.3):
            self._begin()
        elif self._speaking and self.chance.random() < 0.9:
            self._say(self.chance.choice(self._speaking))
        elif self._speaking:
            self._finish(self.chance.choice(self._speaking))
        else:
            self.live.end_turn(self.turn, replace(TURN, state=TurnState.COMPLETE))

    def _begin(self) -> None:
        voice = self._silent.pop()
        draft = Draft(f"R{voice.seat}", TURN.id, TURN.conversation_id, 1, voice, Role.ADVISOR, "", "", 0, 1)
        self._speaking.append(draft)
        self.live.start_reply(self.turn, draft)
        if self.chance.random() < 0.2:
            self.live.set_retry(
                self.turn, self.turn.replies[draft.id], draft.id, RetryNotice(9, 1, 2, "busy")
            )

    def _say(self, draft: Draft) -> None:
        words = "".join(self.chance.choices('aé日👩\u202e\n\r"\\ \u2028:', k=self.chance.randint(1, 6)))
        is_thought = self.chance.random() < 0.2
        (self.thoughts if is_thought else self.texts)[draft.id] += words
        self.live.append_text(self.turn, self.turn.replies[draft.id], draft.id, words, is_thought)

    def _finish(self, draft: Draft) -> None:
        self._speaking.remove(draft)
        self.live.finish_reply(
            self.turn,
            Message(
                draft.id, TURN.conversation_id, 1, TURN.id, "agent:a", Role.ADVISOR, self.texts[draft.id],
                Status.COMPLETE, "U", 1, draft.voice,
            ),
        )  # fmt: skip


@dataclass
class Reader:
    """A client that drops an incomplete frame, and resumes after the last event id that it has seen."""

    read: Any
    after: str = ""
    texts: dict[str, str] = field(default_factory=dict)
    thoughts: dict[str, str] = field(default_factory=dict)
    numbers: list[int] = field(default_factory=list)
    deltas: dict[str, list[int]] = field(default_factory=dict)
    is_over: bool = False

    def take(self, data: bytes) -> None:
        for told_at, name, value in self.read(data):
            self.after = told_at
            self.numbers.append(int(told_at.rpartition(".")[2]))
            reply = value.get("reply_id", "")
            if name in ("delta", "chunk"):
                self.texts[reply] = self.texts.get(reply, "") + value.get("text", "")
                self.thoughts[reply] = self.thoughts.get(reply, "") + value.get("thinking", "")
                self.deltas.setdefault(reply, []).append(value["number"])
            self.is_over = name == "ended" or (name == "done" and "turn" in value)


def read_sse(data: bytes) -> Iterator[tuple[str, str, Any]]:
    *whole, _cut = data.split(b"\n\n")
    for frame in whole:
        lines = dict(line.split(": ", 1) for line in frame.decode().split("\n"))
        yield lines["id"], lines["event"], json.loads(lines["data"])


def read_ndjson(data: bytes) -> Iterator[tuple[str, str, Any]]:
    *whole, _cut = data.split(b"\n")
    for line in whole:
        value = json.loads(line)
        yield value["after"], value["type"], value


def frame(live: LiveTurn, after: int, encoding: Encoding) -> bytes:
    """The next bytes that the server sends to a reader at this position."""
    news = joined(live.after(after), after + 1)
    return b"".join(encoding.event(event_id(live.turn.id, number), event) for number, event in news)


@pytest.mark.parametrize(
    ("encoding", "read"), [(SSE, read_sse), (NDJSON, read_ndjson)], ids=["sse", "ndjson"]
)
@settings(max_examples=100)
@given(seed=st.integers(0, 1 << 48))
def test_a_reader_cut_off_any_number_of_times_ends_with_the_complete_text(encoding, read, seed):
    chance = random.Random(seed)
    told, reader = Told(chance), Reader(read)
    while not reader.is_over:
        told.step()
        if told.turn.is_over or chance.random() < 0.3:
            after = number_of(reader.after, TURN.id)
            assert after is not None
            data = frame(told.turn, after, encoding)
            reader.take(data[: chance.randint(0, len(data))] if chance.random() < 0.5 else data)
    assert drop_empty(told.texts) == drop_empty(reader.texts)
    assert drop_empty(told.thoughts) == drop_empty(reader.thoughts)
    assert reader.numbers == sorted(set(reader.numbers)), "never a repeat, never back"
    assert reader.numbers[-1] == told.turn.number
    said = [event for event in told.turn.log if isinstance(event, Delta)]
    for reply, numbers in reader.deltas.items():
        assert numbers == sorted(set(numbers))
        assert numbers[-1] == max(delta.number for delta in said if delta.reply_id == reply)


def test_deltas_are_counted_per_reply_without_a_gap():
    told = Told(random.Random(7))
    while not told.turn.is_over:
        told.step()
    for reply in told.texts:
        numbers = [e.number for e in told.turn.log if isinstance(e, Delta) and e.reply_id == reply]
        assert numbers == list(range(1, len(numbers) + 1))


def test_deltas_are_joined_only_within_one_reply_and_one_kind_of_text():
    log = [
        Delta("A", 1, "a"),
        Delta("A", 2, "b"),
        Delta("B", 1, "x"),
        Delta("A", 3, "c"),
        Delta("A", 4, "t", True),
    ]
    assert joined(log, 5) == [
        (6, Delta("A", 2, "ab")),
        (7, Delta("B", 1, "x")),
        (8, Delta("A", 3, "c")),
        (9, Delta("A", 4, "t", True)),
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        "7",
        "-1",
        "abc",
        ".",
        f"{TURN.id}.",
        f"{TURN.id}.-1",
        f"{TURN.id}.9999999999",
        f"{TURN.id}.٣",
        "other.3",
    ],
)
def test_an_event_id_of_another_stream_is_rejected(wrong):
    assert number_of(wrong, TURN.id) is None


def test_an_event_id_is_parsed_to_its_number_and_an_empty_id_to_zero():
    assert number_of(event_id(TURN.id, 12), TURN.id) == 12
    assert number_of("", TURN.id) == 0


def test_a_reader_far_behind_catches_up_in_frames_of_limited_size():
    live = LiveHub()
    turn = live.open(TURN)
    draft = Draft("R", TURN.id, TURN.conversation_id, 1, TABLE[0], Role.ADVISOR, "", "", 0, 1)
    reply = live.start_reply(turn, draft)
    for _ in range(1000):
        live.append_text(turn, reply, "R", "x" * 4096, is_thought=False)
    after, sizes = 0, []
    while news := turn.after(after):
        sizes.append(sum(len(event.text) for event in news if isinstance(event, Delta)))
        after += len(news)
    assert after == turn.number
    assert max(sizes) <= FRAME_CHARS + 4096


def test_ended_turns_are_kept_up_to_a_limit_and_running_ones_always():
    live = LiveHub()
    running = live.open(replace(TURN, id="running"))
    ids = [f"turn {n}" for n in range(12)]
    for turn_id in ids:
        turn = live.open(replace(TURN, id=turn_id))
        reply = live.start_reply(turn, Draft("R", turn_id, "C", 1, TABLE[0], Role.ADVISOR, "", "", 0, 1))
        for _ in range(LOG_ENTRIES_KEPT // 10):
            live.append_text(turn, reply, "R", "x", is_thought=False)
        live.end_turn(turn, replace(TURN, id=turn_id, state=TurnState.COMPLETE))
    kept = [turn_id for turn_id in ids if live.find(turn_id)]
    assert kept == ids[-len(kept) :], "the newest"
    assert 8 <= len(kept) <= 10
    assert live.find("running") is running


def test_a_finished_reply_is_no_draft_after_its_commit():
    """Between the commit and the last log entry, no reader may find a draft of a stored message."""
    live = LiveHub()
    turn = live.open(TURN)
    live.start_reply(turn, Draft("R", TURN.id, TURN.conversation_id, 1, TABLE[0], Role.ADVISOR, "", "", 0, 1))
    publish(
        live, [Event(f"conversation:{TURN.conversation_id}", 3, EventKind.CHANGED, "message", "R", "{}", 1)]
    )
    assert turn.replies == {}


def test_a_topic_feed_returns_none_if_events_are_missing():
    place = TopicFeed("conversation:C")
    assert place.after(0) == ()
    for number in range(5, 2000):
        place.events.append(Event("conversation:C", number, EventKind.CHANGED, "message", "M", "{}", 1))
    assert place.after(1999) == ()
    recent = place.after(1990)
    assert recent is not None
    assert [event.number for event in recent] == list(range(1991, 2000))
    assert place.after(3) is None


def drop_empty(texts: dict[str, str]) -> dict[str, str]:
    return {reply: text for reply, text in texts.items() if text}
