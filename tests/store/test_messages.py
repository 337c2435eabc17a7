"""Messages, and history through the lineage of branches."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from sqlalchemy import text

from tertulia.core.errors import NotFound
from tertulia.core.messages import Failure, Message, Status, Thinking
from tertulia.core.users import Actor
from tertulia.store import branches, messages, turns
from tertulia.store.database import Database, Tx
from tests.store.samples import FIRST, VOICES, answered, conversation, opened, reply, turn
from tests.store_fixtures import Watch


async def test_a_message_reads_back_as_it_was_written(db: Database, ada: Actor, watch: Watch) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    asked = await db.write(lambda tx: opened(tx, ada, made.id))

    def say(tx: Tx) -> Message:
        said = reply(
            tx,
            asked,
            text="Because of – 散乱 🌌\n\ttabs and 'quotes' \"too\" \\ \x1f",
            status=Status.INTERRUPTED,
            thinking=Thinking("Hm.", 1.5),
            failure=Failure("cut", "The line dropped.", "EOF"),
            reply_to_id="a",
            critique_of_id="b",
            replaces_id="c",
        )
        messages.add(tx, said)
        return said

    async with watch(ada):
        said = await db.write(say)
    assert await db.read(lambda tx: messages.get(tx, ada, said.id)) == said


async def test_text_that_no_database_holds_is_the_same_for_all_readers(
    db: Database, ada: Actor, watch: Watch
) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    asked = await db.write(lambda tx: opened(tx, ada, made.id))
    strange = "nul \0, half \ud83d, whole \ud83d\ude00, literal \\u0000"

    def say(tx: Tx) -> str:
        said = reply(tx, asked, replace(FIRST, name=strange), strange, failure=Failure("cut", strange))
        messages.add(tx, said)
        return said.id

    async with watch(ada):
        id = await db.write(say)
    clean = "nul \ufffd, half \ufffd, whole 😀, literal \\u0000"
    said = await db.read(lambda tx: messages.get(tx, ada, id))
    assert said.voice
    assert said.failure
    assert (said.content, said.voice.name, said.failure.message) == (clean, clean, clean)


async def test_pages_go_back_to_the_beginning(db: Database, ada: Actor) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    for number in range(1, 8):
        await db.write(lambda tx, number=number: answered(tx, ada, made.id, f"Q{number}"))
    first = await db.read(lambda tx: messages.page(tx, ada, made.id, limit=3))
    assert [round.number for round in first.rounds] == [5, 6, 7]
    assert first.rounds[-1].question.content == "Q7"
    assert [said.voice for said in first.rounds[-1].replies] == list(VOICES)
    second = await db.read(lambda tx: messages.page(tx, ada, made.id, before=first.next_before, limit=3))
    assert [round.number for round in second.rounds] == [2, 3, 4]
    last = await db.read(lambda tx: messages.page(tx, ada, made.id, before=second.next_before, limit=3))
    assert ([round.number for round in last.rounds], last.next_before) == ([1], None)


@pytest.mark.parametrize("before", [-5, 0, 1])
async def test_before_the_beginning_there_is_nothing(db: Database, ada: Actor, before: int) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    await db.write(lambda tx: answered(tx, ada, made.id))
    page = await db.read(lambda tx: messages.page(tx, ada, made.id, before=before))
    assert (page.rounds, page.next_before) == ((), None)


async def test_a_round_that_is_not_there_is_not_found(db: Database, ada: Actor) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    with pytest.raises(NotFound):
        await db.read(lambda tx: messages.round(tx, made.id, 1))


async def test_history_is_the_last_rounds_before_a_round(db: Database, ada: Actor) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    for _ in range(5):
        await db.write(lambda tx: answered(tx, ada, made.id))
    rounds = await db.read(lambda tx: messages.history(tx, made.id, before_round=5, rounds=2))
    assert [round.number for round in rounds] == [3, 4]


async def test_a_branch_from_a_reply_sees_that_reply_alone(db: Database, ada: Actor) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    await db.write(lambda tx: answered(tx, ada, made.id, "first"))
    _, replies = await db.write(lambda tx: answered(tx, ada, made.id, "second"))
    await db.write(lambda tx: answered(tx, ada, made.id, "after the branch"))
    branch = await db.write(lambda tx: branches.add(tx, ada, made.id, at_round=2, message_id=replies[1].id))
    await db.write(lambda tx: answered(tx, ada, branch.id, "in the branch"))
    rounds = await db.read(lambda tx: messages.history(tx, branch.id, before_round=9, rounds=9))
    assert [round.question.content for round in rounds] == ["first", "second", "in the branch"]
    assert [len(round.replies) for round in rounds] == [2, 1, 2]
    assert rounds[1].replies == (replies[1],)


async def test_a_branch_from_a_question_asks_it_anew(db: Database, ada: Actor) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    await db.write(lambda tx: answered(tx, ada, made.id, "again?"))
    asked = (await db.read(lambda tx: messages.round(tx, made.id, 1))).question
    branch = await db.write(lambda tx: branches.add(tx, ada, made.id, at_round=1, message_id=asked.id))

    def answer_again(tx: Tx) -> Message:
        said = replace(reply(tx, turn(tx, ada, branch.id), text="Anew."), round_number=1)
        messages.add(tx, said)
        return said

    said = await db.write(answer_again)
    here = await db.read(lambda tx: messages.round(tx, branch.id, 1))
    assert (here.question, here.replies) == (asked, (said,))


async def test_the_view_holds_one_array_of_messages_per_round(db: Database, ada: Actor) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    await db.write(lambda tx: answered(tx, ada, made.id, "Q1"))
    await db.write(lambda tx: answered(tx, ada, made.id, "Q2"))
    view = text("SELECT messages FROM conversation_rounds WHERE conversation_id = :id ORDER BY round_number")
    rows = await db.read(lambda tx: tx.execute(view, id=made.id))
    rounds = [json.loads(row.messages) for row in rows]
    assert [[said["role"] for said in round] for round in rounds] == [["user", "advisor", "advisor"]] * 2
    assert rounds[1][0]["content"] == "Q2"
    assert rounds[1][1]["voice"]["name"] == "GPT-4o"
    assert rounds[1][1]["metadata"]["usage"]["input_tokens"] == 120


async def test_asking_twice_for_the_next_round_gives_two_numbers(db: Database, ada: Actor) -> None:
    made = await db.write(lambda tx: conversation(tx, ada))
    assert await db.write(lambda tx: [turns.next_round(tx, made.id) for _ in range(2)]) == [1, 2]
