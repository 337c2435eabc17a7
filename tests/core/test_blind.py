"""Blind rounds: voices get letters in a secret order, and nothing else identifies them."""

from __future__ import annotations

from dataclasses import replace

from tertulia.core.blind import (
    anonymised_draft,
    anonymised_message,
    anonymised_round,
    anonymised_turn,
    assign_letters,
)
from tertulia.core.conversations import Visibility
from tertulia.core.messages import Failure, Message, ReadReply, Role, Round, Status, Usage
from tertulia.core.serialization import to_json
from tertulia.core.turns import Draft, Purpose, RetryNotice, Turn, TurnState
from tertulia.core.voices import Voice

TABLE = tuple(
    Voice(f"house:{name}:0", seat, name.title(), f"house:{name}", persona_id=f"P-{name}")
    for seat, name in enumerate(("alpha", "beta", "gamma"), start=1)
)
SEATED = assign_letters(TABLE, "a secret")
TURN = Turn(
    "t", "c", 1, Purpose.ASK, "parallel", SEATED, Visibility.OPEN, TurnState.RUNNING, "u", 0, is_blind=True
)
NAMES = ("alpha", "beta", "gamma")


def reply_by(voice: Voice) -> Message:
    return Message(
        "m", "c", 1, "t", f"agent:{voice.model}", Role.ADVISOR, "Tea.", Status.INTERRUPTED, "u", 0, voice,
        usage=Usage(1, 0, 1, 0, 77_001, 77_002, 77_003),
        failure=Failure("cut", "Alpha's line dropped.", "alpha: 502"),
    )  # fmt: skip


def test_the_secret_alone_decides_the_order_of_the_letters() -> None:
    orders = {
        tuple(voice.name for voice in assign_letters(table, f"secret {n}"))
        for n in range(60)
        for table in (TABLE, TABLE[::-1])
    }
    assert len(orders) == 6
    assert [voice.letter for voice in SEATED] == ["A", "B", "C"]
    assert {replace(voice, letter="") for voice in SEATED} == set(TABLE)


def test_an_anonymised_blind_round_contains_no_name_price_or_time() -> None:
    waiting = RetryNotice(5, 1, 2, "Alpha is busy.")
    draft = Draft("m", "t", "c", 1, SEATED[0], Role.ADVISOR, "Te", "", 1, 0, waiting=waiting)
    draft = replace(draft, read_replies=(ReadReply("n", 2, "Beta"),))
    message = replace(reply_by(SEATED[0]), read_replies=draft.read_replies)
    serialized = to_json(
        [anonymised_turn(TURN), anonymised_message(message), anonymised_draft(draft)]
    ).lower()
    assert not any(word in serialized for word in (*NAMES, "7700", "house"))
    assert anonymised_message(reply_by(SEATED[1])).voice == Voice("mind:B", 2, "Voice B", "", letter="B")


def test_anonymising_leaves_a_turn_and_a_round_that_are_not_blind_unchanged() -> None:
    revealed = replace(TURN, is_blind=False)
    assert anonymised_turn(revealed) is revealed
    assert revealed.was_blind
    other_round = Round(1, (reply_by(SEATED[0]),))
    assert anonymised_round(other_round, {"another turn"}) == other_round
