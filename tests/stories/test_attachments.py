"""A file attached to a message reaches every model that can process it, and stays with the message."""

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
    """A server with two models: Alpha accepts images, Beta does not."""
    models = [{"id": "alpha", "name": "Alpha", "vision": True}, {"id": "beta", "name": "Beta"}]
    endpoint = {"name": "voices", "base_url": f"{upstream.url}/v1", "is_local": False, "models": models}
    async with running(tmp_path, {"TERTULIA_ENDPOINTS": json.dumps([endpoint])}) as world:
        yield world


@pytest.fixture
def upstream(upstream: Upstream) -> Upstream:
    upstream.says("I see.")
    return upstream


def last_message_to(upstream: Upstream, model: str) -> Any:
    """The last message of the newest request to a model."""
    return [request for request in upstream.requests if request.body["model"] == model][-1].body["messages"][
        -1
    ]


def all_messages_to(upstream: Upstream, model: str) -> str:
    return json.dumps([r.body["messages"] for r in upstream.requests if r.body["model"] == model][-1])


async def receipt_of(person: Person, reply: dict[str, Any]) -> dict[str, Any]:
    receipt: dict[str, Any] = await person.get(f"/api/messages/{reply['id']}/receipt")
    return receipt


async def test_an_attached_text_is_in_the_prompt_but_not_among_the_project_files(
    ada: Person, upstream: Upstream
) -> None:
    attachment = await ada.attach("tea.docx", docx(paragraph("Oolong, ninety degrees.")))
    (reply,) = await ada.ask_and_wait(
        "How hot?", "alpha", project_id=ada.home, attachments=[attachment["id"]]
    )
    assert last_message_to(upstream, "alpha")["content"].startswith(
        "Attached, tea.docx:\n```\nOolong, ninety degrees."
    )
    [segment] = [s for s in (await receipt_of(ada, reply))["segments"] if s["reason"] == "attached"]
    assert (segment["source_id"], segment["location"]["file_name"]) == (attachment["id"], "tea.docx")
    assert (await ada.get(f"/api/projects/{ada.home}/files"))["items"] == []


async def test_the_next_prompt_repeats_an_attachment_byte_for_byte(ada: Person, upstream: Upstream) -> None:
    attachment = await ada.attach("tea.md", b"Oolong, ninety degrees.")
    more = {"project_id": ada.home, "attachments": [attachment["id"]]}
    (reply,) = await ada.ask_and_wait("How hot?", "alpha", **more)
    first = last_message_to(upstream, "alpha")["content"]
    await ada.ask_and_wait("And how long?", "alpha", conversation_id=reply["conversation_id"])
    history = upstream.last.body["messages"]
    assert [m["content"] for m in history if m["role"] == "user"][0] == first


async def test_a_picture_goes_to_vision_models_and_is_left_out_for_the_others(
    ada: Person, upstream: Upstream
) -> None:
    attachment = await ada.attach("photo.png", PHOTO)
    more = {"project_id": ada.home, "attachments": [attachment["id"]]}
    alpha, beta = await ada.ask_and_wait("What is this?", "alpha", "beta", **more)
    assert base64.b64encode(PHOTO).decode() in all_messages_to(upstream, "alpha")
    assert "base64" not in all_messages_to(upstream, "beta")
    vision_receipt, text_receipt = await receipt_of(ada, alpha), await receipt_of(ada, beta)
    [picture] = [s["picture"] for s in vision_receipt["segments"] if s["picture"]]
    assert picture == {"content_hash": attachment["content_hash"], "mime_type": "image/png"}
    assert vision_receipt["left_out"] == []
    [omitted] = text_receipt["left_out"]
    assert (omitted["location"]["file_name"], omitted["reason"]) == ("photo.png", "no_vision")


async def test_an_unreadable_attachment_is_stored_and_listed_as_left_out(
    ada: Person, upstream: Upstream
) -> None:
    attachment = await ada.attach("broken.docx", docx("<w:p>"))
    more = {"project_id": ada.home, "attachments": [attachment["id"]]}
    (reply,) = await ada.ask_and_wait("What does it say?", "alpha", **more)
    assert reply["content"] == "I see."
    [omitted] = (await receipt_of(ada, reply))["left_out"]
    assert (omitted["location"]["file_name"], omitted["reason"]) == ("broken.docx", "unreadable")
    assert omitted["note"].startswith("Its XML is broken")
    assert (await ada.client.get(f"/api/attachments/{attachment['id']}")).content == docx("<w:p>")


async def test_an_attachment_over_the_budget_is_left_out_completely(ada: Person, upstream: Upstream) -> None:
    attachment = await ada.attach("long.txt", b"a long word " * 100_000)
    more = {"project_id": ada.home, "attachments": [attachment["id"]]}
    (reply,) = await ada.ask_and_wait("What is it about?", "alpha", **more)
    [omitted] = (await receipt_of(ada, reply))["left_out"]
    assert (omitted["location"]["file_name"], omitted["reason"]) == ("long.txt", "over_budget")
    assert "a long word" not in all_messages_to(upstream, "alpha")


async def test_an_estimate_lists_the_attachments_that_each_voice_will_not_get(ada: Person) -> None:
    long = await ada.attach("long.txt", b"a long word " * 100_000)
    photo = await ada.attach("photo.png", PHOTO)
    request = {"text": "Well?", "voices": [{"model": "voices:alpha"}, {"model": "voices:beta"}]}
    more = {"project_id": ada.home, "attachments": [long["id"], photo["id"]]}
    vision_item, text_item = (await ada.post("/api/estimate", request | more))["items"]
    assert [(omitted["location"]["file_name"], omitted["reason"]) for omitted in vision_item["left_out"]] == [
        ("long.txt", "over_budget")
    ]
    assert [omitted["location"]["file_name"] for omitted in text_item["left_out"]] == [
        "long.txt",
        "photo.png",
    ]


async def test_an_estimate_counts_the_tokens_of_attachments(ada: Person) -> None:
    attachment = await ada.attach("tea.md", b"Oolong, ninety degrees. " * 100)
    photo = await ada.attach("photo.png", PHOTO)
    request = {"text": "Well?", "voices": [{"model": "voices:alpha"}, {"model": "voices:beta"}]}
    where = {"project_id": ada.home}
    plain = await ada.post("/api/estimate", request | where)
    attached = await ada.post(
        "/api/estimate", request | where | {"attachments": [attachment["id"], photo["id"]]}
    )
    added_tokens = [
        after["input_tokens"] - before["input_tokens"]
        for before, after in zip(plain["items"], attached["items"], strict=True)
    ]
    assert added_tokens[1] > 500
    assert added_tokens[0] > added_tokens[1] + 400


async def test_a_retry_without_an_attachment_leaves_it_out_of_the_prompt(
    ada: Person, upstream: Upstream
) -> None:
    attachment = await ada.attach("secret.md", b"the canary sings")
    more = {"project_id": ada.home, "attachments": [attachment["id"]]}
    (reply,) = await ada.ask_and_wait("What sings?", "alpha", **more)
    assert "canary" in all_messages_to(upstream, "alpha")
    retry = {"id": new_id(), "without": [attachment["id"]]}
    opened = await ada.post(f"/api/messages/{reply['id']}/retry", retry, expect=202)
    await ada.wait_for_end(opened["turn"]["id"])
    assert "canary" not in all_messages_to(upstream, "alpha")


async def test_a_live_message_event_includes_its_attachments(ada: Person, bob: Person, world: World) -> None:
    await ada.put(f"/api/projects/{ada.home}/members", {"user_id": bob.id, "role": "viewer"})
    (first,) = await ada.ask_and_wait("Hello", "alpha", project_id=ada.home)
    attachment = await ada.attach("tea.md", b"Oolong")
    async with bob.live() as tab:
        await tab.follow(f"conversation:{first['conversation_id']}")
        more = {"conversation_id": first["conversation_id"], "attachments": [attachment["id"]]}
        await ada.ask("Look", "alpha", **more)
        items = await tab.until(
            lambda item: item.get("noun") == "message" and item["value"]["content"] == "Look"
        )
    assert items[-1]["value"]["attachments"] == [attachment]


async def test_deleting_a_conversation_deletes_its_attachments(ada: Person) -> None:
    attachment = await ada.attach("tea.md", b"Oolong")
    more = {"project_id": ada.home, "attachments": [attachment["id"]]}
    (reply,) = await ada.ask_and_wait("Look", "alpha", **more)
    await ada.delete(f"/api/conversations/{reply['conversation_id']}")
    await ada.get(f"/api/attachments/{attachment['id']}", expect=404)


async def test_an_edited_question_gets_a_copy_of_the_attachment(ada: Person, upstream: Upstream) -> None:
    attachment = await ada.attach("tea.md", b"Oolong, ninety degrees.")
    more = {"project_id": ada.home, "attachments": [attachment["id"]]}
    (reply,) = await ada.ask_and_wait("How hot?", "alpha", **more)
    edit = {"id": new_id(), "text": "How warm?", "voices": [{"model": "voices:alpha"}]}
    path = f"/api/conversations/{reply['conversation_id']}/rounds/1/edit"
    opened = await ada.post(path, edit | {"attachments": [attachment["id"]]}, expect=202)
    await ada.wait_for_end(opened["turn"]["id"])
    assert "ninety degrees.\n```\n\nHow warm?" in last_message_to(upstream, "alpha")["content"]
    [copied] = opened["message"]["attachments"]
    assert (copied["name"], copied["content_hash"]) == ("tea.md", attachment["content_hash"])
    assert copied["id"] != attachment["id"]
