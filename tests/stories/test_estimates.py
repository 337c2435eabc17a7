"""An estimate tells what a message would cost before it is sent, and changes nothing."""

from __future__ import annotations

from tertulia.app import new_id
from tertulia.context.budget import request_tokens
from tertulia.core.models import TokenCount, cost_micros
from tertulia.core.receipts import Receipt
from tertulia.core.serialization import from_plain
from tertulia.providers.tokens import counter
from tests.server.cast import at_rest
from tests.stories.waiting import settled_title
from tests.upstream.dialects import Usage
from tests.upstream.scripted import says
from tests.world import running


def seat_requests(*models: str) -> list[dict[str, str]]:
    return [{"model": f"voices:{model}"} for model in models]


async def test_an_estimate_counts_the_tokens_of_the_prompt_and_sends_nothing(ada, upstream):
    replies = await ada.ask_and_wait("Tea or coffee?", "alpha")
    request_count = len(upstream.requests)
    conversation_id = replies[0]["conversation_id"]
    await settled_title(ada, conversation_id)  # the prompt contains the title, so it counts
    question = {
        "text": "And why?",
        "voices": seat_requests("alpha", "beta"),
        "conversation_id": conversation_id,
    }
    estimate = await ada.post("/api/estimate", question)
    assert [item["voice"]["name"] for item in estimate["items"]] == ["Alpha", "Beta"]
    assert len(upstream.requests) == request_count
    page = await ada.get(f"/api/conversations/{conversation_id}")
    assert page["conversation"]["round_count"] == 1

    second_round = await ada.ask_and_wait("And why?", "alpha", "beta", conversation_id=conversation_id)
    for reply, item in zip(second_round, estimate["items"], strict=True):
        receipt = await ada.get(f"/api/messages/{reply['id']}/receipt")
        assert request_tokens(from_plain(Receipt, receipt)) == item["input_tokens"]


async def test_an_estimate_is_within_two_percent_of_openais_token_count(tmp_path, upstream):
    """OpenAI's rule: three tokens for each message, one for its role, and three before the answer."""
    upstream.says("まず場所を決めます。 A lease you can leave. `f(dict(a=[1]))` " * 40)
    environ = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{upstream.url}/v1"}
    async with running(tmp_path, environ) as world:
        ada = await world.set_up("Ada")
        await ada.put(f"/api/projects/{ada.home}", {"settings": {"retrieval_config": {"enabled": False}}})
        count = counter(world.tertulia.dependencies.providers.find("openai:gpt-4o"))
        request = {"voices": [{"model": "openai:gpt-4o"}], "project_id": ada.home}
        for text in ("How does one open a bookshop?", "¿Y el alquiler?", "```ts\nconst a = [1]\n```"):
            [item] = (await ada.post("/api/estimate", request | {"text": text}))["items"]
            opened = await ada.post(
                "/api/turn", {"id": new_id(), "mode": "quick", "text": text} | request, 202
            )
            await ada.wait_for_end(opened["turn"]["id"])
            await at_rest(world.tertulia)  # the title of the conversation is part of the prompt
            request["conversation_id"] = opened["conversation"]["id"]
            messages = next(
                recorded.body["messages"]
                for recorded in upstream.requests
                if question_ends_with(recorded.body, text)
            )
            openai_count = 3 + sum(4 + count(message["content"]) for message in messages)
            assert abs(item["input_tokens"] / openai_count - 1) < 0.02


def question_ends_with(body, text):
    return body["messages"][-1]["content"].endswith(text)


async def test_an_estimate_warns_when_the_message_does_not_fit(ada):
    question = {"text": "word " * 200_000, "voices": seat_requests("alpha"), "project_id": ada.home}
    (item,) = (await ada.post("/api/estimate", question))["items"]
    assert "has room for" in item["problem"]


async def test_an_estimate_for_someone_elses_conversation_answers_404(ada, bob):
    replies = await ada.ask_and_wait("Hello", "alpha")
    question = {
        "text": "x",
        "voices": seat_requests("alpha"),
        "conversation_id": replies[0]["conversation_id"],
    }
    await bob.post("/api/estimate", question, expect=404)
    await bob.post("/api/estimate", {"text": "x", "voices": seat_requests("nobody")}, expect=422)
    await bob.post("/api/estimate", {"text": "x", "voices": []}, expect=422)


async def test_a_mode_with_more_calls_has_a_higher_price(tmp_path):
    """The price covers every call: answers, rebuttals, the synthesis and its outline."""
    voices = [{"model": "openai:gpt-4o"}, {"model": "openai:gpt-4o-mini"}]
    costs = {}
    async with running(tmp_path, {"OPENAI_API_KEY": "a key that is never used"}) as world:
        ada = await world.set_up("Ada")
        for mode in ("parallel", "brain_trust", "debate"):
            estimate = await ada.post("/api/estimate", {"text": "Why?", "voices": voices, "mode": mode})
            assert (estimate["chair"] is not None) == (mode != "parallel")
            costs[mode] = estimate["cost_micros"]
    assert costs["parallel"] < costs["brain_trust"] < costs["debate"]


async def test_the_first_question_includes_the_price_of_writing_the_prompt_cache(tmp_path):
    environ = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "a key that is never used"}
    async with running(tmp_path, environ) as world:
        ada = await world.set_up("Ada")
        await ada.put(f"/api/projects/{ada.home}", {"instructions": "Be brief. " * 1_000})
        keys = ("anthropic:claude-sonnet-5-5", "openai:gpt-4o")
        request = {"text": "Why?", "voices": [{"model": key} for key in keys], "project_id": ada.home}
        items = (await ada.post("/api/estimate", request))["items"]
        surcharges = []
        for key, item in zip(keys, items, strict=True):
            prices = world.tertulia.dependencies.providers.find(key).prices
            plain_cost = cost_micros(TokenCount(item["input_tokens"], 0, item["output_tokens"]), prices)
            surcharges.append(
                (item["cost_micros"] - plain_cost) / (item["input_tokens"] * prices.input_micros / 1e6)
            )
    claude_surcharge, gpt_surcharge = surcharges
    assert 0.2 < claude_surcharge <= 0.25, (
        "nearly the whole prompt is cached, and writing to the cache costs a quarter more"
    )
    assert gpt_surcharge == 0


async def test_an_estimate_for_an_aside_uses_the_lane_of_the_chosen_voice(ada, upstream):
    upstream.plays(says("Short."), says("At length. " * 200), model="alpha")
    replies = await ada.ask_and_wait("Well?", "alpha", "alpha", visibility="own_lane")
    lanes = {len(reply["content"]) > 100: reply["voice"]["id"] for reply in replies}
    request = {"text": "And?", "voices": seat_requests("alpha"), "visibility": "own_lane", "aside": True}
    request |= {"conversation_id": replies[0]["conversation_id"]}
    input_tokens = {}
    for is_long, lane in lanes.items():
        [item] = (await ada.post("/api/estimate", request | {"lanes": [lane]}))["items"]
        assert item["voice"]["id"] == lane
        input_tokens[is_long] = item["input_tokens"]
    assert input_tokens[True] > input_tokens[False] + 200
    await ada.post("/api/estimate", request | {"aside": False, "lanes": [lane]}, expect=422)


async def test_model_metadata_set_by_an_administrator_overrides_the_catalogue(tmp_path, upstream):
    environ = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{upstream.url}/v1"}
    request = {"text": "Why?", "voices": [{"model": "openai:gpt-4o"}]}
    path = "/api/models/metadata?model=openai:gpt-4o"
    async with running(tmp_path, environ) as world:
        ada = await world.set_up("Ada")
        await ada.put(f"/api/projects/{ada.home}", {"settings": {"retrieval_config": {"enabled": False}}})
        by_catalogue = await ada.post("/api/estimate", request)
        metadata = await ada.put(
            path, {"context_window": 20_000, "input_micros": 10**9, "output_micros": 10**9, "tier": "fast"}
        )
        assert (metadata["tier"], metadata["prices"]["cached_micros"]) == ("fast", 1_250_000), (
            "the other fields keep the catalogue's values"
        )
        by_metadata = await ada.post("/api/estimate", request)
        assert by_metadata["cost_micros"] > 100 * by_catalogue["cost_micros"]
        assert by_metadata["items"][0]["budget_tokens"] < 20_000 < by_catalogue["items"][0]["budget_tokens"]
        [reply] = await ada.ask_and_wait("Why?", "openai:gpt-4o")
        usage = reply["usage"]
        assert usage["cost_micros"] == 1_000 * (usage["input_tokens"] + usage["output_tokens"])
        await ada.put(path, {"context_window": 1}, expect=422)
        await ada.put("/api/models/metadata?model=nobody:nothing", {"tier": "fast"}, expect=404)
    async with running(tmp_path, environ) as world:
        ada = await world.sign_in("ada@example.org")
        assert await ada.post("/api/estimate", request) == by_metadata, "it survives a restart"
        assert (await ada.get("/api/models/metadata"))["overridden_keys"] == ["openai:gpt-4o"]
        await ada.delete(path, expect=200)
        assert await ada.post("/api/estimate", request) == by_catalogue


async def create_replies(upstream, person, tokens, model="alpha", **more):
    """Creates one reply for each of these token counts."""
    for count in tokens:
        upstream.plays(says("word " * count, usage=Usage(7, 0, count, 0)), model=model)
        await person.ask_and_wait("Well?", model, **more)


async def expected_output_tokens(person, *models, **more):
    request = {"text": "And?", "voices": seat_requests(*models)} | more
    return [item["output_tokens"] for item in (await person.post("/api/estimate", request))["items"]]


async def test_an_estimate_expects_the_median_length_of_the_models_recent_replies(ada, upstream):
    await create_replies(upstream, ada, [30, 10, 900, 20])
    assert await expected_output_tokens(ada, "alpha", "beta") == [500, 500], "four replies are too few"
    await create_replies(upstream, ada, [40])
    assert await expected_output_tokens(ada, "alpha", "beta") == [30, 500], "each model has its own median"
    await create_replies(upstream, ada, [60])
    assert await expected_output_tokens(ada, "alpha", "alpha") == [35, 35]


async def test_an_estimate_uses_other_projects_only_while_the_project_has_too_few_replies(ada, upstream):
    other = (await ada.post("/api/projects", {"name": "Shop"}, expect=201))["id"]
    await create_replies(upstream, ada, [100] * 5)
    await create_replies(upstream, ada, [10] * 4, project_id=other)
    assert await expected_output_tokens(ada, "alpha", project_id=other) == [100], (
        "the median of nine replies in all projects"
    )
    await create_replies(upstream, ada, [10], project_id=other)
    assert await expected_output_tokens(ada, "alpha", project_id=other) == [10]
    assert await expected_output_tokens(ada, "alpha", project_id=ada.home) == [100]


async def test_an_estimate_reveals_only_the_length_of_other_peoples_replies(ada, bob, upstream):
    request = {"text": "And?", "voices": seat_requests("alpha")}
    before = await bob.post("/api/estimate", request)
    await create_replies(upstream, ada, [77] * 5)
    after = await bob.post("/api/estimate", request)
    assert after["items"][0].pop("output_tokens") == 77
    assert before["items"][0].pop("output_tokens") == 500
    assert after == before
    await bob.post("/api/estimate", request | {"project_id": ada.home}, expect=404)


async def test_the_chairs_price_depends_on_the_usual_length_of_the_answers(tmp_path, upstream):
    """The chair reads every answer, so short answers make its call cheaper."""
    environ = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{upstream.url}/v1"}
    models = ("openai:gpt-4o", "openai:gpt-4o-mini")
    voices = [{"model": model} for model in models]
    request = {"text": "Why?", "voices": voices, "mode": "brain_trust", "chair": {"model": "openai:gpt-4.1"}}
    async with running(tmp_path, environ) as world:
        ada = await world.set_up("Ada")
        before = (await ada.post("/api/estimate", request))["chair"]
        for model in ("gpt-4o", "gpt-4o-mini"):
            for _ in range(5):
                upstream.plays(says("word " * 20, usage=Usage(7, 0, 20, 0)), model=model)
                await ada.ask_and_wait("Well?", f"openai:{model}")
        after = (await ada.post("/api/estimate", request))["chair"]
        assert after["output_tokens"] == before["output_tokens"] == 500
        assert after["cost_micros"] < before["cost_micros"]
