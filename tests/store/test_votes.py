"""Votes: one per user and round, names hidden until the first one, and events in every branch."""

from __future__ import annotations

from functools import partial

import pytest

from tertulia.core.blind import assign_letters
from tertulia.core.errors import Conflict, Forbidden
from tertulia.core.events import EventKind
from tertulia.core.messages import Message
from tertulia.core.projects import ProjectRole
from tertulia.core.turns import TurnState
from tertulia.core.users import Actor
from tertulia.core.votes import Vote, VoteValue
from tertulia.store import blind, branches, conversations, messages, projects, trees, turns, votes
from tertulia.store.database import Database, Tx
from tests.store.samples import VOICES, answered, conversation, opened, reply
from tests.store_fixtures import Clock, Watch


@pytest.fixture
async def shared_chat(db: Database, ada: Actor, bob: Actor, adas_home: str) -> str:
    """The id of a conversation that Ada and Bob share."""
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, ProjectRole.EDITOR))
    chat = await db.write(lambda tx: conversation(tx, ada))
    return chat.id


@pytest.fixture
async def replies(db: Database, ada: Actor, shared_chat: str) -> list[Message]:
    _, added = await db.write(lambda tx: answered(tx, ada, shared_chat))
    return added


async def visible_votes(db: Database, actor: Actor, conversation_id: str) -> tuple[Vote, ...]:
    def read(tx: Tx) -> tuple[Vote, ...]:
        page = messages.page(tx, actor, conversation_id, limit=100)
        return votes.of_rounds(tx, actor, conversation_id, page.rounds)

    return await db.read(read)


async def test_a_vote_stores_the_best_reply_and_its_contenders(
    db: Database, ada: Actor, bob: Actor, shared_chat: str, replies: list[Message], watch: Watch
) -> None:
    async with watch(ada, bob):
        vote = await db.write(lambda tx: votes.cast(tx, ada, replies[0].id, VoteValue.BEST))
    assert (vote.message_id, vote.user_id, vote.is_blind) == (replies[0].id, ada.user_id, False)
    assert [contender.message_id for contender in vote.contenders] == [reply.id for reply in replies]
    assert vote.winner == "openai:gpt-4o"
    assert await visible_votes(db, bob, shared_chat) == (vote,)


async def test_a_user_s_second_vote_replaces_the_first(
    db: Database, ada: Actor, bob: Actor, shared_chat: str, replies: list[Message], watch: Watch
) -> None:
    first = await db.write(lambda tx: votes.cast(tx, ada, replies[0].id, VoteValue.BEST))
    await db.write(lambda tx: votes.cast(tx, bob, replies[1].id, VoteValue.BOTH_BAD))
    async with watch(ada, bob):
        second = await db.write(lambda tx: votes.cast(tx, ada, replies[1].id, VoteValue.TIE))
    assert (second.id, second.message_id, second.winner) == (first.id, None, None)
    assert {vote.verdict for vote in await visible_votes(db, ada, shared_chat)} == {
        VoteValue.TIE,
        VoteValue.BOTH_BAD,
    }


async def test_a_vote_can_be_taken_back_and_cast_again(
    db: Database, ada: Actor, shared_chat: str, replies: list[Message], watch: Watch
) -> None:
    await db.write(lambda tx: votes.cast(tx, ada, replies[0].id, VoteValue.BEST))
    async with watch(ada):
        await db.write(lambda tx: votes.cast(tx, ada, replies[1].id, VoteValue.NONE))
    assert await visible_votes(db, ada, shared_chat) == ()
    async with watch.untouched():
        with pytest.raises(Conflict):
            await db.write(lambda tx: votes.cast(tx, ada, replies[1].id, VoteValue.NONE))
    async with watch(ada):
        await db.write(lambda tx: votes.cast(tx, ada, replies[1].id, VoteValue.BEST))
    [vote] = await visible_votes(db, ada, shared_chat)
    assert vote.message_id == replies[1].id


async def test_a_viewer_cannot_vote(
    db: Database,
    ada: Actor,
    bob: Actor,
    shared_chat: str,
    replies: list[Message],
    watch: Watch,
    adas_home: str,
) -> None:
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, ProjectRole.VIEWER))
    async with watch.untouched():
        with pytest.raises(Forbidden):
            await db.write(lambda tx: votes.cast(tx, bob, replies[0].id, VoteValue.BEST))


async def test_the_first_vote_reveals_the_names_in_every_branch_and_only_that_vote_is_blind(
    db: Database, ada: Actor, bob: Actor, shared_chat: str, watch: Watch
) -> None:
    message = await db.write(lambda tx: add_blind_round(tx, ada, shared_chat))
    await db.write(lambda tx: branches.add(tx, ada, shared_chat, at_round=1))
    async with watch(ada, bob) as new_events:
        first = await db.write(lambda tx: votes.cast(tx, ada, message.id, VoteValue.BEST))
    assert [event.noun for event in new_events].count("message") == 2 * len(VOICES)
    second = await db.write(lambda tx: votes.cast(tx, bob, message.id, VoteValue.BEST))
    await db.write(lambda tx: votes.cast(tx, ada, message.id, VoteValue.NONE))
    again = await db.write(lambda tx: votes.cast(tx, ada, message.id, VoteValue.BEST))
    assert [first.is_blind, second.is_blind, again.is_blind] == [True, False, False]


async def test_a_vote_in_one_branch_does_not_reveal_the_blind_round_of_another(
    db: Database, ada: Actor, shared_chat: str
) -> None:
    branch_ = await db.write(lambda tx: branches.add(tx, ada, shared_chat, at_round=0))
    first_reply, branch_reply = [
        await db.write(partial(add_blind_round, actor=ada, conversation_id=id))
        for id in (shared_chat, branch_.id)
    ]
    await db.write(lambda tx: votes.cast(tx, ada, first_reply.id, VoteValue.BEST))
    replies_here, branch_replies = [
        await db.read(partial(visible_replies, message=message)) for message in (first_reply, branch_reply)
    ]
    assert {message.voice for message in replies_here} == set(LETTERED_VOICES)
    assert {message.voice.name for message in branch_replies if message.voice} == {"Voice A", "Voice B"}


LETTERED_VOICES = assign_letters(VOICES, "a secret")


def add_blind_round(tx: Tx, actor: Actor, conversation_id: str) -> Message:
    """Stores a blind round without votes and returns its first reply."""
    turn = opened(tx, actor, conversation_id, is_blind=True, table=LETTERED_VOICES)
    replies = [reply(tx, turn, voice) for voice in LETTERED_VOICES]
    for message in replies:
        messages.add(tx, message)
    turns.set_state(tx, turn.id, TurnState.COMPLETE)
    return replies[0]


def visible_replies(tx: Tx, message: Message) -> tuple[Message, ...]:
    [round_] = blind.as_told(tx, [messages.round(tx, message.conversation_id, message.round_number)])
    return round_.replies


async def test_a_branch_shows_only_the_votes_on_replies_that_it_inherits(
    db: Database, ada: Actor, shared_chat: str, replies: list[Message], clock: Clock
) -> None:
    await db.write(lambda tx: votes.cast(tx, ada, replies[0].id, VoteValue.BEST))
    _, later = await db.write(lambda tx: answered(tx, ada, shared_chat, "And then?"))
    await db.write(lambda tx: votes.cast(tx, ada, later[0].id, VoteValue.BEST))
    branch_of_round = await db.write(lambda tx: branches.add(tx, ada, shared_chat, at_round=1))
    branch_of_reply = await db.write(
        lambda tx: branches.add(tx, ada, shared_chat, at_round=1, message_id=replies[1].id)
    )
    _, own_replies = await db.write(lambda tx: answered(tx, ada, branch_of_round.id, "Or rather?"))
    assert [vote.message_id for vote in await visible_votes(db, ada, branch_of_round.id)] == [replies[0].id]
    assert await visible_votes(db, ada, branch_of_reply.id) == ()

    def best_replies(tx: Tx) -> frozenset[str]:
        return votes.chosen(tx, messages.history(tx, branch_of_round.id, before_round=3, rounds=10))

    assert await db.read(best_replies) == {replies[0].id}
    clock.forward(1)
    await db.write(lambda tx: votes.cast(tx, ada, own_replies[1].id, VoteValue.BEST))
    assert await db.read(best_replies) == {replies[0].id, own_replies[1].id}


@pytest.mark.parametrize("verdict", [VoteValue.BEST, VoteValue.TIE])
async def test_votes_are_emitted_in_every_branch_that_shows_the_reply(
    db: Database,
    ada: Actor,
    bob: Actor,
    shared_chat: str,
    replies: list[Message],
    watch: Watch,
    verdict: VoteValue,
) -> None:
    for message_id in (None, replies[0].id, replies[1].id):
        await db.write(partial(branch, actor=ada, parent_id=shared_chat, message_id=message_id))
    for voted_reply in replies:  # some branches show only one of the two replies
        async with watch(ada, bob):
            await db.write(partial(votes.cast, actor=ada, message_id=voted_reply.id, verdict=verdict))
    async with watch(ada, bob):
        await db.write(lambda tx: votes.cast(tx, ada, replies[0].id, VoteValue.NONE))


@pytest.mark.parametrize("verdict", [VoteValue.BEST, VoteValue.TIE])
@pytest.mark.parametrize("is_question", [False, True])
async def test_a_vote_is_deleted_with_its_reply_or_question(
    db: Database,
    ada: Actor,
    bob: Actor,
    shared_chat: str,
    replies: list[Message],
    watch: Watch,
    verdict: VoteValue,
    is_question: bool,
) -> None:
    await db.write(partial(branch, actor=ada, parent_id=shared_chat, message_id=None))
    await db.write(lambda tx: votes.cast(tx, ada, replies[0].id, verdict))
    question = await db.read(lambda tx: messages.round(tx, shared_chat, 1).question)
    deleted = question if is_question else replies[0]
    async with watch(ada, bob) as new_events:
        await db.write(lambda tx: trees.remove_message(tx, ada, deleted.id))
    assert [event.kind for event in new_events if event.noun == "vote"] == [EventKind.REMOVED] * 2
    assert await visible_votes(db, ada, shared_chat) == ()


def branch(tx: Tx, actor: Actor, parent_id: str, message_id: str | None) -> None:
    branches.add(tx, actor, parent_id, at_round=1, message_id=message_id)


async def test_a_project_lists_only_its_own_votes(
    db: Database, ada: Actor, shared_chat: str, replies: list[Message], adas_home: str
) -> None:
    await db.write(lambda tx: votes.cast(tx, ada, replies[0].id, VoteValue.BEST))
    elsewhere = await db.write(lambda tx: projects.add(tx, ada, "Elsewhere"))
    assert len(await db.read(lambda tx: votes.of_project(tx, ada, adas_home))) == 1
    assert await db.read(lambda tx: votes.of_project(tx, ada, elsewhere.id)) == ()
    await db.write(lambda tx: conversations.remove(tx, ada, shared_chat))
    assert await db.read(lambda tx: votes.of_project(tx, ada, adas_home)) == ()
