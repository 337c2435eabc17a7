"""Trees: what stands beside what, and where two lines part."""

from __future__ import annotations

from dataclasses import replace

from tertulia.core.conversations import Conversation, Visibility
from tertulia.core.messages import Message, Role, Round, Status
from tertulia.core.trees import Said, Siblings, Tree, Versions, compare, tree

ROOT = Conversation(
    id="a",
    project_id="p",
    owner_id="u",
    title="",
    summary="",
    round_count=3,
    mode="quick",
    table=(),
    visibility=Visibility.OPEN,
    pinned=False,
    archived=False,
    is_answering=False,
    created_at=0,
    updated_at=0,
)


def branch(id: str, of: str, at: int, message_id: str | None = None) -> Conversation:
    return replace(ROOT, id=id, parent_id=of, branch_round=at, branch_message_id=message_id, created_at=1)


def asked(id: str, number: int) -> Said:
    """Ids tell the conversation, the round and the order: "a1q"."""
    return Said(id, id[0], number, True, f"question {id}", None, None, None, number, "u")


def replied(id: str, number: int, replaces_id: str | None = None, seat: int = 1) -> Said:
    return Said(id, id[0], number, False, "", seat, replaces_id, 5, number, "u")


def line(conversation_id: str, first: int, last: int) -> list[Said]:
    return [
        said
        for n in range(first, last + 1)
        for said in (asked(f"{conversation_id}{n}q", n), replied(f"{conversation_id}{n}r", n))
    ]


def drawn(looking_at: str, branches: list[Conversation], said: list[Said]) -> Tree:
    return tree(looking_at, [*branches, ROOT], said)


def test_the_root_comes_first_and_each_has_its_own_rounds_only() -> None:
    seen = drawn("b", [branch("b", "a", 2)], [*line("a", 1, 3), *line("b", 3, 3)])
    assert seen.root_id == "a"
    assert [[round.number for round in node.rounds] for node in seen.nodes] == [[1, 2, 3], [3]]
    assert [round.cost_micros for round in seen.nodes[1].rounds] == [5]


def test_what_follows_the_same_is_a_version_of_the_same_question() -> None:
    branches = [branch("b", "a", 1), branch("c", "a", 1)]
    said = [*line("a", 1, 3), *line("b", 2, 4), *line("c", 2, 2)]
    ids = ("a", "b", "c")
    assert [drawn(id, branches, said).siblings for id in ids] == [
        (Siblings(2, ids, 0),),
        (Siblings(2, ids, 1),),
        (Siblings(2, ids, 2),),
    ]


def test_a_deeper_line_shows_the_versions_of_every_round_it_reads() -> None:
    branches = [branch("b", "a", 1), branch("c", "b", 2), branch("d", "b", 2)]
    said = [*line("a", 1, 3), *line("b", 2, 3), *line("c", 3, 3), *line("d", 3, 3)]
    assert drawn("d", branches, said).siblings == (
        Siblings(2, ("a", "b"), 1),
        Siblings(3, ("b", "c", "d"), 2),
    )
    assert drawn("a", branches, said).siblings == (Siblings(2, ("a", "b"), 0),)


def test_a_first_question_has_versions_too() -> None:
    said = [*line("a", 1, 1), *line("b", 1, 1)]
    assert drawn("b", [branch("b", "a", 0)], said).siblings == (Siblings(1, ("a", "b"), 1),)


def test_what_follows_one_reply_is_no_version_of_what_follows_all() -> None:
    said = [*line("a", 1, 2), *line("b", 2, 2), *line("c", 2, 2)]
    branches = [branch("b", "a", 1, "a1r"), branch("c", "a", 1, "a1r")]
    assert drawn("a", branches, said).siblings == ()
    assert drawn("c", branches, said).siblings == (Siblings(2, ("b", "c"), 1),)


def test_what_follows_another_version_of_a_reply_is_no_version_either() -> None:
    said = [*line("a", 1, 2), replied("b1r", 1, "a1r"), *line("b", 2, 2)]
    assert drawn("a", [branch("b", "a", 1)], said).siblings == ()


def test_a_branch_that_only_answers_again_is_drawn_under_the_question_it_answers() -> None:
    said = [*line("a", 1, 3), replied("b2r", 2, "a2r", seat=4)]
    seen = drawn("b", [branch("b", "a", 2)], said)
    assert [(round.number, round.question, round.seats) for round in seen.nodes[1].rounds] == [
        (2, "question a2q", (4,))
    ]


def test_a_reply_asked_for_again_twice_has_three_versions() -> None:
    branches = [branch("b", "a", 2), branch("c", "a", 2), branch("d", "c", 3)]
    said = [*line("a", 1, 3), replied("b2r", 2, "a2r"), replied("c2r", 2, "a2r"), *line("c", 3, 3)]
    versions = (("a", "b", "c"), ("a2r", "b2r", "c2r"))
    for id, index in (("a", 0), ("b", 1), ("c", 2), ("d", 2)):
        assert drawn(id, branches, said).versions == (Versions(2, *versions, index),)


def test_of_versions_in_one_conversation_the_newest_counts() -> None:
    said = [*line("a", 1, 2), replied("a1s", 1, "a1r"), replied("b1r", 1, "a1s")]
    seen = drawn("a", [branch("b", "a", 1)], said)
    assert seen.versions == (Versions(1, ("a", "b"), ("a1s", "b1r"), 0),)


def test_a_line_that_left_before_a_reply_has_none_of_its_versions() -> None:
    branches = [branch("b", "a", 2), branch("c", "a", 1)]
    said = [*line("a", 1, 3), replied("b2r", 2, "a2r"), *line("c", 2, 2)]
    assert drawn("c", branches, said).versions == ()


# ── comparing


def said(number: int, text: str) -> Round:
    question = Message(
        id=text,
        conversation_id="a",
        round_number=number,
        turn_id="t",
        speaker="user",
        role=Role.USER,
        content=text,
        status=Status.COMPLETE,
        created_by="u",
        created_at=0,
    )
    return Round(number, (question,))


def test_lines_are_compared_from_the_first_round_that_differs() -> None:
    shared, left, right = said(1, "both"), said(2, "left"), said(2, "right")
    compared = compare((shared, left, said(3, "more")), (shared, right))
    assert compared.common_rounds == 1
    assert [(row.number, row.left, row.right) for row in compared.rounds] == [
        (2, left, right),
        (3, said(3, "more"), None),
    ]
    assert (compared.left.rounds, compared.right.rounds, compared.left.cost_micros) == (2, 1, None)


def test_a_line_beside_itself_has_nothing_apart() -> None:
    same = (said(1, "one"), said(3, "three"))  # the second was deleted
    compared = compare(same, same)
    assert (compared.common_rounds, compared.rounds) == (3, ())


def test_what_one_line_lost_is_where_they_part() -> None:
    compared = compare((said(1, "one"), said(2, "two")), (said(2, "two"),))
    assert (compared.common_rounds, [row.number for row in compared.rounds]) == (0, [1, 2])
