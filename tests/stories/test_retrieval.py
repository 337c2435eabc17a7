"""Retrieval adds matching passages of files and old rounds to the prompt, and the receipt lists them."""

from __future__ import annotations

from typing import Any

from tertulia.app import new_id
from tertulia.core.jobs import IndexRounds
from tertulia.engine.jobs.index_round import index_rounds
from tests.world import Person


async def upload(person: Person, path: str, text: str) -> dict[str, Any]:
    answer = await person.client.post(
        f"/api/projects/{person.home}/files",
        params={"path": path},
        content=text.encode(),
        headers={"Content-Type": "application/octet-stream"},
    )
    assert answer.status_code == 201, answer.text
    file: dict[str, Any] = answer.json()["items"][0]
    return file


async def wait_until_indexed(person: Person, file_id: str) -> None:
    """Waits for the event that says the file is indexed."""
    place = f"project:{person.home}"
    async with person.live() as tab:
        for item in await tab.follow(place, 0):
            if is_indexed(item, file_id):
                return
        await tab.until(lambda item: is_indexed(item, file_id))


def is_indexed(item: dict[str, Any], file_id: str) -> bool:
    return item["type"] == "event" and item["id"] == file_id and item["value"]["index"]["state"] == "indexed"


def prompt_text(request: Any) -> str:
    return "\n".join(message["content"] for message in request.body["messages"])


async def receipt_of(person: Person, reply: dict[str, Any]) -> dict[str, Any]:
    receipt: dict[str, Any] = await person.get(f"/api/messages/{reply['id']}/receipt")
    return receipt


async def test_the_prompt_contains_the_file_passage_that_answers_the_question(ada, upstream):
    file = await upload(
        ada, "docs/tea.md", "# Steeping\n\nThe oolong is steeped at ninety degrees for three minutes.\n"
    )
    await wait_until_indexed(ada, file["id"])
    (reply,) = await ada.ask_and_wait("How hot should the oolong be?", "alpha")
    prompt = prompt_text(upstream.last)
    assert "From docs/tea.md [docs/tea.md:1-3]:" in prompt
    assert "ninety degrees" in prompt
    retrieved = [s for s in (await receipt_of(ada, reply))["segments"] if s["layer"] == "retrieved"]
    assert any("ninety degrees" in s["text"] and s["match"] for s in retrieved), retrieved


async def test_a_file_marked_always_is_in_every_prompt_in_full(ada, upstream):
    file = await upload(ada, "rules.md", "Answer in the voice of a pirate.")
    path = f"/api/projects/{ada.home}/files/{file['id']}/metadata"
    answer = await ada.client.patch(path, json={"always_in_context": True})
    assert answer.status_code == 200, answer.text
    request = {"text": "", "voices": [{"model": "voices:alpha"}], "project_id": ada.home}
    (estimate,) = (await ada.post("/api/estimate", request))["items"]
    (reply,) = await ada.ask_and_wait("Hello", "alpha")
    assert "The file rules.md, whole [rules.md:1-1]:\n```\nAnswer in the voice of a pirate." in prompt_text(
        upstream.last
    )
    segments = (await receipt_of(ada, reply))["segments"]
    [always_tokens] = [s["tokens"] for s in segments if s["layer"] == "always"]
    assert estimate["always_tokens"] == always_tokens > 0


async def test_a_removed_passage_is_absent_from_the_prompt_of_the_retry(ada, upstream):
    file = await upload(ada, "plan.md", "The launch is planned for the third of May, at the harbour.\n")
    await wait_until_indexed(ada, file["id"])
    (reply,) = await ada.ask_and_wait("When is the launch planned?", "alpha")
    segments = [s for s in (await receipt_of(ada, reply))["segments"] if "harbour" in s["text"]]
    retry = {"id": new_id(), "without": [segments[0]["source_id"]]}
    opened = await ada.post(f"/api/messages/{reply['id']}/retry", retry, expect=202)
    await ada.wait_for_end(opened["turn"]["id"])
    assert "harbour" not in prompt_text(upstream.last)


async def test_an_old_round_that_fits_the_question_is_in_the_prompt_in_full(ada, upstream):
    upstream.says("The password of the old lighthouse is marigold.", model="alpha")
    (first,) = await ada.ask_and_wait("What is the password of the lighthouse?", "alpha")
    conversation_id = first["conversation_id"]
    upstream.says("Noted.", model="alpha")
    for number in range(2, 20):
        await ada.ask_and_wait(
            f"Remark number {number} about the weather.", "alpha", conversation_id=conversation_id
        )
    await index_rounds(ada.world.tertulia.dependencies, IndexRounds.single(conversation_id, 1))
    (reply,) = await ada.ask_and_wait(
        "Which password had the lighthouse?", "alpha", conversation_id=conversation_id
    )
    prompt = prompt_text(upstream.last)
    assert "Earlier in this conversation [round 1]:" in prompt
    assert "[Alpha]: The password of the old lighthouse is marigold." in prompt
    segments = (await receipt_of(ada, reply))["segments"]
    assert [s["round_number"] for s in segments if "marigold" in s["text"]] == [1]


async def test_switching_retrieval_off_removes_passages_from_the_prompt(ada, upstream):
    file = await upload(ada, "docs/tea.md", "The oolong is steeped at ninety degrees.\n")
    await wait_until_indexed(ada, file["id"])
    settings = {"retrieval_config": {"enabled": False}}
    await ada.put(f"/api/projects/{ada.home}", {"settings": settings})
    await ada.ask_and_wait("How hot should the oolong be?", "alpha")
    assert "ninety degrees" not in prompt_text(upstream.last)
    assert "docs/tea.md" in prompt_text(upstream.last)
