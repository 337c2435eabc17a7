"""Any question can be asked differently and any reply again: the branch knows what it left, and no more."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tertulia.app import new_id
from tertulia.core.jobs import IndexRounds
from tertulia.engine.jobs.index_round import index_rounds
from tests.server.cast import at_rest
from tests.stories.listening import heard, is_reply, rounds, said, title_of
from tests.upstream.scripted import Finish, Hold, Say, Seen, refuses, says
from tests.world import Person

MODELS = ("alpha", "beta")


async def talked(person: Person, upstream, count: int = 3) -> tuple[str, list[list[dict[str, Any]]]]:
    """A conversation whose every message holds a word of its own, and the replies of each round."""
    replies: list[list[dict[str, Any]]] = []
    where: dict[str, str] = {}
    for number in range(1, count + 1):
        for model in MODELS:
            upstream.says(f"{model.title()} says canary{number}{model}.", model=model)
        replies.append(await person.hear(f"Question canary{number}asked?", *MODELS, **where))
        where = {"conversation_id": replies[0][0]["conversation_id"]}
    for model in MODELS:
        upstream.says("Noted.", model=model)
    upstream.requests.clear()
    return where["conversation_id"], replies


async def branch(person: Person, conversation_id: str, at_round: int, expect: int = 201, **more: Any) -> Any:
    body = {"at_round": at_round} | more
    return await person.post(f"/api/conversations/{conversation_id}/branches", body, expect)


async def edit(person: Person, conversation_id: str, number: int, text: str, expect: int = 202, **more: Any):
    body = {"id": new_id(), "text": text, "voices": [{"model": "voices:alpha"}], "mode": "quick"} | more
    opened = await person.post(f"/api/conversations/{conversation_id}/rounds/{number}/edit", body, expect)
    if expect == 202:
        await person.ended(opened["turn"]["id"])
    return opened


async def again(person: Person, message_id: str, expect: int = 202, **more: Any) -> Any:
    opened = await person.post(f"/api/messages/{message_id}/retry", {"id": new_id()} | more, expect)
    if expect == 202:
        await person.ended(opened["turn"]["id"])
    return opened


async def questions(person: Person, conversation_id: str) -> list[str]:
    return [round_["messages"][0]["content"] for round_ in await rounds(person, conversation_id)]


def shown(seen: Seen) -> str:
    return "\n".join(message["content"] for message in seen.body["messages"])


def canaries(seen: Seen) -> set[str]:
    words = shown(seen).replace(".", " ").replace("?", " ").split()
    return {word.removeprefix("canary") for word in words if word.startswith("canary")}


# ── branching


async def test_a_branch_at_a_round_knows_what_was_before_and_nothing_after(ada, upstream):
    conversation, _ = await talked(ada, upstream)
    made = await branch(ada, conversation, 2, title="Another way")
    assert (made["parent_id"], made["branch_round"], made["title"]) == (conversation, 2, "Another way")
    await ada.hear("And now?", "alpha", conversation_id=made["id"])
    assert canaries(upstream.last) == {f"{n}{who}" for n in (1, 2) for who in ("asked", "alpha", "beta")}
    assert await questions(ada, conversation) == [f"Question canary{n}asked?" for n in (1, 2, 3)]
    await ada.hear("And here?", "alpha", conversation_id=conversation)
    assert "And now?" not in shown(upstream.last)


async def test_a_branch_at_a_reply_knows_that_reply_alone(ada, upstream):
    conversation, replies = await talked(ada, upstream)
    made = await branch(ada, conversation, 2, message_id=replies[1][1]["id"])
    await ada.hear("And now?", "alpha", conversation_id=made["id"])
    assert canaries(upstream.last) == {"1asked", "1alpha", "1beta", "2asked", "2beta"}


async def test_at_any_depth_a_line_knows_its_own_way_and_nothing_beside_it(ada, upstream):
    """Each branch goes on from one reply; what its parent says after that stays there."""
    conversation, way = None, set()
    for depth in range(1, 7):
        where = {"conversation_id": conversation} if conversation else {}
        for model in MODELS:
            upstream.says(f"canary{depth}{model}", model=model)
        replies = await ada.hear(f"canary{depth}asked", *MODELS, **where)
        seen = [canaries(one) - {f"{depth}asked"} for one in upstream.requests[-2:]]
        assert seen == [way, way]
        parent = replies[0]["conversation_id"]
        taken = replies[depth % 2]
        made = await branch(ada, parent, depth, message_id=taken["id"])
        assert made["parent_id"] == parent
        await ada.hear(f"canary{depth}after", "alpha", conversation_id=parent)
        conversation = made["id"]
        way |= {f"{depth}asked", f"{depth}{MODELS[depth % 2]}"}
    tree = await ada.get(f"/api/conversations/{conversation}/tree")
    assert [len(node["rounds"]) for node in tree["nodes"]] == [2, 2, 2, 2, 2, 2, 0]


async def test_a_branch_sent_twice_is_one_branch(ada, upstream):
    conversation, _ = await talked(ada, upstream, 1)
    chosen = new_id()
    first, second = [await branch(ada, conversation, 1, id=chosen) for _ in range(2)]
    assert first == second
    await branch(ada, conversation, 0, expect=409, id=chosen)
    await branch(ada, conversation, 2, expect=422)


async def test_a_branch_is_named_for_what_is_asked_in_it(ada, upstream):
    conversation, _ = await talked(ada, upstream, 1)
    made = await branch(ada, conversation, 1)
    await ada.hear("What would it cost?", "alpha", conversation_id=made["id"])
    assert await title_of(ada, made["id"]) == "What would it cost?"


async def test_long_ago_is_recalled_along_the_line_alone(ada, upstream):
    upstream.says("The lighthouse password is marigold.", model="alpha")
    (first,) = await ada.hear("Which password has the lighthouse?", "alpha")
    conversation = first["conversation_id"]
    upstream.says("Hemlock is the password of the lighthouse: the password, lighthouse.", model="alpha")
    edited = [await edit(ada, conversation, 1, "Which password of the lighthouse?") for _ in range(16)]
    upstream.says("Noted.", model="alpha")
    made = await branch(ada, conversation, 1)
    for number in range(18):
        await ada.hear(f"Remark {number} on the weather.", "alpha", conversation_id=made["id"])
    for id in (conversation, *(one["conversation"]["id"] for one in edited)):
        await index_rounds(ada.world.tertulia.dependencies, IndexRounds.single(id, 1))
    await ada.hear("Which password was it, of the lighthouse?", "alpha", conversation_id=made["id"])
    assert "marigold" in shown(upstream.last)
    assert "Hemlock" not in shown(upstream.last)


# ── asking differently


@pytest.mark.parametrize("number", [1, 3])
async def test_an_edited_question_stands_beside_the_first(ada, upstream, number):
    conversation, _ = await talked(ada, upstream)
    opened = await edit(ada, conversation, number, "Asked differently?")
    made = opened["conversation"]
    assert (made["parent_id"], made["branch_round"]) == (conversation, number - 1)
    assert opened["turn"]["round_number"] == number
    kept = {f"{n}{who}" for n in range(1, number) for who in ("asked", "alpha", "beta")}
    assert canaries(upstream.last) == kept
    assert len(await rounds(ada, conversation)) == 3
    for index, id in enumerate((conversation, made["id"])):
        tree = await ada.get(f"/api/conversations/{id}/tree")
        ids = [conversation, made["id"]]
        assert tree["siblings"] == [{"round_number": number, "conversation_ids": ids, "index": index}]
        assert [node["conversation"]["id"] for node in tree["nodes"]] == ids


async def test_an_edit_of_an_edit_is_a_third_version_of_the_same_question(ada, upstream):
    conversation, _ = await talked(ada, upstream, 2)
    second = (await edit(ada, conversation, 2, "Differently?"))["conversation"]["id"]
    third = (await edit(ada, second, 2, "Once more?"))["conversation"]["id"]
    tree = await ada.get(f"/api/conversations/{third}/tree")
    assert [one["conversation_ids"] for one in tree["siblings"]] == [[conversation, second, third]]
    assert "Differently?" not in shown(upstream.last)
    await ada.delete(f"/api/conversations/{second}")
    await ada.get(f"/api/conversations/{third}")


async def test_an_edit_sent_twice_is_one_branch_and_one_turn(ada, upstream):
    conversation, _ = await talked(ada, upstream, 1)
    same = {"id": new_id(), "branch_id": new_id()}
    first, second = [await edit(ada, conversation, 1, "Again?", **same) for _ in range(2)]
    assert first["conversation"]["id"] == second["conversation"]["id"] == same["branch_id"]
    assert len(upstream.requests) == 1
    assert len((await ada.get(f"/api/conversations/{conversation}/tree"))["nodes"]) == 2
    await edit(ada, conversation, 1, "Something else?", expect=409, **same)


async def test_a_round_that_is_not_there_cannot_be_asked_differently(ada, upstream):
    conversation, _ = await talked(ada, upstream, 1)
    await edit(ada, conversation, 2, "Hm?", expect=404)
    assert len((await ada.get(f"/api/conversations/{conversation}/tree"))["nodes"]) == 1


# ── asking again


async def test_a_reply_of_an_earlier_round_is_asked_for_again_in_a_branch(ada, upstream):
    conversation, replies = await talked(ada, upstream)
    upstream.says("A shorter answer.", model="alpha")
    chosen = new_id()
    opened = await again(ada, replies[1][0]["id"], style="concise", branch_id=chosen)
    assert (opened["conversation"]["id"], opened["turn"]["round_number"]) == (chosen, 2)
    assert opened["turn"]["style"] == "concise"
    assert "more briefly" in shown(upstream.last)
    assert canaries(upstream.last) == {"1asked", "1alpha", "1beta", "2asked"}
    first, second = await rounds(ada, chosen)
    assert len(first["messages"]) == 3
    new = next(m for m in second["messages"] if m["conversation_id"] == chosen)
    assert (new["replaces_id"], new["content"]) == (replies[1][0]["id"], "A shorter answer.")
    assert len((await rounds(ada, conversation))[1]["messages"]) == 3
    tree = await ada.get(f"/api/conversations/{chosen}/tree")
    assert [(one["conversation_ids"], one["index"]) for one in tree["versions"]] == [
        ([conversation, chosen], 1)
    ]
    await ada.hear("And then?", "beta", conversation_id=chosen)
    assert "A shorter answer." in shown(upstream.last)
    assert "canary2alpha" not in shown(upstream.last)


async def test_a_reply_of_the_last_round_is_asked_for_again_in_its_place(ada, upstream):
    conversation, replies = await talked(ada, upstream, 2)
    opened = await again(ada, replies[1][0]["id"])
    assert opened["conversation"]["id"] == conversation


async def test_in_a_branch_without_rounds_of_its_own_the_last_one_is_the_one_it_left(ada, upstream):
    conversation, replies = await talked(ada, upstream)
    made = await branch(ada, conversation, 2)
    opened = await again(ada, replies[1][0]["id"], conversation_id=made["id"])
    assert opened["conversation"]["id"] == made["id"]
    assert len((await rounds(ada, conversation))[1]["messages"]) == 3
    other = await branch(ada, conversation, 1)
    await again(ada, replies[1][0]["id"], expect=409, conversation_id=other["id"])


async def test_a_version_of_ones_own_is_not_joined_by_the_parents_next(ada, upstream):
    """The branch shares the round; two versions of one reply would stand in it."""
    conversation, replies = await talked(ada, upstream, 1)
    made = await branch(ada, conversation, 1)
    upstream.says("The branch's own.", model="alpha")
    await again(ada, replies[0][0]["id"], conversation_id=made["id"])
    other = await again(ada, replies[0][0]["id"])
    assert other["conversation"]["id"] not in (conversation, made["id"])
    [here] = await rounds(ada, made["id"])
    assert [m["content"] for m in here["messages"] if m["replaces_id"]] == ["The branch's own."]
    beside = await branch(ada, conversation, 1)
    third = await again(ada, replies[0][0]["id"], conversation_id=beside["id"])
    assert third["conversation"]["id"] == beside["id"]


async def test_what_broke_off_is_mended_where_it_stands(ada, upstream):
    upstream.plays(refuses(401), says("Fine."), model="alpha")
    [failed] = await ada.hear("Hello?", "alpha")
    conversation = failed["conversation_id"]
    await ada.hear("Go on", "alpha", conversation_id=conversation)
    opened = await again(ada, failed["id"])
    assert opened["conversation"]["id"] == conversation


async def test_edits_take_room_like_any_turn(ada, upstream):
    conversation, _ = await talked(ada, upstream, 1)
    go_on = asyncio.Event()
    upstream.plays((Hold(go_on), Say("Done."), Finish()), model="alpha")
    path, body = (
        f"/api/conversations/{conversation}/rounds/1/edit",
        {"text": "?", "voices": [{"model": "voices:alpha"}]},
    )
    opened = [await ada.post(path, body | {"id": new_id()}, 202) for _ in range(8)]
    await ada.post(path, body | {"id": new_id()}, expect=429)
    await ada.delete(f"/api/conversations/{conversation}")  # takes the branches, and stops what they say
    for one in opened:
        await ada.get(f"/api/turns/{one['turn']['id']}", 404)
    go_on.set()


async def test_a_branch_at_a_round_that_is_being_answered_waits_for_its_replies(ada, upstream):
    go_on = asyncio.Event()
    upstream.plays((Say("Alpha "), Hold(go_on), Say("says canary1alpha."), Finish()), model="alpha")
    upstream.says("Beta says canary1beta.", model="beta")
    opened = await ada.ask("Question canary1asked?", *MODELS)
    conversation = opened["conversation"]["id"]
    await said(ada, opened["turn"]["id"], "Alpha ")
    made = await branch(ada, conversation, 1)
    async with ada.live() as tab:  # Beta has spoken: who goes on from that alone need not wait
        beta = (await heard(tab, f"conversation:{conversation}", is_reply))["id"]
    alone = await branch(ada, conversation, 1, message_id=beta)
    await ada.hear("And now?", "beta", conversation_id=alone["id"])
    assert canaries(upstream.last) == {"1asked", "1beta"}
    waiting = await ada.ask("And now?", "beta", conversation_id=made["id"])
    assert waiting["turn"]["state"] == "queued"
    refused = await bring_back(ada, made["id"], expect=409)
    assert refused["message"].startswith("This branch is being answered.")
    go_on.set()
    await ada.ended(waiting["turn"]["id"])
    assert canaries(upstream.last) == {"1asked", "1alpha", "1beta"}


# ── replying and quoting


async def test_any_message_of_the_line_can_be_replied_to(ada, upstream):
    conversation, replies = await talked(ada, upstream)
    made = await branch(ada, conversation, 2)
    where = {"conversation_id": made["id"]}
    await ada.hear("You said?", "alpha", reply_to_id=replies[0][1]["id"], **where)
    assert '[Replying to Beta: "Beta says canary1beta."]\n\nYou said?' in shown(upstream.last)
    later = replies[2][0]["id"]
    await ada.ask("Really?", "alpha", expect=409, reply_to_id=later, **where)


async def test_quoted_words_are_shown_to_the_models_and_kept_beside_the_question(ada, upstream):
    conversation, replies = await talked(ada, upstream)
    quotes = [
        {"message_id": replies[0][1]["id"], "text": "says canary1beta"},
        {"message_id": replies[1][0]["id"], "text": "Alpha says"},
    ]
    [reply] = await ada.hear("Both?", "alpha", conversation_id=conversation, quotes=quotes)
    assert shown(upstream.last).endswith(
        '[Quoting Beta: "says canary1beta"]\n\n[Quoting Alpha: "Alpha says"]\n\nBoth?'
    )
    question = (await rounds(ada, conversation))[-1]["messages"][0]
    assert (question["content"], question["quotes"]) == ("Both?", quotes)
    receipt = await ada.get(f"/api/messages/{reply['id']}/receipt")
    assert [s["source_id"] for s in receipt["segments"] if s["reason"] == "quoted"] == [
        quote["message_id"] for quote in quotes
    ]


async def test_what_a_question_was_about_is_known_in_every_later_round_in_the_same_bytes(ada, upstream):
    conversation, [[_, beta]] = await talked(ada, upstream, 1)
    here = {"conversation_id": conversation}
    quotes = [{"message_id": beta["id"], "text": "says canary1beta"}]
    await ada.hear("You said?", "alpha", reply_to_id=beta["id"], quotes=quotes, **here)
    marks = '[Replying to Beta: "Beta says canary1beta."]\n\n[Quoting Beta: "says canary1beta"]\n\nYou said?'
    assert shown(upstream.last).endswith(marks)
    made = await branch(ada, conversation, 2)
    for where in (here, here, {"conversation_id": made["id"]}):
        [reply] = await ada.hear("And so?", "alpha", **where)
        assert marks in shown(upstream.last)
        assert shown(upstream.last).endswith("And so?")
    receipt = await ada.get(f"/api/messages/{reply['id']}/receipt")
    told = [s for s in receipt["segments"] if s["reason"] in ("replied_to", "quoted")]
    assert [(s["layer"], s["round_number"], s["source_id"]) for s in told] == [("rounds", 2, beta["id"])] * 2
    await ada.delete(f"/api/messages/{beta['id']}")
    receipt = await ada.get(f"/api/messages/{reply['id']}/receipt")
    assert "canary1beta" not in str(receipt), "deleted is deleted, also where it was referred to"


async def test_only_words_that_were_said_in_this_line_can_be_quoted(ada, upstream):
    conversation, replies = await talked(ada, upstream)
    made = await branch(ada, conversation, 1)
    for sent, expect in (
        ({"message_id": replies[0][0]["id"], "text": "what nobody said"}, 422),
        ({"message_id": replies[0][0]["id"], "text": "   "}, 422),
        ({"message_id": replies[2][0]["id"], "text": "Alpha says"}, 409),
        ({"message_id": new_id(), "text": "Alpha says"}, 404),
    ):
        await ada.ask("Hm?", "alpha", expect=expect, conversation_id=made["id"], quotes=[sent])
    fine = {"message_id": replies[0][0]["id"], "text": "Alpha says"}
    await ada.ask("Hm?", "alpha", expect=422, conversation_id=made["id"], quotes=[fine] * 11)
    assert upstream.requests == []


async def test_an_estimate_counts_what_is_quoted(ada, upstream):
    conversation, replies = await talked(ada, upstream, 1)
    body = {"text": "Hm?", "voices": [{"model": "voices:alpha"}], "conversation_id": conversation}
    quotes = [{"message_id": replies[0][0]["id"], "text": "Alpha says canary1alpha."}]
    plain, quoted = [
        (await ada.post("/api/estimate", body | more))["items"][0]["input_tokens"]
        for more in ({}, {"quotes": quotes})
    ]
    assert quoted > plain
    elsewhere = {k: v for k, v in body.items() if k != "conversation_id"} | {"project_id": ada.home}
    await ada.post("/api/estimate", elsewhere | {"quotes": quotes}, 409)


# ── deleting


async def test_a_deleted_message_is_gone_from_every_branch_at_once(ada, upstream):
    conversation, replies = await talked(ada, upstream)
    made = await branch(ada, conversation, 2)
    path = f"/api/messages/{replies[1][1]['id']}"
    assert await ada.get(f"{path}/removal") == {"rounds": 0, "replies": 1, "branches": 1}
    async with ada.live() as tab:
        await tab.follow(f"conversation:{made['id']}")
        await ada.delete(path)
        item = (await tab.until(lambda item: item["type"] == "event"))[-1]
        assert (item["kind"], item["noun"], item["id"]) == ("removed", "message", replies[1][1]["id"])
    await ada.hear("And now?", "alpha", conversation_id=made["id"])
    assert "canary2beta" not in shown(upstream.last)
    assert "canary2alpha" in shown(upstream.last)
    await ada.delete(path, 404)


async def test_a_deleted_question_takes_its_round_and_no_number(ada, upstream):
    conversation, replies = await talked(ada, upstream)
    question = (await rounds(ada, conversation))[1]["messages"][0]
    assert await ada.get(f"/api/messages/{question['id']}/removal") == {
        "rounds": 1,
        "replies": 2,
        "branches": 0,
    }
    await ada.delete(f"/api/messages/{question['id']}")
    assert [round_["number"] for round_ in await rounds(ada, conversation)] == [1, 3]
    await ada.hear("And now?", "alpha", conversation_id=conversation)
    assert canaries(upstream.last) == {f"{n}{who}" for n in (1, 3) for who in ("asked", "alpha", "beta")}
    assert "not shown here" not in shown(upstream.last)


async def test_what_replies_to_a_deleted_message_can_still_be_answered(ada, upstream):
    conversation, replies = await talked(ada, upstream, 1)
    quotes = [{"message_id": replies[0][1]["id"], "text": "canary1beta"}]
    [reply] = await ada.hear(
        "You said?", "alpha", conversation_id=conversation, reply_to_id=replies[0][1]["id"], quotes=quotes
    )
    await ada.delete(f"/api/messages/{replies[0][1]['id']}")
    await again(ada, reply["id"])
    assert shown(upstream.last).endswith('[Quoting: "canary1beta"]\n\nYou said?')


async def test_a_round_that_is_being_answered_is_not_deleted_under_its_voices(ada, upstream):
    go_on = asyncio.Event()
    upstream.plays((Say("One "), Hold(go_on), Say("two."), Finish()))
    opened = await ada.ask("Count", "alpha")
    await ada.delete(f"/api/messages/{opened['message']['id']}", expect=409)
    go_on.set()
    await ada.ended(opened["turn"]["id"])
    await ada.delete(f"/api/messages/{opened['message']['id']}")


async def test_a_deleted_message_is_not_found_any_more(ada, upstream):
    """Nor is what stood beside it, by its words."""
    conversation, replies = await talked(ada, upstream, 2)
    search = f"/api/projects/{ada.home}/search"
    await at_rest(ada.world.tertulia)
    assert (await ada.post(search, {"query": "canary1beta"}))["hits"]
    await ada.delete(f"/api/messages/{replies[0][1]['id']}")
    await at_rest(ada.world.tertulia)
    assert (await ada.post(search, {"query": "canary1beta"}))["hits"] == []
    assert (await ada.post(search, {"query": "canary1alpha"}))["hits"]


async def test_what_a_branch_takes_with_it_is_said_before(ada, upstream):
    conversation, _ = await talked(ada, upstream, 2)
    edited = await edit(ada, conversation, 2, "Differently?")
    taken = await ada.get(f"/api/conversations/{conversation}/removal")
    assert (taken["conversations"], taken["rounds"], taken["replies"]) == (2, 3, 5)
    taken = await ada.get(f"/api/conversations/{edited['conversation']['id']}/removal")
    assert (taken["conversations"], taken["rounds"], taken["replies"]) == (1, 1, 1)


# ── comparing and coming back


async def test_two_branches_are_laid_side_by_side(ada, upstream):
    conversation, _ = await talked(ada, upstream)
    edited = await edit(ada, conversation, 2, "Differently?")
    path = f"/api/conversations/{conversation}/compare/{edited['conversation']['id']}"
    compared = await ada.get(path)
    assert (compared["common_rounds"], compared["left"]["rounds"], compared["right"]["rounds"]) == (1, 2, 1)
    assert [(row["number"], row["right"] is None) for row in compared["rounds"]] == [(2, False), (3, True)]
    [other] = await ada.hear("Elsewhere", "alpha")
    await ada.get(f"/api/conversations/{conversation}/compare/{other['conversation_id']}", 409)


async def bring_back(person: Person, conversation_id: str, expect: int = 202) -> Any:
    body = {"id": new_id(), "voice": {"model": "voices:beta"}}
    opened = await person.post(f"/api/conversations/{conversation_id}/bring-back", body, expect)
    if expect == 202:
        await person.ended(opened["turn"]["id"])
    return opened


async def test_a_branch_comes_back_as_one_message(ada, upstream):
    conversation, _ = await talked(ada, upstream, 2)
    made = await branch(ada, conversation, 1, title="Another way")
    upstream.says("We would take the train.", model="alpha")
    await ada.hear("How else could we go?", "alpha", conversation_id=made["id"])
    upstream.says("They settled on the train.", model="beta")
    opened = await bring_back(ada, made["id"])
    assert (opened["conversation"]["id"], opened["turn"]["round_number"]) == (conversation, 3)
    assert opened["message"]["brings_id"] == made["id"]
    assert opened["message"]["content"] == 'Summary of branch "Another way".'
    [reply] = await ada.replies(conversation, 3)
    assert (reply["step"], reply["content"]) == ("summary", "They settled on the train.")
    read = shown(upstream.last)
    assert "[User, round 2 of the branch]: How else could we go?\n\n[Alpha]: We would take the train." in read
    assert canaries(upstream.last) == {f"{n}{who}" for n in (1, 2) for who in ("asked", "alpha", "beta")}
    upstream.says("They took the train, in short.", model="beta")
    await again(ada, reply["id"])
    assert "We would take the train." in shown(upstream.last)
    await ada.hear("So?", "alpha", conversation_id=conversation)
    assert "[Beta]: They took the train, in short." in shown(upstream.last)
    assert "We would take the train." not in shown(upstream.last)


async def test_a_branch_that_is_deleted_leaves_the_receipt_of_what_was_brought_back(ada, upstream):
    conversation, _ = await talked(ada, upstream, 1)
    made = await branch(ada, conversation, 1, title="Another way")
    upstream.says("The code is marigold.", model="alpha")
    await ada.hear("Is it saffron?", "alpha", conversation_id=made["id"])
    await bring_back(ada, made["id"])
    [told] = await ada.replies(conversation, 2)
    path = f"/api/messages/{told['id']}/receipt"
    assert "saffron" in str(await ada.get(path))
    await ada.delete(f"/api/conversations/{made['id']}")
    receipt = str(await ada.get(path))
    assert "saffron" not in receipt
    assert "marigold" not in receipt
    refused = await again(ada, told["id"], expect=409)
    assert refused["message"].startswith("The branch that was summarised here is deleted")


async def test_what_is_deleted_in_a_branch_leaves_the_receipt_of_what_was_brought_back(ada, upstream):
    conversation, _ = await talked(ada, upstream, 1)
    made = await branch(ada, conversation, 1)
    upstream.says("The code is marigold.", model="alpha")
    [said] = await ada.hear("What is the code?", "alpha", conversation_id=made["id"])
    await bring_back(ada, made["id"])
    [told] = await ada.replies(conversation, 2)
    path = f"/api/messages/{told['id']}/receipt"
    assert "marigold" in str(await ada.get(path))
    await ada.delete(f"/api/messages/{said['id']}")
    receipt = await ada.get(path)
    assert "marigold" not in str(receipt)
    assert "What is the code?" in str(receipt)


async def test_a_branch_with_hidden_names_comes_back_after_the_vote(ada, upstream):
    conversation, _ = await talked(ada, upstream, 1)
    made = await branch(ada, conversation, 1)
    here = {"conversation_id": made["id"], "is_blind": True}
    [reply, _] = await ada.hear("Who is right?", *MODELS, **here)
    refused = await bring_back(ada, made["id"], expect=409)
    assert refused["message"].startswith("In round 2 of this branch the names are hidden")
    await ada.post(f"/api/messages/{reply['id']}/vote", {"verdict": "best"})
    await bring_back(ada, made["id"])
    [told] = await ada.replies(conversation, 2)
    await ada.hear("And who now?", *MODELS, **here)
    await again(ada, told["id"])
    assert "[Voice A]: Noted." in shown(upstream.last), "what became blind since is told of without names"
    assert "[Alpha]: Noted." in shown(upstream.last)


async def test_only_a_branch_with_something_to_tell_comes_back(ada, upstream):
    conversation, _ = await talked(ada, upstream, 1)
    await bring_back(ada, conversation, expect=409)
    made = await branch(ada, conversation, 1)
    await bring_back(ada, made["id"], expect=409)
    assert len(await rounds(ada, conversation)) == 1
