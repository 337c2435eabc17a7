"""What a model is shown of the talk and of the project: who said what, and what is said every time."""

from __future__ import annotations

from dataclasses import replace

from tertulia.context.assemble import assemble
from tertulia.context.material import TAKEN_OUT, FileText
from tertulia.core.messages import Round, Status
from tertulia.core.models import Tier
from tertulia.core.receipts import Layer
from tests.context.materials import BERT, TABLE, WIDE, count, hit, material, message, round_, rounds


def test_others_are_tagged_and_own_replies_are_the_assistants():
    prompt = assemble(material(rounds(1)), count).prompt
    assert [(m.role, m.content) for m in prompt.messages] == [
        ("user", "question 1"),
        ("assistant", "Anna says 1"),
        ("user", '[Bert]: Bert says 1\n\n[Cara]: Cara says 1\n\n(Round 2 of "Tea".)\n\nAnd now?'),
    ]


def test_a_voice_that_joins_later_sees_everyone_tagged():
    prompt = assemble(material((round_(1, voices=(BERT,)),)), count).prompt
    assert [m.role for m in prompt.messages] == ["user"]
    assert "[Bert]: Bert says 1" in prompt.messages[0].content


def test_a_personas_instructions_stand_last_in_the_system_prompt():
    given_material = material(instructions="Rhyme.", persona_instructions="Doubt.")
    assert assemble(given_material, count).prompt.system.endswith(
        "Your character in this conversation:\nDoubt."
    )


def test_the_system_prompt_says_who_it_is_and_not_to_claim_an_order():
    system = assemble(material(), count).prompt.system
    assert "You are Anna" in system
    assert "Nobody speaks first" in system
    assert "[Name]: text" in system


def test_project_instructions_are_in_the_system_prompt():
    assembled = assemble(material(instructions="Answer in haiku."), count)
    assert "Answer in haiku." in assembled.prompt.system
    assert [s.layer for s in assembled.receipt.segments if "haiku" in s.text] == [Layer.SYSTEM]


def test_only_the_newest_version_of_a_reply_is_shown():
    first = message(1, BERT, "half a tho", status=Status.INTERRUPTED)
    second = message(1, BERT, "a whole thought", replaces_id=first.id)
    here = Round(1, (message(1, None, "question 1"), first, second))
    text = "".join(m.content for m in assemble(material((here,)), count).prompt.messages)
    assert "a whole thought" in text
    assert "half a tho" not in text


def test_a_reply_without_text_is_not_shown():
    here = Round(1, (message(1, None, "question 1"), message(1, BERT, "", status=Status.FAILED)))
    assert "Bert" not in "".join(m.content for m in assemble(material((here,)), count).prompt.messages)


def test_to_continue_the_partial_text_stands_as_its_own_reply_before_the_last_word():
    prompt = assemble(material(partial="The answer is fo"), count).prompt
    assert [(m.role, m.content) for m in prompt.messages[-2:-1]] == [("assistant", "The answer is fo")]
    assert prompt.messages[-1].role == "user"


def test_the_message_before_the_questions_own_is_marked_as_the_end_of_what_stays():
    assert [m.ends_cacheable for m in assemble(material(rounds(3)), count).prompt.messages] == [
        *[False] * 5,
        True,  # Anna's third reply; the others' stand in one message with the question
        False,
    ]
    alone = assemble(material(), count).prompt.messages
    assert [m.ends_cacheable for m in alone] == [False]


def test_what_a_person_took_out_is_not_shown_again():
    found = (hit("k1", "the secret recipe", path="a.py", start_line=1, end_line=2),)
    always = (FileText("f1", "always.md", "the old plan"),)
    given = material(rounds(1), hits=found, always=always, without=frozenset({"k1:1-2", "f1", "m1Bert"}))
    assembled = assemble(given, count)
    prompt, receipt = assembled.prompt, assembled.receipt
    everything = prompt.system + "".join(m.content for m in prompt.messages)
    assert "secret recipe" not in everything
    assert "old plan" not in everything
    assert "Bert says" not in everything
    assert "Cara says 1" in everything
    taken = [(left.source_id, left.name) for left in receipt.left_out if left.reason == TAKEN_OUT]
    assert taken == [("f1", "always.md"), ("m1Bert", "round 1, Bert"), ("k1:1-2", "a.py:1-2")]


def test_what_was_left_out_is_called_by_the_name_people_know():
    small = replace(WIDE, context_window=1_100, tier=Tier.CHEAP)
    found = tuple(hit(f"k{i}", "x" * 40, 1 - i / 20, path="a.py", start_line=i, end_line=9) for i in range(9))
    given = material(
        rounds(8),
        always=(FileText("f", "docs/long.md", "x" * 8000),),
        hits=found,
        model=small,
        max_output_tokens=200,
        question="x" * 2400,
    )
    names = {left.name for left in assemble(given, count).receipt.left_out}
    assert {"docs/long.md", "round 5", "a.py:5-9"} <= names


def test_the_receipt_names_the_speaker_of_every_earlier_reply():
    assembled = assemble(material(rounds(1)), count)
    said = [s for s in assembled.receipt.segments if s.layer is Layer.ROUNDS]
    assert [s.name for s in said] == ["", *(voice.name for voice in TABLE)]
