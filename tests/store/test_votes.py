"""Votes: one of each person in a round, blind until the first, told to everyone there."""

from __future__ import annotations

from functools import partial

import pytest

from tertulia.core.blind import lettered
from tertulia.core.errors import Conflict, Forbidden
from tertulia.core.events import Kind
from tertulia.core.messages import Message
from tertulia.core.projects import Membership
from tertulia.core.turns import State
from tertulia.core.users import Actor
from tertulia.core.votes import Choice, Vote
from tertulia.store import blind, branches, conversations, messages, projects, trees, turns, votes
from tertulia.store.database import Database, Tx
from tests.store.samples import VOICES, answered, conversation, opened, reply
from tests.store_fixtures import Clock, Watch


@pytest.fixture
async def both(db: Database, ada: Actor, bob: Actor, adas_home: str) -> str:
    """A conversation that Ada and Bob share."""
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, Membership.EDITOR))
    made = await db.write(lambda tx: conversation(tx, ada))
    return made.id


@pytest.fixture
async def replies(db: Database, ada: Actor, both: str) -> list[Message]:
    _, said = await db.write(lambda tx: answered(tx, ada, both))
    return said


async def seen(db: Database, actor: Actor, conversation_id: str) -> tuple[Vote, ...]:
    def read(tx: Tx) -> tuple[Vote, ...]:
        page = messages.page(tx, actor, conversation_id, limit=100)
        return votes.of_rounds(tx, actor, conversation_id, page.rounds)

    return await db.read(read)


async def test_a_vote_names_the_best_and_whom_it_was_up_against(
    db: Database, ada: Actor, bob: Actor, both: str, replies: list[Message], watch: Watch
) -> None:
    async with watch(ada, bob):
        vote = await db.write(lambda tx: votes.cast(tx, ada, replies[0].id, Choice.BEST))
    assert (vote.message_id, vote.user_id, vote.is_blind) == (replies[0].id, ada.user_id, False)
    assert [one.message_id for one in vote.contenders] == [one.id for one in replies]
    assert vote.winner == "openai:gpt-4o"
    assert await seen(db, bob, both) == (vote,)


async def test_a_second_vote_of_the_same_person_takes_the_place_of_the_first(
    db: Database, ada: Actor, bob: Actor, both: str, replies: list[Message], watch: Watch
) -> None:
    first = await db.write(lambda tx: votes.cast(tx, ada, replies[0].id, Choice.BEST))
    await db.write(lambda tx: votes.cast(tx, bob, replies[1].id, Choice.BOTH_BAD))
    async with watch(ada, bob):
        second = await db.write(lambda tx: votes.cast(tx, ada, replies[1].id, Choice.TIE))
    assert (second.id, second.message_id, second.winner) == (first.id, None, None)
    assert {vote.verdict for vote in await seen(db, ada, both)} == {Choice.TIE, Choice.BOTH_BAD}


async def test_a_vote_can_be_taken_back_and_given_again(
    db: Database, ada: Actor, both: str, replies: list[Message], watch: Watch
) -> None:
    await db.write(lambda tx: votes.cast(tx, ada, replies[0].id, Choice.BEST))
    async with watch(ada):
        await db.write(lambda tx: votes.cast(tx, ada, replies[1].id, Choice.NONE))
    assert await seen(db, ada, both) == ()
    async with watch.untouched():
        with pytest.raises(Conflict):
            await db.write(lambda tx: votes.cast(tx, ada, replies[1].id, Choice.NONE))
    async with watch(ada):
        await db.write(lambda tx: votes.cast(tx, ada, replies[1].id, Choice.BEST))
    [vote] = await seen(db, ada, both)
    assert vote.message_id == replies[1].id


async def test_a_viewer_does_not_vote(
    db: Database, ada: Actor, bob: Actor, both: str, replies: list[Message], watch: Watch, adas_home: str
) -> None:
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, Membership.VIEWER))
    async with watch.untouched():
        with pytest.raises(Forbidden):
            await db.write(lambda tx: votes.cast(tx, bob, replies[0].id, Choice.BEST))


async def test_names_are_hidden_for_the_first_vote_alone_and_told_with_it_wherever_the_round_is_read(
    db: Database, ada: Actor, bob: Actor, both: str, watch: Watch
) -> None:
    said = await db.write(lambda tx: asked_blind(tx, ada, both))
    await db.write(lambda tx: branches.add(tx, ada, both, at_round=1))
    async with watch(ada, bob) as news:
        first = await db.write(lambda tx: votes.cast(tx, ada, said.id, Choice.BEST))
    assert [event.noun for event in news].count("message") == 2 * len(VOICES)
    second = await db.write(lambda tx: votes.cast(tx, bob, said.id, Choice.BEST))
    await db.write(lambda tx: votes.cast(tx, ada, said.id, Choice.NONE))
    again = await db.write(lambda tx: votes.cast(tx, ada, said.id, Choice.BEST))
    assert [first.is_blind, second.is_blind, again.is_blind] == [True, False, False]


async def test_a_blind_round_of_one_branch_stays_so_when_another_is_voted_on(
    db: Database, ada: Actor, both: str
) -> None:
    beside = await db.write(lambda tx: branches.add(tx, ada, both, at_round=0))
    said, other = [
        await db.write(partial(asked_blind, actor=ada, conversation_id=id)) for id in (both, beside.id)
    ]
    await db.write(lambda tx: votes.cast(tx, ada, said.id, Choice.BEST))
    here, there = [await db.read(partial(told, message=message)) for message in (said, other)]
    assert {message.voice for message in here} == set(SEATED)
    assert {message.voice.name for message in there if message.voice} == {"Voice A", "Voice B"}


SEATED = lettered(VOICES, "a secret")


def asked_blind(tx: Tx, actor: Actor, conversation_id: str) -> Message:
    """A round that nobody has voted on; its first reply."""
    turn = opened(tx, actor, conversation_id, is_blind=True, table=SEATED)
    replies = [reply(tx, turn, voice) for voice in SEATED]
    for one in replies:
        messages.add(tx, one)
    turns.set_state(tx, turn.id, State.COMPLETE)
    return replies[0]


def told(tx: Tx, message: Message) -> tuple[Message, ...]:
    [here] = blind.as_told(tx, [messages.round(tx, message.conversation_id, message.round_number)])
    return here.replies


async def test_a_branch_knows_the_votes_on_what_it_inherits_and_no_others(
    db: Database, ada: Actor, both: str, replies: list[Message], clock: Clock
) -> None:
    await db.write(lambda tx: votes.cast(tx, ada, replies[0].id, Choice.BEST))
    _, later = await db.write(lambda tx: answered(tx, ada, both, "And then?"))
    await db.write(lambda tx: votes.cast(tx, ada, later[0].id, Choice.BEST))
    whole = await db.write(lambda tx: branches.add(tx, ada, both, at_round=1))
    other = await db.write(lambda tx: branches.add(tx, ada, both, at_round=1, message_id=replies[1].id))
    _, own = await db.write(lambda tx: answered(tx, ada, whole.id, "Or rather?"))
    assert [vote.message_id for vote in await seen(db, ada, whole.id)] == [replies[0].id]
    assert await seen(db, ada, other.id) == ()

    def marked(tx: Tx) -> frozenset[str]:
        return votes.chosen(tx, messages.history(tx, whole.id, before_round=3, rounds=10))

    assert await db.read(marked) == {replies[0].id}
    clock.forward(1)
    await db.write(lambda tx: votes.cast(tx, ada, own[1].id, Choice.BEST))
    assert await db.read(marked) == {replies[0].id, own[1].id}


@pytest.mark.parametrize("verdict", [Choice.BEST, Choice.TIE])
async def test_every_branch_that_reads_a_reply_hears_of_the_votes_on_it(
    db: Database, ada: Actor, bob: Actor, both: str, replies: list[Message], watch: Watch, verdict: Choice
) -> None:
    for message_id in (None, replies[0].id, replies[1].id):
        await db.write(partial(branch, actor=ada, parent_id=both, message_id=message_id))
    for one in replies:  # the second vote is on another reply, and some branches read only one of them
        async with watch(ada, bob):
            await db.write(partial(votes.cast, actor=ada, message_id=one.id, verdict=verdict))
    async with watch(ada, bob):
        await db.write(lambda tx: votes.cast(tx, ada, replies[0].id, Choice.NONE))


@pytest.mark.parametrize("verdict", [Choice.BEST, Choice.TIE])
@pytest.mark.parametrize("is_question", [False, True])
async def test_a_vote_goes_with_what_it_was_cast_on(
    db: Database,
    ada: Actor,
    bob: Actor,
    both: str,
    replies: list[Message],
    watch: Watch,
    verdict: Choice,
    is_question: bool,
) -> None:
    await db.write(partial(branch, actor=ada, parent_id=both, message_id=None))
    await db.write(lambda tx: votes.cast(tx, ada, replies[0].id, verdict))
    asked = await db.read(lambda tx: messages.round(tx, both, 1).question)
    gone = asked if is_question else replies[0]
    async with watch(ada, bob) as news:
        await db.write(lambda tx: trees.remove_message(tx, ada, gone.id))
    assert [event.kind for event in news if event.noun == "vote"] == [Kind.REMOVED] * 2
    assert await seen(db, ada, both) == ()


def branch(tx: Tx, actor: Actor, parent_id: str, message_id: str | None) -> None:
    branches.add(tx, actor, parent_id, at_round=1, message_id=message_id)


async def test_a_project_counts_its_own_votes_and_efforts_alone(
    db: Database, ada: Actor, both: str, replies: list[Message], adas_home: str
) -> None:
    await db.write(lambda tx: votes.cast(tx, ada, replies[0].id, Choice.BEST))
    elsewhere = await db.write(lambda tx: projects.add(tx, ada, "Elsewhere"))
    assert len(await db.read(lambda tx: votes.of_project(tx, ada, adas_home))) == 1
    assert await db.read(lambda tx: votes.of_project(tx, ada, elsewhere.id)) == ()
    await db.write(lambda tx: conversations.remove(tx, ada, both))
    assert await db.read(lambda tx: votes.of_project(tx, ada, adas_home)) == ()
