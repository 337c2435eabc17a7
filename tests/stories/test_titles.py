"""A conversation is called by its question at once; a model names it after a round, unless a person has."""

from __future__ import annotations

import asyncio

import pytest

from tertulia.core.jobs import NameConversation
from tertulia.engine.jobs.title import title
from tertulia.store.sql import sql
from tests.patience import soon
from tests.stories.listening import title_of
from tests.upstream.dialects import Usage
from tests.upstream.scripted import Finish, Hold, Say, Stall, refuses, says
from tests.world import running


@pytest.fixture
async def priced(tmp_path, upstream):
    """A house whose models have a price; the cheapest that can write a title is GPT-4o mini."""
    async with running(tmp_path, {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{upstream.url}/v1"}) as world:
        yield world


def cheapest(world) -> str:
    """The model the job must choose, by the list everyone sees."""
    models = [m for m in world.tertulia.providers.available() if not m.abilities.thinking]
    return min(models, key=lambda m: (m.prices.output_micros, m.key)).model_id


async def test_without_a_capable_model_the_question_is_the_title(ada, upstream):
    [reply] = await ada.hear("**Why** is the sky blue? I always wondered.", "alpha")
    assert await title_of(ada, reply["conversation_id"]) == "Why is the sky blue?"
    assert len(upstream.requests) == 1


async def test_the_cheapest_capable_model_is_asked_for_a_title(priced, upstream):
    ada = await priced.first()
    upstream.says('"Blue Skies."\n\nHope that helps!', model=cheapest(priced))
    [reply] = await ada.hear("Why is the sky blue?", "openai:gpt-4o")
    assert await title_of(ada, reply["conversation_id"]) == "Blue Skies"
    asked = upstream.requests[1]
    assert asked.model == cheapest(priced)
    assert "Why is the sky blue?" in asked.body["messages"][-1]["content"]


async def test_a_title_is_charged_to_usage_as_a_title(priced, upstream):
    ada = await priced.first()
    upstream.plays(says("Blue Skies", usage=Usage(sent=50, said=3)), model=cheapest(priced))
    [reply] = await ada.hear("Why is the sky blue?", "openai:gpt-4o")
    await title_of(ada, reply["conversation_id"])
    rows = await priced.tertulia.db.read(
        lambda tx: tx.execute(sql("SELECT purpose, model, user_id, input_tokens, cost_micros FROM usage"))
    )
    titled = [row for row in rows if row.purpose == "title"]
    assert [(row.model, row.user_id, row.input_tokens) for row in titled] == [(cheapest(priced), ada.id, 50)]
    assert titled[0].cost_micros > 0


async def test_a_model_that_takes_too_long_over_a_title_is_not_waited_for(priced, upstream):
    ada = await priced.first()
    upstream.plays((Stall(),), model=cheapest(priced))
    [reply] = await ada.hear("Why is the sky blue?", "openai:gpt-4o")
    await upstream.heard(2)
    await title(priced.tertulia.dependencies, NameConversation(reply["conversation_id"]), timeout_s=0)
    assert await title_of(ada, reply["conversation_id"]) == "Why is the sky blue?"


async def test_a_model_that_cannot_be_reached_leaves_the_question_as_the_title(priced, upstream):
    ada = await priced.first()
    upstream.plays(refuses(401), model=cheapest(priced))
    [reply] = await ada.hear("Why is the sky blue?", "openai:gpt-4o")
    assert await title_of(ada, reply["conversation_id"]) == "Why is the sky blue?"


async def test_a_name_a_person_gave_before_the_first_answer_stays(ada, upstream):
    held = asyncio.Event()
    upstream.plays((Hold(held), Say("Yes."), Finish()))
    opened = await ada.ask("Will you name it?", "alpha")
    path = f"/api/conversations/{opened['conversation']['id']}"
    await ada.put(f"{path}/title", {"title": "My own name"})
    held.set()
    await ada.ended(opened["turn"]["id"])
    assert (await ada.get(path))["conversation"]["title"] == "My own name"


async def test_a_name_a_person_gave_while_the_model_was_thinking_of_one_stays(priced, upstream):
    ada = await priced.first()
    held = asyncio.Event()
    upstream.plays((Hold(held), Say("A model's name"), Finish()), model=cheapest(priced))
    opened = await ada.ask("Will you name it?", "openai:gpt-4o")
    seen = await upstream.heard(2)
    path = f"/api/conversations/{opened['conversation']['id']}"
    await ada.put(f"{path}/title", {"title": "My own name"})
    held.set()
    await seen.over.wait()
    await job_done(priced)
    assert (await ada.get(path))["conversation"]["title"] == "My own name"


async def test_a_conversation_deleted_while_it_was_being_named_stays_gone(priced, upstream):
    ada = await priced.first()
    held = asyncio.Event()
    upstream.plays((Hold(held), Say("A late name"), Finish()), model=cheapest(priced))
    opened = await ada.ask("Will you name it?", "openai:gpt-4o")
    seen = await upstream.heard(2)
    await ada.delete(f"/api/conversations/{opened['conversation']['id']}")
    held.set()
    await seen.over.wait()
    await job_done(priced)
    assert (await ada.get("/api/conversations", project_id=ada.home))["items"] == []


async def test_a_second_round_does_not_name_it_again(ada, upstream):
    [reply] = await ada.hear("The first question", "alpha")
    assert await title_of(ada, reply["conversation_id"]) == "The first question"
    [second] = await ada.hear("The second question", "alpha", conversation_id=reply["conversation_id"])
    page = await ada.get(f"/api/conversations/{second['conversation_id']}")
    assert page["conversation"]["title"] == "The first question"


async def test_a_first_round_in_which_everyone_failed_is_named_after_the_next(ada, upstream):
    upstream.plays(refuses(401), says("Here."))
    opened = await ada.ask("Anyone there?", "alpha")
    await ada.ended(opened["turn"]["id"])
    await ada.hear("And now?", "alpha", conversation_id=opened["conversation"]["id"])
    assert await title_of(ada, opened["conversation"]["id"]) == "Anyone there?"


QUESTIONS = {
    "**Why** is the sky blue? I always wondered.": "Why is the sky blue?",
    "```py\nprint(snake_case)\n```": "print(snake_case)",
    "\u200b": "Question",
    "¿Qué pasó?\nDime más.": "¿Qué pasó?",
    "word " * 40: "word word word word word word word word word word word word…",
}


@pytest.mark.parametrize(("question", "title"), QUESTIONS.items())
async def test_a_conversation_is_called_by_its_question_as_soon_as_it_is_asked(
    ada, upstream, question, title
):
    upstream.plays((Stall(),))
    async with ada.live() as tab:
        await tab.follow(f"project:{ada.home}")
        opened = await ada.ask(question, "alpha")
        assert opened["conversation"]["title"] == title
        first = (await tab.until(lambda item: item.get("noun") == "conversation"))[-1]
        assert first["value"]["title"] == title


async def test_a_conversation_whose_first_round_was_stopped_has_a_name_and_gets_a_better_one(
    priced, upstream
):
    ada = await priced.first()
    upstream.says("Blue Skies", model=cheapest(priced))
    upstream.plays((Say("Because"), Stall()), says("Of the air."), model="gpt-4o")
    opened = await ada.ask("Why is the sky blue?", "openai:gpt-4o")
    await upstream.heard()
    await ada.post(f"/api/turns/{opened['turn']['id']}/stop", {}, expect=202)
    await ada.ended(opened["turn"]["id"])
    conversation = opened["conversation"]["id"]
    assert await title_of(ada, conversation) == "Why is the sky blue?"
    await ada.hear("And at night?", "openai:gpt-4o", conversation_id=conversation)
    assert await title_of(ada, conversation) == "Blue Skies"


async def test_a_conversation_without_a_name_from_before_is_called_by_its_first_question(ada, upstream):
    [reply] = await ada.hear("The first question", "alpha")
    conversation = reply["conversation_id"]
    await title_of(ada, conversation)
    await ada.world.tertulia.db.write(
        lambda tx: tx.execute(sql("UPDATE conversations SET title = '' WHERE id = :id"), id=conversation)
    )
    opened = await ada.ask("The second question", "alpha", conversation_id=conversation)
    assert opened["conversation"]["title"] == "The first question"


async def test_models_are_told_the_name_and_not_the_question_in_its_place(priced, upstream):
    ada = await priced.first()
    upstream.says("Blue Skies", model=cheapest(priced))
    [reply] = await ada.hear("Why is the sky blue?", "openai:gpt-4o")
    assert 'of "' not in str(upstream.requests[0].body)
    await title_of(ada, reply["conversation_id"])
    await ada.hear("And at night?", "openai:gpt-4o", conversation_id=reply["conversation_id"])
    assert '(Round 2 of "Blue Skies".)' in str(upstream.last.body["messages"][-1]["content"])


async def test_a_name_a_person_gave_stays_through_every_later_round(priced, upstream):
    ada = await priced.first()
    upstream.plays((Stall(),), says("Of the air."), model="gpt-4o")
    opened = await ada.ask("Why is the sky blue?", "openai:gpt-4o")
    path = f"/api/conversations/{opened['conversation']['id']}"
    await upstream.heard()
    await ada.put(f"{path}/title", {"title": "Why is the sky blue?"})
    await ada.post(f"/api/turns/{opened['turn']['id']}/stop", {}, expect=202)
    await ada.ended(opened["turn"]["id"])
    await ada.hear("And?", "openai:gpt-4o", conversation_id=opened["conversation"]["id"])
    assert await title_of(ada, opened["conversation"]["id"]) == "Why is the sky blue?"
    assert {seen.model for seen in upstream.requests} == {"gpt-4o"}


async def job_done(world) -> None:
    """Waits until no job is left to do now."""
    due = sql("SELECT 1 FROM jobs WHERE state = 'running' OR (state = 'waiting' AND run_at <= :now)")
    async with soon():
        while await world.tertulia.db.read(lambda tx: tx.maybe(due, now=tx.now)):
            pass
