"""Votes: the rivals of a reply, and the reply that counts as a round's best."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tertulia.core.errors import Conflict, Invalid
from tertulia.core.messages import Message, Role, Round, Status
from tertulia.core.voices import Voice
from tertulia.core.votes import Vote, VoteValue, chosen, contenders

QUESTION = Message("q", "c", 1, "t", "user", Role.USER, "Why?", Status.COMPLETE, "u", 0)


def reply(id: str, seat: int = 1, **more: object) -> Message:
    voice = Voice(f"house:m{seat}:0", seat, f"M{seat}", f"house:m{seat}")
    answer = replace(QUESTION, id=id, role=Role.ADVISOR, content=f"Because {id}", voice=voice)
    return replace(answer, **more)  # type: ignore[arg-type]


def vote(
    id: str,
    message_id: str | None,
    at: int,
    verdict: VoteValue = VoteValue.BEST,
    number: int = 1,
    by: str = "",
) -> Vote:
    return Vote(id, "c", number, message_id, by or f"user {id}", verdict, False, (), at)


def test_answers_compete_with_answers_and_a_synthesis_only_with_syntheses() -> None:
    answers = [reply("a", 1), reply("b", 2), reply("empty", 3, content="", status=Status.FAILED)]
    synthesis = reply("s", 1, role=Role.SYNTHESIS, step="synthesis")
    round_ = Round(1, (QUESTION, *answers, synthesis))
    assert [contender.message_id for contender in contenders(round_, answers[0], VoteValue.TIE)] == ["a", "b"]
    assert [contender.message_id for contender in contenders(round_, synthesis, VoteValue.BEST)] == ["s"]


def test_a_vote_for_an_empty_or_replaced_reply_is_refused() -> None:
    old, new = reply("old"), reply("new", replaces_id="old")
    failed = reply("failed", 2, content="", status=Status.FAILED)
    round_ = Round(1, (QUESTION, old, new, failed))
    for refused in (old, failed, QUESTION):
        with pytest.raises(Conflict):
            contenders(round_, refused, VoteValue.BEST)


@pytest.mark.parametrize("verdict", [VoteValue.TIE, VoteValue.BOTH_BAD])
def test_a_tie_is_refused_if_there_is_only_one_reply(verdict: VoteValue) -> None:
    alone = reply("a")
    with pytest.raises(Invalid):
        contenders(Round(1, (QUESTION, alone)), alone, verdict)


def test_the_newest_vote_for_a_best_reply_counts() -> None:
    round_ = Round(1, (QUESTION, reply("a", 1), reply("b", 2)))
    assert chosen([round_], []) == frozenset()
    assert chosen([round_], [vote("1", "b", 10), vote("2", "a", 20)]) == {"a"}
    assert chosen([round_], [vote("2", "a", 20), vote("3", "b", 30)]) == {"b"}
    assert chosen([round_], [vote("2", "a", 20), vote("4", None, 40, VoteValue.TIE)]) == {"a"}


def test_a_vote_for_a_replaced_version_no_longer_counts() -> None:
    round_ = Round(1, (QUESTION, reply("old"), reply("new", replaces_id="old"), reply("b", 2)))
    assert chosen([round_], [vote("1", "old", 10)]) == frozenset()


def test_each_round_has_its_own_best_reply() -> None:
    first, second = Round(1, (QUESTION, reply("a"))), Round(2, (QUESTION, reply("b")))
    assert chosen([first, second], [vote("1", "a", 10), vote("2", "b", 20, number=2)]) == {"a", "b"}


def test_of_a_persons_votes_before_and_in_a_branch_only_the_latest_counts() -> None:
    round_ = Round(1, (QUESTION, reply("a", 1), reply("b", 2)))
    before, in_branch = vote("1", "a", 10, by="Ada"), vote("2", None, 20, VoteValue.BOTH_BAD, by="Ada")
    assert chosen([round_], [before, in_branch]) == frozenset()
    assert chosen([round_], [replace(before, created_at=30), in_branch]) == {"a"}
    assert chosen([round_], [before, in_branch, vote("3", "b", 5, by="Bob")]) == {"b"}
