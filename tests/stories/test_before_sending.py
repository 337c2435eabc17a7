"""What a message would cost is said before it is sent, and saying it changes nothing."""

from __future__ import annotations

from tertulia.app import new_id
from tertulia.context.budget import request_tokens
from tertulia.core.models import TokenCount, cost_micros
from tertulia.core.receipts import Receipt
from tertulia.core.serialization import from_plain
from tertulia.providers.tokens import counter
from tests.server.cast import at_rest
from tests.stories.listening import title_of
from tests.upstream.dialects import Usage
from tests.upstream.scripted import says
from tests.world import running


def wanted(*models: str) -> list[dict[str, str]]:
    return [{"model": f"voices:{model}"} for model in models]


async def test_an_estimate_counts_what_would_be_sent_and_sends_nothing(ada, upstream):
    replies = await ada.hear("Tea or coffee?", "alpha")
    heard = len(upstream.requests)
    conversation_id = replies[0]["conversation_id"]
    await title_of(ada, conversation_id)  # the models are told it, so it counts
    question = {"text": "And why?", "voices": wanted("alpha", "beta"), "conversation_id": conversation_id}
    estimate = await ada.post("/api/estimate", question)
    assert [item["voice"]["name"] for item in estimate["items"]] == ["Alpha", "Beta"]
    assert len(upstream.requests) == heard
    page = await ada.get(f"/api/conversations/{conversation_id}")
    assert page["conversation"]["round_count"] == 1

    asked = await ada.hear("And why?", "alpha", "beta", conversation_id=conversation_id)
    for reply, item in zip(asked, estimate["items"], strict=True):
        receipt = await ada.get(f"/api/messages/{reply['id']}/receipt")
        assert request_tokens(from_plain(Receipt, receipt)) == item["input_tokens"]


async def test_an_estimate_is_within_two_percent_of_what_openai_counts(tmp_path, upstream):
    """Its own rule: three tokens to a message, one for who speaks, and three before the answer."""
    upstream.says("まず場所を決めます。 A lease you can leave. `f(dict(a=[1]))` " * 40)
    environ = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{upstream.url}/v1"}
    async with running(tmp_path, environ) as world:
        ada = await world.first("Ada")
        await ada.put(f"/api/projects/{ada.home}", {"settings": {"retrieval_config": {"enabled": False}}})
        count = counter(world.tertulia.dependencies.providers.find("openai:gpt-4o"))
        asked = {"voices": [{"model": "openai:gpt-4o"}], "project_id": ada.home}
        for text in ("How does one open a bookshop?", "¿Y el alquiler?", "```ts\nconst a = [1]\n```"):
            [item] = (await ada.post("/api/estimate", asked | {"text": text}))["items"]
            opened = await ada.post("/api/turn", {"id": new_id(), "mode": "quick", "text": text} | asked, 202)
            await ada.ended(opened["turn"]["id"])
            await at_rest(world.tertulia)  # the conversation's name is part of what is sent
            asked["conversation_id"] = opened["conversation"]["id"]
            sent = next(seen.body["messages"] for seen in upstream.requests if ends(seen.body, text))
            counted = 3 + sum(4 + count(message["content"]) for message in sent)
            assert abs(item["input_tokens"] / counted - 1) < 0.02


def ends(body, text):
    return body["messages"][-1]["content"].endswith(text)


async def test_a_message_that_does_not_fit_is_told_beforehand(ada):
    question = {"text": "word " * 200_000, "voices": wanted("alpha"), "project_id": ada.home}
    (item,) = (await ada.post("/api/estimate", question))["items"]
    assert "has room for" in item["problem"]


async def test_an_estimate_for_someone_elses_conversation_finds_nothing(ada, bob):
    replies = await ada.hear("Hello", "alpha")
    question = {"text": "x", "voices": wanted("alpha"), "conversation_id": replies[0]["conversation_id"]}
    await bob.post("/api/estimate", question, expect=404)
    await bob.post("/api/estimate", {"text": "x", "voices": wanted("nobody")}, expect=422)
    await bob.post("/api/estimate", {"text": "x", "voices": []}, expect=422)


async def test_a_mode_that_asks_more_costs_more(tmp_path):
    """Answers, rebuttals, the synthesis and its outline: every call that would be made is in the price."""
    voices = [{"model": "openai:gpt-4o"}, {"model": "openai:gpt-4o-mini"}]
    costs = {}
    async with running(tmp_path, {"OPENAI_API_KEY": "a key that is never used"}) as world:
        ada = await world.first("Ada")
        for mode in ("parallel", "brain_trust", "debate"):
            estimate = await ada.post("/api/estimate", {"text": "Why?", "voices": voices, "mode": mode})
            assert (estimate["chair"] is not None) == (mode != "parallel")
            costs[mode] = estimate["cost_micros"]
    assert costs["parallel"] < costs["brain_trust"] < costs["debate"]


async def test_a_first_ask_pays_for_filling_the_providers_cache_where_that_costs_more(tmp_path):
    environ = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "a key that is never used"}
    async with running(tmp_path, environ) as world:
        ada = await world.first("Ada")
        await ada.put(f"/api/projects/{ada.home}", {"instructions": "Be brief. " * 1_000})
        keys = ("anthropic:claude-sonnet-5-5", "openai:gpt-4o")
        asked = {"text": "Why?", "voices": [{"model": key} for key in keys], "project_id": ada.home}
        items = (await ada.post("/api/estimate", asked))["items"]
        extra = []
        for key, item in zip(keys, items, strict=True):
            prices = world.tertulia.dependencies.providers.find(key).prices
            plain = cost_micros(TokenCount(item["input_tokens"], 0, item["output_tokens"]), prices)
            extra.append((item["cost_micros"] - plain) / (item["input_tokens"] * prices.input_micros / 1e6))
    claude, gpt = extra
    assert 0.2 < claude <= 0.25, "nearly all of it stays, and keeping costs a quarter more"
    assert gpt == 0


async def test_an_aside_is_reckoned_for_the_voice_that_is_meant(ada, upstream):
    upstream.plays(says("Short."), says("At length. " * 200), model="alpha")
    replies = await ada.hear("Well?", "alpha", "alpha", visibility="own_lane")
    lanes = {len(reply["content"]) > 100: reply["voice"]["id"] for reply in replies}
    asked = {"text": "And?", "voices": wanted("alpha"), "visibility": "own_lane", "aside": True}
    asked |= {"conversation_id": replies[0]["conversation_id"]}
    found = {}
    for is_long, lane in lanes.items():
        [item] = (await ada.post("/api/estimate", asked | {"lanes": [lane]}))["items"]
        assert item["voice"]["id"] == lane
        found[is_long] = item["input_tokens"]
    assert found[True] > found[False] + 200
    await ada.post("/api/estimate", asked | {"aside": False, "lanes": [lane]}, expect=422)


async def test_what_an_administrator_knows_of_a_model_wins_over_the_catalogue(tmp_path, upstream):
    environ = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{upstream.url}/v1"}
    asked = {"text": "Why?", "voices": [{"model": "openai:gpt-4o"}]}
    path = "/api/models/metadata?model=openai:gpt-4o"
    async with running(tmp_path, environ) as world:
        ada = await world.first("Ada")
        await ada.put(f"/api/projects/{ada.home}", {"settings": {"retrieval_config": {"enabled": False}}})
        first = await ada.post("/api/estimate", asked)
        told = await ada.put(
            path, {"context_window": 20_000, "input_micros": 10**9, "output_micros": 10**9, "tier": "fast"}
        )
        assert (told["tier"], told["prices"]["cached_micros"]) == ("fast", 1_250_000), "the rest stays"
        better = await ada.post("/api/estimate", asked)
        assert better["cost_micros"] > 100 * first["cost_micros"]
        assert better["items"][0]["budget_tokens"] < 20_000 < first["items"][0]["budget_tokens"]
        [reply] = await ada.hear("Why?", "openai:gpt-4o")
        usage = reply["usage"]
        assert usage["cost_micros"] == 1_000 * (usage["input_tokens"] + usage["output_tokens"])
        await ada.put(path, {"context_window": 1}, expect=422)
        await ada.put("/api/models/metadata?model=nobody:nothing", {"tier": "fast"}, expect=404)
    async with running(tmp_path, environ) as world:
        ada = await world.sign_in("ada@example.org")
        assert await ada.post("/api/estimate", asked) == better, "it is remembered"
        assert (await ada.get("/api/models/metadata"))["overridden_keys"] == ["openai:gpt-4o"]
        await ada.delete(path, expect=200)
        assert await ada.post("/api/estimate", asked) == first


async def told(upstream, person, tokens, model="alpha", **more):
    """A reply of that many tokens for each number."""
    for said in tokens:
        upstream.plays(says("word " * said, usage=Usage(7, 0, said, 0)), model=model)
        await person.hear("Well?", model, **more)


async def expected(person, *models, **more):
    asked = {"text": "And?", "voices": wanted(*models)} | more
    return [item["output_tokens"] for item in (await person.post("/api/estimate", asked))["items"]]


async def test_an_estimate_expects_the_median_of_the_models_recent_replies(ada, upstream):
    await told(upstream, ada, [30, 10, 900, 20])
    assert await expected(ada, "alpha", "beta") == [500, 500], "four replies are too few"
    await told(upstream, ada, [40])
    assert await expected(ada, "alpha", "beta") == [30, 500], "each model has its own"
    await told(upstream, ada, [60])
    assert await expected(ada, "alpha", "alpha") == [35, 35]


async def test_an_estimate_looks_beyond_the_project_only_while_it_has_too_few_replies(ada, upstream):
    other = (await ada.post("/api/projects", {"name": "Shop"}, expect=201))["id"]
    await told(upstream, ada, [100] * 5)
    await told(upstream, ada, [10] * 4, project_id=other)
    assert await expected(ada, "alpha", project_id=other) == [100], "of nine in all projects"
    await told(upstream, ada, [10], project_id=other)
    assert await expected(ada, "alpha", project_id=other) == [10]
    assert await expected(ada, "alpha", project_id=ada.home) == [100]


async def test_of_other_peoples_replies_an_estimate_tells_only_a_length(ada, bob, upstream):
    asked = {"text": "And?", "voices": wanted("alpha")}
    before = await bob.post("/api/estimate", asked)
    await told(upstream, ada, [77] * 5)
    after = await bob.post("/api/estimate", asked)
    assert after["items"][0].pop("output_tokens") == 77
    assert before["items"][0].pop("output_tokens") == 500
    assert after == before
    await bob.post("/api/estimate", asked | {"project_id": ada.home}, expect=404)


async def test_what_the_others_will_have_written_costs_by_their_usual_length(tmp_path, upstream):
    """The chair reads every answer, so answers that are usually short make it cheaper."""
    environ = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{upstream.url}/v1"}
    models = ("openai:gpt-4o", "openai:gpt-4o-mini")
    voices = [{"model": model} for model in models]
    asked = {"text": "Why?", "voices": voices, "mode": "brain_trust", "chair": {"model": "openai:gpt-4.1"}}
    async with running(tmp_path, environ) as world:
        ada = await world.first("Ada")
        before = (await ada.post("/api/estimate", asked))["chair"]
        for model in ("gpt-4o", "gpt-4o-mini"):
            for _ in range(5):
                upstream.plays(says("word " * 20, usage=Usage(7, 0, 20, 0)), model=model)
                await ada.hear("Well?", f"openai:{model}")
        after = (await ada.post("/api/estimate", asked))["chair"]
        assert after["output_tokens"] == before["output_tokens"] == 500
        assert after["cost_micros"] < before["cost_micros"]
