"""A council answers in its mode: each voice reads what the mode shows, and the chair writes a synthesis."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest

from tertulia.app import new_id
from tests.upstream.scripted import Cut, Finish, Hold, Say, Upstream, refuses, says
from tests.world import Person

SYNTHESIS = (
    "Watch sign-in success.\n\n## Points of agreement\n- It comes first. (Alpha, Beta)\n\n"
    "## Tensions\n- **In public?** Beta would, Alpha not. (Alpha vs Beta)\n\n"
    "## Next steps\n- Add the platform."
)
GAMMA = {"model": "voices:gamma"}
OUTLINE = json.dumps(
    {
        "headline": "Watch sign-in success.",
        "agreement": [{"text": "It comes first", "who": ["Alpha", "Beta"]}],
        "tensions": [],
        "next_steps": [],
        "map": [
            {
                "topic": "Sign-in success",
                "cells": [
                    {"who": "Alpha", "stance": "agrees", "quote": "one number above all"},
                    {"who": "Beta", "stance": "partly", "quote": "words nobody ever said"},
                ],
            }
        ],
    }
)


async def test_a_brain_trust_of_four_is_synthesised_without_the_voice_that_failed(ada, upstream):
    upstream.plays(says("I name one number above all."), says("And I another."), model="alpha")
    upstream.plays(says("Sign-in first."), model="beta")
    upstream.plays(refuses(401), says(SYNTHESIS), says(OUTLINE), model="gamma")
    replies = await ask_council(
        ada, "brain_trust", "alpha", "beta", "gamma", "alpha", chair={"model": "voices:gamma"}
    )
    assert [(r["role"], r["status"], r["step"]) for r in in_order(replies)] == [
        ("advisor", "complete", "answer"),
        ("advisor", "complete", "answer"),
        ("advisor", "failed", "answer"),
        ("advisor", "complete", "answer"),
        ("synthesis", "complete", "synthesis"),
        ("synthesis", "complete", "outline"),
    ]
    chair = prompts_of(upstream, "gamma")[1]
    for words in (
        "[Alpha]: I name one number above all.",
        "[Beta]: Sign-in first.",
        "[Alpha 2]: And I another.",
    ):
        assert words in chair
    assert "Absent this round, because no answer came: Gamma." in chair


async def test_the_next_voice_is_chair_when_the_first_fails_and_no_chair_was_chosen(ada, upstream):
    upstream.plays(refuses(401), model="alpha")
    upstream.plays(says("Mine."), says(SYNTHESIS), says(OUTLINE), model="beta")
    replies = await ask_council(ada, "brain_trust", "alpha", "beta", "gamma")
    synthesis = by_step(replies, "synthesis")
    assert (synthesis["voice"]["name"], synthesis["status"]) == ("Beta", "complete")
    assert "Absent this round, because no answer came: Alpha." in prompts_of(upstream, "beta")[1]


async def test_a_later_synthesis_is_written_by_a_voice_that_answered(ada, upstream):
    upstream.plays(refuses(401), model="alpha")
    [failed, _] = await ada.ask_and_wait("Well?", "alpha", "beta")
    opened = await add_synthesis(ada, failed["conversation_id"])
    assert opened["turn"]["chair"]["name"] == "Beta"


async def test_a_chosen_chair_writes_the_synthesis_even_when_its_answer_failed(ada, upstream):
    upstream.plays(refuses(401), says(SYNTHESIS), says(OUTLINE), model="alpha")
    replies = await ask_council(ada, "brain_trust", "alpha", "beta", chair={"model": "voices:alpha"})
    assert by_step(replies, "synthesis")["voice"]["name"] == "Alpha"


async def test_the_agreement_map_quotes_only_text_of_the_replies(ada, upstream):
    upstream.plays(says("I name **one number**\nabove all."), says(SYNTHESIS), says(OUTLINE), model="alpha")
    upstream.plays(says("Sign-in first."), model="beta")
    replies = await ask_council(ada, "brain_trust", "alpha", "beta")
    outline = by_step(replies, "outline")["findings"]["outline"]
    [topic] = outline["map"]
    assert [(cell["seat"], cell["quote"]) for cell in topic["cells"]] == [(1, "one number**\nabove all")]
    answer = next(r for r in replies if r["id"] == topic["cells"][0]["message_id"])
    assert topic["cells"][0]["quote"] in answer["content"]


async def test_the_parts_of_a_synthesis_are_parsed_from_its_text(ada, upstream):
    upstream.plays(says("One."), says(SYNTHESIS), says("no data today"), model="alpha")
    replies = await ask_council(ada, "brain_trust", "alpha", "beta")
    synthesis = by_step(replies, "synthesis")
    assert synthesis["content"] == SYNTHESIS
    outline = synthesis["findings"]["outline"]
    assert outline["agreement"] == [{"text": "It comes first.", "seats": [1, 2]}]
    assert outline["tensions"][0]["question"] == "In public?"
    failed = by_step(replies, "outline")
    assert (failed["status"], failed["content"], failed["failure"]["code"]) == ("failed", "", "malformed")


async def test_a_turn_can_choose_the_chair_and_its_instructions(ada, upstream):
    upstream.says("Closed.", model="gamma")
    replies = await ask_council(
        ada, "brain_trust", "alpha", "beta", chair={"model": "voices:gamma"}, brief="In one line, please."
    )
    synthesis = by_step(replies, "synthesis")
    assert (synthesis["voice"]["model"], synthesis["voice"]["seat"]) == ("voices:gamma", 3)
    assert prompts_of(upstream, "gamma")[0].endswith(
        "The person asks of this synthesis: In one line, please."
    )


async def test_retrying_a_failed_synthesis_asks_only_the_chair(ada, upstream):
    upstream.plays(says("Mine."), refuses(401), says(SYNTHESIS), says(OUTLINE), model="alpha")
    first = await ask_council(ada, "brain_trust", "alpha", "beta")
    failed = by_step(first, "synthesis")
    assert failed["status"] == "failed"
    assert len(upstream.requests) == 3
    replies = await retry(ada, failed)
    assert len(upstream.requests) == 5
    synthesis = [r for r in replies if r["step"] == "synthesis"][-1]
    assert (synthesis["replaces_id"], synthesis["role"]) == (failed["id"], "synthesis")
    assert "[Beta]: " in prompts_of(upstream, "alpha")[-2]
    assert by_step(replies, "outline")["status"] == "complete"


async def test_retrying_a_failed_advisor_asks_only_that_advisor(ada, upstream):
    upstream.plays(says("Mine."), says(SYNTHESIS), says(OUTLINE), model="alpha")
    upstream.plays(refuses(401), says("Here after all."), model="beta")
    first = await ask_council(ada, "brain_trust", "alpha", "beta", "gamma")
    failed = next(r for r in first if r["status"] == "failed")
    request_count = len(upstream.requests)
    replies = await retry(ada, failed)
    assert len(upstream.requests) == request_count + 1
    assert next(r for r in replies if r["replaces_id"] == failed["id"])["content"] == "Here after all."


async def test_a_retry_continues_the_mode_when_every_first_answer_had_failed(ada, upstream):
    """All answers fail, so there is no synthesis; the first successful retry adds it."""
    upstream.plays(refuses(401), says("At last."), says(SYNTHESIS), says("{}"), model="alpha")
    upstream.plays(refuses(401), model="beta")
    first = await ask_council(ada, "brain_trust", "alpha", "beta")
    assert [r["step"] for r in first] == ["answer", "answer"]
    replies = await retry(ada, first[0])
    assert by_step(replies, "synthesis")["content"] == SYNTHESIS
    assert "Absent this round, because no answer came: Beta." in prompts_of(upstream, "alpha")[2]


async def test_a_past_round_can_get_a_synthesis_and_a_second_one(ada, upstream):
    upstream.plays(says("Tea."), model="alpha")
    upstream.plays(says("Coffee."), model="beta")
    upstream.plays(says("Both."), says("{}"), says("Neither."), says("{}"), model="gamma")
    first = await ada.ask_and_wait("Tea or coffee?", "alpha", "beta")
    conversation = first[0]["conversation_id"]
    await ada.ask_and_wait("Sure?", "alpha", conversation_id=conversation)
    for nth in range(2):
        opened = await ada.post(
            f"/api/conversations/{conversation}/rounds/1/synthesis",
            {"id": new_id(), "chair": {"model": "voices:gamma"}, "brief": f"Wish {nth}"},
            expect=202,
        )
        await ada.wait_for_end(opened["turn"]["id"])
    replies = await ada.replies(conversation, 1)
    older, newer = [r for r in replies if r["step"] == "synthesis"]
    assert (older["content"], newer["content"], newer["replaces_id"]) == ("Both.", "Neither.", older["id"])
    prompts = prompts_of(upstream, "gamma")
    assert "[Alpha]: Tea." in prompts[0]
    assert "[Beta]: Coffee." in prompts[0]
    assert "Sure?" not in prompts[0]
    assert "Wish 1" in prompts[2]
    assert "Both." not in prompts[2]


async def test_a_second_synthesis_opens_a_branch_when_a_branch_has_one_of_the_same_round(ada, upstream):
    """The branch inherits the round, so it would show two syntheses."""
    upstream.plays(says("Tea."), says("Theirs."), says("{}"), says("Ours."), says("{}"), model="alpha")
    [first, _] = await ada.ask_and_wait("Tea or coffee?", "alpha", "beta")
    source = first["conversation_id"]
    branch = await ada.post(f"/api/conversations/{source}/branches", {"at_round": 1}, expect=201)
    in_branch = await add_synthesis(ada, branch["id"])
    in_second_branch = await add_synthesis(ada, source)
    assert in_branch["conversation"]["id"] == branch["id"]
    assert in_second_branch["conversation"]["id"] not in (source, branch["id"])
    for conversation, content in (
        (branch["id"], "Theirs."),
        (in_second_branch["conversation"]["id"], "Ours."),
    ):
        replies = await ada.replies(conversation, 1)
        assert [r["content"] for r in replies if r["step"] == "synthesis"] == [content]


async def test_continuing_an_interrupted_synthesis_writes_a_new_outline(ada, upstream):
    upstream.plays(
        says("Mine."),
        (Say("Half a "), Cut()),
        says(OUTLINE),
        says("synthesis."),
        says(OUTLINE),
        model="alpha",
    )
    first = await ask_council(ada, "brain_trust", "alpha", "beta")
    interrupted = by_step(first, "synthesis")
    opened = await ada.post(f"/api/messages/{interrupted['id']}/continue", {"id": new_id()}, expect=202)
    await ada.wait_for_end(opened["turn"]["id"])
    replies = await ada.replies(interrupted["conversation_id"], 1)
    continued = next(r for r in replies if r["replaces_id"] == interrupted["id"])
    assert continued["content"] == "Half a synthesis."
    assert "Go on exactly where you stopped" in prompts_of(upstream, "alpha")[3]
    assert "Go on exactly where you stopped" not in prompts_of(upstream, "alpha")[4]


@pytest.mark.parametrize(("mode", "last_step"), [("second_opinion", "critique"), ("debate", "rebuttal")])
async def test_a_later_synthesis_reads_the_replies_of_every_step(ada, upstream, mode, last_step):
    upstream.plays(says("The answer."), says("Alpha, later."), model="alpha")
    upstream.plays(says("Beta, first."), says("Beta, later."), model="beta")
    replies = await ask_council(ada, mode, "alpha", "beta", **({"chair": GAMMA} if mode == "debate" else {}))
    prompt_count = len(prompts_of(upstream, "gamma"))
    opened = await ada.post(
        f"/api/conversations/{replies[0]['conversation_id']}/rounds/1/synthesis",
        {"id": new_id(), "chair": GAMMA},
        expect=202,
    )
    await ada.wait_for_end(opened["turn"]["id"])
    chair = prompts_of(upstream, "gamma")[prompt_count]
    for reply in replies:
        if reply["step"] in ("answer", last_step):
            assert f"[{reply['voice']['name']}]: {reply['content']}" in chair
    assert "Absent this round" not in chair


async def test_retrying_a_failed_later_synthesis_keeps_its_instructions(ada, upstream):
    upstream.plays(refuses(401), says("Both."), says("{}"), model="gamma")
    first = await ada.ask_and_wait("Tea or coffee?", "alpha", "beta")
    path = f"/api/conversations/{first[0]['conversation_id']}/rounds/1/synthesis"
    opened = await ada.post(path, {"id": new_id(), "chair": GAMMA, "brief": "Rhyme it."}, expect=202)
    await ada.wait_for_end(opened["turn"]["id"])
    failed = by_step(await ada.replies(first[0]["conversation_id"], 1), "synthesis")
    assert failed["status"] == "failed"
    replies = await retry(ada, failed)
    assert next(r for r in replies if r["replaces_id"] == failed["id"])["content"] == "Both."
    assert "[Alpha]: " in prompts_of(upstream, "gamma")[1]
    assert "The person asks of this synthesis: Rhyme it." in prompts_of(upstream, "gamma")[1]


async def test_a_synthesis_of_a_round_without_answers_is_refused(ada, upstream):
    upstream.plays(refuses(401), model="alpha")
    [failed] = await ada.ask_and_wait("Well?", "alpha")
    path = f"/api/conversations/{failed['conversation_id']}/rounds/1/synthesis"
    refused = await ada.post(path, {"id": new_id()}, expect=409)
    assert refused["message"] == "Nobody has answered in this round yet, so there is nothing to summarise."


async def test_the_notes_of_a_second_opinion_quote_the_answer(ada, upstream):
    upstream.plays(says("The cache is warm. It explains all failures."), model="alpha")
    upstream.plays(
        says(
            'Verdict: mostly holds. One is wrong.\n\n1. "explains all failures" - wrong: 140 are passwords.'
        ),
        model="beta",
    )
    answer, critic = await ask_council(ada, "second_opinion", "alpha", "beta")
    assert (critic["role"], critic["critique_of_id"]) == ("critic", answer["id"])
    critique = critic["findings"]["critique"]
    assert critique["verdict"] == "mostly_holds"
    [note] = critique["notes"]
    assert (note["finding"], note["quote"]) == ("wrong", "explains all failures")
    assert note["quote"] in answer["content"]


async def test_a_stop_before_the_synthesis_skips_the_chair(ada, upstream):
    release = asyncio.Event()
    upstream.plays((Say("Half"), Hold(release), Finish()), model="beta")
    opened = await ada.ask("Stop me", "alpha", "beta", mode="brain_trust")
    await upstream.wait_for_request(2)
    await ada.post(f"/api/turns/{opened['turn']['id']}/stop", expect=202)
    await ada.wait_for_end(opened["turn"]["id"])
    replies = await ada.replies(opened["conversation"]["id"], 1)
    assert {r["step"] for r in replies} == {"answer"}
    assert (await ada.get(f"/api/turns/{opened['turn']['id']}"))["state"] == "stopped"


async def test_reviews_and_outlines_are_not_in_later_prompts(ada, upstream):
    upstream.plays(says("Mine."), says("Ranking: A > B"), says(SYNTHESIS), says(OUTLINE), model="alpha")
    upstream.plays(says("Yours."), says("Ranking: B > A"), says("On."), model="beta")
    first = await ask_council(ada, "peer_review", "alpha", "beta")
    assert {r["step"] for r in first} == {"answer", "review", "synthesis", "outline"}
    await ada.ask_and_wait("On?", "beta", conversation_id=first[0]["conversation_id"])
    prompt = prompts_of(upstream, "beta")[-1]
    assert "Watch sign-in success." in prompt
    assert "Ranking" not in prompt
    assert '"headline"' not in prompt


async def test_a_chair_in_a_mode_without_synthesis_is_refused(ada, upstream):
    refused = await ada.ask(
        "Well?", "alpha", "beta", mode="relay", chair={"model": "voices:gamma"}, expect=422
    )
    assert refused["message"] == "The mode relay has no summary. Choose another mode, or leave `chair` out."
    assert upstream.requests == []


# ── the replies that a synthesis read


async def test_a_synthesis_stores_which_replies_it_read(ada, upstream):
    upstream.plays(says("Mine."), says(SYNTHESIS), says(OUTLINE), says("Mine, better."), model="alpha")
    upstream.plays(says("Yours."), model="beta")
    upstream.plays(refuses(401), says("Here after all."), model="gamma")
    first = await ask_council(ada, "brain_trust", "alpha", "beta", "gamma")
    failed = next(r for r in first if r["status"] == "failed")
    alpha, beta = (next(r for r in first if r["content"] == text) for text in ("Mine.", "Yours."))
    read_replies = [
        {"message_id": reply["id"], "seat": reply["voice"]["seat"], "name": name, "label": ""}
        for reply, name in ((alpha, "Alpha"), (beta, "Beta"))
    ]
    assert by_step(first, "synthesis")["read_replies"] == read_replies
    assert by_step(first, "outline")["read_replies"][:2] == read_replies
    await retry(ada, failed)
    replies = await retry(ada, alpha)
    assert [r["read_replies"] for r in replies if r["step"] == "synthesis"] == [read_replies]


async def test_a_retried_synthesis_reads_the_replies_that_came_later(ada, upstream):
    upstream.plays(says("Mine."), says(SYNTHESIS), says(OUTLINE), says("All."), says(OUTLINE), model="alpha")
    upstream.plays(refuses(401), says("Here after all."), model="gamma")
    first = await ask_council(ada, "brain_trust", "alpha", "beta", "gamma")
    failed = next(r for r in first if r["status"] == "failed")
    synthesis = by_step(first, "synthesis")
    retried = await retry(ada, failed)
    request_count = len(upstream.requests)
    replies = await retry(ada, synthesis)
    assert len(upstream.requests) == request_count + 2  # the synthesis and its outline
    chair = prompts_of(upstream, "alpha")[-2]
    assert "[Gamma]: Here after all." in chair
    assert "Absent" not in chair
    newer = next(r for r in replies if r["replaces_id"] == synthesis["id"])
    assert newer["content"] == "All."
    gamma = next(r for r in retried if r["replaces_id"] == failed["id"])
    assert gamma["id"] in [reply["message_id"] for reply in newer["read_replies"]]
    assert [reply["name"] for reply in newer["read_replies"]] == ["Alpha", "Beta", "Gamma"]


async def test_a_seat_answered_by_another_model_is_not_called_absent(ada, upstream):
    first_time = (says("Mine."), says(SYNTHESIS), says(OUTLINE))
    upstream.plays(*first_time, says("For gamma."), says("All."), says("{}"), model="alpha")
    upstream.plays(refuses(401), model="gamma")
    first = await ask_council(ada, "brain_trust", "alpha", "beta", "gamma")
    failed = next(r for r in first if r["status"] == "failed")
    await retry(ada, failed, model="voices:alpha")
    replies = await retry(ada, by_step(first, "synthesis"))
    newer = next(r for r in replies if r["content"] == "All.")
    assert [reply["name"] for reply in newer["read_replies"]] == ["Alpha", "Beta", "Alpha 2"]
    assert "Absent" not in prompts_of(upstream, "alpha")[-2]


async def test_a_continued_synthesis_reads_the_same_replies_as_its_beginning(ada, upstream):
    upstream.plays(says("Mine."), (Say("Half a "), Cut()), says(OUTLINE), says("synthesis."), model="alpha")
    upstream.plays(refuses(401), says("Late."), model="gamma")
    first = await ask_council(ada, "brain_trust", "alpha", "beta", "gamma")
    interrupted = by_step(first, "synthesis")
    await retry(ada, next(r for r in first if r["status"] == "failed"))
    opened = await ada.post(f"/api/messages/{interrupted['id']}/continue", {"id": new_id()}, expect=202)
    await ada.wait_for_end(opened["turn"]["id"])
    continued = next(
        r
        for r in await ada.replies(interrupted["conversation_id"], 1)
        if r["replaces_id"] == interrupted["id"]
    )
    assert continued["content"] == "Half a synthesis."
    assert continued["read_replies"] == interrupted["read_replies"]
    prompt = next(text for text in prompts_of(upstream, "alpha") if "Go on exactly where you stopped" in text)
    assert "Late." not in prompt


async def test_a_later_synthesis_in_a_branch_reads_the_replies_of_the_branch(ada, upstream):
    upstream.plays(says("Tea."), says("Tea, rather."), model="alpha")
    upstream.says("Both.", model="gamma")
    first = await ada.ask_and_wait("Tea or coffee?", "alpha", "beta")
    source = first[0]["conversation_id"]
    await ada.ask_and_wait("Sure?", "beta", conversation_id=source)
    retry_turn = await ada.post(
        f"/api/messages/{first[0]['id']}/retry", {"id": new_id(), "conversation_id": source}, expect=202
    )
    await ada.wait_for_end(retry_turn["turn"]["id"])
    branch = retry_turn["conversation"]["id"]
    assert branch != source
    synthesis_turn = await ada.post(
        f"/api/conversations/{branch}/rounds/1/synthesis", {"id": new_id(), "chair": GAMMA}, expect=202
    )
    await ada.wait_for_end(synthesis_turn["turn"]["id"])
    replies = await ada.replies(branch, 1)
    newer = next(r for r in replies if r["content"] == "Tea, rather.")
    message_ids = {reply["message_id"] for reply in by_step(replies, "synthesis")["read_replies"]}
    assert message_ids == {newer["id"], first[1]["id"]}


# ── peer review


async def ask_for_peer_review(ada: Person, *models: str) -> list[dict[str, Any]]:
    return await ask_council(ada, "peer_review", *models, chair={"model": "voices:alpha"})


def messages_by_label(review: dict[str, Any]) -> dict[str, str]:
    return {reply["label"]: reply["message_id"] for reply in review["read_replies"]}


def latest_reviews(replies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The latest review of each voice."""
    replaced = {r["replaces_id"] for r in replies}
    return [r for r in replies if r["step"] == "review" and r["id"] not in replaced]


async def test_a_reviewer_never_ranks_its_own_answer_and_the_letters_are_stored(ada, upstream):
    for name in ("alpha", "beta", "gamma"):
        upstream.plays(says(f"I am {name}."), says("Answer B is clear.\n\nRanking: B > A"), model=name)
    replies = await ask_for_peer_review(ada, "alpha", "beta", "gamma")
    answers = {r["id"]: r for r in replies if r["step"] == "answer"}
    reviews = latest_reviews(replies)
    assert len(reviews) == 3
    for review in reviews:
        own = next(r for r in answers.values() if r["voice"]["id"] == review["voice"]["id"])
        message_by_label = messages_by_label(review)
        assert sorted(message_by_label) == ["Answer A", "Answer B"]
        assert set(message_by_label.values()) == answers.keys() - {own["id"]}
        assert review["findings"]["ranking"] == {
            "message_ids": [message_by_label["Answer B"], message_by_label["Answer A"]], "places": [1, 2],
        }  # fmt: skip
        prompt = prompts_of(upstream, review["voice"]["model"].partition(":")[2])[1]
        for label, id in message_by_label.items():
            assert f"[{label}]: {answers[id]['content']}" in prompt
        assert review["content"].startswith("Answer B is clear.")  # prompts and the database keep the letters


async def test_one_model_at_two_seats_is_two_candidates_and_two_reviewers(ada, upstream):
    upstream.plays(says("One."), says("Two."), says("Ranking: A > B"), model="alpha")
    upstream.plays(says("Three."), says("Ranking: A > B"), model="beta")
    replies = await ask_for_peer_review(ada, "alpha", "alpha", "beta")
    for review in latest_reviews(replies):
        seats = {reply["seat"] for reply in review["read_replies"]}
        assert seats == {1, 2, 3} - {review["voice"]["seat"]}


async def test_a_retried_review_gets_the_same_letters(ada, upstream):
    upstream.plays(says("I am beta."), refuses(401), says("Ranking: A > B"), model="beta")
    replies = await ask_for_peer_review(ada, "alpha", "beta", "gamma")
    failed = next(r for r in replies if r["step"] == "review" and r["status"] == "failed")
    retried = next(r for r in await retry(ada, failed) if r["replaces_id"] == failed["id"])
    first, second = prompts_of(upstream, "beta")[1:3]
    assert first == second
    assert retried["findings"]["ranking"]["message_ids"] == list(messages_by_label(retried).values())
    receipt = await ada.get(f"/api/messages/{retried['id']}/receipt")
    for label, id in messages_by_label(retried).items():
        [segment] = [segment_ for segment_ in receipt["segments"] if segment_["source_id"] == id]
        assert segment["text"].startswith(f"[{label}]: ")


async def test_retrying_the_synthesis_repeats_the_reviews_that_miss_a_late_answer(ada, upstream):
    upstream.plays(says("Mine."), says("Ranking: A"), says(SYNTHESIS), says(OUTLINE), says("Ranking: B > A"),
                   says("All."), says("{}"), model="alpha")  # fmt: skip
    upstream.plays(says("Yours."), says("Ranking: A"), says("Ranking: B > A"), model="beta")
    upstream.plays(refuses(401), says("Late."), says("Ranking: B > A"), model="gamma")
    first = await ask_for_peer_review(ada, "alpha", "beta", "gamma")
    assert len(latest_reviews(first)) == 2
    late = next(r for r in first if r["status"] == "failed")
    retried = await retry(ada, late)
    assert [len(r["read_replies"]) for r in latest_reviews(retried)] == [
        1,
        1,
        2,
    ]  # valid reviews are not repeated
    replies = await retry(ada, by_step(first, "synthesis"))
    answers = {reply["message_id"] for r in latest_reviews(replies) for reply in r["read_replies"]}
    assert [len(r["read_replies"]) for r in latest_reviews(replies)] == [2, 2, 2]
    assert next(r["id"] for r in replies if r["content"] == "Late.") in answers
    assert re.search(r"Mean place, 1 is best: (\w+ \d\.\d(, )?){3}\.", prompts_of(upstream, "alpha")[-2])


async def test_a_later_synthesis_of_a_peer_review_gets_the_mean_places(ada, upstream):
    upstream.says("Ranking: B > A", model="beta")
    replies = await ask_for_peer_review(ada, "alpha", "beta", "beta")
    opened = await ada.post(
        f"/api/conversations/{replies[0]['conversation_id']}/rounds/1/synthesis",
        {"id": new_id(), "chair": GAMMA},
        expect=202,
    )
    await ada.wait_for_end(opened["turn"]["id"])
    assert "Mean place, 1 is best: " in prompts_of(upstream, "gamma")[-1]


async def test_a_quote_of_a_review_shows_names_instead_of_letters(ada, upstream):
    for name in ("alpha", "beta", "gamma"):
        upstream.plays(says(f"I am {name}."), says("Answer B is clear. Ranking: B > A"), model=name)
    review = latest_reviews(await ask_for_peer_review(ada, "alpha", "beta", "gamma"))[0]
    name_of_b = next(reply["name"] for reply in review["read_replies"] if reply["label"] == "Answer B")
    quotes = [{"message_id": review["id"], "text": f"{name_of_b} is clear."}]
    await ada.ask_and_wait("Why?", "gamma", conversation_id=review["conversation_id"], quotes=quotes)
    assert f"{name_of_b} is clear." in prompts_of(upstream, "gamma")[-1]


# ── visibility: every voice says a number that no other voice knows

MODES = ["parallel", "second_opinion", "brain_trust", "relay", "debate", "peer_review"]
NUMBERS = {"alpha": "741", "beta": "852", "gamma": "963"}
READS: dict[str, dict[str, set[str]]] = {
    "parallel": {},
    "second_opinion": {"beta": {"alpha"}, "gamma": {"alpha"}},
    "brain_trust": {"alpha": {"beta", "gamma"}},
    "relay": {"beta": {"alpha"}, "gamma": {"alpha", "beta"}},
    "debate": {name: set(NUMBERS) - {name} for name in NUMBERS},
    "peer_review": {name: set(NUMBERS) - {name} for name in NUMBERS},
}
"""The numbers of its own round that each mode shows to a voice; Alpha is the chair."""


@pytest.mark.parametrize("visibility", ["open", "own_lane", "chosen"])
@pytest.mark.parametrize("mode", MODES)
async def test_each_voice_sees_exactly_what_its_mode_and_the_visibility_allow(
    ada: Person, upstream: Upstream, mode: str, visibility: str
) -> None:
    for name, number in NUMBERS.items():
        upstream.says(f"My number is {number}.", model=name)
    replies = await ask_council(ada, mode, *NUMBERS, visibility=visibility)
    for name in NUMBERS:
        visible = {
            other
            for other in NUMBERS
            if any(NUMBERS[other] in prompt for prompt in prompts_of(upstream, name))
        }
        assert visible - {name} == READS[mode].get(name, set()), f"{name} in its own round"
    await ask_council(
        ada, "parallel", *NUMBERS, visibility=visibility, conversation_id=replies[0]["conversation_id"]
    )
    for name in NUMBERS:
        last = prompts_of(upstream, name)[-1]
        expected = {"open": set(NUMBERS), "own_lane": {name}, "chosen": set(NUMBERS)}[visibility]
        assert {other for other in NUMBERS if NUMBERS[other] in last} == expected, f"{name} a round later"


# ── helper functions


async def ask_council(person: Person, mode: str, *models: str, **more: Any) -> list[dict[str, Any]]:
    return await person.ask_and_wait("Which number?", *models, mode=mode, **more)


async def retry(person: Person, reply: dict[str, Any], **change: Any) -> list[dict[str, Any]]:
    opened = await person.post(f"/api/messages/{reply['id']}/retry", {"id": new_id(), **change}, expect=202)
    await person.wait_for_end(opened["turn"]["id"])
    return await person.replies(reply["conversation_id"], reply["round_number"])


async def add_synthesis(person: Person, conversation: str) -> Any:
    """Adds a synthesis to the first round and waits for its end."""
    opened = await person.post(
        f"/api/conversations/{conversation}/rounds/1/synthesis", {"id": new_id()}, expect=202
    )
    await person.wait_for_end(opened["turn"]["id"])
    return opened


def prompts_of(upstream: Upstream, model: str) -> list[str]:
    """The prompts that a model got, one text per request."""
    return [
        "\n".join(message["content"] for message in request.body["messages"])
        for request in upstream.requests
        if request.model == model
    ]


def in_order(replies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(
        replies,
        key=lambda r: (
            r["role"] == "synthesis",
            r["id"] if r["role"] == "synthesis" else "",
            r["voice"]["seat"],
        ),
    )


def by_step(replies: list[dict[str, Any]], step: str) -> dict[str, Any]:
    return next(r for r in replies if r["step"] == step)
