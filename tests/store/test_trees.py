"""Trees: drawn, compared, and cut back wherever they are seen."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import text

from tertulia.core.conversations import Conversation
from tertulia.core.errors import Conflict, Forbidden, NotFound
from tertulia.core.events import Kind, conversation_place
from tertulia.core.messages import Message
from tertulia.core.projects import Membership
from tertulia.core.receipts import Layer, Receipt, Segment
from tertulia.core.trees import MessageRemoval, Removal, Siblings, TreeRound, Versions
from tertulia.core.turns import State
from tertulia.core.users import Actor
from tertulia.core.votes import Choice
from tertulia.store import branches, conversations, messages, projects, receipts, trees, turns, usage, votes
from tertulia.store.database import Database, Tx
from tests.store.samples import FIRST, answered, conversation, opened, reply, said_with
from tests.store.samples import attachment as brought
from tests.store_fixtures import Watch, contents


def line(tx: Tx, actor: Actor, rounds: int = 3) -> tuple[Conversation, list[list[Message]]]:
    """A conversation, and what was replied in each of its rounds."""
    made = conversation(tx, actor)
    replies = [answered(tx, actor, made.id, f"Q{number}?")[1] for number in range(1, rounds + 1)]
    return conversations.get(tx, actor, made.id), replies


def again(tx: Tx, first: Message, conversation_id: str, **more: object) -> Message:
    """The reply once more, said in a conversation."""
    new = replace(first, id=tx.new_id(), conversation_id=conversation_id, replaces_id=first.id, **more)  # type: ignore[arg-type]
    messages.add(tx, new)
    return new


# ── drawing


async def test_a_tree_holds_every_conversation_with_what_was_said_in_it_alone(
    db: Database, ada: Actor
) -> None:
    made, replies = await db.write(lambda tx: line(tx, ada))
    await db.write(lambda tx: usage.add(tx, usage.of_reply(replies[0][0], made.project_id, FIRST.model)))
    branch = await db.write(lambda tx: branches.add(tx, ada, made.id, at_round=2))
    await db.write(lambda tx: answered(tx, ada, branch.id, "x" * 500))
    for asked_for in (made.id, branch.id):
        tree = await db.read(lambda tx, id=asked_for: trees.get(tx, ada, id))
        assert tree.root_id == made.id
        assert [(node.conversation.id, len(node.rounds)) for node in tree.nodes] == [
            (made.id, 3),
            (branch.id, 1),
        ]
    assert tree.nodes[0].rounds[0] == TreeRound(1, "Q1?", (1, 2), 900, made.created_at, ada.user_id)
    assert (tree.nodes[1].rounds[0].number, tree.nodes[1].rounds[0].question) == (3, "x" * 120 + "…")
    assert tree.nodes[1].rounds[0].cost_micros is None


async def test_questions_asked_differently_stand_beside_each_other(db: Database, ada: Actor) -> None:
    made, _ = await db.write(lambda tx: line(tx, ada))

    def edit(tx: Tx, of: str) -> str:
        branch = branches.add(tx, ada, of, at_round=1)
        answered(tx, ada, branch.id, "Q2, differently?")
        return branch.id

    first = await db.write(lambda tx: edit(tx, made.id))
    second = await db.write(lambda tx: edit(tx, first))
    expected = (made.id, first, second)
    for index, id in enumerate(expected):
        tree = await db.read(lambda tx, id=id: trees.get(tx, ada, id))
        assert tree.siblings == (Siblings(2, expected, index),)


async def test_a_reply_asked_for_again_in_a_branch_is_known_in_both(db: Database, ada: Actor) -> None:
    made, replies = await db.write(lambda tx: line(tx, ada))
    branch = await db.write(lambda tx: branches.add(tx, ada, made.id, at_round=2))
    new = await db.write(lambda tx: again(tx, replies[1][0], branch.id))
    for index, id in enumerate((made.id, branch.id)):
        tree = await db.read(lambda tx, id=id: trees.get(tx, ada, id))
        ids = (made.id, branch.id), (replies[1][0].id, new.id)
        assert tree.versions == (Versions(2, *ids, index),)
    assert tree.nodes[1].rounds[0].question == "Q2?"
    here = await db.read(lambda tx: messages.round(tx, branch.id, 2))
    assert here.replies == (new, replies[1][1])


async def test_two_branches_are_compared_from_where_they_part(db: Database, ada: Actor) -> None:
    made, _ = await db.write(lambda tx: line(tx, ada))
    branch = await db.write(lambda tx: branches.add(tx, ada, made.id, at_round=1))
    await db.write(lambda tx: answered(tx, ada, branch.id, "Q2, differently?"))
    compared = await db.read(lambda tx: trees.compared(tx, ada, made.id, branch.id))
    assert compared.common_rounds == 1
    assert [
        (one.number, one.left and one.left.question.content, one.right and one.right.question.content)
        for one in compared.rounds
    ] == [(2, "Q2?", "Q2, differently?"), (3, "Q3?", None)]
    assert (compared.left.rounds, compared.right.rounds) == (2, 1)
    assert compared.left.cost_micros == 4 * 900


async def test_only_what_grew_from_one_root_is_compared(db: Database, ada: Actor, bob: Actor) -> None:
    made, other = [await db.write(lambda tx: conversation(tx, ada)) for _ in range(2)]
    with pytest.raises(Conflict):
        await db.read(lambda tx: trees.compared(tx, ada, made.id, other.id))
    for who, left, right in ((bob, made, made), (ada, made, replace(made, id="0" * 26))):
        with pytest.raises(NotFound):
            await db.read(lambda tx, a=who, b=left.id, c=right.id: trees.compared(tx, a, b, c))


# ── looking before deleting


async def test_what_a_conversation_takes_with_it_is_said_before(db: Database, ada: Actor) -> None:
    made, replies = await db.write(lambda tx: line(tx, ada))
    await db.write(lambda tx: conversations.rename(tx, ada, made.id, "Plans"))
    branch = await db.write(lambda tx: branches.add(tx, ada, made.id, at_round=2, title="Another way"))
    await db.write(lambda tx: answered(tx, ada, branch.id))
    assert await db.read(lambda tx: trees.removal(tx, ada, made.id)) == Removal(
        2, 4, 8, ("Plans", "Another way")
    )
    assert await db.read(lambda tx: trees.removal(tx, ada, branch.id)) == Removal(1, 1, 2, ("Another way",))


async def test_what_a_message_takes_with_it_is_said_before(db: Database, ada: Actor) -> None:
    made, replies = await db.write(lambda tx: line(tx, ada))
    await db.write(lambda tx: again(tx, replies[1][0], made.id))
    await db.write(lambda tx: branches.add(tx, ada, made.id, at_round=2))
    asked = (await db.read(lambda tx: messages.round(tx, made.id, 2))).question
    read = await db.read(
        lambda tx: [trees.message_removal(tx, ada, id) for id in (asked.id, *(m.id for m in replies[1]))]
    )
    assert read == [MessageRemoval(1, 3, 1), MessageRemoval(0, 2, 1), MessageRemoval(0, 1, 1)]


# ── deleting


async def test_a_reply_goes_with_its_versions_wherever_it_is_read(
    db: Database, ada: Actor, watch: Watch
) -> None:
    made, replies = await db.write(lambda tx: line(tx, ada))
    newer = await db.write(lambda tx: again(tx, replies[1][0], made.id))
    branch = await db.write(lambda tx: branches.add(tx, ada, made.id, at_round=2))
    await db.write(lambda tx: answered(tx, ada, branch.id))
    deeper = await db.write(lambda tx: branches.add(tx, ada, branch.id, at_round=3))
    before = await db.write(lambda tx: branches.add(tx, ada, made.id, at_round=1))
    other = await db.write(lambda tx: branches.add(tx, ada, made.id, at_round=2, message_id=replies[1][1].id))
    async with watch(ada) as news:
        await db.write(lambda tx: trees.remove_message(tx, ada, newer.id))
    told = {(event.place, event.id) for event in news if event.noun == "message"}
    seen_in = [conversation_place(one.id) for one in (made, branch, deeper)]
    assert told == {(place, id) for place in seen_in for id in (newer.id, replies[1][0].id)}
    assert {event.kind for event in news} == {Kind.REMOVED}
    for one in (made, branch, deeper, other):
        here = await db.read(lambda tx, id=one.id: messages.round(tx, id, 2))
        assert here.replies == (replies[1][1],)
    assert (await db.read(lambda tx: conversations.get(tx, ada, before.id))).round_count == 1


async def test_a_question_goes_with_its_round_and_what_branches_answered_to_it(
    db: Database, ada: Actor, watch: Watch
) -> None:
    made, replies = await db.write(lambda tx: line(tx, ada))
    branch = await db.write(lambda tx: branches.add(tx, ada, made.id, at_round=2))
    await db.write(lambda tx: again(tx, replies[1][0], branch.id))
    await db.write(lambda tx: answered(tx, ada, branch.id, "and then?"))
    asked = (await db.read(lambda tx: messages.round(tx, made.id, 2))).question
    async with watch(ada):
        await db.write(lambda tx: trees.remove_message(tx, ada, asked.id))
    for one, questions in ((made, ["Q1?", "Q3?"]), (branch, ["Q1?", "and then?"])):
        page = await db.read(lambda tx, id=one.id: messages.page(tx, ada, id))
        assert [(round.number, round.question.content) for round in page.rounds] == [
            (1, questions[0]),
            (3, questions[1]),
        ]
    assert (await db.write(lambda tx: opened(tx, ada, made.id))).round_number == 4


async def test_a_branch_whose_reply_is_gone_still_stands(db: Database, ada: Actor, watch: Watch) -> None:
    made, replies = await db.write(lambda tx: line(tx, ada))
    branch = await db.write(
        lambda tx: branches.add(tx, ada, made.id, at_round=2, message_id=replies[1][0].id)
    )
    async with watch(ada):
        await db.write(lambda tx: trees.remove_message(tx, ada, replies[1][0].id))
    here = await db.read(lambda tx: messages.round(tx, branch.id, 2))
    assert (here.question.content, here.replies) == ("Q2?", ())
    await db.write(lambda tx: answered(tx, ada, branch.id))
    assert (await db.read(lambda tx: trees.get(tx, ada, branch.id))).root_id == made.id


async def test_nothing_of_a_deleted_message_is_left_but_what_it_cost(db: Database, ada: Actor) -> None:
    """Not in the log, not in what later replies were shown, not in the index."""
    made, replies = await db.write(lambda tx: line(tx, ada, rounds=1))
    branch = await db.write(lambda tx: branches.add(tx, ada, made.id, at_round=1))

    def talk(tx: Tx) -> tuple[Message, Message]:
        said = again(tx, replies[0][0], made.id, content="xylophone")
        later = reply(tx, opened(tx, ada, branch.id), text="I see.")
        messages.add(tx, later)
        own = Segment(Layer.QUESTION, "user", "Q1?", "asked now", 1)
        shown = Segment(Layer.ROUNDS, "user", "[GPT-4o]: xylophone", "recent", 3, said.id, 1)
        recalled = Segment(Layer.RETRIEVED, "user", "round 1: xylophone!", "hit", 3, replies[0][1].id, 1)
        receipts.save(tx, said.id, made.id, Receipt(FIRST.model, 9, (own,)), 0)
        receipts.save(tx, later.id, branch.id, Receipt(FIRST.model, 9, (own, shown, recalled)), 0)
        usage.add(tx, usage.of_reply(said, made.project_id, FIRST.model))
        return said, later

    said, later = await db.write(talk)
    assert "xylophone" in str(contents(db))
    await db.write(lambda tx: trees.remove_message(tx, ada, said.id))
    assert "xylophone" not in str(contents(db))
    shown = (await db.read(lambda tx: receipts.get(tx, ada, later.id))).segments
    assert [(one.text, one.tokens) for one in shown] == [
        ("Q1?", 1),
        (receipts.GONE_TEXT, 3),
        (receipts.GONE_TEXT, 3),
    ]
    with pytest.raises(NotFound):
        await db.read(lambda tx: receipts.get(tx, ada, said.id))
    assert (await db.read(lambda tx: usage.of_conversation(tx, ada, made.id))).cost_micros == 900
    jobs = text("SELECT payload FROM jobs WHERE kind = 'index_round' ORDER BY payload")
    left = [row.payload for row in await db.read(lambda tx: tx.execute(jobs))]
    assert left == sorted([f"{made.id}:1", f"{branch.id}:1"])


async def test_votes_on_a_deleted_message_go_and_are_told_wherever_it_was_seen(
    db: Database, ada: Actor, watch: Watch
) -> None:
    made, replies = await db.write(lambda tx: line(tx, ada, rounds=1))
    branch = await db.write(lambda tx: branches.add(tx, ada, made.id, at_round=1))
    vote = await db.write(lambda tx: votes.cast(tx, ada, replies[0][0].id, Choice.BEST))
    async with watch(ada) as news:
        await db.write(lambda tx: trees.remove_message(tx, ada, replies[0][0].id))
    told = {(event.place, event.kind) for event in news if (event.noun, event.id) == ("vote", vote.id)}
    assert told == {(conversation_place(one.id), Kind.REMOVED) for one in (made, branch)}
    assert contents(db)["votes"] == []


async def test_what_a_question_brought_along_goes_with_it(db: Database, ada: Actor) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    file = await db.write(lambda tx: brought(tx, ada))
    said = await db.write(lambda tx: said_with(tx, ada, made.id, file))
    await db.write(lambda tx: turns.set_state(tx, said.turn_id, State.COMPLETE))
    await db.write(lambda tx: trees.remove_message(tx, ada, said.id))
    assert contents(db)["attachments"] == []
    assert "sweep_blobs" in str(contents(db)["jobs"])


async def test_a_round_that_is_being_answered_stays(db: Database, ada: Actor, watch: Watch) -> None:
    made, replies = await db.write(lambda tx: line(tx, ada, rounds=1))
    branch = await db.write(lambda tx: branches.add(tx, ada, made.id, at_round=1))
    await db.write(lambda tx: opened(tx, ada, branch.id, round_number=1))
    async with watch.untouched():
        with pytest.raises(Conflict):
            await db.write(lambda tx: trees.remove_message(tx, ada, replies[0][0].id))


async def test_a_viewer_looks_and_deletes_nothing(
    db: Database, ada: Actor, bob: Actor, adas_home: str, watch: Watch
) -> None:
    made, replies = await db.write(lambda tx: line(tx, ada, rounds=1))
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, Membership.VIEWER))
    assert (await db.read(lambda tx: trees.get(tx, bob, made.id))).root_id == made.id
    async with watch.untouched():
        with pytest.raises(Forbidden):
            await db.write(lambda tx: trees.remove_message(tx, bob, replies[0][0].id))


async def test_whoever_looks_at_a_branch_hears_what_its_inherited_rounds_gain(
    db: Database, ada: Actor, watch: Watch
) -> None:
    made, replies = await db.write(lambda tx: line(tx, ada, rounds=1))
    branch = await db.write(lambda tx: branches.add(tx, ada, made.id, at_round=1))
    async with watch(ada) as news:
        new = await db.write(lambda tx: again(tx, replies[0][0], made.id))
    assert [event.place for event in news if event.id == new.id] == [
        conversation_place(one.id) for one in (made, branch)
    ]
