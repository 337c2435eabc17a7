"""What was brought along: where it stands, who sees it, and what is said when it cannot be shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tertulia.context.assemble import assemble, rebuild
from tertulia.context.budget import picture_tokens
from tertulia.context.material import TAKEN_OUT, AttachedText
from tertulia.core.attachments import Attachment
from tertulia.core.models import Abilities
from tertulia.core.prompts import Picture
from tertulia.core.receipts import Layer
from tests.context.materials import WIDE, count, hit, material, message, round_, rounds

SEEING = replace(WIDE, abilities=Abilities(vision=True))
NOTES = Attachment("a1", "notes.md", "text/markdown", 8, "hash of notes")
PHOTO = Attachment("a2", "photo.png", "image/png", 9_000, "hash of photo", 640, 480)
READ = (AttachedText("a1", "# Notes\nBuy tea."),)


def asked(*brought: Attachment, number: int = 1, text: str = "What is this?"):
    return message(number, None, text, attachments=brought)


def test_a_text_stands_with_its_question():
    assembled = assemble(material(question=asked(NOTES), attached=READ), count)
    assert assembled.prompt.messages[-1].content == (
        "Attached, notes.md:\n```\n# Notes\nBuy tea.\n```\n\nWhat is this?"
    )
    [piece] = [s for s in assembled.receipt.segments if s.reason == "attached"]
    assert (piece.layer, piece.source_id, piece.name) == (Layer.QUESTION, "a1", "notes.md")


def test_as_history_it_stands_in_the_same_place_in_the_same_bytes():
    before = replace(round_(1), messages=(asked(NOTES), *round_(1).messages[1:]))
    prompt = assemble(material((before,), attached=READ), count).prompt
    assert prompt.messages[0].content == "Attached, notes.md:\n```\n# Notes\nBuy tea.\n```\n\nWhat is this?"


def test_a_picture_goes_to_a_model_that_sees():
    assembled = assemble(material(question=asked(PHOTO), model=SEEING), count)
    last = assembled.prompt.messages[-1]
    assert last.pictures == (Picture("hash of photo", "image/png"),)
    assert "Attached, photo.png: an image" in last.content
    assert rebuild(assembled.receipt) == assembled.prompt
    [piece] = [s for s in assembled.receipt.segments if s.picture]
    assert piece.tokens == count(piece.text) + picture_tokens(640, 480)


def test_for_one_that_does_not_see_it_is_left_out_and_said_to_be():
    assembled = assemble(material(question=asked(PHOTO)), count)
    assert assembled.prompt.messages[-1].pictures == ()
    assert "(Attached, but not shown to you: photo.png.)" in assembled.prompt.messages[-1].content
    [left] = assembled.receipt.left_out
    assert (left.name, left.reason, left.source_id) == ("photo.png", "this model cannot see images", "a2")


def test_pictures_of_several_rounds_stay_with_their_messages_in_order():
    other = replace(PHOTO, id="a3", name="other.png", content_hash="other")
    before = replace(round_(1), messages=(asked(PHOTO), *round_(1).messages[1:]))
    prompt = assemble(material((before,), asked(other, number=2), model=SEEING), count).prompt
    assert [[p.content_hash for p in m.pictures] for m in prompt.messages] == [
        ["hash of photo"],
        [],
        ["other"],
    ]


@pytest.mark.parametrize("change", [{"size_bytes": 5_000_001}, {"width": 8_001}, {"height": 30_000}], ids=str)
def test_a_picture_larger_than_models_take_is_left_out(change):
    receipt = assemble(material(question=asked(replace(PHOTO, **change)), model=SEEING), count).receipt
    assert [left.reason for left in receipt.left_out] == [
        "models take images of up to 5 MB and 8,000 pixels a side"
    ]


def test_pictures_are_shown_up_to_what_one_request_carries_the_newest_first():
    large = [replace(PHOTO, id=f"a{n}", name=f"{n}.png", size_bytes=4_900_000) for n in range(5)]
    talk = tuple(
        replace(r, messages=(asked(large[r.number], number=r.number), *r.messages[1:])) for r in rounds(4)
    )
    receipt = assemble(material(talk, model=SEEING), count).receipt
    assert [s.name for s in receipt.segments if s.picture] == ["2.png", "3.png", "4.png"]
    assert [(left.name, left.reason) for left in receipt.left_out] == [("1.png", "over the budget")]


def test_what_is_too_large_is_left_out_whole_and_the_rounds_before_it_stay():
    long = (AttachedText("a1", "word " * 20_000),)
    small = replace(WIDE, context_window=4_000)
    talk = rounds(2)
    third = replace(round_(3), messages=(asked(NOTES, number=3), *round_(3).messages[1:]))
    for given in (
        material(talk, asked(NOTES, number=3), attached=long, model=small, max_output_tokens=200),
        material((*talk, third), attached=long, model=small, max_output_tokens=200),
    ):
        assembled = assemble(given, count)
        assert "word" not in "".join(m.content for m in assembled.prompt.messages)
        assert "question 1" in assembled.prompt.messages[0].content
        [left] = assembled.receipt.left_out
        assert (left.name, left.reason, left.round_number) == ("notes.md", "over the budget", 3)
        assert left.tokens > 20_000


@pytest.mark.parametrize(
    ("read", "reason"),
    [
        ((AttachedText("a1", "", "It is protected by a password."),), "It is protected by a password."),
        ((AttachedText("a1", ""),), "it holds no text"),
        ((), "it could not be read"),
    ],
)
def test_what_cannot_be_read_is_named_with_the_reason(read, reason):
    assembled = assemble(material(question=asked(NOTES), attached=read), count)
    assert [(left.name, left.reason) for left in assembled.receipt.left_out] == [("notes.md", reason)]
    assert assembled.prompt.messages[-1].content.endswith("What is this?")


def test_what_was_read_in_part_says_so():
    read = (AttachedText("a1", "# Notes", "Only the first 5,000 pages were read."),)
    last = assemble(material(question=asked(NOTES), attached=read), count).prompt.messages[-1].content
    assert last.startswith("Attached, notes.md (Only the first 5,000 pages were read):\n```\n# Notes")


def test_one_that_a_person_took_out_is_neither_shown_nor_mentioned_and_the_receipt_says_so():
    given = material(question=asked(NOTES, PHOTO), attached=READ, model=SEEING)
    assembled = assemble(replace(given, without=frozenset({"a1", "a2"})), count)
    assert assembled.prompt.messages[-1].content == "What is this?"
    assert [(left.source_id, left.reason) for left in assembled.receipt.left_out] == [
        ("a1", TAKEN_OUT),
        ("a2", TAKEN_OUT),
    ]


def looked_up(receipt):
    return [
        segment.name for segment in receipt.segments if segment.layer is Layer.RETRIEVED and segment.source_id
    ]


def test_what_was_brought_along_is_not_looked_up_as_well():
    """Now or in a round that is shown; where it has no room, its passages may come."""
    found = (
        hit("f1", "Buy tea.", path="notes.md", start_line=2, end_line=2),
        hit("f2", "Buy rope.", path="other.md", start_line=1, end_line=1),
    )
    now = material(question=asked(NOTES), attached=READ, hits=found)
    before = replace(round_(1), messages=(asked(NOTES), *round_(1).messages[1:]))
    then = material((before,), attached=READ, hits=found)
    no_room = replace(now, attached=(AttachedText("a1", "Buy tea." + " word" * 200_000),))
    assert looked_up(assemble(now, count).receipt) == ["other.md:1-1"]
    assert looked_up(assemble(then, count).receipt) == ["other.md:1-1"]
    assert looked_up(assemble(no_room, count).receipt) == ["notes.md:2-2", "other.md:1-1"]


def test_a_recalled_round_names_what_was_attached_then():
    talk = rounds(40)
    second = replace(talk[1], messages=(asked(NOTES, number=2), *talk[1].messages[1:]))
    found = (hit("k", "Bert says 2", source_id="m2Bert", conversation_id="c", round_number=2),)
    last = assemble(material(talk, hits=found, recalled=(second,)), count).prompt.messages[-1].content
    assert "[round 2]:\n(Attached then: notes.md.)\n[User]: What is this?" in last


@pytest.mark.parametrize(
    ("size", "tokens"),
    [
        ((1, 1), 255),
        ((512, 512), 255),
        ((513, 512), 425),
        ((2048, 2048), 2805),
        ((8000, 8000), 2805),
        ((8000, 100), 765),
        ((None, None), 2805),
    ],
)
def test_a_picture_counts_by_its_tiles_after_it_was_made_to_fit(size, tokens):
    assert picture_tokens(*size) == tokens
