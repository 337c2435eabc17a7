"""Messages: storing them, paging through rounds, and the rounds that a branch inherits."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tertulia.core.errors import NotFound
from tertulia.core.messages import Failure, Message, Status, Thinking
from tertulia.core.users import Actor
from tertulia.store import branches, messages, turns
from tertulia.store.database import Database, Tx
from tertulia.store.sql import sql
from tests.store.samples import FIRST, VOICES, answered, conversation, opened, reply, turn
from tests.store_fixtures import Watch


async def test_a_message_reads_back_as_it_was_stored(db: Database, ada: Actor, watch: Watch) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    turn_ = await db.write(lambda tx: opened(tx, ada, chat.id))

    def store(tx: Tx) -> Message:
        message = reply(
            tx,
            turn_,
            text="Because of – 散乱 🌌\n\ttabs and 'quotes' \"too\" \\ \x1f",
            status=Status.INTERRUPTED,
            thinking=Thinking("Hm.", 1.5),
            failure=Failure("cut", "The line dropped.", "EOF"),
            reply_to_id="a",
            critique_of_id="b",
            replaces_id="c",
        )
        messages.add(tx, message)
        return message

    async with watch(ada):
        message = await db.write(store)
    assert await db.read(lambda tx: messages.get(tx, ada, message.id)) == message


async def test_characters_that_no_database_stores_are_replaced_in_every_field(
    db: Database, ada: Actor, watch: Watch
) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    turn_ = await db.write(lambda tx: opened(tx, ada, chat.id))
    strange = "nul \0, half \ud83d, whole \ud83d\ude00, literal \\u0000"

    def store(tx: Tx) -> str:
        message = reply(tx, turn_, replace(FIRST, name=strange), strange, failure=Failure("cut", strange))
        messages.add(tx, message)
        return message.id

    async with watch(ada):
        id = await db.write(store)
    clean = "nul \ufffd, half \ufffd, whole 😀, literal \\u0000"
    message = await db.read(lambda tx: messages.get(tx, ada, id))
    assert message.voice
    assert message.failure
    assert (message.content, message.voice.name, message.failure.message) == (clean, clean, clean)


async def test_pages_lead_back_to_the_first_round(db: Database, ada: Actor) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    for number in range(1, 8):
        await db.write(lambda tx, number=number: answered(tx, ada, chat.id, f"Q{number}"))
    first = await db.read(lambda tx: messages.page(tx, ada, chat.id, limit=3))
    assert [round.number for round in first.rounds] == [5, 6, 7]
    assert first.rounds[-1].question.content == "Q7"
    assert [message.voice for message in first.rounds[-1].replies] == list(VOICES)
    second = await db.read(lambda tx: messages.page(tx, ada, chat.id, before=first.next_before, limit=3))
    assert [round.number for round in second.rounds] == [2, 3, 4]
    last = await db.read(lambda tx: messages.page(tx, ada, chat.id, before=second.next_before, limit=3))
    assert ([round.number for round in last.rounds], last.next_before) == ([1], None)


@pytest.mark.parametrize("before", [-5, 0, 1])
async def test_a_page_before_the_first_round_is_empty(db: Database, ada: Actor, before: int) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    await db.write(lambda tx: answered(tx, ada, chat.id))
    page = await db.read(lambda tx: messages.page(tx, ada, chat.id, before=before))
    assert (page.rounds, page.next_before) == ((), None)


async def test_a_missing_round_is_not_found(db: Database, ada: Actor) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    with pytest.raises(NotFound):
        await db.read(lambda tx: messages.round(tx, chat.id, 1))


async def test_history_returns_the_newest_rounds_before_a_round(db: Database, ada: Actor) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    for _ in range(5):
        await db.write(lambda tx: answered(tx, ada, chat.id))
    rounds = await db.read(lambda tx: messages.history(tx, chat.id, before_round=5, rounds=2))
    assert [round.number for round in rounds] == [3, 4]


async def test_a_branch_from_a_reply_inherits_only_that_reply_of_its_round(db: Database, ada: Actor) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    await db.write(lambda tx: answered(tx, ada, chat.id, "first"))
    _, replies = await db.write(lambda tx: answered(tx, ada, chat.id, "second"))
    await db.write(lambda tx: answered(tx, ada, chat.id, "after the branch"))
    branch = await db.write(lambda tx: branches.add(tx, ada, chat.id, at_round=2, message_id=replies[1].id))
    await db.write(lambda tx: answered(tx, ada, branch.id, "in the branch"))
    rounds = await db.read(lambda tx: messages.history(tx, branch.id, before_round=9, rounds=9))
    assert [round.question.content for round in rounds] == ["first", "second", "in the branch"]
    assert [len(round.replies) for round in rounds] == [2, 1, 2]
    assert rounds[1].replies == (replies[1],)


async def test_a_branch_from_a_question_inherits_it_without_its_replies(db: Database, ada: Actor) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    await db.write(lambda tx: answered(tx, ada, chat.id, "again?"))
    question = (await db.read(lambda tx: messages.round(tx, chat.id, 1))).question
    branch = await db.write(lambda tx: branches.add(tx, ada, chat.id, at_round=1, message_id=question.id))

    def answer_again(tx: Tx) -> Message:
        answer = replace(reply(tx, turn(tx, ada, branch.id), text="Anew."), round_number=1)
        messages.add(tx, answer)
        return answer

    answer = await db.write(answer_again)
    round_ = await db.read(lambda tx: messages.round(tx, branch.id, 1))
    assert (round_.question, round_.replies) == (question, (answer,))


async def test_the_view_conversation_rounds_has_one_array_of_messages_per_round(
    db: Database, ada: Actor
) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    await db.write(lambda tx: answered(tx, ada, chat.id, "Q1"))
    await db.write(lambda tx: answered(tx, ada, chat.id, "Q2"))
    view = sql("SELECT messages FROM conversation_rounds WHERE conversation_id = :id ORDER BY round_number")
    rows = await db.read(lambda tx: tx.execute(view, id=chat.id))
    rounds = [json.loads(row.messages) for row in rows]
    assert [[message["role"] for message in round] for round in rounds] == [
        ["user", "advisor", "advisor"]
    ] * 2
    assert rounds[1][0]["content"] == "Q2"
    assert rounds[1][1]["voice"]["name"] == "GPT-4o"
    assert rounds[1][1]["metadata"]["usage"]["input_tokens"] == 120


async def test_two_requests_for_the_next_round_get_different_numbers(db: Database, ada: Actor) -> None:
    chat = await db.write(lambda tx: conversation(tx, ada))
    assert await db.write(lambda tx: [turns.next_round(tx, chat.id) for _ in range(2)]) == [1, 2]
