"""Votes: whom a reply is up against, and which one a round is known by."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tertulia.core.errors import Conflict, Invalid
from tertulia.core.messages import Message, Role, Round, Status
from tertulia.core.voices import Voice
from tertulia.core.votes import Choice, Vote, chosen, contenders

QUESTION = Message("q", "c", 1, "t", "user", Role.USER, "Why?", Status.COMPLETE, "u", 0)


def said(id: str, seat: int = 1, **more: object) -> Message:
    voice = Voice(f"house:m{seat}:0", seat, f"M{seat}", f"house:m{seat}")
    reply = replace(QUESTION, id=id, role=Role.ADVISOR, content=f"Because {id}", voice=voice)
    return replace(reply, **more)  # type: ignore[arg-type]


def voted(
    id: str, message_id: str | None, at: int, verdict: Choice = Choice.BEST, number: int = 1, by: str = ""
) -> Vote:
    return Vote(id, "c", number, message_id, by or f"user {id}", verdict, False, (), at)


def test_answers_are_up_against_answers_and_not_against_what_was_made_of_them() -> None:
    answers = [said("a", 1), said("b", 2), said("empty", 3, content="", status=Status.FAILED)]
    closing = said("s", 1, role=Role.SYNTHESIS, step="synthesis")
    here = Round(1, (QUESTION, *answers, closing))
    assert [one.message_id for one in contenders(here, answers[0], Choice.TIE)] == ["a", "b"]
    assert [one.message_id for one in contenders(here, closing, Choice.BEST)] == ["s"]


def test_what_has_no_text_or_was_replaced_cannot_be_voted_for() -> None:
    old, new = said("old"), said("new", replaces_id="old")
    failed = said("failed", 2, content="", status=Status.FAILED)
    here = Round(1, (QUESTION, old, new, failed))
    for meant in (old, failed, QUESTION):
        with pytest.raises(Conflict):
            contenders(here, meant, Choice.BEST)


@pytest.mark.parametrize("verdict", [Choice.TIE, Choice.BOTH_BAD])
def test_one_alone_cannot_tie(verdict: Choice) -> None:
    alone = said("a")
    with pytest.raises(Invalid):
        contenders(Round(1, (QUESTION, alone)), alone, verdict)


def test_the_newest_mark_of_a_round_counts() -> None:
    here = Round(1, (QUESTION, said("a", 1), said("b", 2)))
    assert chosen([here], []) == frozenset()
    assert chosen([here], [voted("1", "b", 10), voted("2", "a", 20)]) == {"a"}
    assert chosen([here], [voted("2", "a", 20), voted("3", "b", 30)]) == {"b"}
    assert chosen([here], [voted("2", "a", 20), voted("4", None, 40, Choice.TIE)]) == {"a"}


def test_a_mark_on_a_version_that_was_replaced_counts_no_more() -> None:
    here = Round(1, (QUESTION, said("old"), said("new", replaces_id="old"), said("b", 2)))
    assert chosen([here], [voted("1", "old", 10)]) == frozenset()


def test_each_round_has_its_own() -> None:
    first, second = Round(1, (QUESTION, said("a"))), Round(2, (QUESTION, said("b")))
    assert chosen([first, second], [voted("1", "a", 10), voted("2", "b", 20, number=2)]) == {"a", "b"}


def test_who_voted_before_a_branch_and_in_it_has_one_word_there_and_it_is_the_last() -> None:
    here = Round(1, (QUESTION, said("a", 1), said("b", 2)))
    before, since = voted("1", "a", 10, by="Ada"), voted("2", None, 20, Choice.BOTH_BAD, by="Ada")
    assert chosen([here], [before, since]) == frozenset()
    assert chosen([here], [replace(before, created_at=30), since]) == {"a"}
    assert chosen([here], [before, since, voted("3", "b", 5, by="Bob")]) == {"b"}
