"""A persona is someone to talk to: it brings its own character, and stays who it was in what it said."""

from __future__ import annotations

from typing import Any

import pytest

from tertulia.app import new_id
from tertulia.core.personas import SEEDED
from tests.upstream.scripted import Seen, Upstream
from tests.world import Person

SAGE, SKEPTIC, STRATEGIST = SEEDED


async def test_three_are_at_hand_and_speak_through_whatever_can_answer(ada, upstream):
    assert names(ada.me["personas"]) == ["The Sage", "The Skeptic", "The Strategist"]
    replies = await ada.hear("Shall we?", voices=[{"persona_id": id} for id in SEEDED])
    assert [
        (reply["voice"]["name"], reply["voice"]["seat"], reply["voice"]["persona_id"]) for reply in replies
    ] == [("The Sage", 1, SAGE), ("The Skeptic", 2, SKEPTIC), ("The Strategist", 3, STRATEGIST)]
    assert {reply["voice"]["model"] for reply in replies} == {"voices:alpha"}
    assert all(reply["status"] == "complete" for reply in replies)


async def test_a_model_is_told_whose_character_it_has_and_the_receipt_names_it(ada, upstream):
    baker = await made(ada, "The Baker", "Mention bread.")
    replies = await ada.hear("Hello", voices=[{"persona_id": baker["id"]}, {"model": "voices:beta"}])
    system = system_of(upstream, "alpha")[0]
    assert system.startswith("You are The Baker,")
    assert system.endswith("Your character in this conversation:\nMention bread.")
    assert "bread" not in system_of(upstream, "beta")[0]
    [of_baker] = [reply for reply in replies if reply["voice"]["persona_id"]]
    receipt = await ada.get(f"/api/messages/{of_baker['id']}/receipt")
    [why] = [segment["reason"] for segment in receipt["segments"] if "Mention bread." in segment["text"]]
    assert why == "persona_instructions"


async def test_what_ones_own_persona_was_told_is_not_read_by_others_in_its_receipt(ada, bob, upstream):
    """They see that there was something, and how much; a project's persona and everyone's are no secret."""
    await ada.put(f"/api/projects/{ada.home}/members", {"user_id": bob.id, "role": "editor"})
    baker = await made(ada, "The Baker", "Mention bread.")
    [reply] = await ada.hear("Hello", voices=[{"persona_id": baker["id"]}])
    opened = await bob.post(f"/api/messages/{reply['id']}/retry", {"id": new_id()}, expect=202)
    await bob.ended(opened["turn"]["id"])
    for one in await ada.replies(reply["conversation_id"], 1):
        own, other = [await told(person, one["id"]) for person in (ada, bob)]
        assert own["text"].endswith("Mention bread.")
        assert other["text"] == "(Only the person who made this persona can read its instructions.)"
        assert (other["location"]["speaker"], other["tokens"]) == ("The Baker", own["tokens"])
    await ada.delete(f"/api/personas/{baker['id']}")
    assert (await told(ada, reply["id"]))["text"].endswith("Mention bread.")
    assert "bread" not in (await told(bob, reply["id"]))["text"]
    [sage] = await ada.hear("Hello", voices=[{"persona_id": SAGE}])
    assert await told(bob, sage["id"]) == await told(ada, sage["id"])


async def told(person: Person, message_id: str) -> dict[str, Any]:
    receipt = await person.get(f"/api/messages/{message_id}/receipt")
    [segment] = [s for s in receipt["segments"] if s["reason"] == "persona_instructions"]
    return segment


async def test_what_was_said_stays_with_the_persona_as_it_was(ada, upstream):
    baker = await made(ada, "The Baker", "Mention bread.")
    [first] = await ada.hear("Hello", voices=[{"persona_id": baker["id"]}])
    await ada.put(
        f"/api/personas/{baker['id']}", {"character": character("The Night Baker", "Mention the moon.")}
    )
    [second] = await ada.hear(
        "Again", voices=[{"persona_id": baker["id"]}], conversation_id=first["conversation_id"]
    )
    said = [(reply["voice"]["name"], reply["voice"]["persona_version"]) for reply in (first, second)]
    assert said == [("The Baker", 1), ("The Night Baker", 2)]
    assert first["voice"]["id"] == second["voice"]["id"], "the lane goes on"
    then = await ada.get(f"/api/personas/{baker['id']}/versions/1")
    assert (then["name"], then["instructions"]) == ("The Baker", "Mention bread.")
    assert "moon" in system_of(upstream, "alpha")[1]


async def test_tried_again_through_another_model_it_is_still_the_same_persona(ada, upstream):
    baker = await made(ada, "The Baker", "Mention bread.")
    [reply] = await ada.hear("Hello", voices=[{"persona_id": baker["id"]}])
    await ada.put(f"/api/personas/{baker['id']}", {"character": character("The Baker", "Mention rolls.")})
    opened = await ada.post(
        f"/api/messages/{reply['id']}/retry", {"id": new_id(), "model": "voices:beta"}, expect=202
    )
    await ada.ended(opened["turn"]["id"])
    again = [one for one in await ada.replies(reply["conversation_id"], 1) if one["replaces_id"]]
    assert [one["voice"] for one in again] == [reply["voice"] | {"model": "voices:beta"}]
    assert "Mention bread." in system_of(upstream, "beta")[0]


async def test_a_persona_can_be_asked_through_a_certain_model(ada, upstream):
    [reply] = await ada.hear("Hello", voices=[{"persona_id": SAGE, "model": "voices:gamma"}])
    assert (reply["voice"]["name"], reply["voice"]["model"]) == ("The Sage", "voices:gamma")


async def test_two_of_the_same_persona_are_two_voices(ada, upstream):
    replies = await ada.hear("Hello", voices=[{"persona_id": SAGE}, {"persona_id": SAGE}])
    assert [reply["voice"]["name"] for reply in replies] == ["The Sage", "The Sage 2"]
    assert len({reply["voice"]["id"] for reply in replies}) == len({r["voice"]["seat"] for r in replies}) == 2


async def test_nobody_is_invited_whom_one_cannot_see(ada, bob, upstream):
    adas = await made(ada, "The Baker", "Mention bread.")
    answer = await bob.ask("Hello", voices=[{"persona_id": adas["id"]}], expect=404)
    missing = await bob.ask("Hello", voices=[{"persona_id": new_id()}], expect=404)
    assert answer["message"] == missing["message"] != ""


async def test_a_projects_persona_speaks_only_there(ada, upstream):
    project = await ada.post("/api/projects", {"name": "Bakery"}, expect=201)
    ours = {"scope": "project", "project_id": project["id"]}
    baker = await ada.post(
        "/api/personas", {"character": character("The Baker", "Ours alone."), **ours}, expect=201
    )
    await ada.hear("Hello", voices=[{"persona_id": baker["id"]}], project_id=project["id"])
    await ada.ask("Hello", voices=[{"persona_id": baker["id"]}], project_id=ada.home, expect=404)
    assert "The Baker" in names((await ada.get("/api/personas", project_id=project["id"]))["items"])
    assert "The Baker" not in names((await ada.get("/api/personas", project_id=ada.home))["items"])


async def test_whoever_is_removed_comes_to_no_table_but_stays_in_what_was_said(ada, upstream):
    baker = await made(ada, "The Baker", "Mention bread.")
    [reply] = await ada.hear("Hello", voices=[{"persona_id": baker["id"]}])
    await ada.delete(f"/api/personas/{baker['id']}")
    await ada.ask("Hello", voices=[{"persona_id": baker["id"]}], expect=404)
    [kept] = await ada.replies(reply["conversation_id"], 1)
    assert kept["voice"]["name"] == "The Baker"
    assert (await ada.get(f"/api/personas/{baker['id']}/versions/1"))["instructions"] == "Mention bread."


async def test_a_voice_is_a_model_or_a_persona(ada):
    answer = await ada.ask("Hello", voices=[{}], expect=422)
    assert "a model or a persona" in answer["message"]


async def test_an_estimate_counts_what_a_persona_is_told(ada, upstream):
    wordy = await made(ada, "The Wordy", "Say more. " * 300)
    terse = await made(ada, "The Terse", "")
    estimate = await ada.post(
        "/api/estimate",
        {"text": "Hello", "voices": [{"persona_id": wordy["id"]}, {"persona_id": terse["id"]}]},
    )
    sizes = {item["voice"]["name"]: item["input_tokens"] for item in estimate["items"]}
    assert sizes["The Wordy"] - sizes["The Terse"] > 600


@pytest.mark.parametrize(
    ("wrong", "why"),
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
async def test_a_persona_that_cannot_be_is_refused_with_a_reason(ada, wrong, why):
    body = {"scope": "user", "character": character("The Baker", "") | wrong}
    assert why in (await ada.post("/api/personas", body, expect=422))["message"]


# ── tables and what one begins with


async def test_a_saved_table_and_what_one_begins_with_are_there_at_the_next_visit(world, ada):
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
    ("wrong", "why"),
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
async def test_a_table_that_cannot_be_is_refused_with_a_reason(ada, wrong, why):
    body = {"name": "Ours", "mode": "parallel", "voices": [{"model": "voices:alpha"}]} | wrong
    assert why in (await ada.post("/api/tables", body, expect=422))["message"]


async def test_a_project_begins_in_a_mode_that_there_is(ada):
    refused = await ada.put(
        f"/api/projects/{ada.home}", {"settings": {"default_mode": "shouting"}}, expect=422
    )
    assert "There is no mode 'shouting'." in refused["message"]


def character(name: str, instructions: str) -> dict[str, Any]:
    return {"name": name, "glyph": "", "hue": 5, "instructions": instructions, "model": "voices:alpha"}


async def made(person: Person, name: str, instructions: str) -> dict[str, Any]:
    body = {"scope": "user", "character": character(name, instructions)}
    persona: dict[str, Any] = await person.post("/api/personas", body, expect=201)
    return persona


def names(personas: list[dict[str, Any]]) -> list[str]:
    return [persona["character"]["name"] for persona in personas]


def system_of(upstream: Upstream, model: str) -> list[str]:
    """What a model was told at the very beginning, request by request."""

    def system(seen: Seen) -> str:
        return str(seen.body["messages"][0]["content"])

    return [system(seen) for seen in upstream.requests if seen.model == model]
