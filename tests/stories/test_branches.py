"""Editing a question or regenerating a reply opens a branch, which inherits only its own lineage."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tertulia.app import new_id
from tertulia.core.jobs import IndexRounds
from tertulia.engine.jobs.index_round import index_rounds
from tests.server.cast import at_rest
from tests.stories.waiting import is_reply, settled_title, stored_rounds, wait_for_item, wait_for_text
from tests.upstream.scripted import Finish, Hold, RecordedRequest, Say, refuses, says
from tests.world import Person

MODELS = ("alpha", "beta")


async def conversation_with_canaries(
    person: Person, upstream, count: int = 3
) -> tuple[str, list[list[dict[str, Any]]]]:
    """A conversation in which every message contains a unique word, and the replies of each round."""
    replies: list[list[dict[str, Any]]] = []
    conversation: dict[str, str] = {}
    for number in range(1, count + 1):
        for model in MODELS:
            upstream.says(f"{model.title()} says canary{number}{model}.", model=model)
        replies.append(await person.ask_and_wait(f"Question canary{number}asked?", *MODELS, **conversation))
        conversation = {"conversation_id": replies[0][0]["conversation_id"]}
    for model in MODELS:
        upstream.says("Noted.", model=model)
    upstream.requests.clear()
    return conversation["conversation_id"], replies


async def create_branch(
    person: Person, conversation_id: str, at_round: int, expect: int = 201, **more: Any
) -> Any:
    body = {"at_round": at_round} | more
    return await person.post(f"/api/conversations/{conversation_id}/branches", body, expect)


async def edit_question(
    person: Person, conversation_id: str, number: int, text: str, expect: int = 202, **more: Any
):
    body = {"id": new_id(), "text": text, "voices": [{"model": "voices:alpha"}], "mode": "quick"} | more
    opened = await person.post(f"/api/conversations/{conversation_id}/rounds/{number}/edit", body, expect)
    if expect == 202:
        await person.wait_for_end(opened["turn"]["id"])
    return opened


async def retry(person: Person, message_id: str, expect: int = 202, **more: Any) -> Any:
    opened = await person.post(f"/api/messages/{message_id}/retry", {"id": new_id()} | more, expect)
    if expect == 202:
        await person.wait_for_end(opened["turn"]["id"])
    return opened


async def questions(person: Person, conversation_id: str) -> list[str]:
    return [round_["messages"][0]["content"] for round_ in await stored_rounds(person, conversation_id)]


def prompt_text(request: RecordedRequest) -> str:
    return "\n".join(message["content"] for message in request.body["messages"])


def canaries(request: RecordedRequest) -> set[str]:
    words = prompt_text(request).replace(".", " ").replace("?", " ").split()
    return {word.removeprefix("canary") for word in words if word.startswith("canary")}


# ── branching


async def test_a_branch_at_a_round_inherits_the_rounds_up_to_it_and_no_later_ones(ada, upstream):
    conversation, _ = await conversation_with_canaries(ada, upstream)
    branch = await create_branch(ada, conversation, 2, title="Another way")
    assert (branch["parent_id"], branch["branch_round"], branch["title"]) == (conversation, 2, "Another way")
    await ada.ask_and_wait("And now?", "alpha", conversation_id=branch["id"])
    assert canaries(upstream.last) == {f"{n}{who}" for n in (1, 2) for who in ("asked", "alpha", "beta")}
    assert await questions(ada, conversation) == [f"Question canary{n}asked?" for n in (1, 2, 3)]
    await ada.ask_and_wait("And here?", "alpha", conversation_id=conversation)
    assert "And now?" not in prompt_text(upstream.last)


async def test_a_branch_at_a_reply_inherits_only_that_reply_of_the_round(ada, upstream):
    conversation, replies = await conversation_with_canaries(ada, upstream)
    branch = await create_branch(ada, conversation, 2, message_id=replies[1][1]["id"])
    await ada.ask_and_wait("And now?", "alpha", conversation_id=branch["id"])
    assert canaries(upstream.last) == {"1asked", "1alpha", "1beta", "2asked", "2beta"}


async def test_a_branch_of_a_branch_inherits_only_its_own_lineage(ada, upstream):
    """Each branch continues from one reply; later messages of its parent stay in the parent."""
    conversation, lineage = None, set()
    for depth in range(1, 7):
        target = {"conversation_id": conversation} if conversation else {}
        for model in MODELS:
            upstream.says(f"canary{depth}{model}", model=model)
        replies = await ada.ask_and_wait(f"canary{depth}asked", *MODELS, **target)
        inherited = [canaries(request) - {f"{depth}asked"} for request in upstream.requests[-2:]]
        assert inherited == [lineage, lineage]
        parent = replies[0]["conversation_id"]
        chosen = replies[depth % 2]
        branch = await create_branch(ada, parent, depth, message_id=chosen["id"])
        assert branch["parent_id"] == parent
        await ada.ask_and_wait(f"canary{depth}after", "alpha", conversation_id=parent)
        conversation = branch["id"]
        lineage |= {f"{depth}asked", f"{depth}{MODELS[depth % 2]}"}
    tree = await ada.get(f"/api/conversations/{conversation}/tree")
    assert [len(node["rounds"]) for node in tree["nodes"]] == [2, 2, 2, 2, 2, 2, 0]


async def test_sending_a_branch_request_twice_creates_one_branch(ada, upstream):
    conversation, _ = await conversation_with_canaries(ada, upstream, 1)
    branch_id = new_id()
    first, second = [await create_branch(ada, conversation, 1, id=branch_id) for _ in range(2)]
    assert first == second
    await create_branch(ada, conversation, 0, expect=409, id=branch_id)
    await create_branch(ada, conversation, 2, expect=422)


async def test_a_branch_gets_its_title_from_its_own_first_question(ada, upstream):
    conversation, _ = await conversation_with_canaries(ada, upstream, 1)
    branch = await create_branch(ada, conversation, 1)
    await ada.ask_and_wait("What would it cost?", "alpha", conversation_id=branch["id"])
    assert await settled_title(ada, branch["id"]) == "What would it cost?"


async def test_retrieval_of_old_rounds_searches_the_lineage_and_no_other_branch(ada, upstream):
    upstream.says("The lighthouse password is marigold.", model="alpha")
    (first,) = await ada.ask_and_wait("Which password has the lighthouse?", "alpha")
    conversation = first["conversation_id"]
    upstream.says("Hemlock is the password of the lighthouse: the password, lighthouse.", model="alpha")
    edits = [
        await edit_question(ada, conversation, 1, "Which password of the lighthouse?") for _ in range(16)
    ]
    upstream.says("Noted.", model="alpha")
    branch = await create_branch(ada, conversation, 1)
    for number in range(18):
        await ada.ask_and_wait(f"Remark {number} on the weather.", "alpha", conversation_id=branch["id"])
    for id in (conversation, *(edit["conversation"]["id"] for edit in edits)):
        await index_rounds(ada.world.tertulia.dependencies, IndexRounds.single(id, 1))
    await ada.ask_and_wait("Which password was it, of the lighthouse?", "alpha", conversation_id=branch["id"])
    assert "marigold" in prompt_text(upstream.last)
    assert "Hemlock" not in prompt_text(upstream.last)


# ── editing a question


@pytest.mark.parametrize("number", [1, 3])
async def test_editing_a_question_opens_a_sibling_branch(ada, upstream, number):
    conversation, _ = await conversation_with_canaries(ada, upstream)
    opened = await edit_question(ada, conversation, number, "Asked differently?")
    branch = opened["conversation"]
    assert (branch["parent_id"], branch["branch_round"]) == (conversation, number - 1)
    assert opened["turn"]["round_number"] == number
    inherited = {f"{n}{who}" for n in range(1, number) for who in ("asked", "alpha", "beta")}
    assert canaries(upstream.last) == inherited
    assert len(await stored_rounds(ada, conversation)) == 3
    for index, id in enumerate((conversation, branch["id"])):
        tree = await ada.get(f"/api/conversations/{id}/tree")
        ids = [conversation, branch["id"]]
        assert tree["siblings"] == [{"round_number": number, "conversation_ids": ids, "index": index}]
        assert [node["conversation"]["id"] for node in tree["nodes"]] == ids


async def test_editing_an_edited_question_adds_a_third_version(ada, upstream):
    conversation, _ = await conversation_with_canaries(ada, upstream, 2)
    second = (await edit_question(ada, conversation, 2, "Differently?"))["conversation"]["id"]
    third = (await edit_question(ada, second, 2, "Once more?"))["conversation"]["id"]
    tree = await ada.get(f"/api/conversations/{third}/tree")
    assert [siblings["conversation_ids"] for siblings in tree["siblings"]] == [[conversation, second, third]]
    assert "Differently?" not in prompt_text(upstream.last)
    await ada.delete(f"/api/conversations/{second}")
    await ada.get(f"/api/conversations/{third}")


async def test_sending_an_edit_twice_creates_one_branch_and_one_turn(ada, upstream):
    conversation, _ = await conversation_with_canaries(ada, upstream, 1)
    same = {"id": new_id(), "branch_id": new_id()}
    first, second = [await edit_question(ada, conversation, 1, "Again?", **same) for _ in range(2)]
    assert first["conversation"]["id"] == second["conversation"]["id"] == same["branch_id"]
    assert len(upstream.requests) == 1
    assert len((await ada.get(f"/api/conversations/{conversation}/tree"))["nodes"]) == 2
    await edit_question(ada, conversation, 1, "Something else?", expect=409, **same)


async def test_editing_a_missing_round_answers_404(ada, upstream):
    conversation, _ = await conversation_with_canaries(ada, upstream, 1)
    await edit_question(ada, conversation, 2, "Hm?", expect=404)
    assert len((await ada.get(f"/api/conversations/{conversation}/tree"))["nodes"]) == 1


# ── regenerating a reply


async def test_regenerating_a_reply_of_an_earlier_round_opens_a_branch(ada, upstream):
    conversation, replies = await conversation_with_canaries(ada, upstream)
    upstream.says("A shorter answer.", model="alpha")
    branch_id = new_id()
    opened = await retry(ada, replies[1][0]["id"], style="concise", branch_id=branch_id)
    assert (opened["conversation"]["id"], opened["turn"]["round_number"]) == (branch_id, 2)
    assert opened["turn"]["style"] == "concise"
    assert "more briefly" in prompt_text(upstream.last)
    assert canaries(upstream.last) == {"1asked", "1alpha", "1beta", "2asked"}
    first, second = await stored_rounds(ada, branch_id)
    assert len(first["messages"]) == 3
    version = next(m for m in second["messages"] if m["conversation_id"] == branch_id)
    assert (version["replaces_id"], version["content"]) == (replies[1][0]["id"], "A shorter answer.")
    assert len((await stored_rounds(ada, conversation))[1]["messages"]) == 3
    tree = await ada.get(f"/api/conversations/{branch_id}/tree")
    assert [(versions["conversation_ids"], versions["index"]) for versions in tree["versions"]] == [
        ([conversation, branch_id], 1)
    ]
    await ada.ask_and_wait("And then?", "beta", conversation_id=branch_id)
    assert "A shorter answer." in prompt_text(upstream.last)
    assert "canary2alpha" not in prompt_text(upstream.last)


async def test_regenerating_a_reply_of_the_last_round_stays_in_the_conversation(ada, upstream):
    conversation, replies = await conversation_with_canaries(ada, upstream, 2)
    opened = await retry(ada, replies[1][0]["id"])
    assert opened["conversation"]["id"] == conversation


async def test_the_branch_point_is_the_last_round_of_an_empty_branch(ada, upstream):
    conversation, replies = await conversation_with_canaries(ada, upstream)
    branch = await create_branch(ada, conversation, 2)
    opened = await retry(ada, replies[1][0]["id"], conversation_id=branch["id"])
    assert opened["conversation"]["id"] == branch["id"]
    assert len((await stored_rounds(ada, conversation))[1]["messages"]) == 3
    earlier_branch = await create_branch(ada, conversation, 1)
    await retry(ada, replies[1][0]["id"], expect=409, conversation_id=earlier_branch["id"])


async def test_a_new_version_in_the_parent_opens_a_branch_when_a_branch_has_its_own_version(ada, upstream):
    """The branch inherits the round, so it would show two versions of one reply."""
    conversation, replies = await conversation_with_canaries(ada, upstream, 1)
    branch = await create_branch(ada, conversation, 1)
    upstream.says("The branch's own.", model="alpha")
    await retry(ada, replies[0][0]["id"], conversation_id=branch["id"])
    second = await retry(ada, replies[0][0]["id"])
    assert second["conversation"]["id"] not in (conversation, branch["id"])
    [round_] = await stored_rounds(ada, branch["id"])
    assert [m["content"] for m in round_["messages"] if m["replaces_id"]] == ["The branch's own."]
    empty_branch = await create_branch(ada, conversation, 1)
    third = await retry(ada, replies[0][0]["id"], conversation_id=empty_branch["id"])
    assert third["conversation"]["id"] == empty_branch["id"]


async def test_retrying_a_failed_reply_of_an_earlier_round_stays_in_the_conversation(ada, upstream):
    upstream.plays(refuses(401), says("Fine."), model="alpha")
    [failed] = await ada.ask_and_wait("Hello?", "alpha")
    conversation = failed["conversation_id"]
    await ada.ask_and_wait("Go on", "alpha", conversation_id=conversation)
    opened = await retry(ada, failed["id"])
    assert opened["conversation"]["id"] == conversation


async def test_edits_count_towards_the_limit_of_running_turns(ada, upstream):
    conversation, _ = await conversation_with_canaries(ada, upstream, 1)
    release = asyncio.Event()
    upstream.plays((Hold(release), Say("Done."), Finish()), model="alpha")
    path, body = (
        f"/api/conversations/{conversation}/rounds/1/edit",
        {"text": "?", "voices": [{"model": "voices:alpha"}]},
    )
    edits = [await ada.post(path, body | {"id": new_id()}, 202) for _ in range(8)]
    await ada.post(path, body | {"id": new_id()}, expect=429)
    await ada.delete(
        f"/api/conversations/{conversation}"
    )  # deletes the branches too, and stops their replies
    for edit in edits:
        await ada.get(f"/api/turns/{edit['turn']['id']}", 404)
    release.set()


async def test_a_branch_at_a_running_round_queues_until_the_round_is_over(ada, upstream):
    release = asyncio.Event()
    upstream.plays((Say("Alpha "), Hold(release), Say("says canary1alpha."), Finish()), model="alpha")
    upstream.says("Beta says canary1beta.", model="beta")
    opened = await ada.ask("Question canary1asked?", *MODELS)
    conversation = opened["conversation"]["id"]
    await wait_for_text(ada, opened["turn"]["id"], "Alpha ")
    branch = await create_branch(ada, conversation, 1)
    async with ada.live() as tab:  # Beta has finished: a branch from its reply need not wait
        beta_id = (await wait_for_item(tab, f"conversation:{conversation}", is_reply))["id"]
    beta_branch = await create_branch(ada, conversation, 1, message_id=beta_id)
    await ada.ask_and_wait("And now?", "beta", conversation_id=beta_branch["id"])
    assert canaries(upstream.last) == {"1asked", "1beta"}
    waiting = await ada.ask("And now?", "beta", conversation_id=branch["id"])
    assert waiting["turn"]["state"] == "queued"
    refused = await summarise_branch(ada, branch["id"], expect=409)
    assert refused["message"].startswith("This branch is being answered.")
    release.set()
    await ada.wait_for_end(waiting["turn"]["id"])
    assert canaries(upstream.last) == {"1asked", "1alpha", "1beta"}


# ── replying and quoting


async def test_any_message_of_the_lineage_can_be_replied_to(ada, upstream):
    conversation, replies = await conversation_with_canaries(ada, upstream)
    branch = await create_branch(ada, conversation, 2)
    where = {"conversation_id": branch["id"]}
    await ada.ask_and_wait("You said?", "alpha", reply_to_id=replies[0][1]["id"], **where)
    assert '[Replying to Beta: "Beta says canary1beta."]\n\nYou said?' in prompt_text(upstream.last)
    later = replies[2][0]["id"]
    await ada.ask("Really?", "alpha", expect=409, reply_to_id=later, **where)


async def test_quotes_are_in_the_prompt_and_stored_with_the_question(ada, upstream):
    conversation, replies = await conversation_with_canaries(ada, upstream)
    quotes = [
        {"message_id": replies[0][1]["id"], "text": "says canary1beta"},
        {"message_id": replies[1][0]["id"], "text": "Alpha says"},
    ]
    [reply] = await ada.ask_and_wait("Both?", "alpha", conversation_id=conversation, quotes=quotes)
    assert prompt_text(upstream.last).endswith(
        '[Quoting Beta: "says canary1beta"]\n\n[Quoting Alpha: "Alpha says"]\n\nBoth?'
    )
    question = (await stored_rounds(ada, conversation))[-1]["messages"][0]
    assert (question["content"], question["quotes"]) == ("Both?", quotes)
    receipt = await ada.get(f"/api/messages/{reply['id']}/receipt")
    assert [s["source_id"] for s in receipt["segments"] if s["reason"] == "quoted"] == [
        quote["message_id"] for quote in quotes
    ]


async def test_later_prompts_repeat_the_references_of_a_question_byte_for_byte(ada, upstream):
    conversation, [[_, beta]] = await conversation_with_canaries(ada, upstream, 1)
    source = {"conversation_id": conversation}
    quotes = [{"message_id": beta["id"], "text": "says canary1beta"}]
    await ada.ask_and_wait("You said?", "alpha", reply_to_id=beta["id"], quotes=quotes, **source)
    reference_text = (
        '[Replying to Beta: "Beta says canary1beta."]\n\n[Quoting Beta: "says canary1beta"]\n\nYou said?'
    )
    assert prompt_text(upstream.last).endswith(reference_text)
    branch = await create_branch(ada, conversation, 2)
    for target in (source, source, {"conversation_id": branch["id"]}):
        [reply] = await ada.ask_and_wait("And so?", "alpha", **target)
        assert reference_text in prompt_text(upstream.last)
        assert prompt_text(upstream.last).endswith("And so?")
    receipt = await ada.get(f"/api/messages/{reply['id']}/receipt")
    references = [s for s in receipt["segments"] if s["reason"] in ("replied_to", "quoted")]
    assert [(s["layer"], s["round_number"], s["source_id"]) for s in references] == [
        ("rounds", 2, beta["id"])
    ] * 2
    await ada.delete(f"/api/messages/{beta['id']}")
    receipt = await ada.get(f"/api/messages/{reply['id']}/receipt")
    assert "canary1beta" not in str(receipt), "a deleted message is redacted even where it was referred to"


async def test_a_quote_must_be_text_of_a_message_in_the_lineage(ada, upstream):
    conversation, replies = await conversation_with_canaries(ada, upstream)
    branch = await create_branch(ada, conversation, 1)
    for quote, expect in (
        ({"message_id": replies[0][0]["id"], "text": "what nobody said"}, 422),
        ({"message_id": replies[0][0]["id"], "text": "   "}, 422),
        ({"message_id": replies[2][0]["id"], "text": "Alpha says"}, 409),
        ({"message_id": new_id(), "text": "Alpha says"}, 404),
    ):
        await ada.ask("Hm?", "alpha", expect=expect, conversation_id=branch["id"], quotes=[quote])
    valid_quote = {"message_id": replies[0][0]["id"], "text": "Alpha says"}
    await ada.ask("Hm?", "alpha", expect=422, conversation_id=branch["id"], quotes=[valid_quote] * 11)
    assert upstream.requests == []


async def test_an_estimate_counts_the_tokens_of_quotes(ada, upstream):
    conversation, replies = await conversation_with_canaries(ada, upstream, 1)
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


async def test_deleting_a_message_removes_it_from_every_branch(ada, upstream):
    conversation, replies = await conversation_with_canaries(ada, upstream)
    branch = await create_branch(ada, conversation, 2)
    path = f"/api/messages/{replies[1][1]['id']}"
    assert await ada.get(f"{path}/removal") == {"rounds": 0, "replies": 1, "branches": 1}
    async with ada.live() as tab:
        await tab.follow(f"conversation:{branch['id']}")
        await ada.delete(path)
        item = (await tab.until(lambda item: item["type"] == "event"))[-1]
        assert (item["kind"], item["noun"], item["id"]) == ("removed", "message", replies[1][1]["id"])
    await ada.ask_and_wait("And now?", "alpha", conversation_id=branch["id"])
    assert "canary2beta" not in prompt_text(upstream.last)
    assert "canary2alpha" in prompt_text(upstream.last)
    await ada.delete(path, 404)


async def test_deleting_a_question_deletes_its_round_and_keeps_the_other_round_numbers(ada, upstream):
    conversation, replies = await conversation_with_canaries(ada, upstream)
    question = (await stored_rounds(ada, conversation))[1]["messages"][0]
    assert await ada.get(f"/api/messages/{question['id']}/removal") == {
        "rounds": 1,
        "replies": 2,
        "branches": 0,
    }
    await ada.delete(f"/api/messages/{question['id']}")
    assert [round_["number"] for round_ in await stored_rounds(ada, conversation)] == [1, 3]
    await ada.ask_and_wait("And now?", "alpha", conversation_id=conversation)
    assert canaries(upstream.last) == {f"{n}{who}" for n in (1, 3) for who in ("asked", "alpha", "beta")}
    assert "not shown here" not in prompt_text(upstream.last)


async def test_a_question_that_quotes_a_deleted_message_can_still_be_retried(ada, upstream):
    conversation, replies = await conversation_with_canaries(ada, upstream, 1)
    quotes = [{"message_id": replies[0][1]["id"], "text": "canary1beta"}]
    [reply] = await ada.ask_and_wait(
        "You said?", "alpha", conversation_id=conversation, reply_to_id=replies[0][1]["id"], quotes=quotes
    )
    await ada.delete(f"/api/messages/{replies[0][1]['id']}")
    await retry(ada, reply["id"])
    assert prompt_text(upstream.last).endswith('[Quoting: "canary1beta"]\n\nYou said?')


async def test_deleting_a_running_round_is_refused(ada, upstream):
    release = asyncio.Event()
    upstream.plays((Say("One "), Hold(release), Say("two."), Finish()))
    opened = await ada.ask("Count", "alpha")
    await ada.delete(f"/api/messages/{opened['message']['id']}", expect=409)
    release.set()
    await ada.wait_for_end(opened["turn"]["id"])
    await ada.delete(f"/api/messages/{opened['message']['id']}")


async def test_search_does_not_find_a_deleted_message(ada, upstream):
    """Other messages of the round are still found, but not by the deleted words."""
    conversation, replies = await conversation_with_canaries(ada, upstream, 2)
    search = f"/api/projects/{ada.home}/search"
    await at_rest(ada.world.tertulia)
    assert (await ada.post(search, {"query": "canary1beta"}))["hits"]
    await ada.delete(f"/api/messages/{replies[0][1]['id']}")
    await at_rest(ada.world.tertulia)
    assert (await ada.post(search, {"query": "canary1beta"}))["hits"] == []
    assert (await ada.post(search, {"query": "canary1alpha"}))["hits"]


async def test_the_removal_preview_counts_the_branches_rounds_and_replies(ada, upstream):
    conversation, _ = await conversation_with_canaries(ada, upstream, 2)
    edited = await edit_question(ada, conversation, 2, "Differently?")
    preview = await ada.get(f"/api/conversations/{conversation}/removal")
    assert (preview["conversations"], preview["rounds"], preview["replies"]) == (2, 3, 5)
    preview = await ada.get(f"/api/conversations/{edited['conversation']['id']}/removal")
    assert (preview["conversations"], preview["rounds"], preview["replies"]) == (1, 1, 1)


# ── comparing and summarising branches


async def test_comparing_two_branches_lists_the_rounds_that_differ(ada, upstream):
    conversation, _ = await conversation_with_canaries(ada, upstream)
    edited = await edit_question(ada, conversation, 2, "Differently?")
    path = f"/api/conversations/{conversation}/compare/{edited['conversation']['id']}"
    comparison = await ada.get(path)
    assert (comparison["common_rounds"], comparison["left"]["rounds"], comparison["right"]["rounds"]) == (
        1,
        2,
        1,
    )
    assert [(row["number"], row["right"] is None) for row in comparison["rounds"]] == [(2, False), (3, True)]
    [unrelated] = await ada.ask_and_wait("Elsewhere", "alpha")
    await ada.get(f"/api/conversations/{conversation}/compare/{unrelated['conversation_id']}", 409)


async def summarise_branch(person: Person, conversation_id: str, expect: int = 202) -> Any:
    body = {"id": new_id(), "voice": {"model": "voices:beta"}}
    opened = await person.post(f"/api/conversations/{conversation_id}/bring-back", body, expect)
    if expect == 202:
        await person.wait_for_end(opened["turn"]["id"])
    return opened


async def test_a_branch_summary_is_added_to_the_parent_as_one_round(ada, upstream):
    conversation, _ = await conversation_with_canaries(ada, upstream, 2)
    branch = await create_branch(ada, conversation, 1, title="Another way")
    upstream.says("We would take the train.", model="alpha")
    await ada.ask_and_wait("How else could we go?", "alpha", conversation_id=branch["id"])
    upstream.says("They settled on the train.", model="beta")
    opened = await summarise_branch(ada, branch["id"])
    assert (opened["conversation"]["id"], opened["turn"]["round_number"]) == (conversation, 3)
    assert opened["message"]["brings_id"] == branch["id"]
    assert opened["message"]["content"] == 'Summary of branch "Another way".'
    [reply] = await ada.replies(conversation, 3)
    assert (reply["step"], reply["content"]) == ("summary", "They settled on the train.")
    prompt = prompt_text(upstream.last)
    assert (
        "[User, round 2 of the branch]: How else could we go?\n\n[Alpha]: We would take the train." in prompt
    )
    assert canaries(upstream.last) == {f"{n}{who}" for n in (1, 2) for who in ("asked", "alpha", "beta")}
    upstream.says("They took the train, in short.", model="beta")
    await retry(ada, reply["id"])
    assert "We would take the train." in prompt_text(upstream.last)
    await ada.ask_and_wait("So?", "alpha", conversation_id=conversation)
    assert "[Beta]: They took the train, in short." in prompt_text(upstream.last)
    assert "We would take the train." not in prompt_text(upstream.last)


async def test_deleting_a_branch_redacts_it_in_the_receipt_of_its_summary(ada, upstream):
    conversation, _ = await conversation_with_canaries(ada, upstream, 1)
    branch = await create_branch(ada, conversation, 1, title="Another way")
    upstream.says("The code is marigold.", model="alpha")
    await ada.ask_and_wait("Is it saffron?", "alpha", conversation_id=branch["id"])
    await summarise_branch(ada, branch["id"])
    [summary] = await ada.replies(conversation, 2)
    path = f"/api/messages/{summary['id']}/receipt"
    assert "saffron" in str(await ada.get(path))
    await ada.delete(f"/api/conversations/{branch['id']}")
    receipt = str(await ada.get(path))
    assert "saffron" not in receipt
    assert "marigold" not in receipt
    refused = await retry(ada, summary["id"], expect=409)
    assert refused["message"].startswith("The branch that was summarised here is deleted")


async def test_deleting_a_message_redacts_it_in_the_receipt_of_the_branch_summary(ada, upstream):
    conversation, _ = await conversation_with_canaries(ada, upstream, 1)
    branch = await create_branch(ada, conversation, 1)
    upstream.says("The code is marigold.", model="alpha")
    [reply] = await ada.ask_and_wait("What is the code?", "alpha", conversation_id=branch["id"])
    await summarise_branch(ada, branch["id"])
    [summary] = await ada.replies(conversation, 2)
    path = f"/api/messages/{summary['id']}/receipt"
    assert "marigold" in str(await ada.get(path))
    await ada.delete(f"/api/messages/{reply['id']}")
    receipt = await ada.get(path)
    assert "marigold" not in str(receipt)
    assert "What is the code?" in str(receipt)


async def test_a_branch_with_a_blind_round_is_summarised_only_after_the_vote(ada, upstream):
    conversation, _ = await conversation_with_canaries(ada, upstream, 1)
    branch = await create_branch(ada, conversation, 1)
    target = {"conversation_id": branch["id"], "is_blind": True}
    [reply, _] = await ada.ask_and_wait("Who is right?", *MODELS, **target)
    refused = await summarise_branch(ada, branch["id"], expect=409)
    assert refused["message"].startswith("In round 2 of this branch the names are hidden")
    await ada.post(f"/api/messages/{reply['id']}/vote", {"verdict": "best"})
    await summarise_branch(ada, branch["id"])
    [summary] = await ada.replies(conversation, 2)
    await ada.ask_and_wait("And who now?", *MODELS, **target)
    await retry(ada, summary["id"])
    assert "[Voice A]: Noted." in prompt_text(upstream.last), (
        "the new round is blind, so the summary gets it without names"
    )
    assert "[Alpha]: Noted." in prompt_text(upstream.last)


async def test_a_branch_summary_needs_a_branch_with_rounds_of_its_own(ada, upstream):
    conversation, _ = await conversation_with_canaries(ada, upstream, 1)
    await summarise_branch(ada, conversation, expect=409)
    branch = await create_branch(ada, conversation, 1)
    await summarise_branch(ada, branch["id"], expect=409)
    assert len(await stored_rounds(ada, conversation)) == 1
