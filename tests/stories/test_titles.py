"""A conversation gets its question as title at once; a model writes a better one, unless a person did."""

from __future__ import annotations

import asyncio

import pytest

from tertulia.core.jobs import NameConversation
from tertulia.engine.jobs.title import title
from tertulia.store.sql import sql
from tests.patience import soon
from tests.stories.waiting import settled_title
from tests.upstream.dialects import Usage
from tests.upstream.scripted import Finish, Hold, Say, Stall, refuses, says
from tests.world import running


@pytest.fixture
async def priced(tmp_path, upstream):
    """A server whose models have prices; the cheapest that can write a title is GPT-4o mini."""
    async with running(tmp_path, {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{upstream.url}/v1"}) as world:
        yield world


def cheapest_model(world) -> str:
    """The model that the title job must choose, by the public list of models."""
    models = [m for m in world.tertulia.providers.available() if not m.abilities.thinking]
    return min(models, key=lambda m: (m.prices.output_micros, m.key)).model_id


async def test_the_question_is_the_title_when_no_model_can_write_one(ada, upstream):
    [reply] = await ada.ask_and_wait("**Why** is the sky blue? I always wondered.", "alpha")
    assert await settled_title(ada, reply["conversation_id"]) == "Why is the sky blue?"
    assert len(upstream.requests) == 1


async def test_the_cheapest_capable_model_writes_the_title(priced, upstream):
    ada = await priced.set_up()
    upstream.says('"Blue Skies."\n\nHope that helps!', model=cheapest_model(priced))
    [reply] = await ada.ask_and_wait("Why is the sky blue?", "openai:gpt-4o")
    assert await settled_title(ada, reply["conversation_id"]) == "Blue Skies"
    title_request = upstream.requests[1]
    assert title_request.model == cheapest_model(priced)
    assert "Why is the sky blue?" in title_request.body["messages"][-1]["content"]


async def test_the_cost_of_a_title_is_recorded_in_usage(priced, upstream):
    ada = await priced.set_up()
    upstream.plays(says("Blue Skies", usage=Usage(sent=50, said=3)), model=cheapest_model(priced))
    [reply] = await ada.ask_and_wait("Why is the sky blue?", "openai:gpt-4o")
    await settled_title(ada, reply["conversation_id"])
    rows = await priced.tertulia.db.read(
        lambda tx: tx.execute(sql("SELECT purpose, model, user_id, input_tokens, cost_micros FROM usage"))
    )
    title_rows = [row for row in rows if row.purpose == "title"]
    assert [(row.model, row.user_id, row.input_tokens) for row in title_rows] == [
        (cheapest_model(priced), ada.id, 50)
    ]
    assert title_rows[0].cost_micros > 0


async def test_a_title_request_times_out_and_the_question_stays_the_title(priced, upstream):
    ada = await priced.set_up()
    upstream.plays((Stall(),), model=cheapest_model(priced))
    [reply] = await ada.ask_and_wait("Why is the sky blue?", "openai:gpt-4o")
    await upstream.wait_for_request(2)
    await title(priced.tertulia.dependencies, NameConversation(reply["conversation_id"]), timeout_s=0)
    assert await settled_title(ada, reply["conversation_id"]) == "Why is the sky blue?"


async def test_a_failed_title_request_leaves_the_question_as_the_title(priced, upstream):
    ada = await priced.set_up()
    upstream.plays(refuses(401), model=cheapest_model(priced))
    [reply] = await ada.ask_and_wait("Why is the sky blue?", "openai:gpt-4o")
    assert await settled_title(ada, reply["conversation_id"]) == "Why is the sky blue?"


async def test_a_title_set_before_the_first_answer_is_kept(ada, upstream):
    release = asyncio.Event()
    upstream.plays((Hold(release), Say("Yes."), Finish()))
    opened = await ada.ask("Will you name it?", "alpha")
    path = f"/api/conversations/{opened['conversation']['id']}"
    await ada.put(f"{path}/title", {"title": "My own name"})
    release.set()
    await ada.wait_for_end(opened["turn"]["id"])
    assert (await ada.get(path))["conversation"]["title"] == "My own name"


async def test_a_title_set_during_the_title_request_is_kept(priced, upstream):
    ada = await priced.set_up()
    release = asyncio.Event()
    upstream.plays((Hold(release), Say("A model's name"), Finish()), model=cheapest_model(priced))
    opened = await ada.ask("Will you name it?", "openai:gpt-4o")
    request = await upstream.wait_for_request(2)
    path = f"/api/conversations/{opened['conversation']['id']}"
    await ada.put(f"{path}/title", {"title": "My own name"})
    release.set()
    await request.over.wait()
    await wait_for_jobs(priced)
    assert (await ada.get(path))["conversation"]["title"] == "My own name"


async def test_a_conversation_deleted_during_the_title_request_stays_deleted(priced, upstream):
    ada = await priced.set_up()
    release = asyncio.Event()
    upstream.plays((Hold(release), Say("A late name"), Finish()), model=cheapest_model(priced))
    opened = await ada.ask("Will you name it?", "openai:gpt-4o")
    request = await upstream.wait_for_request(2)
    await ada.delete(f"/api/conversations/{opened['conversation']['id']}")
    release.set()
    await request.over.wait()
    await wait_for_jobs(priced)
    assert (await ada.get("/api/conversations", project_id=ada.home))["items"] == []


async def test_a_second_round_does_not_change_the_title(ada, upstream):
    [reply] = await ada.ask_and_wait("The first question", "alpha")
    assert await settled_title(ada, reply["conversation_id"]) == "The first question"
    [second] = await ada.ask_and_wait(
        "The second question", "alpha", conversation_id=reply["conversation_id"]
    )
    page = await ada.get(f"/api/conversations/{second['conversation_id']}")
    assert page["conversation"]["title"] == "The first question"


async def test_a_conversation_whose_first_round_failed_keeps_its_first_question_as_title(ada, upstream):
    upstream.plays(refuses(401), says("Here."))
    opened = await ada.ask("Anyone there?", "alpha")
    await ada.wait_for_end(opened["turn"]["id"])
    await ada.ask_and_wait("And now?", "alpha", conversation_id=opened["conversation"]["id"])
    assert await settled_title(ada, opened["conversation"]["id"]) == "Anyone there?"


QUESTIONS = {
    "**Why** is the sky blue? I always wondered.": "Why is the sky blue?",
    "```py\nprint(snake_case)\n```": "print(snake_case)",
    "\u200b": "Question",
    "¿Qué pasó?\nDime más.": "¿Qué pasó?",
    "word " * 40: "word word word word word word word word word word word word…",
}


@pytest.mark.parametrize(("question", "title"), QUESTIONS.items())
async def test_the_title_is_the_question_as_soon_as_the_turn_is_opened(ada, upstream, question, title):
    upstream.plays((Stall(),))
    async with ada.live() as tab:
        await tab.follow(f"project:{ada.home}")
        opened = await ada.ask(question, "alpha")
        assert opened["conversation"]["title"] == title
        first = (await tab.until(lambda item: item.get("noun") == "conversation"))[-1]
        assert first["value"]["title"] == title


async def test_a_stopped_first_round_gets_its_title_after_the_next_round(priced, upstream):
    ada = await priced.set_up()
    upstream.says("Blue Skies", model=cheapest_model(priced))
    upstream.plays((Say("Because"), Stall()), says("Of the air."), model="gpt-4o")
    opened = await ada.ask("Why is the sky blue?", "openai:gpt-4o")
    await upstream.wait_for_request()  # else the stopped turn would leave its script to the next one
    await ada.post(f"/api/turns/{opened['turn']['id']}/stop", {}, expect=202)
    await ada.wait_for_end(opened["turn"]["id"])
    conversation = opened["conversation"]["id"]
    assert await settled_title(ada, conversation) == "Why is the sky blue?"
    await ada.ask_and_wait("And at night?", "openai:gpt-4o", conversation_id=conversation)
    assert await settled_title(ada, conversation) == "Blue Skies"


async def test_an_old_conversation_without_a_title_gets_its_first_question_as_title(ada, upstream):
    [reply] = await ada.ask_and_wait("The first question", "alpha")
    conversation = reply["conversation_id"]
    await settled_title(ada, conversation)
    await ada.world.tertulia.db.write(
        lambda tx: tx.execute(sql("UPDATE conversations SET title = '' WHERE id = :id"), id=conversation)
    )
    opened = await ada.ask("The second question", "alpha", conversation_id=conversation)
    assert opened["conversation"]["title"] == "The first question"


async def test_prompts_contain_a_written_title_but_not_the_question_used_as_title(priced, upstream):
    ada = await priced.set_up()
    upstream.says("Blue Skies", model=cheapest_model(priced))
    [reply] = await ada.ask_and_wait("Why is the sky blue?", "openai:gpt-4o")
    assert 'of "' not in str(upstream.requests[0].body)
    await settled_title(ada, reply["conversation_id"])
    await ada.ask_and_wait("And at night?", "openai:gpt-4o", conversation_id=reply["conversation_id"])
    assert '(Round 2 of "Blue Skies".)' in str(upstream.last.body["messages"][-1]["content"])


async def test_a_title_set_by_a_person_is_kept_in_later_rounds(priced, upstream):
    ada = await priced.set_up()
    upstream.plays((Stall(),), says("Of the air."), model="gpt-4o")
    opened = await ada.ask("Why is the sky blue?", "openai:gpt-4o")
    path = f"/api/conversations/{opened['conversation']['id']}"
    await ada.put(f"{path}/title", {"title": "Why is the sky blue?"})
    await upstream.wait_for_request()  # else the stopped turn would leave its script to the next one
    await ada.post(f"/api/turns/{opened['turn']['id']}/stop", {}, expect=202)
    await ada.wait_for_end(opened["turn"]["id"])
    await ada.ask_and_wait("And?", "openai:gpt-4o", conversation_id=opened["conversation"]["id"])
    assert await settled_title(ada, opened["conversation"]["id"]) == "Why is the sky blue?"
    assert {request.model for request in upstream.requests} == {"gpt-4o"}


async def wait_for_jobs(world) -> None:
    """Waits until no job is left to do now."""
    due = sql("SELECT 1 FROM jobs WHERE state = 'running' OR (state = 'waiting' AND run_at <= :now)")
    async with soon():
        while await world.tertulia.db.read(lambda tx: tx.maybe(due, now=tx.now)):
            pass
