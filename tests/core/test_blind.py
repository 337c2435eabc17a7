"""Blind rounds: letters in an order of their own, and nothing beside them that would tell."""

from __future__ import annotations

from dataclasses import replace

from tertulia.core.blind import lettered, veiled_draft, veiled_message, veiled_round, veiled_turn
from tertulia.core.conversations import Visibility
from tertulia.core.messages import Failure, Message, ReadReply, Role, Round, Status, Usage
from tertulia.core.plain import to_json
from tertulia.core.turns import Draft, Purpose, State, Turn, Waiting
from tertulia.core.voices import Voice

TABLE = tuple(
    Voice(f"house:{name}:0", seat, name.title(), f"house:{name}", persona_id=f"P-{name}")
    for seat, name in enumerate(("alpha", "beta", "gamma"), start=1)
)
SEATED = lettered(TABLE, "a secret")
TURN = Turn(
    "t", "c", 1, Purpose.ASK, "parallel", SEATED, Visibility.OPEN, State.RUNNING, "u", 0, is_blind=True
)
NAMES = ("alpha", "beta", "gamma")


def said(voice: Voice) -> Message:
    return Message(
        "m", "c", 1, "t", f"agent:{voice.model}", Role.ADVISOR, "Tea.", Status.INTERRUPTED, "u", 0, voice,
        usage=Usage(1, 0, 1, 0, 77_001, 77_002, 77_003),
        failure=Failure("cut", "Alpha's line dropped.", "alpha: 502"),
    )  # fmt: skip


def test_letters_are_given_in_an_order_that_only_the_secret_decides() -> None:
    orders = {
        tuple(voice.name for voice in lettered(table, f"secret {n}"))
        for n in range(60)
        for table in (TABLE, TABLE[::-1])
    }
    assert len(orders) == 6
    assert [voice.letter for voice in SEATED] == ["A", "B", "C"]
    assert {replace(voice, letter="") for voice in SEATED} == set(TABLE)


def test_what_is_told_of_a_blind_round_names_nobody_by_word_price_or_time() -> None:
    waiting = Waiting(5, 1, 2, "Alpha is busy.")
    draft = Draft("m", "t", "c", 1, SEATED[0], Role.ADVISOR, "Te", "", 1, 0, waiting=waiting)
    draft = replace(draft, read_replies=(ReadReply("n", 2, "Beta"),))
    message = replace(said(SEATED[0]), read_replies=draft.read_replies)
    told = to_json([veiled_turn(TURN), veiled_message(message), veiled_draft(draft)]).lower()
    assert not any(word in told for word in (*NAMES, "7700", "house"))
    assert veiled_message(said(SEATED[1])).voice == Voice("mind:B", 2, "Voice B", "", letter="B")


def test_what_is_not_blind_is_told_as_it_is() -> None:
    known = replace(TURN, is_blind=False)
    assert veiled_turn(known) is known
    assert known.was_blind
    other = Round(1, (said(SEATED[0]),))
    assert veiled_round(other, {"another turn"}) == other
