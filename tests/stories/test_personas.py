"""A persona gives a model a character; its replies keep the version that wrote them."""

from __future__ import annotations

from typing import Any

import pytest

from tertulia.app import new_id
from tertulia.core.personas import SEEDED
from tests.upstream.scripted import RecordedRequest, Upstream
from tests.world import Person

SAGE, SKEPTIC, STRATEGIST = SEEDED


async def test_the_three_built_in_personas_speak_through_an_available_model(ada, upstream):
    assert names(ada.me["personas"]) == ["The Sage", "The Skeptic", "The Strategist"]
    replies = await ada.ask_and_wait("Shall we?", voices=[{"persona_id": id} for id in SEEDED])
    assert [
        (reply["voice"]["name"], reply["voice"]["seat"], reply["voice"]["persona_id"]) for reply in replies
    ] == [("The Sage", 1, SAGE), ("The Skeptic", 2, SKEPTIC), ("The Strategist", 3, STRATEGIST)]
    assert {reply["voice"]["model"] for reply in replies} == {"voices:alpha"}
    assert all(reply["status"] == "complete" for reply in replies)


async def test_the_persona_is_in_the_system_prompt_and_in_the_receipt(ada, upstream):
    baker = await create_persona(ada, "The Baker", "Mention bread.")
    replies = await ada.ask_and_wait("Hello", voices=[{"persona_id": baker["id"]}, {"model": "voices:beta"}])
    system = system_prompts(upstream, "alpha")[0]
    assert system.startswith("You are The Baker,")
    assert system.endswith("Your character in this conversation:\nMention bread.")
    assert "bread" not in system_prompts(upstream, "beta")[0]
    [of_baker] = [reply for reply in replies if reply["voice"]["persona_id"]]
    receipt = await ada.get(f"/api/messages/{of_baker['id']}/receipt")
    [reason] = [segment["reason"] for segment in receipt["segments"] if "Mention bread." in segment["text"]]
    assert reason == "persona_instructions"


async def test_a_receipt_hides_the_instructions_of_a_private_persona_from_other_people(ada, bob, upstream):
    """They see the segment and its size. Project personas and built-in personas are not secret."""
    await ada.put(f"/api/projects/{ada.home}/members", {"user_id": bob.id, "role": "editor"})
    baker = await create_persona(ada, "The Baker", "Mention bread.")
    [reply] = await ada.ask_and_wait("Hello", voices=[{"persona_id": baker["id"]}])
    opened = await bob.post(f"/api/messages/{reply['id']}/retry", {"id": new_id()}, expect=202)
    await bob.wait_for_end(opened["turn"]["id"])
    for version in await ada.replies(reply["conversation_id"], 1):
        own_segment, others_segment = [await persona_segment(person, version["id"]) for person in (ada, bob)]
        assert own_segment["text"].endswith("Mention bread.")
        assert others_segment["text"] == "(Only the person who made this persona can read its instructions.)"
        assert (others_segment["location"]["speaker"], others_segment["tokens"]) == (
            "The Baker",
            own_segment["tokens"],
        )
    await ada.delete(f"/api/personas/{baker['id']}")
    assert (await persona_segment(ada, reply["id"]))["text"].endswith("Mention bread.")
    assert "bread" not in (await persona_segment(bob, reply["id"]))["text"]
    [sage] = await ada.ask_and_wait("Hello", voices=[{"persona_id": SAGE}])
    assert await persona_segment(bob, sage["id"]) == await persona_segment(ada, sage["id"])


async def persona_segment(person: Person, message_id: str) -> dict[str, Any]:
    receipt = await person.get(f"/api/messages/{message_id}/receipt")
    [segment] = [s for s in receipt["segments"] if s["reason"] == "persona_instructions"]
    return segment


async def test_a_reply_keeps_the_persona_version_that_wrote_it(ada, upstream):
    baker = await create_persona(ada, "The Baker", "Mention bread.")
    [first] = await ada.ask_and_wait("Hello", voices=[{"persona_id": baker["id"]}])
    await ada.put(
        f"/api/personas/{baker['id']}", {"character": character("The Night Baker", "Mention the moon.")}
    )
    [second] = await ada.ask_and_wait(
        "Again", voices=[{"persona_id": baker["id"]}], conversation_id=first["conversation_id"]
    )
    voices = [(reply["voice"]["name"], reply["voice"]["persona_version"]) for reply in (first, second)]
    assert voices == [("The Baker", 1), ("The Night Baker", 2)]
    assert first["voice"]["id"] == second["voice"]["id"], "the lane stays the same"
    first_version = await ada.get(f"/api/personas/{baker['id']}/versions/1")
    assert (first_version["name"], first_version["instructions"]) == ("The Baker", "Mention bread.")
    assert "moon" in system_prompts(upstream, "alpha")[1]


async def test_a_retry_through_another_model_keeps_the_persona_version(ada, upstream):
    baker = await create_persona(ada, "The Baker", "Mention bread.")
    [reply] = await ada.ask_and_wait("Hello", voices=[{"persona_id": baker["id"]}])
    await ada.put(f"/api/personas/{baker['id']}", {"character": character("The Baker", "Mention rolls.")})
    opened = await ada.post(
        f"/api/messages/{reply['id']}/retry", {"id": new_id(), "model": "voices:beta"}, expect=202
    )
    await ada.wait_for_end(opened["turn"]["id"])
    retries = [reply_ for reply_ in await ada.replies(reply["conversation_id"], 1) if reply_["replaces_id"]]
    assert [reply_["voice"] for reply_ in retries] == [reply["voice"] | {"model": "voices:beta"}]
    assert "Mention bread." in system_prompts(upstream, "beta")[0]


async def test_a_persona_can_speak_through_a_chosen_model(ada, upstream):
    [reply] = await ada.ask_and_wait("Hello", voices=[{"persona_id": SAGE, "model": "voices:gamma"}])
    assert (reply["voice"]["name"], reply["voice"]["model"]) == ("The Sage", "voices:gamma")


async def test_one_persona_at_two_seats_is_two_voices(ada, upstream):
    replies = await ada.ask_and_wait("Hello", voices=[{"persona_id": SAGE}, {"persona_id": SAGE}])
    assert [reply["voice"]["name"] for reply in replies] == ["The Sage", "The Sage 2"]
    assert len({reply["voice"]["id"] for reply in replies}) == len({r["voice"]["seat"] for r in replies}) == 2


async def test_a_persona_of_another_person_answers_404_like_a_missing_one(ada, bob, upstream):
    private_persona = await create_persona(ada, "The Baker", "Mention bread.")
    refusal = await bob.ask("Hello", voices=[{"persona_id": private_persona["id"]}], expect=404)
    missing = await bob.ask("Hello", voices=[{"persona_id": new_id()}], expect=404)
    assert refusal["message"] == missing["message"] != ""


async def test_a_project_persona_is_available_only_in_its_project(ada, upstream):
    project = await ada.post("/api/projects", {"name": "Bakery"}, expect=201)
    ours = {"scope": "project", "project_id": project["id"]}
    baker = await ada.post(
        "/api/personas", {"character": character("The Baker", "Ours alone."), **ours}, expect=201
    )
    await ada.ask_and_wait("Hello", voices=[{"persona_id": baker["id"]}], project_id=project["id"])
    await ada.ask("Hello", voices=[{"persona_id": baker["id"]}], project_id=ada.home, expect=404)
    assert "The Baker" in names((await ada.get("/api/personas", project_id=project["id"]))["items"])
    assert "The Baker" not in names((await ada.get("/api/personas", project_id=ada.home))["items"])


async def test_a_deleted_persona_cannot_be_seated_but_its_replies_keep_its_name(ada, upstream):
    baker = await create_persona(ada, "The Baker", "Mention bread.")
    [reply] = await ada.ask_and_wait("Hello", voices=[{"persona_id": baker["id"]}])
    await ada.delete(f"/api/personas/{baker['id']}")
    await ada.ask("Hello", voices=[{"persona_id": baker["id"]}], expect=404)
    [stored] = await ada.replies(reply["conversation_id"], 1)
    assert stored["voice"]["name"] == "The Baker"
    assert (await ada.get(f"/api/personas/{baker['id']}/versions/1"))["instructions"] == "Mention bread."


async def test_a_voice_must_be_a_model_or_a_persona(ada):
    answer = await ada.ask("Hello", voices=[{}], expect=422)
    assert "a model or a persona" in answer["message"]


async def test_an_estimate_counts_the_instructions_of_a_persona(ada, upstream):
    wordy = await create_persona(ada, "The Wordy", "Say more. " * 300)
    terse = await create_persona(ada, "The Terse", "")
    estimate = await ada.post(
        "/api/estimate",
        {"text": "Hello", "voices": [{"persona_id": wordy["id"]}, {"persona_id": terse["id"]}]},
    )
    sizes = {item["voice"]["name"]: item["input_tokens"] for item in estimate["items"]}
    assert sizes["The Wordy"] - sizes["The Terse"] > 600


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"name": ""}, "name"),
        ({"name": "A [tag]: x"}, "letters"),
        ({"hue": 9}, "colour"),
        ({"glyph": "abcde"}, "symbol"),
        ({"instructions": "x" * 20_001}, "instructions"),
        ({"name": "The \u202erekaB"}, "letters"),
        ({"model": "x" * 201}, "model"),
    ],
)
async def test_an_invalid_persona_is_refused_with_a_reason(ada, change, reason):
    body = {"scope": "user", "character": character("The Baker", "") | change}
    assert reason in (await ada.post("/api/personas", body, expect=422))["message"]


# ── saved tables and defaults


async def test_saved_tables_and_defaults_are_stored_for_the_next_sign_in(world, ada):
    saved = await ada.post(
        "/api/tables",
        {
            "name": "Two and a chair",
            "mode": "brain_trust",
            "visibility": "own_lane",
            "voices": [{"persona_id": SAGE}, {"model": "voices:beta"}],
            "chair": {"persona_id": SKEPTIC},
            "brief": "Be short.",
        },
        expect=201,
    )
    defaults = await ada.put("/api/me/defaults", {"table_id": saved["id"], "mode": "parallel"})
    back = await world.sign_in("ada@example.org")
    assert back.me["tables"] == [saved]
    assert back.me["defaults"] == defaults == await back.get("/api/me/defaults")
    assert defaults["table_id"] == saved["id"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"mode": "shouting"}, "no mode"),
        ({"voices": []}, "Choose at least one"),
        ({"voices": [{}]}, "a model or a persona"),
        ({"voices": [{"model": "voices:alpha"}] * 9}, "At most 8 voices"),
        ({"scope": "all"}, "for yourself or for a project"),
        ({"brief": "x" * 4_001}, "instructions for a summary"),
        ({"name": " "}, "name"),
        ({"voices": [{"model": "x" * 201}]}, "key"),
        ({"chair": {"model": "voices:beta"}}, "no summary"),
    ],
)
async def test_an_invalid_table_is_refused_with_a_reason(ada, change, reason):
    body = {"name": "Ours", "mode": "parallel", "voices": [{"model": "voices:alpha"}]} | change
    assert reason in (await ada.post("/api/tables", body, expect=422))["message"]


async def test_an_unknown_default_mode_is_refused(ada):
    refused = await ada.put(
        f"/api/projects/{ada.home}", {"settings": {"default_mode": "shouting"}}, expect=422
    )
    assert "There is no mode 'shouting'." in refused["message"]


def character(name: str, instructions: str) -> dict[str, Any]:
    return {"name": name, "glyph": "", "hue": 5, "instructions": instructions, "model": "voices:alpha"}


async def create_persona(person: Person, name: str, instructions: str) -> dict[str, Any]:
    body = {"scope": "user", "character": character(name, instructions)}
    persona: dict[str, Any] = await person.post("/api/personas", body, expect=201)
    return persona


def names(personas: list[dict[str, Any]]) -> list[str]:
    return [persona["character"]["name"] for persona in personas]


def system_prompts(upstream: Upstream, model: str) -> list[str]:
    """The system prompts that a model got, one per request."""

    def system_prompt(request: RecordedRequest) -> str:
        return str(request.body["messages"][0]["content"])

    return [system_prompt(request) for request in upstream.requests if request.model == model]
