"""Branch trees: versions of questions and replies, and the comparison of two branches."""

from __future__ import annotations

from dataclasses import replace

from tertulia.core.conversations import Conversation, Visibility
from tertulia.core.messages import Message, Role, Round, Status
from tertulia.core.trees import MessageSummary, Siblings, Tree, Versions, compare, tree

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


def question(id: str, number: int) -> MessageSummary:
    """A question; its id gives the conversation, the round and the kind: "a1q"."""
    return MessageSummary(id, id[0], number, True, f"question {id}", None, None, None, number, "u")


def reply(id: str, number: int, replaces_id: str | None = None, seat: int = 1) -> MessageSummary:
    return MessageSummary(id, id[0], number, False, "", seat, replaces_id, 5, number, "u")


def rounds(conversation_id: str, first: int, last: int) -> list[MessageSummary]:
    return [
        message
        for n in range(first, last + 1)
        for message in (question(f"{conversation_id}{n}q", n), reply(f"{conversation_id}{n}r", n))
    ]


def tree_of(conversation_id: str, branches: list[Conversation], messages: list[MessageSummary]) -> Tree:
    return tree(conversation_id, [*branches, ROOT], messages)


def test_the_root_is_the_first_node_and_each_node_has_only_its_own_rounds() -> None:
    built = tree_of("b", [branch("b", "a", 2)], [*rounds("a", 1, 3), *rounds("b", 3, 3)])
    assert built.root_id == "a"
    assert [[round_.number for round_ in node.rounds] for node in built.nodes] == [[1, 2, 3], [3]]
    assert [round_.cost_micros for round_ in built.nodes[1].rounds] == [5]


def test_questions_after_the_same_round_are_versions_of_each_other() -> None:
    branches = [branch("b", "a", 1), branch("c", "a", 1)]
    messages = [*rounds("a", 1, 3), *rounds("b", 2, 4), *rounds("c", 2, 2)]
    ids = ("a", "b", "c")
    assert [tree_of(id, branches, messages).siblings for id in ids] == [
        (Siblings(2, ids, 0),),
        (Siblings(2, ids, 1),),
        (Siblings(2, ids, 2),),
    ]


def test_a_deeper_branch_shows_the_versions_of_every_inherited_round() -> None:
    branches = [branch("b", "a", 1), branch("c", "b", 2), branch("d", "b", 2)]
    messages = [*rounds("a", 1, 3), *rounds("b", 2, 3), *rounds("c", 3, 3), *rounds("d", 3, 3)]
    assert tree_of("d", branches, messages).siblings == (
        Siblings(2, ("a", "b"), 1),
        Siblings(3, ("b", "c", "d"), 2),
    )
    assert tree_of("a", branches, messages).siblings == (Siblings(2, ("a", "b"), 0),)


def test_a_first_question_has_versions_too() -> None:
    messages = [*rounds("a", 1, 1), *rounds("b", 1, 1)]
    assert tree_of("b", [branch("b", "a", 0)], messages).siblings == (Siblings(1, ("a", "b"), 1),)


def test_a_question_after_one_reply_is_no_version_of_a_question_after_all_replies() -> None:
    messages = [*rounds("a", 1, 2), *rounds("b", 2, 2), *rounds("c", 2, 2)]
    branches = [branch("b", "a", 1, "a1r"), branch("c", "a", 1, "a1r")]
    assert tree_of("a", branches, messages).siblings == ()
    assert tree_of("c", branches, messages).siblings == (Siblings(2, ("b", "c"), 1),)


def test_a_question_after_a_regenerated_reply_is_no_version_of_the_original_question() -> None:
    messages = [*rounds("a", 1, 2), reply("b1r", 1, "a1r"), *rounds("b", 2, 2)]
    assert tree_of("a", [branch("b", "a", 1)], messages).siblings == ()


def test_a_branch_with_only_a_regenerated_reply_shows_the_inherited_question() -> None:
    messages = [*rounds("a", 1, 3), reply("b2r", 2, "a2r", seat=4)]
    built = tree_of("b", [branch("b", "a", 2)], messages)
    assert [(round_.number, round_.question, round_.seats) for round_ in built.nodes[1].rounds] == [
        (2, "question a2q", (4,))
    ]


def test_a_reply_that_was_regenerated_twice_has_three_versions() -> None:
    branches = [branch("b", "a", 2), branch("c", "a", 2), branch("d", "c", 3)]
    messages = [*rounds("a", 1, 3), reply("b2r", 2, "a2r"), reply("c2r", 2, "a2r"), *rounds("c", 3, 3)]
    versions = (("a", "b", "c"), ("a2r", "b2r", "c2r"))
    for id, index in (("a", 0), ("b", 1), ("c", 2), ("d", 2)):
        assert tree_of(id, branches, messages).versions == (Versions(2, *versions, index),)


def test_a_conversation_with_two_versions_of_a_reply_counts_the_newest() -> None:
    messages = [*rounds("a", 1, 2), reply("a1s", 1, "a1r"), reply("b1r", 1, "a1s")]
    built = tree_of("a", [branch("b", "a", 1)], messages)
    assert built.versions == (Versions(1, ("a", "b"), ("a1s", "b1r"), 0),)


def test_a_branch_from_before_a_reply_has_no_versions_of_it() -> None:
    branches = [branch("b", "a", 2), branch("c", "a", 1)]
    messages = [*rounds("a", 1, 3), reply("b2r", 2, "a2r"), *rounds("c", 2, 2)]
    assert tree_of("c", branches, messages).versions == ()


# ── comparing


def round_of(number: int, text: str) -> Round:
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


def test_branches_are_compared_from_the_first_round_that_differs() -> None:
    shared, left, right = round_of(1, "both"), round_of(2, "left"), round_of(2, "right")
    compared = compare((shared, left, round_of(3, "more")), (shared, right))
    assert compared.common_rounds == 1
    assert [(row.number, row.left, row.right) for row in compared.rounds] == [
        (2, left, right),
        (3, round_of(3, "more"), None),
    ]
    assert (compared.left.rounds, compared.right.rounds, compared.left.cost_micros) == (2, 1, None)


def test_a_branch_compared_with_itself_has_no_differences() -> None:
    same = (round_of(1, "one"), round_of(3, "three"))  # the second was deleted
    compared = compare(same, same)
    assert (compared.common_rounds, compared.rounds) == (3, ())


def test_a_round_deleted_in_one_branch_is_the_first_difference() -> None:
    compared = compare((round_of(1, "one"), round_of(2, "two")), (round_of(2, "two"),))
    assert (compared.common_rounds, [row.number for row in compared.rounds]) == (0, [1, 2])
