"""A council answers in its mode: each reads what the mode shows, the chair closes, no failure ends it."""

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


async def test_a_brain_trust_of_four_goes_on_when_one_fails(ada, upstream):
    upstream.plays(says("I name one number above all."), says("And I another."), model="alpha")
    upstream.plays(says("Sign-in first."), model="beta")
    upstream.plays(refuses(401), says(SYNTHESIS), says(OUTLINE), model="gamma")
    replies = await council(
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
    chair = said_to(upstream, "gamma")[1]
    for words in (
        "[Alpha]: I name one number above all.",
        "[Beta]: Sign-in first.",
        "[Alpha 2]: And I another.",
    ):
        assert words in chair
    assert "Absent this round, because no answer came: Gamma." in chair


async def test_where_the_first_voice_fails_and_nobody_was_named_the_next_takes_the_chair(ada, upstream):
    upstream.plays(refuses(401), model="alpha")
    upstream.plays(says("Mine."), says(SYNTHESIS), says(OUTLINE), model="beta")
    replies = await council(ada, "brain_trust", "alpha", "beta", "gamma")
    synthesis = by_step(replies, "synthesis")
    assert (synthesis["voice"]["name"], synthesis["status"]) == ("Beta", "complete")
    assert "Absent this round, because no answer came: Alpha." in said_to(upstream, "beta")[1]


async def test_a_synthesis_that_is_asked_for_later_is_written_by_one_who_answered(ada, upstream):
    upstream.plays(refuses(401), model="alpha")
    [failed, _] = await ada.hear("Well?", "alpha", "beta")
    opened = await synthesised(ada, failed["conversation_id"])
    assert opened["turn"]["chair"]["name"] == "Beta"


async def test_a_named_chair_keeps_the_chair_also_when_it_did_not_answer(ada, upstream):
    upstream.plays(refuses(401), says(SYNTHESIS), says(OUTLINE), model="alpha")
    replies = await council(ada, "brain_trust", "alpha", "beta", chair={"model": "voices:alpha"})
    assert by_step(replies, "synthesis")["voice"]["name"] == "Alpha"


async def test_the_map_shows_only_words_that_stand_in_the_replies(ada, upstream):
    upstream.plays(says("I name **one number**\nabove all."), says(SYNTHESIS), says(OUTLINE), model="alpha")
    upstream.plays(says("Sign-in first."), model="beta")
    replies = await council(ada, "brain_trust", "alpha", "beta")
    outline = by_step(replies, "outline")["findings"]["outline"]
    [topic] = outline["map"]
    assert [(cell["seat"], cell["quote"]) for cell in topic["cells"]] == [(1, "one number**\nabove all")]
    answer = next(r for r in replies if r["id"] == topic["cells"][0]["message_id"])
    assert topic["cells"][0]["quote"] in answer["content"]


async def test_a_synthesis_is_readable_text_whose_parts_are_known(ada, upstream):
    upstream.plays(says("One."), says(SYNTHESIS), says("no data today"), model="alpha")
    replies = await council(ada, "brain_trust", "alpha", "beta")
    synthesis = by_step(replies, "synthesis")
    assert synthesis["content"] == SYNTHESIS
    outline = synthesis["findings"]["outline"]
    assert outline["agreement"] == [{"text": "It comes first.", "seats": [1, 2]}]
    assert outline["tensions"][0]["question"] == "In public?"
    failed = by_step(replies, "outline")
    assert (failed["status"], failed["content"], failed["failure"]["code"]) == ("failed", "", "malformed")


async def test_the_person_picks_the_chair_and_says_what_the_synthesis_should_do(ada, upstream):
    upstream.says("Closed.", model="gamma")
    replies = await council(
        ada, "brain_trust", "alpha", "beta", chair={"model": "voices:gamma"}, brief="In one line, please."
    )
    synthesis = by_step(replies, "synthesis")
    assert (synthesis["voice"]["model"], synthesis["voice"]["seat"]) == ("voices:gamma", 3)
    assert said_to(upstream, "gamma")[0].endswith("The person asks of this synthesis: In one line, please.")


async def test_a_chair_that_failed_is_tried_again_without_asking_the_others(ada, upstream):
    upstream.plays(says("Mine."), refuses(401), says(SYNTHESIS), says(OUTLINE), model="alpha")
    first = await council(ada, "brain_trust", "alpha", "beta")
    failed = by_step(first, "synthesis")
    assert failed["status"] == "failed"
    assert len(upstream.requests) == 3
    replies = await again(ada, failed)
    assert len(upstream.requests) == 5
    synthesis = [r for r in replies if r["step"] == "synthesis"][-1]
    assert (synthesis["replaces_id"], synthesis["role"]) == (failed["id"], "synthesis")
    assert "[Beta]: " in said_to(upstream, "alpha")[-2]
    assert by_step(replies, "outline")["status"] == "complete"


async def test_an_advisor_that_failed_is_tried_again_and_what_stands_is_not_asked_again(ada, upstream):
    upstream.plays(says("Mine."), says(SYNTHESIS), says(OUTLINE), model="alpha")
    upstream.plays(refuses(401), says("Here after all."), model="beta")
    first = await council(ada, "brain_trust", "alpha", "beta", "gamma")
    failed = next(r for r in first if r["status"] == "failed")
    asked = len(upstream.requests)
    replies = await again(ada, failed)
    assert len(upstream.requests) == asked + 1
    assert next(r for r in replies if r["replaces_id"] == failed["id"])["content"] == "Here after all."


async def test_a_mode_that_stopped_half_way_goes_on_when_its_reply_is_tried_again(ada, upstream):
    """All fail, so nobody was asked to close; the one that is heard at last brings the synthesis."""
    upstream.plays(refuses(401), says("At last."), says(SYNTHESIS), says("{}"), model="alpha")
    upstream.plays(refuses(401), model="beta")
    first = await council(ada, "brain_trust", "alpha", "beta")
    assert [r["step"] for r in first] == ["answer", "answer"]
    replies = await again(ada, first[0])
    assert by_step(replies, "synthesis")["content"] == SYNTHESIS
    assert "Absent this round, because no answer came: Beta." in said_to(upstream, "alpha")[2]


async def test_any_past_round_can_be_given_a_synthesis_and_another_one(ada, upstream):
    upstream.plays(says("Tea."), model="alpha")
    upstream.plays(says("Coffee."), model="beta")
    upstream.plays(says("Both."), says("{}"), says("Neither."), says("{}"), model="gamma")
    first = await ada.hear("Tea or coffee?", "alpha", "beta")
    conversation = first[0]["conversation_id"]
    await ada.hear("Sure?", "alpha", conversation_id=conversation)
    for nth in range(2):
        opened = await ada.post(
            f"/api/conversations/{conversation}/rounds/1/synthesis",
            {"id": new_id(), "chair": {"model": "voices:gamma"}, "brief": f"Wish {nth}"},
            expect=202,
        )
        await ada.ended(opened["turn"]["id"])
    replies = await ada.replies(conversation, 1)
    older, newer = [r for r in replies if r["step"] == "synthesis"]
    assert (older["content"], newer["content"], newer["replaces_id"]) == ("Both.", "Neither.", older["id"])
    asked = said_to(upstream, "gamma")
    assert "[Alpha]: Tea." in asked[0]
    assert "[Beta]: Coffee." in asked[0]
    assert "Sure?" not in asked[0]
    assert "Wish 1" in asked[2]
    assert "Both." not in asked[2]


async def test_a_round_that_a_branch_has_closed_is_closed_once_more_in_a_branch_too(ada, upstream):
    """The branch shares the round; two syntheses would stand in it."""
    upstream.plays(says("Tea."), says("Theirs."), says("{}"), says("Ours."), says("{}"), model="alpha")
    [first, _] = await ada.hear("Tea or coffee?", "alpha", "beta")
    source = first["conversation_id"]
    branch = await ada.post(f"/api/conversations/{source}/branches", {"at_round": 1}, expect=201)
    theirs = await synthesised(ada, branch["id"])
    ours = await synthesised(ada, source)
    assert theirs["conversation"]["id"] == branch["id"]
    assert ours["conversation"]["id"] not in (source, branch["id"])
    for conversation, said in ((branch["id"], "Theirs."), (ours["conversation"]["id"], "Ours.")):
        replies = await ada.replies(conversation, 1)
        assert [r["content"] for r in replies if r["step"] == "synthesis"] == [said]


async def test_a_synthesis_that_broke_off_goes_on_and_its_map_begins_anew(ada, upstream):
    upstream.plays(
        says("Mine."),
        (Say("Half a "), Cut()),
        says(OUTLINE),
        says("synthesis."),
        says(OUTLINE),
        model="alpha",
    )
    first = await council(ada, "brain_trust", "alpha", "beta")
    half = by_step(first, "synthesis")
    opened = await ada.post(f"/api/messages/{half['id']}/continue", {"id": new_id()}, expect=202)
    await ada.ended(opened["turn"]["id"])
    replies = await ada.replies(half["conversation_id"], 1)
    whole = next(r for r in replies if r["replaces_id"] == half["id"])
    assert whole["content"] == "Half a synthesis."
    assert "Go on exactly where you stopped" in said_to(upstream, "alpha")[3]
    assert "Go on exactly where you stopped" not in said_to(upstream, "alpha")[4]


@pytest.mark.parametrize(("mode", "later"), [("second_opinion", "critique"), ("debate", "rebuttal")])
async def test_a_later_synthesis_has_read_all_that_was_said_and_calls_nobody_absent(
    ada, upstream, mode, later
):
    upstream.plays(says("The answer."), says("Alpha, later."), model="alpha")
    upstream.plays(says("Beta, first."), says("Beta, later."), model="beta")
    replies = await council(ada, mode, "alpha", "beta", **({"chair": GAMMA} if mode == "debate" else {}))
    asked = len(said_to(upstream, "gamma"))
    opened = await ada.post(
        f"/api/conversations/{replies[0]['conversation_id']}/rounds/1/synthesis",
        {"id": new_id(), "chair": GAMMA},
        expect=202,
    )
    await ada.ended(opened["turn"]["id"])
    chair = said_to(upstream, "gamma")[asked]
    for reply in replies:
        if reply["step"] in ("answer", later):
            assert f"[{reply['voice']['name']}]: {reply['content']}" in chair
    assert "Absent this round" not in chair


async def test_a_later_synthesis_that_failed_is_tried_again_with_the_same_wish(ada, upstream):
    upstream.plays(refuses(401), says("Both."), says("{}"), model="gamma")
    first = await ada.hear("Tea or coffee?", "alpha", "beta")
    path = f"/api/conversations/{first[0]['conversation_id']}/rounds/1/synthesis"
    opened = await ada.post(path, {"id": new_id(), "chair": GAMMA, "brief": "Rhyme it."}, expect=202)
    await ada.ended(opened["turn"]["id"])
    failed = by_step(await ada.replies(first[0]["conversation_id"], 1), "synthesis")
    assert failed["status"] == "failed"
    replies = await again(ada, failed)
    assert next(r for r in replies if r["replaces_id"] == failed["id"])["content"] == "Both."
    assert "[Alpha]: " in said_to(upstream, "gamma")[1]
    assert "The person asks of this synthesis: Rhyme it." in said_to(upstream, "gamma")[1]


async def test_there_is_no_synthesis_of_what_nobody_answered(ada, upstream):
    upstream.plays(refuses(401), model="alpha")
    [failed] = await ada.hear("Well?", "alpha")
    path = f"/api/conversations/{failed['conversation_id']}/rounds/1/synthesis"
    refused = await ada.post(path, {"id": new_id()}, expect=409)
    assert refused["message"] == "Nobody has answered in this round yet, so there is nothing to summarise."


async def test_a_second_opinion_is_tied_to_the_words_it_is_about(ada, upstream):
    upstream.plays(says("The cache is warm. It explains all failures."), model="alpha")
    upstream.plays(
        says(
            'Verdict: mostly holds. One is wrong.\n\n1. "explains all failures" - wrong: 140 are passwords.'
        ),
        model="beta",
    )
    answer, critic = await council(ada, "second_opinion", "alpha", "beta")
    assert (critic["role"], critic["critique_of_id"]) == ("critic", answer["id"])
    critique = critic["findings"]["critique"]
    assert critique["verdict"] == "mostly_holds"
    [note] = critique["notes"]
    assert (note["finding"], note["quote"]) == ("wrong", "explains all failures")
    assert note["quote"] in answer["content"]


async def test_a_stop_before_the_synthesis_leaves_the_chair_unasked(ada, upstream):
    held = asyncio.Event()
    upstream.plays((Say("Half"), Hold(held), Finish()), model="beta")
    opened = await ada.ask("Stop me", "alpha", "beta", mode="brain_trust")
    await upstream.heard(2)
    await ada.post(f"/api/turns/{opened['turn']['id']}/stop", expect=202)
    await ada.ended(opened["turn"]["id"])
    replies = await ada.replies(opened["conversation"]["id"], 1)
    assert {r["step"] for r in replies} == {"answer"}
    assert (await ada.get(f"/api/turns/{opened['turn']['id']}"))["state"] == "stopped"


async def test_reviews_and_outlines_serve_their_own_round_alone(ada, upstream):
    upstream.plays(says("Mine."), says("Ranking: A > B"), says(SYNTHESIS), says(OUTLINE), model="alpha")
    upstream.plays(says("Yours."), says("Ranking: B > A"), says("On."), model="beta")
    first = await council(ada, "peer_review", "alpha", "beta")
    assert {r["step"] for r in first} == {"answer", "review", "synthesis", "outline"}
    await ada.hear("On?", "beta", conversation_id=first[0]["conversation_id"])
    seen = said_to(upstream, "beta")[-1]
    assert "Watch sign-in success." in seen
    assert "Ranking" not in seen
    assert '"headline"' not in seen


async def test_a_chair_where_the_mode_has_none_is_refused_and_nothing_is_written(ada, upstream):
    refused = await ada.ask(
        "Well?", "alpha", "beta", mode="relay", chair={"model": "voices:gamma"}, expect=422
    )
    assert refused["message"] == "The mode relay has no summary. Choose another mode, or leave `chair` out."
    assert upstream.requests == []


# ── what a synthesis was written from


async def test_a_synthesis_keeps_what_it_read_whatever_becomes_of_the_round(ada, upstream):
    upstream.plays(says("Mine."), says(SYNTHESIS), says(OUTLINE), says("Mine, better."), model="alpha")
    upstream.plays(says("Yours."), model="beta")
    upstream.plays(refuses(401), says("Here after all."), model="gamma")
    first = await council(ada, "brain_trust", "alpha", "beta", "gamma")
    failed = next(r for r in first if r["status"] == "failed")
    alpha, beta = (next(r for r in first if r["content"] == text) for text in ("Mine.", "Yours."))
    read = [{"message_id": r["id"], "seat": r["voice"]["seat"], "name": r["voice"]["name"], "label": ""}
            for r in (alpha, beta)]  # fmt: skip
    assert by_step(first, "synthesis")["read_replies"] == read
    assert by_step(first, "outline")["read_replies"][:2] == read
    await again(ada, failed)
    replies = await again(ada, alpha)
    assert [r["read_replies"] for r in replies if r["step"] == "synthesis"] == [read]


async def test_a_synthesis_that_is_written_again_reads_everyone_who_answered_since(ada, upstream):
    upstream.plays(says("Mine."), says(SYNTHESIS), says(OUTLINE), says("All."), says(OUTLINE), model="alpha")
    upstream.plays(refuses(401), says("Here after all."), model="gamma")
    first = await council(ada, "brain_trust", "alpha", "beta", "gamma")
    failed = next(r for r in first if r["status"] == "failed")
    synthesis = by_step(first, "synthesis")
    retried = await again(ada, failed)
    asked = len(upstream.requests)
    replies = await again(ada, synthesis)
    assert len(upstream.requests) == asked + 2  # the synthesis and its outline
    chair = said_to(upstream, "alpha")[-2]
    assert "[Gamma]: Here after all." in chair
    assert "Absent" not in chair
    newer = next(r for r in replies if r["replaces_id"] == synthesis["id"])
    assert newer["content"] == "All."
    now = next(r for r in retried if r["replaces_id"] == failed["id"])
    assert now["id"] in [one["message_id"] for one in newer["read_replies"]]
    assert [one["name"] for one in newer["read_replies"]] == ["Alpha", "Beta", "Gamma"]


async def test_a_seat_that_another_model_answered_for_is_not_called_absent(ada, upstream):
    first_time = (says("Mine."), says(SYNTHESIS), says(OUTLINE))
    upstream.plays(*first_time, says("For gamma."), says("All."), says("{}"), model="alpha")
    upstream.plays(refuses(401), model="gamma")
    first = await council(ada, "brain_trust", "alpha", "beta", "gamma")
    failed = next(r for r in first if r["status"] == "failed")
    await again(ada, failed, model="voices:alpha")
    replies = await again(ada, by_step(first, "synthesis"))
    newer = next(r for r in replies if r["content"] == "All.")
    assert [one["name"] for one in newer["read_replies"]] == ["Alpha", "Beta", "Alpha 2"]
    assert "Absent" not in said_to(upstream, "alpha")[-2]


async def test_a_synthesis_that_goes_on_has_read_what_its_beginning_read(ada, upstream):
    upstream.plays(says("Mine."), (Say("Half a "), Cut()), says(OUTLINE), says("synthesis."), model="alpha")
    upstream.plays(refuses(401), says("Late."), model="gamma")
    first = await council(ada, "brain_trust", "alpha", "beta", "gamma")
    half = by_step(first, "synthesis")
    await again(ada, next(r for r in first if r["status"] == "failed"))
    opened = await ada.post(f"/api/messages/{half['id']}/continue", {"id": new_id()}, expect=202)
    await ada.ended(opened["turn"]["id"])
    whole = next(r for r in await ada.replies(half["conversation_id"], 1) if r["replaces_id"] == half["id"])
    assert whole["content"] == "Half a synthesis."
    assert whole["read_replies"] == half["read_replies"]
    asked = next(text for text in said_to(upstream, "alpha") if "Go on exactly where you stopped" in text)
    assert "Late." not in asked


async def test_a_later_synthesis_in_a_branch_says_what_it_read_there(ada, upstream):
    upstream.plays(says("Tea."), says("Tea, rather."), model="alpha")
    upstream.says("Both.", model="gamma")
    first = await ada.hear("Tea or coffee?", "alpha", "beta")
    source = first[0]["conversation_id"]
    await ada.hear("Sure?", "beta", conversation_id=source)
    opened = await ada.post(
        f"/api/messages/{first[0]['id']}/retry", {"id": new_id(), "conversation_id": source}, expect=202
    )
    await ada.ended(opened["turn"]["id"])
    branch = opened["conversation"]["id"]
    assert branch != source
    closed = await ada.post(
        f"/api/conversations/{branch}/rounds/1/synthesis", {"id": new_id(), "chair": GAMMA}, expect=202
    )
    await ada.ended(closed["turn"]["id"])
    replies = await ada.replies(branch, 1)
    newer = next(r for r in replies if r["content"] == "Tea, rather.")
    read = {one["message_id"] for one in by_step(replies, "synthesis")["read_replies"]}
    assert read == {newer["id"], first[1]["id"]}


# ── peer review


async def reviewed(ada: Person, *models: str) -> list[dict[str, Any]]:
    return await council(ada, "peer_review", *models, chair={"model": "voices:alpha"})


def labels(review: dict[str, Any]) -> dict[str, str]:
    return {one["label"]: one["message_id"] for one in review["read_replies"]}


def reviews_in(replies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The latest review of each voice."""
    replaced = {r["replaces_id"] for r in replies}
    return [r for r in replies if r["step"] == "review" and r["id"] not in replaced]


async def test_nobody_reads_or_ranks_its_own_answer_and_the_letters_are_kept(ada, upstream):
    for name in ("alpha", "beta", "gamma"):
        upstream.plays(says(f"I am {name}."), says("Answer B is clear.\n\nRanking: B > A"), model=name)
    replies = await reviewed(ada, "alpha", "beta", "gamma")
    answers = {r["id"]: r for r in replies if r["step"] == "answer"}
    reviews = reviews_in(replies)
    assert len(reviews) == 3
    for review in reviews:
        own = next(r for r in answers.values() if r["voice"]["id"] == review["voice"]["id"])
        found = labels(review)
        assert sorted(found) == ["Answer A", "Answer B"]
        assert set(found.values()) == answers.keys() - {own["id"]}
        assert review["findings"]["ranking"] == {
            "message_ids": [found["Answer B"], found["Answer A"]], "places": [1, 2],
        }  # fmt: skip
        asked = said_to(upstream, review["voice"]["model"].partition(":")[2])[1]
        for label, id in found.items():
            assert f"[{label}]: {answers[id]['content']}" in asked
        assert review["content"].startswith("Answer B is clear.")  # models and the store keep the letters


async def test_the_same_model_twice_is_two_candidates_and_two_reviewers(ada, upstream):
    upstream.plays(says("One."), says("Two."), says("Ranking: A > B"), model="alpha")
    upstream.plays(says("Three."), says("Ranking: A > B"), model="beta")
    replies = await reviewed(ada, "alpha", "alpha", "beta")
    for review in reviews_in(replies):
        seats = {one["seat"] for one in review["read_replies"]}
        assert seats == {1, 2, 3} - {review["voice"]["seat"]}


async def test_a_reviewer_that_failed_finds_the_same_letters_when_it_is_tried_again(ada, upstream):
    upstream.plays(says("I am beta."), refuses(401), says("Ranking: A > B"), model="beta")
    replies = await reviewed(ada, "alpha", "beta", "gamma")
    failed = next(r for r in replies if r["step"] == "review" and r["status"] == "failed")
    retried = next(r for r in await again(ada, failed) if r["replaces_id"] == failed["id"])
    first, second = said_to(upstream, "beta")[1:3]
    assert first == second
    assert retried["findings"]["ranking"]["message_ids"] == list(labels(retried).values())
    receipt = await ada.get(f"/api/messages/{retried['id']}/receipt")
    for label, id in labels(retried).items():
        [segment] = [one for one in receipt["segments"] if one["source_id"] == id]
        assert segment["text"].startswith(f"[{label}]: ")


async def test_a_candidate_that_answers_late_is_ranked_by_all_once_the_synthesis_is_written_again(
    ada, upstream
):
    upstream.plays(says("Mine."), says("Ranking: A"), says(SYNTHESIS), says(OUTLINE), says("Ranking: B > A"),
                   says("All."), says("{}"), model="alpha")  # fmt: skip
    upstream.plays(says("Yours."), says("Ranking: A"), says("Ranking: B > A"), model="beta")
    upstream.plays(refuses(401), says("Late."), says("Ranking: B > A"), model="gamma")
    first = await reviewed(ada, "alpha", "beta", "gamma")
    assert len(reviews_in(first)) == 2
    late = next(r for r in first if r["status"] == "failed")
    retried = await again(ada, late)
    assert [len(r["read_replies"]) for r in reviews_in(retried)] == [
        1,
        1,
        2,
    ]  # what stands is not asked again
    replies = await again(ada, by_step(first, "synthesis"))
    answers = {one["message_id"] for r in reviews_in(replies) for one in r["read_replies"]}
    assert [len(r["read_replies"]) for r in reviews_in(replies)] == [2, 2, 2]
    assert next(r["id"] for r in replies if r["content"] == "Late.") in answers
    assert re.search(r"Mean place, 1 is best: (\w+ \d\.\d(, )?){3}\.", said_to(upstream, "alpha")[-2])


async def test_a_later_synthesis_of_a_peer_review_knows_the_places(ada, upstream):
    upstream.says("Ranking: B > A", model="beta")
    replies = await reviewed(ada, "alpha", "beta", "beta")
    opened = await ada.post(
        f"/api/conversations/{replies[0]['conversation_id']}/rounds/1/synthesis",
        {"id": new_id(), "chair": GAMMA},
        expect=202,
    )
    await ada.ended(opened["turn"]["id"])
    assert "Mean place, 1 is best: " in said_to(upstream, "gamma")[-1]


async def test_a_review_is_quoted_as_people_read_it(ada, upstream):
    for name in ("alpha", "beta", "gamma"):
        upstream.plays(says(f"I am {name}."), says("Answer B is clear. Ranking: B > A"), model=name)
    review = reviews_in(await reviewed(ada, "alpha", "beta", "gamma"))[0]
    named = next(one["name"] for one in review["read_replies"] if one["label"] == "Answer B")
    quotes = [{"message_id": review["id"], "text": f"{named} is clear."}]
    await ada.hear("Why?", "gamma", conversation_id=review["conversation_id"], quotes=quotes)
    assert f"{named} is clear." in said_to(upstream, "gamma")[-1]


# ── who sees what: every voice says a number nobody else knows

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
"""Of its own round, whose numbers a voice is shown by the mode; alpha is in the chair."""


@pytest.mark.parametrize("visibility", ["open", "own_lane", "chosen"])
@pytest.mark.parametrize("mode", MODES)
async def test_each_voice_sees_what_its_mode_and_the_visibility_show_and_nothing_else(
    ada: Person, upstream: Upstream, mode: str, visibility: str
) -> None:
    for name, number in NUMBERS.items():
        upstream.says(f"My number is {number}.", model=name)
    replies = await council(ada, mode, *NUMBERS, visibility=visibility)
    for name in NUMBERS:
        seen = {
            other for other in NUMBERS if any(NUMBERS[other] in asked for asked in said_to(upstream, name))
        }
        assert seen - {name} == READS[mode].get(name, set()), f"{name} in its own round"
    await council(
        ada, "parallel", *NUMBERS, visibility=visibility, conversation_id=replies[0]["conversation_id"]
    )
    for name in NUMBERS:
        last = said_to(upstream, name)[-1]
        everyone = {"open": set(NUMBERS), "own_lane": {name}, "chosen": set(NUMBERS)}[visibility]
        assert {other for other in NUMBERS if NUMBERS[other] in last} == everyone, f"{name} a round later"


# ── aids


async def council(person: Person, mode: str, *models: str, **more: Any) -> list[dict[str, Any]]:
    return await person.hear("Which number?", *models, mode=mode, **more)


async def again(person: Person, reply: dict[str, Any], **how: Any) -> list[dict[str, Any]]:
    opened = await person.post(f"/api/messages/{reply['id']}/retry", {"id": new_id(), **how}, expect=202)
    await person.ended(opened["turn"]["id"])
    return await person.replies(reply["conversation_id"], reply["round_number"])


async def synthesised(person: Person, conversation: str) -> Any:
    """What was opened for a synthesis of the first round, once it is over."""
    opened = await person.post(
        f"/api/conversations/{conversation}/rounds/1/synthesis", {"id": new_id()}, expect=202
    )
    await person.ended(opened["turn"]["id"])
    return opened


def said_to(upstream: Upstream, model: str) -> list[str]:
    """Everything each request to a model held, in the order of the requests."""
    return [
        "\n".join(message["content"] for message in seen.body["messages"])
        for seen in upstream.requests
        if seen.model == model
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
