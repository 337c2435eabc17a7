"""Branch trees: reading and comparing them, and deleting messages in every branch that shows them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tertulia.core.conversations import Conversation
from tertulia.core.errors import Conflict, Forbidden, NotFound
from tertulia.core.events import EventKind, conversation_topic
from tertulia.core.jobs import IndexRounds, encode
from tertulia.core.messages import Message
from tertulia.core.projects import ProjectRole
from tertulia.core.receipts import Layer, Receipt, Segment, SegmentReason
from tertulia.core.trees import DeletionPreview, MessageDeletionPreview, Siblings, TreeRound, Versions
from tertulia.core.turns import TurnState
from tertulia.core.users import Actor
from tertulia.core.votes import VoteValue
from tertulia.store import branches, conversations, messages, projects, receipts, trees, turns, usage, votes
from tertulia.store.database import Database, Tx
from tertulia.store.sql import sql
from tests.store.samples import FIRST, answered, conversation, opened, reply, said_with
from tests.store.samples import attachment as stored_attachment
from tests.store_fixtures import Watch, contents


def conversation_with_rounds(
    tx: Tx, actor: Actor, rounds: int = 3
) -> tuple[Conversation, list[list[Message]]]:
    """A conversation, and the replies of each of its rounds."""
    root = conversation(tx, actor)
    replies = [answered(tx, actor, root.id, f"Q{number}?")[1] for number in range(1, rounds + 1)]
    return conversations.get(tx, actor, root.id), replies


def regenerate(tx: Tx, reply: Message, conversation_id: str, **changes: object) -> Message:
    """A new version of a reply, stored in a conversation."""
    version = replace(reply, id=tx.new_id(), conversation_id=conversation_id, replaces_id=reply.id, **changes)  # type: ignore[arg-type]
    messages.add(tx, version)
    return version


# ── reading and comparing


async def test_a_tree_holds_each_conversation_with_its_own_rounds_only(db: Database, ada: Actor) -> None:
    root, replies = await db.write(lambda tx: conversation_with_rounds(tx, ada))
    await db.write(lambda tx: usage.add(tx, usage.of_reply(replies[0][0], root.project_id, FIRST.model)))
    branch = await db.write(lambda tx: branches.add(tx, ada, root.id, at_round=2))
    await db.write(lambda tx: answered(tx, ada, branch.id, "x" * 500))
    for conversation_id in (root.id, branch.id):
        tree = await db.read(lambda tx, id=conversation_id: trees.get(tx, ada, id))
        assert tree.root_id == root.id
        assert [(node.conversation.id, len(node.rounds)) for node in tree.nodes] == [
            (root.id, 3),
            (branch.id, 1),
        ]
    assert tree.nodes[0].rounds[0] == TreeRound(1, "Q1?", (1, 2), 900, root.created_at, ada.user_id)
    assert (tree.nodes[1].rounds[0].number, tree.nodes[1].rounds[0].question) == (3, "x" * 120 + "…")
    assert tree.nodes[1].rounds[0].cost_micros is None


async def test_edited_questions_are_siblings_in_every_branch(db: Database, ada: Actor) -> None:
    root, _ = await db.write(lambda tx: conversation_with_rounds(tx, ada))

    def edit(tx: Tx, parent_id: str) -> str:
        branch = branches.add(tx, ada, parent_id, at_round=1)
        answered(tx, ada, branch.id, "Q2, differently?")
        return branch.id

    first = await db.write(lambda tx: edit(tx, root.id))
    second = await db.write(lambda tx: edit(tx, first))
    expected = (root.id, first, second)
    for index, id in enumerate(expected):
        tree = await db.read(lambda tx, id=id: trees.get(tx, ada, id))
        assert tree.siblings == (Siblings(2, expected, index),)


async def test_a_reply_regenerated_in_a_branch_is_a_version_in_both_conversations(
    db: Database, ada: Actor
) -> None:
    root, replies = await db.write(lambda tx: conversation_with_rounds(tx, ada))
    branch = await db.write(lambda tx: branches.add(tx, ada, root.id, at_round=2))
    version = await db.write(lambda tx: regenerate(tx, replies[1][0], branch.id))
    for index, id in enumerate((root.id, branch.id)):
        tree = await db.read(lambda tx, id=id: trees.get(tx, ada, id))
        ids = (root.id, branch.id), (replies[1][0].id, version.id)
        assert tree.versions == (Versions(2, *ids, index),)
    assert tree.nodes[1].rounds[0].question == "Q2?"
    round_ = await db.read(lambda tx: messages.round(tx, branch.id, 2))
    assert round_.replies == (version, replies[1][1])


async def test_two_branches_are_compared_from_the_round_where_they_part(db: Database, ada: Actor) -> None:
    root, _ = await db.write(lambda tx: conversation_with_rounds(tx, ada))
    branch = await db.write(lambda tx: branches.add(tx, ada, root.id, at_round=1))
    await db.write(lambda tx: answered(tx, ada, branch.id, "Q2, differently?"))
    comparison = await db.read(lambda tx: trees.compared(tx, ada, root.id, branch.id))
    assert comparison.common_rounds == 1
    assert [
        (
            difference.number,
            difference.left and difference.left.question.content,
            difference.right and difference.right.question.content,
        )
        for difference in comparison.rounds
    ] == [(2, "Q2?", "Q2, differently?"), (3, "Q3?", None)]
    assert (comparison.left.rounds, comparison.right.rounds) == (2, 1)
    assert comparison.left.cost_micros == 4 * 900


async def test_only_branches_of_one_conversation_can_be_compared(
    db: Database, ada: Actor, bob: Actor
) -> None:
    root, other = [await db.write(lambda tx: conversation(tx, ada)) for _ in range(2)]
    with pytest.raises(Conflict):
        await db.read(lambda tx: trees.compared(tx, ada, root.id, other.id))
    for actor, left, right in ((bob, root, root), (ada, root, replace(root, id="0" * 26))):
        with pytest.raises(NotFound):
            await db.read(lambda tx, a=actor, b=left.id, c=right.id: trees.compared(tx, a, b, c))


# ── previews of a deletion


async def test_the_preview_counts_what_a_conversation_s_deletion_removes(db: Database, ada: Actor) -> None:
    root, replies = await db.write(lambda tx: conversation_with_rounds(tx, ada))
    await db.write(lambda tx: conversations.rename(tx, ada, root.id, "Plans"))
    branch = await db.write(lambda tx: branches.add(tx, ada, root.id, at_round=2, title="Another way"))
    await db.write(lambda tx: answered(tx, ada, branch.id))
    assert await db.read(lambda tx: trees.removal(tx, ada, root.id)) == DeletionPreview(
        2, 4, 8, ("Plans", "Another way")
    )
    assert await db.read(lambda tx: trees.removal(tx, ada, branch.id)) == DeletionPreview(
        1, 1, 2, ("Another way",)
    )


async def test_the_preview_counts_what_a_message_s_deletion_removes(db: Database, ada: Actor) -> None:
    root, replies = await db.write(lambda tx: conversation_with_rounds(tx, ada))
    await db.write(lambda tx: regenerate(tx, replies[1][0], root.id))
    await db.write(lambda tx: branches.add(tx, ada, root.id, at_round=2))
    question = (await db.read(lambda tx: messages.round(tx, root.id, 2))).question
    previews = await db.read(
        lambda tx: [
            trees.message_removal(tx, ada, id) for id in (question.id, *(reply.id for reply in replies[1]))
        ]
    )
    assert previews == [
        MessageDeletionPreview(1, 3, 1),
        MessageDeletionPreview(0, 2, 1),
        MessageDeletionPreview(0, 1, 1),
    ]


# ── deleting


async def test_a_deleted_reply_disappears_with_its_versions_from_every_branch(
    db: Database, ada: Actor, watch: Watch
) -> None:
    root, replies = await db.write(lambda tx: conversation_with_rounds(tx, ada))
    newer = await db.write(lambda tx: regenerate(tx, replies[1][0], root.id))
    branch = await db.write(lambda tx: branches.add(tx, ada, root.id, at_round=2))
    await db.write(lambda tx: answered(tx, ada, branch.id))
    deeper = await db.write(lambda tx: branches.add(tx, ada, branch.id, at_round=3))
    before = await db.write(lambda tx: branches.add(tx, ada, root.id, at_round=1))
    other = await db.write(lambda tx: branches.add(tx, ada, root.id, at_round=2, message_id=replies[1][1].id))
    async with watch(ada) as new_events:
        await db.write(lambda tx: trees.remove_message(tx, ada, newer.id))
    removed = {(event.topic, event.id) for event in new_events if event.noun == "message"}
    topics = [conversation_topic(chat.id) for chat in (root, branch, deeper)]
    assert removed == {(topic, id) for topic in topics for id in (newer.id, replies[1][0].id)}
    assert {event.kind for event in new_events} == {EventKind.REMOVED}
    for chat in (root, branch, deeper, other):
        round_ = await db.read(lambda tx, id=chat.id: messages.round(tx, id, 2))
        assert round_.replies == (replies[1][1],)
    assert (await db.read(lambda tx: conversations.get(tx, ada, before.id))).round_count == 1


async def test_a_deleted_question_disappears_with_its_round_and_replies_in_branches(
    db: Database, ada: Actor, watch: Watch
) -> None:
    root, replies = await db.write(lambda tx: conversation_with_rounds(tx, ada))
    branch = await db.write(lambda tx: branches.add(tx, ada, root.id, at_round=2))
    await db.write(lambda tx: regenerate(tx, replies[1][0], branch.id))
    await db.write(lambda tx: answered(tx, ada, branch.id, "and then?"))
    question = (await db.read(lambda tx: messages.round(tx, root.id, 2))).question
    async with watch(ada):
        await db.write(lambda tx: trees.remove_message(tx, ada, question.id))
    for chat, questions in ((root, ["Q1?", "Q3?"]), (branch, ["Q1?", "and then?"])):
        page = await db.read(lambda tx, id=chat.id: messages.page(tx, ada, id))
        assert [(round.number, round.question.content) for round in page.rounds] == [
            (1, questions[0]),
            (3, questions[1]),
        ]
    assert (await db.write(lambda tx: opened(tx, ada, root.id))).round_number == 4


async def test_a_branch_survives_the_deletion_of_the_reply_it_began_at(
    db: Database, ada: Actor, watch: Watch
) -> None:
    root, replies = await db.write(lambda tx: conversation_with_rounds(tx, ada))
    branch = await db.write(
        lambda tx: branches.add(tx, ada, root.id, at_round=2, message_id=replies[1][0].id)
    )
    async with watch(ada):
        await db.write(lambda tx: trees.remove_message(tx, ada, replies[1][0].id))
    round_ = await db.read(lambda tx: messages.round(tx, branch.id, 2))
    assert (round_.question.content, round_.replies) == ("Q2?", ())
    await db.write(lambda tx: answered(tx, ada, branch.id))
    assert (await db.read(lambda tx: trees.get(tx, ada, branch.id))).root_id == root.id


async def test_a_deleted_message_leaves_nothing_but_its_cost(db: Database, ada: Actor) -> None:
    """No trace in the event log, in later receipts or in the search index."""
    root, replies = await db.write(lambda tx: conversation_with_rounds(tx, ada, rounds=1))
    branch = await db.write(lambda tx: branches.add(tx, ada, root.id, at_round=1))

    def add_messages(tx: Tx) -> tuple[Message, Message]:
        deleted = regenerate(tx, replies[0][0], root.id, content="xylophone")
        later = reply(tx, opened(tx, ada, branch.id), text="I see.")
        messages.add(tx, later)
        own_segment = Segment(Layer.QUESTION, "user", "Q1?", SegmentReason.ASKED_NOW, 1)
        round_segment = Segment(
            Layer.ROUNDS, "user", "[GPT-4o]: xylophone", SegmentReason.RECENT, 3, deleted.id, 1
        )
        retrieved_segment = Segment(
            Layer.RETRIEVED, "user", "round 1: xylophone!", SegmentReason.RETRIEVED, 3, replies[0][1].id, 1
        )
        receipts.save(tx, deleted.id, root.id, Receipt(FIRST.model, 9, (own_segment,)))
        receipts.save(
            tx,
            later.id,
            branch.id,
            Receipt(FIRST.model, 9, (own_segment, round_segment, retrieved_segment)),
        )
        usage.add(tx, usage.of_reply(deleted, root.project_id, FIRST.model))
        return deleted, later

    deleted, later = await db.write(add_messages)
    assert "xylophone" in str(contents(db))
    await db.write(lambda tx: trees.remove_message(tx, ada, deleted.id))
    assert "xylophone" not in str(contents(db))
    segments = (await db.read(lambda tx: receipts.get(tx, ada, later.id))).segments
    assert [(segment.text, segment.tokens) for segment in segments] == [
        ("Q1?", 1),
        (receipts.DELETED_TEXT, 3),
        (receipts.DELETED_TEXT, 3),
    ]
    with pytest.raises(NotFound):
        await db.read(lambda tx: receipts.get(tx, ada, deleted.id))
    assert (await db.read(lambda tx: usage.of_conversation(tx, ada, root.id))).cost_micros == 900
    jobs = sql("SELECT payload FROM jobs WHERE kind = 'index_round' ORDER BY payload")
    payloads = [row.payload for row in await db.read(lambda tx: tx.execute(jobs))]
    assert payloads == sorted(encode(IndexRounds.single(id, 1)) for id in (root.id, branch.id))


async def test_votes_on_a_deleted_message_are_removed_in_every_conversation_that_showed_it(
    db: Database, ada: Actor, watch: Watch
) -> None:
    root, replies = await db.write(lambda tx: conversation_with_rounds(tx, ada, rounds=1))
    branch = await db.write(lambda tx: branches.add(tx, ada, root.id, at_round=1))
    vote = await db.write(lambda tx: votes.cast(tx, ada, replies[0][0].id, VoteValue.BEST))
    async with watch(ada) as new_events:
        await db.write(lambda tx: trees.remove_message(tx, ada, replies[0][0].id))
    removed = {
        (event.topic, event.kind) for event in new_events if (event.noun, event.id) == ("vote", vote.id)
    }
    assert removed == {(conversation_topic(chat.id), EventKind.REMOVED) for chat in (root, branch)}
    assert contents(db)["votes"] == []


async def test_attachments_of_a_deleted_question_are_deleted(db: Database, ada: Actor) -> None:
    root = await db.write(lambda tx: conversation(tx, ada))
    file = await db.write(lambda tx: stored_attachment(tx, ada))
    question = await db.write(lambda tx: said_with(tx, ada, root.id, file))
    await db.write(lambda tx: turns.set_state(tx, question.turn_id, TurnState.COMPLETE))
    await db.write(lambda tx: trees.remove_message(tx, ada, question.id))
    assert contents(db)["attachments"] == []
    assert "sweep_blobs" in str(contents(db)["jobs"])


async def test_a_round_that_is_being_answered_cannot_be_deleted(
    db: Database, ada: Actor, watch: Watch
) -> None:
    root, replies = await db.write(lambda tx: conversation_with_rounds(tx, ada, rounds=1))
    branch = await db.write(lambda tx: branches.add(tx, ada, root.id, at_round=1))
    await db.write(lambda tx: opened(tx, ada, branch.id, round_number=1))
    async with watch.untouched():
        with pytest.raises(Conflict):
            await db.write(lambda tx: trees.remove_message(tx, ada, replies[0][0].id))


async def test_a_viewer_can_read_a_tree_but_not_delete_messages(
    db: Database, ada: Actor, bob: Actor, adas_home: str, watch: Watch
) -> None:
    root, replies = await db.write(lambda tx: conversation_with_rounds(tx, ada, rounds=1))
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, ProjectRole.VIEWER))
    assert (await db.read(lambda tx: trees.get(tx, bob, root.id))).root_id == root.id
    async with watch.untouched():
        with pytest.raises(Forbidden):
            await db.write(lambda tx: trees.remove_message(tx, bob, replies[0][0].id))


async def test_new_versions_of_inherited_replies_are_emitted_in_the_branch_too(
    db: Database, ada: Actor, watch: Watch
) -> None:
    root, replies = await db.write(lambda tx: conversation_with_rounds(tx, ada, rounds=1))
    branch = await db.write(lambda tx: branches.add(tx, ada, root.id, at_round=1))
    async with watch(ada) as new_events:
        version = await db.write(lambda tx: regenerate(tx, replies[0][0], root.id))
    assert [event.topic for event in new_events if event.id == version.id] == [
        conversation_topic(chat.id) for chat in (root, branch)
    ]
