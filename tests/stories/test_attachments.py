"""A file can be brought along with one message: every mind is shown what it can see, and it stays with it."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tertulia.app import new_id
from tests.library.documents import docx, paragraph, png
from tests.upstream.scripted import Upstream
from tests.world import Person, World, running

PHOTO = png(640, 480)


@pytest.fixture
async def world(tmp_path: Path, upstream: Upstream) -> AsyncIterator[World]:
    """Two models: one with eyes, one without."""
    models = [{"id": "alpha", "name": "Alpha", "vision": True}, {"id": "beta", "name": "Beta"}]
    endpoint = {"name": "voices", "base_url": f"{upstream.url}/v1", "is_local": False, "models": models}
    async with running(tmp_path, {"TERTULIA_ENDPOINTS": json.dumps([endpoint])}) as made:
        yield made


@pytest.fixture
def upstream(upstream: Upstream) -> Upstream:
    upstream.says("I see.")
    return upstream


def sent_to(upstream: Upstream, model: str) -> Any:
    """The last message of the newest request to a model."""
    return [request for request in upstream.requests if request.body["model"] == model][-1].body["messages"][
        -1
    ]


def all_sent_to(upstream: Upstream, model: str) -> str:
    return json.dumps([r.body["messages"] for r in upstream.requests if r.body["model"] == model][-1])


async def receipt_of(person: Person, reply: dict[str, Any]) -> dict[str, Any]:
    receipt: dict[str, Any] = await person.get(f"/api/messages/{reply['id']}/receipt")
    return receipt


async def test_a_text_is_shown_with_its_message_and_is_no_file_of_the_project(
    ada: Person, upstream: Upstream
) -> None:
    brought = await ada.attach("tea.docx", docx(paragraph("Oolong, ninety degrees.")))
    (reply,) = await ada.hear("How hot?", "alpha", project_id=ada.home, attachments=[brought["id"]])
    assert sent_to(upstream, "alpha")["content"].startswith(
        "Attached, tea.docx:\n```\nOolong, ninety degrees."
    )
    [shown] = [s for s in (await receipt_of(ada, reply))["segments"] if s["reason"] == "attached"]
    assert (shown["source_id"], shown["location"]["file_name"]) == (brought["id"], "tea.docx")
    assert (await ada.get(f"/api/projects/{ada.home}/files"))["items"] == []


async def test_the_next_round_still_shows_it_in_the_same_bytes(ada: Person, upstream: Upstream) -> None:
    brought = await ada.attach("tea.md", b"Oolong, ninety degrees.")
    more = {"project_id": ada.home, "attachments": [brought["id"]]}
    (reply,) = await ada.hear("How hot?", "alpha", **more)
    first = sent_to(upstream, "alpha")["content"]
    await ada.hear("And how long?", "alpha", conversation_id=reply["conversation_id"])
    history = upstream.last.body["messages"]
    assert [m["content"] for m in history if m["role"] == "user"][0] == first


async def test_a_picture_is_seen_by_those_with_eyes_and_the_others_receipt_says_why_not(
    ada: Person, upstream: Upstream
) -> None:
    brought = await ada.attach("photo.png", PHOTO)
    more = {"project_id": ada.home, "attachments": [brought["id"]]}
    alpha, beta = await ada.hear("What is this?", "alpha", "beta", **more)
    assert base64.b64encode(PHOTO).decode() in all_sent_to(upstream, "alpha")
    assert "base64" not in all_sent_to(upstream, "beta")
    seen, unseen = await receipt_of(ada, alpha), await receipt_of(ada, beta)
    [picture] = [s["picture"] for s in seen["segments"] if s["picture"]]
    assert picture == {"content_hash": brought["content_hash"], "mime_type": "image/png"}
    assert seen["left_out"] == []
    [left] = unseen["left_out"]
    assert (left["location"]["file_name"], left["reason"]) == ("photo.png", "no_vision")


async def test_what_cannot_be_read_is_kept_and_named(ada: Person, upstream: Upstream) -> None:
    brought = await ada.attach("broken.docx", docx("<w:p>"))
    more = {"project_id": ada.home, "attachments": [brought["id"]]}
    (reply,) = await ada.hear("What does it say?", "alpha", **more)
    assert reply["content"] == "I see."
    [left] = (await receipt_of(ada, reply))["left_out"]
    assert (left["location"]["file_name"], left["reason"]) == ("broken.docx", "unreadable")
    assert left["note"].startswith("Its XML is broken")
    assert (await ada.client.get(f"/api/attachments/{brought['id']}")).content == docx("<w:p>")


async def test_what_is_too_large_for_a_model_is_left_out_whole(ada: Person, upstream: Upstream) -> None:
    brought = await ada.attach("long.txt", b"a long word " * 100_000)
    more = {"project_id": ada.home, "attachments": [brought["id"]]}
    (reply,) = await ada.hear("What is it about?", "alpha", **more)
    [left] = (await receipt_of(ada, reply))["left_out"]
    assert (left["location"]["file_name"], left["reason"]) == ("long.txt", "over_budget")
    assert "a long word" not in all_sent_to(upstream, "alpha")


async def test_what_a_voice_will_not_be_shown_is_said_before_it_is_asked(ada: Person) -> None:
    long = await ada.attach("long.txt", b"a long word " * 100_000)
    photo = await ada.attach("photo.png", PHOTO)
    asked = {"text": "Well?", "voices": [{"model": "voices:alpha"}, {"model": "voices:beta"}]}
    more = {"project_id": ada.home, "attachments": [long["id"], photo["id"]]}
    seeing, blind = (await ada.post("/api/estimate", asked | more))["items"]
    assert [(left["location"]["file_name"], left["reason"]) for left in seeing["left_out"]] == [
        ("long.txt", "over_budget")
    ]
    assert [left["location"]["file_name"] for left in blind["left_out"]] == ["long.txt", "photo.png"]


async def test_it_is_counted_before_it_is_sent(ada: Person) -> None:
    brought = await ada.attach("tea.md", b"Oolong, ninety degrees. " * 100)
    photo = await ada.attach("photo.png", PHOTO)
    asked = {"text": "Well?", "voices": [{"model": "voices:alpha"}, {"model": "voices:beta"}]}
    where = {"project_id": ada.home}
    plain = await ada.post("/api/estimate", asked | where)
    both = await ada.post("/api/estimate", asked | where | {"attachments": [brought["id"], photo["id"]]})
    more = [b["input_tokens"] - a["input_tokens"] for a, b in zip(plain["items"], both["items"], strict=True)]
    assert more[1] > 500
    assert more[0] > more[1] + 400


async def test_asked_again_without_it_a_reply_is_not_shown_it(ada: Person, upstream: Upstream) -> None:
    brought = await ada.attach("secret.md", b"the canary sings")
    more = {"project_id": ada.home, "attachments": [brought["id"]]}
    (reply,) = await ada.hear("What sings?", "alpha", **more)
    assert "canary" in all_sent_to(upstream, "alpha")
    again = {"id": new_id(), "without": [brought["id"]]}
    opened = await ada.post(f"/api/messages/{reply['id']}/retry", again, expect=202)
    await ada.ended(opened["turn"]["id"])
    assert "canary" not in all_sent_to(upstream, "alpha")


async def test_every_device_sees_it_with_the_message(ada: Person, bob: Person, world: World) -> None:
    await ada.put(f"/api/projects/{ada.home}/members", {"user_id": bob.id, "role": "viewer"})
    (first,) = await ada.hear("Hello", "alpha", project_id=ada.home)
    brought = await ada.attach("tea.md", b"Oolong")
    async with bob.live() as tab:
        await tab.follow(f"conversation:{first['conversation_id']}")
        more = {"conversation_id": first["conversation_id"], "attachments": [brought["id"]]}
        await ada.ask("Look", "alpha", **more)
        heard = await tab.until(
            lambda item: item.get("noun") == "message" and item["value"]["content"] == "Look"
        )
    assert heard[-1]["value"]["attachments"] == [brought]


async def test_with_its_conversation_it_is_gone_for_everyone(ada: Person) -> None:
    brought = await ada.attach("tea.md", b"Oolong")
    more = {"project_id": ada.home, "attachments": [brought["id"]]}
    (reply,) = await ada.hear("Look", "alpha", **more)
    await ada.delete(f"/api/conversations/{reply['conversation_id']}")
    await ada.get(f"/api/attachments/{brought['id']}", expect=404)


async def test_a_question_asked_differently_brings_it_along_again(ada: Person, upstream: Upstream) -> None:
    brought = await ada.attach("tea.md", b"Oolong, ninety degrees.")
    more = {"project_id": ada.home, "attachments": [brought["id"]]}
    (reply,) = await ada.hear("How hot?", "alpha", **more)
    edit = {"id": new_id(), "text": "How warm?", "voices": [{"model": "voices:alpha"}]}
    path = f"/api/conversations/{reply['conversation_id']}/rounds/1/edit"
    opened = await ada.post(path, edit | {"attachments": [brought["id"]]}, expect=202)
    await ada.ended(opened["turn"]["id"])
    assert "ninety degrees.\n```\n\nHow warm?" in sent_to(upstream, "alpha")["content"]
    [copied] = opened["message"]["attachments"]
    assert (copied["name"], copied["content_hash"]) == ("tea.md", brought["content_hash"])
    assert copied["id"] != brought["id"]
