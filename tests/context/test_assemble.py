"""Prompt assembly: the speakers of each message, and the parts of the system prompt."""

from __future__ import annotations

from dataclasses import replace

from tertulia.context.assemble import assemble
from tertulia.context.prompt_inputs import IncludedFile
from tertulia.core.messages import Round, Status
from tertulia.core.models import Tier
from tertulia.core.receipts import Layer, LeftOutReason, SourceLocation
from tests.context.materials import BERT, TABLE, WIDE, count, hit, make_inputs, message, round_, rounds


def test_replies_of_others_carry_names_and_own_replies_have_the_assistant_role():
    prompt = assemble(make_inputs(rounds(1)), count).prompt
    assert [(m.role, m.content) for m in prompt.messages] == [
        ("user", "question 1"),
        ("assistant", "Anna says 1"),
        ("user", '[Bert]: Bert says 1\n\n[Cara]: Cara says 1\n\n(Round 2 of "Tea".)\n\nAnd now?'),
    ]


def test_a_voice_that_joins_later_reads_all_replies_with_names():
    prompt = assemble(make_inputs((round_(1, voices=(BERT,)),)), count).prompt
    assert [m.role for m in prompt.messages] == ["user"]
    assert "[Bert]: Bert says 1" in prompt.messages[0].content


def test_a_personas_instructions_come_last_in_the_system_prompt():
    inputs = make_inputs(instructions="Rhyme.", persona_instructions="Doubt.")
    assert assemble(inputs, count).prompt.system.endswith("Your character in this conversation:\nDoubt.")


def test_the_system_prompt_names_the_voice_and_says_that_nobody_speaks_first():
    system = assemble(make_inputs(), count).prompt.system
    assert "You are Anna" in system
    assert "Nobody speaks first" in system
    assert "[Name]: text" in system


def test_project_instructions_are_in_the_system_prompt():
    assembled = assemble(make_inputs(instructions="Answer in haiku."), count)
    assert "Answer in haiku." in assembled.prompt.system
    assert [s.layer for s in assembled.receipt.segments if "haiku" in s.text] == [Layer.SYSTEM]


def test_only_the_newest_version_of_a_reply_is_shown():
    first = message(1, BERT, "half a tho", status=Status.INTERRUPTED)
    second = message(1, BERT, "a whole thought", replaces_id=first.id)
    first_round = Round(1, (message(1, None, "question 1"), first, second))
    text = "".join(m.content for m in assemble(make_inputs((first_round,)), count).prompt.messages)
    assert "a whole thought" in text
    assert "half a tho" not in text


def test_a_reply_without_text_is_not_shown():
    first_round = Round(1, (message(1, None, "question 1"), message(1, BERT, "", status=Status.FAILED)))
    assert "Bert" not in "".join(
        m.content for m in assemble(make_inputs((first_round,)), count).prompt.messages
    )


def test_a_continued_reply_is_an_assistant_message_before_the_last_message():
    prompt = assemble(make_inputs(partial_reply="The answer is fo"), count).prompt
    assert [(m.role, m.content) for m in prompt.messages[-2:-1]] == [("assistant", "The answer is fo")]
    assert prompt.messages[-1].role == "user"


def test_the_message_before_the_question_is_marked_as_the_end_of_the_cacheable_part():
    assert [m.ends_cacheable for m in assemble(make_inputs(rounds(3)), count).prompt.messages] == [
        *[False] * 5,
        True,  # Anna's third reply; the others' stand in one message with the question
        False,
    ]
    alone = assemble(make_inputs(), count).prompt.messages
    assert [m.ends_cacheable for m in alone] == [False]


def test_removed_files_messages_and_chunks_are_absent_and_listed_as_left_out():
    hits = (hit("k1", "the secret recipe", path="a.py", start_line=1, end_line=2),)
    files = (IncludedFile("f1", "always.md", "the old plan"),)
    inputs = make_inputs(
        rounds(1), hits=hits, always_included=files, excluded_ids=frozenset({"k1:1-2", "f1", "m1Bert"})
    )
    assembled = assemble(inputs, count)
    prompt, receipt = assembled.prompt, assembled.receipt
    everything = prompt.system + "".join(m.content for m in prompt.messages)
    assert "secret recipe" not in everything
    assert "old plan" not in everything
    assert "Bert says" not in everything
    assert "Cara says 1" in everything
    removed = [
        (item.source_id, item.location)
        for item in receipt.left_out
        if item.reason is LeftOutReason.REMOVED_BY_USER
    ]
    assert removed == [
        ("f1", SourceLocation("always.md")),
        ("m1Bert", SourceLocation(speaker="Bert")),
        ("k1:1-2", SourceLocation("a.py", 1, 2)),
    ]


def test_left_out_items_carry_their_location():
    small = replace(WIDE, context_window=1_100, tier=Tier.CHEAP)
    hits = tuple(hit(f"k{i}", "x" * 40, 1 - i / 20, path="a.py", start_line=i, end_line=9) for i in range(9))
    inputs = make_inputs(
        rounds(8),
        always_included=(IncludedFile("f", "docs/long.md", "x" * 8000),),
        hits=hits,
        model=small,
        max_output_tokens=200,
        question="x" * 2400,
    )
    left_out = {(item.location, item.round_number) for item in assemble(inputs, count).receipt.left_out}
    assert {
        (SourceLocation("docs/long.md"), None),
        (None, 5),
        (SourceLocation("a.py", 5, 9), None),
    } <= left_out


def test_the_receipt_names_the_speaker_of_every_earlier_reply():
    assembled = assemble(make_inputs(rounds(1)), count)
    segments = [s for s in assembled.receipt.segments if s.layer is Layer.ROUNDS]
    assert [s.location for s in segments] == [None, *(SourceLocation(speaker=v.name) for v in TABLE)]
