"""Attachments in prompts: their place, the models that see them, and the notes for those that cannot be
shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tertulia.context.assemble import assemble, rebuild
from tertulia.context.budget import picture_tokens
from tertulia.context.prompt_inputs import AttachedText
from tertulia.core.attachments import Attachment
from tertulia.core.models import Abilities
from tertulia.core.prompts import Picture
from tertulia.core.receipts import Layer, LeftOutReason, SegmentReason, SourceLocation
from tests.context.materials import WIDE, count, hit, make_inputs, message, round_, rounds

WITH_VISION = replace(WIDE, abilities=Abilities(vision=True))
NOTES = Attachment("a1", "notes.md", "text/markdown", 8, "hash of notes")
PHOTO = Attachment("a2", "photo.png", "image/png", 9_000, "hash of photo", 640, 480)
TEXTS = (AttachedText("a1", "# Notes\nBuy tea."),)


def question_with(*attachments: Attachment, number: int = 1, text: str = "What is this?"):
    return message(number, None, text, attachments=attachments)


def test_a_text_attachment_comes_right_before_its_question():
    assembled = assemble(make_inputs(question=question_with(NOTES), attachment_texts=TEXTS), count)
    assert assembled.prompt.messages[-1].content == (
        "Attached, notes.md:\n```\n# Notes\nBuy tea.\n```\n\nWhat is this?"
    )
    [piece] = [s for s in assembled.receipt.segments if s.reason is SegmentReason.ATTACHED]
    assert (piece.layer, piece.source_id) == (Layer.QUESTION, "a1")
    assert piece.location == SourceLocation(file_name="notes.md")


def test_an_attachment_of_an_earlier_round_has_the_same_place_and_bytes():
    earlier_round = replace(round_(1), messages=(question_with(NOTES), *round_(1).messages[1:]))
    prompt = assemble(make_inputs((earlier_round,), attachment_texts=TEXTS), count).prompt
    assert prompt.messages[0].content == "Attached, notes.md:\n```\n# Notes\nBuy tea.\n```\n\nWhat is this?"


def test_an_image_is_sent_to_a_model_with_vision():
    assembled = assemble(make_inputs(question=question_with(PHOTO), model=WITH_VISION), count)
    last = assembled.prompt.messages[-1]
    assert last.pictures == (Picture("hash of photo", "image/png"),)
    assert "Attached, photo.png: an image" in last.content
    assert rebuild(assembled.receipt) == assembled.prompt
    [piece] = [s for s in assembled.receipt.segments if s.picture]
    assert piece.tokens == count(piece.text) + picture_tokens(640, 480)


def test_a_model_without_vision_is_told_about_an_image_that_is_left_out():
    assembled = assemble(make_inputs(question=question_with(PHOTO)), count)
    assert assembled.prompt.messages[-1].pictures == ()
    assert "(Attached, but not shown to you: photo.png.)" in assembled.prompt.messages[-1].content
    [item] = assembled.receipt.left_out
    assert (item.location, item.reason, item.source_id) == (
        SourceLocation(file_name="photo.png"),
        LeftOutReason.NO_VISION,
        "a2",
    )


def test_images_of_several_rounds_stay_with_their_messages():
    second_photo = replace(PHOTO, id="a3", name="other.png", content_hash="other")
    earlier_round = replace(round_(1), messages=(question_with(PHOTO), *round_(1).messages[1:]))
    prompt = assemble(
        make_inputs((earlier_round,), question_with(second_photo, number=2), model=WITH_VISION), count
    ).prompt
    assert [[p.content_hash for p in m.pictures] for m in prompt.messages] == [
        ["hash of photo"],
        [],
        ["other"],
    ]


@pytest.mark.parametrize(
    ("change", "reason", "limit"),
    [
        ({"size_bytes": 5_000_001}, LeftOutReason.IMAGE_BYTES, 5_000_000),
        ({"width": 8_001}, LeftOutReason.IMAGE_SIDE, 8_000),
        ({"height": 30_000}, LeftOutReason.IMAGE_SIDE, 8_000),
    ],
    ids=str,
)
def test_an_image_above_a_size_limit_is_left_out_and_the_receipt_names_the_limit(change, reason, limit):
    receipt = assemble(
        make_inputs(question=question_with(replace(PHOTO, **change)), model=WITH_VISION), count
    ).receipt
    assert [(item.reason, item.limit) for item in receipt.left_out] == [(reason, limit)]


def test_the_newest_images_are_shown_up_to_the_size_limit_of_a_request():
    images = [replace(PHOTO, id=f"a{n}", name=f"{n}.png", size_bytes=4_900_000) for n in range(5)]
    history = tuple(
        replace(
            round_,
            messages=(question_with(images[round_.number], number=round_.number), *round_.messages[1:]),
        )
        for round_ in rounds(4)
    )
    receipt = assemble(make_inputs(history, model=WITH_VISION), count).receipt
    shown = [s.location.file_name for s in receipt.segments if s.picture]
    assert shown == ["2.png", "3.png", "4.png"]
    assert [(item.location.file_name, item.reason) for item in receipt.left_out] == [
        ("1.png", LeftOutReason.OVER_BUDGET)
    ]


def test_a_too_large_attachment_is_left_out_and_earlier_rounds_stay():
    texts = (AttachedText("a1", "word " * 20_000),)
    small_model = replace(WIDE, context_window=4_000)
    history = rounds(2)
    third = replace(round_(3), messages=(question_with(NOTES, number=3), *round_(3).messages[1:]))
    for inputs in (
        make_inputs(
            history,
            question_with(NOTES, number=3),
            attachment_texts=texts,
            model=small_model,
            max_output_tokens=200,
        ),
        make_inputs((*history, third), attachment_texts=texts, model=small_model, max_output_tokens=200),
    ):
        assembled = assemble(inputs, count)
        assert "word" not in "".join(m.content for m in assembled.prompt.messages)
        assert "question 1" in assembled.prompt.messages[0].content
        [item] = assembled.receipt.left_out
        assert (item.location, item.round_number) == (SourceLocation(file_name="notes.md"), 3)
        assert item.reason is LeftOutReason.OVER_BUDGET
        assert item.tokens > 20_000


@pytest.mark.parametrize(
    ("texts", "reason", "note"),
    [
        (
            (AttachedText("a1", "", "It is protected by a password."),),
            LeftOutReason.UNREADABLE,
            "It is protected by a password.",
        ),
        ((AttachedText("a1", ""),), LeftOutReason.NO_TEXT, ""),
        ((AttachedText("a1", "", is_over_budget=True),), LeftOutReason.OVER_BUDGET, ""),
        ((), LeftOutReason.UNREADABLE, "It could not be read."),
    ],
)
def test_an_attachment_without_text_is_left_out_with_its_reason(texts, reason, note):
    assembled = assemble(make_inputs(question=question_with(NOTES), attachment_texts=texts), count)
    [item] = assembled.receipt.left_out
    assert (item.location, item.reason, item.note) == (SourceLocation(file_name="notes.md"), reason, note)
    assert assembled.prompt.messages[-1].content.endswith("What is this?")


def test_a_partly_read_attachment_says_so():
    texts = (AttachedText("a1", "# Notes", "Only the first 5,000 pages were read."),)
    last = (
        assemble(make_inputs(question=question_with(NOTES), attachment_texts=texts), count)
        .prompt.messages[-1]
        .content
    )
    assert last.startswith("Attached, notes.md (Only the first 5,000 pages were read):\n```\n# Notes")


def test_a_removed_attachment_is_absent_from_the_prompt_and_listed_as_left_out():
    inputs = make_inputs(
        question=question_with(NOTES, PHOTO),
        attachment_texts=TEXTS,
        model=WITH_VISION,
        excluded_ids=frozenset({"a1", "a2"}),
    )
    assembled = assemble(inputs, count)
    assert assembled.prompt.messages[-1].content == "What is this?"
    assert [(item.source_id, item.reason) for item in assembled.receipt.left_out] == [
        ("a1", LeftOutReason.REMOVED_BY_USER),
        ("a2", LeftOutReason.REMOVED_BY_USER),
    ]


def retrieved_paths(receipt):
    results = [s for s in receipt.segments if s.layer is Layer.RETRIEVED and s.source_id]
    return [segment.location.path for segment in results]


def test_search_results_leave_out_passages_of_shown_attachments():
    """This holds for attachments of the question and of a shown round. The passages of an attachment without
    space may be shown."""
    hits = (
        hit("f1", "Buy tea.", path="notes.md", start_line=2, end_line=2),
        hit("f2", "Buy rope.", path="other.md", start_line=1, end_line=1),
    )
    now = make_inputs(question=question_with(NOTES), attachment_texts=TEXTS, hits=hits)
    earlier_round = replace(round_(1), messages=(question_with(NOTES), *round_(1).messages[1:]))
    history = make_inputs((earlier_round,), attachment_texts=TEXTS, hits=hits)
    too_large = (AttachedText("a1", "Buy tea." + " word" * 200_000),)
    no_room = make_inputs(question=question_with(NOTES), attachment_texts=too_large, hits=hits)
    assert retrieved_paths(assemble(now, count).receipt) == ["other.md"]
    assert retrieved_paths(assemble(history, count).receipt) == ["other.md"]
    assert retrieved_paths(assemble(no_room, count).receipt) == ["notes.md", "other.md"]


def test_a_recalled_round_names_its_attachments():
    history = rounds(40)
    second = replace(history[1], messages=(question_with(NOTES, number=2), *history[1].messages[1:]))
    hits = (hit("k", "Bert says 2", source_id="m2Bert", conversation_id="c", round_number=2),)
    last = (
        assemble(make_inputs(history, hits=hits, recalled_rounds=(second,)), count)
        .prompt.messages[-1]
        .content
    )
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
def test_an_images_tokens_are_its_tiles_after_scaling(size, tokens):
    assert picture_tokens(*size) == tokens
