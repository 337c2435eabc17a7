"""Each voice is shown what matters from the project's files and from long ago, and the receipt says so."""

from __future__ import annotations

from typing import Any

from tertulia.app import new_id
from tertulia.core.jobs import IndexRounds
from tertulia.engine.jobs.index_round import index_rounds
from tests.world import Person


async def put(person: Person, path: str, text: str) -> dict[str, Any]:
    answer = await person.client.post(
        f"/api/projects/{person.home}/files",
        params={"path": path},
        content=text.encode(),
        headers={"Content-Type": "application/octet-stream"},
    )
    assert answer.status_code == 201, answer.text
    file: dict[str, Any] = answer.json()["items"][0]
    return file


async def indexed(person: Person, file_id: str) -> None:
    """Waits on the project's events until the file can be found."""
    place = f"project:{person.home}"
    async with person.live() as tab:
        for item in await tab.follow(place, 0):
            if is_indexed(item, file_id):
                return
        await tab.until(lambda item: is_indexed(item, file_id))


def is_indexed(item: dict[str, Any], file_id: str) -> bool:
    return item["type"] == "event" and item["id"] == file_id and item["value"]["index"]["state"] == "indexed"


def shown(request: Any) -> str:
    return "\n".join(message["content"] for message in request.body["messages"])


async def receipt_of(person: Person, reply: dict[str, Any]) -> dict[str, Any]:
    receipt: dict[str, Any] = await person.get(f"/api/messages/{reply['id']}/receipt")
    return receipt


async def test_a_question_brings_the_lines_that_answer_it(ada, upstream):
    file = await put(
        ada, "docs/tea.md", "# Steeping\n\nThe oolong is steeped at ninety degrees for three minutes.\n"
    )
    await indexed(ada, file["id"])
    (reply,) = await ada.hear("How hot should the oolong be?", "alpha")
    sent = shown(upstream.last)
    assert "From docs/tea.md [docs/tea.md:1-3]:" in sent
    assert "ninety degrees" in sent
    found = [s for s in (await receipt_of(ada, reply))["segments"] if s["layer"] == "retrieved"]
    assert any("ninety degrees" in s["text"] and s["match"] for s in found), found


async def test_a_file_always_in_context_is_shown_whole_with_every_question(ada, upstream):
    file = await put(ada, "rules.md", "Answer in the voice of a pirate.")
    path = f"/api/projects/{ada.home}/files/{file['id']}/metadata"
    answer = await ada.client.patch(path, json={"always_in_context": True})
    assert answer.status_code == 200, answer.text
    asked = {"text": "", "voices": [{"model": "voices:alpha"}], "project_id": ada.home}
    (expected,) = (await ada.post("/api/estimate", asked))["items"]
    (reply,) = await ada.hear("Hello", "alpha")
    assert "The file rules.md, whole [rules.md:1-1]:\n```\nAnswer in the voice of a pirate." in shown(
        upstream.last
    )
    segments = (await receipt_of(ada, reply))["segments"]
    [always] = [s["tokens"] for s in segments if s["layer"] == "always"]
    assert expected["always_tokens"] == always > 0


async def test_what_was_taken_out_is_not_shown_when_asking_again(ada, upstream):
    file = await put(ada, "plan.md", "The launch is planned for the third of May, at the harbour.\n")
    await indexed(ada, file["id"])
    (reply,) = await ada.hear("When is the launch planned?", "alpha")
    found = [s for s in (await receipt_of(ada, reply))["segments"] if "harbour" in s["text"]]
    again = {"id": new_id(), "without": [found[0]["source_id"]]}
    opened = await ada.post(f"/api/messages/{reply['id']}/retry", again, expect=202)
    await ada.ended(opened["turn"]["id"])
    assert "harbour" not in shown(upstream.last)


async def test_a_round_from_long_ago_is_brought_back_whole(ada, upstream):
    upstream.says("The password of the old lighthouse is marigold.", model="alpha")
    (first,) = await ada.hear("What is the password of the lighthouse?", "alpha")
    conversation_id = first["conversation_id"]
    upstream.says("Noted.", model="alpha")
    for number in range(2, 20):
        await ada.hear(f"Remark number {number} about the weather.", "alpha", conversation_id=conversation_id)
    await index_rounds(ada.world.tertulia.dependencies, IndexRounds.single(conversation_id, 1))
    (reply,) = await ada.hear("Which password had the lighthouse?", "alpha", conversation_id=conversation_id)
    sent = shown(upstream.last)
    assert "Earlier in this conversation [round 1]:" in sent
    assert "[Alpha]: The password of the old lighthouse is marigold." in sent
    segments = (await receipt_of(ada, reply))["segments"]
    assert [s["round_number"] for s in segments if "marigold" in s["text"]] == [1]


async def test_a_project_that_wants_no_retrieval_gets_none(ada, upstream):
    file = await put(ada, "docs/tea.md", "The oolong is steeped at ninety degrees.\n")
    await indexed(ada, file["id"])
    settings = {"retrieval_config": {"enabled": False}}
    await ada.put(f"/api/projects/{ada.home}", {"settings": settings})
    await ada.hear("How hot should the oolong be?", "alpha")
    assert "ninety degrees" not in shown(upstream.last)
    assert "docs/tea.md" in shown(upstream.last)
