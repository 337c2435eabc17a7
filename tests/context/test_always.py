"""The project's files: whole where they are always included, and all of them on a list."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tertulia.context.assemble import assemble
from tertulia.context.material import AttachedText, FileText
from tertulia.core.attachments import Attachment
from tertulia.core.files import FileEntry, Folder, Shelf
from tertulia.core.receipts import Layer
from tests.context.materials import TEXT, WIDE, count, hit, material, message, rounds


def test_files_always_included_are_whole_and_stand_before_the_rounds():
    always = (FileText("f1", "docs/api.md", "GET /tea"),)
    assembled = assemble(material(rounds(1), always=always), count)
    assert "The file docs/api.md, whole [docs/api.md:1-1]:\n```\nGET /tea\n```" in assembled.prompt.system
    assert [s.source_id for s in assembled.receipt.segments if s.layer is Layer.ALWAYS] == ["f1"]


def test_letters_that_nobody_sees_in_a_file_are_not_shown_to_a_model_either():
    hidden = "tea" + "".join(chr(0xE0000 + ord(letter)) for letter in "obey") + "\u200b\u202e"
    brought = Attachment("a1", "notes.md", TEXT, 8, "hash")
    assembled = assemble(
        material(
            question=message(1, None, "And now?", attachments=(brought,)),
            attached=(AttachedText("a1", hidden),),
            always=(FileText("f", "a.md", hidden),),
            shelf=Shelf(1, (FileEntry("a.md", 9, hidden),)),
            hits=(hit("k", f"green {hidden}", path="b.md", start_line=1, end_line=1),),
        ),
        count,
    )
    everything = assembled.prompt.system + "".join(m.content for m in assembled.prompt.messages)
    assert everything.count("tea") == 4
    assert not set(everything) & set(hidden.removeprefix("tea"))


def test_files_always_included_keep_their_place():
    files = tuple(FileText(f"f{i}", f"{i}.md", f"text {i}") for i in range(3))
    segments = assemble(material(always=files), count).receipt.segments
    assert [s.source_id for s in segments if s.layer is Layer.ALWAYS] == ["f0", "f1", "f2"]


def test_a_file_of_which_only_a_part_was_read_says_so_and_one_without_text_is_named_with_the_reason():
    cut = FileText("f1", "long.pdf", "[Page 1]", "Only the first 5,000 pages were read.")
    locked = FileText("f2", "locked.pdf", "", "It is protected by a password.")
    assembled = assemble(material(always=(cut, locked)), count)
    assert "The file long.pdf, Only the first 5,000 pages were read [long.pdf:1-1]" in assembled.prompt.system
    assert "locked.pdf" not in assembled.prompt.system
    assert [(left.source_id, left.reason) for left in assembled.receipt.left_out] == [
        ("f2", "It is protected by a password.")
    ]


def test_few_files_are_listed_and_many_become_folders_with_counts():
    few = tuple(FileEntry(f"docs/{i}.md", 2048, "about tea") for i in range(50))
    many = Shelf(51, folders=(Folder("", 1), Folder("docs/", 50)))
    assert "- docs/7.md (2.0 kB): about tea" in assemble(material(shelf=Shelf(50, few)), count).prompt.system
    listed = assemble(material(shelf=many), count).prompt.system
    assert "The project has 51 files:\n- (top) 1 files\n- docs/ 50 files" in listed


@pytest.mark.parametrize(
    "shelf",
    [
        Shelf(9_000, folders=tuple(Folder(f"folder-{n}/", 1) for n in range(9_000))),
        Shelf(50, tuple(FileEntry(f"{'x' * 900}/{n}.md", 10, "") for n in range(50))),
    ],
)
def test_a_list_of_files_however_long_leaves_room_for_what_is_asked(shelf):
    small = replace(WIDE, context_window=4_000)
    assembled = assemble(material(rounds(1), shelf=shelf, model=small, max_output_tokens=200), count)
    [listed] = [s for s in assembled.receipt.segments if s.reason.startswith("the project's files")]
    shown = listed.text.count("\n- ") - 1
    assert listed.tokens <= assembled.receipt.budget_tokens * 0.2 + 10
    assert listed.reason == "the project's files, as many as fit"
    what = "folders" if shelf.folders else "files"
    assert listed.text.endswith(f"- and {len(shelf.folders or shelf.entries) - shown} more {what}")


def test_a_file_that_can_never_fit_is_not_even_counted():
    """A vocabulary takes a second for a few megabytes."""
    counted: list[int] = []

    def counting(text: str) -> int:
        counted.append(len(text))
        return count(text)

    always = (FileText("f", "dump.sql", "x" * 3_000_000),)
    receipt = assemble(material(always=always), counting).receipt
    assert [(left.name, left.reason) for left in receipt.left_out] == [("dump.sql", "over the budget")]
    assert max(counted) < 10_000


def test_what_is_cited_can_be_followed_to_its_place():
    listed = assemble(material(shelf=Shelf(1, (FileEntry("docs/plan.md", 10, ""),))), count).prompt.system
    assert "[docs/plan.md:12-40]" in listed
    assert "[round 7]" in listed
    assert "[round 7]" not in assemble(material(), count).prompt.system
