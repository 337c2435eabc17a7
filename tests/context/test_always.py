"""Project files in prompts: always-included files in full, and a list of all files."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tertulia.context.assemble import assemble
from tertulia.context.prompt_inputs import AttachedText, IncludedFile
from tertulia.core.attachments import Attachment
from tertulia.core.files import FileEntry, FileListing, Folder
from tertulia.core.receipts import Layer, LeftOutReason, SegmentReason
from tests.context.materials import TEXT, WIDE, count, hit, make_inputs, message, rounds


def test_always_included_files_are_complete_and_come_before_the_rounds():
    files = (IncludedFile("f1", "docs/api.md", "GET /tea"),)
    assembled = assemble(make_inputs(rounds(1), always_included=files), count)
    assert "The file docs/api.md, whole [docs/api.md:1-1]:\n```\nGET /tea\n```" in assembled.prompt.system
    assert [s.source_id for s in assembled.receipt.segments if s.layer is Layer.ALWAYS] == ["f1"]


def test_invisible_characters_in_files_are_removed_from_the_prompt():
    hidden = "tea" + "".join(chr(0xE0000 + ord(letter)) for letter in "obey") + "\u200b\u202e"
    attachment = Attachment("a1", "notes.md", TEXT, 8, "hash")
    assembled = assemble(
        make_inputs(
            question=message(1, None, "And now?", attachments=(attachment,)),
            attachment_texts=(AttachedText("a1", hidden),),
            always_included=(IncludedFile("f", "a.md", hidden),),
            file_listing=FileListing(1, (FileEntry("a.md", 9, hidden),)),
            hits=(hit("k", f"green {hidden}", path="b.md", start_line=1, end_line=1),),
        ),
        count,
    )
    everything = assembled.prompt.system + "".join(m.content for m in assembled.prompt.messages)
    assert everything.count("tea") == 4
    assert not set(everything) & set(hidden.removeprefix("tea"))


def test_always_included_files_keep_their_order():
    files = tuple(IncludedFile(f"f{i}", f"{i}.md", f"text {i}") for i in range(3))
    segments = assemble(make_inputs(always_included=files), count).receipt.segments
    assert [s.source_id for s in segments if s.layer is Layer.ALWAYS] == ["f0", "f1", "f2"]


def test_a_partly_read_file_says_so_and_a_file_without_text_is_left_out_with_its_reason():
    cut = IncludedFile("f1", "long.pdf", "[Page 1]", "Only the first 5,000 pages were read.")
    locked = IncludedFile("f2", "locked.pdf", "", "It is protected by a password.")
    assembled = assemble(make_inputs(always_included=(cut, locked)), count)
    assert "The file long.pdf, Only the first 5,000 pages were read [long.pdf:1-1]" in assembled.prompt.system
    assert "locked.pdf" not in assembled.prompt.system
    [item] = assembled.receipt.left_out
    assert (item.source_id, item.reason) == ("f2", LeftOutReason.UNREADABLE)
    assert item.note == "It is protected by a password."


def test_few_files_are_listed_by_name_and_many_by_folder():
    few = tuple(FileEntry(f"docs/{i}.md", 2048, "about tea") for i in range(50))
    many = FileListing(51, folders=(Folder("", 1), Folder("docs/", 50)))
    assert (
        "- docs/7.md (2.0 kB): about tea"
        in assemble(make_inputs(file_listing=FileListing(50, few)), count).prompt.system
    )
    listed = assemble(make_inputs(file_listing=many), count).prompt.system
    assert "The project has 51 files:\n- (top) 1 files\n- docs/ 50 files" in listed


@pytest.mark.parametrize(
    "listing",
    [
        FileListing(9_000, folders=tuple(Folder(f"folder-{n}/", 1) for n in range(9_000))),
        FileListing(50, tuple(FileEntry(f"{'x' * 900}/{n}.md", 10, "") for n in range(50))),
    ],
)
def test_a_long_file_list_is_cut_to_its_share_of_the_budget(listing):
    small = replace(WIDE, context_window=4_000)
    assembled = assemble(
        make_inputs(rounds(1), file_listing=listing, model=small, max_output_tokens=200), count
    )
    [listed] = [s for s in assembled.receipt.segments if s.reason is SegmentReason.PARTIAL_FILE_LIST]
    shown = listed.text.count("\n- ") - 1
    assert listed.tokens <= assembled.receipt.budget_tokens * 0.2 + 10
    noun = "folders" if listing.folders else "files"
    assert listed.text.endswith(f"- and {len(listing.folders or listing.entries) - shown} more {noun}")


def test_a_file_that_can_never_fit_is_left_out_without_counting_its_tokens():
    """Counting the tokens of a few megabytes takes a second."""
    lengths: list[int] = []

    def counting(text: str) -> int:
        lengths.append(len(text))
        return count(text)

    files = (IncludedFile("f", "dump.sql", "x" * 3_000_000),)
    receipt = assemble(make_inputs(always_included=files), counting).receipt
    assert [(item.location.path, item.reason) for item in receipt.left_out] == [
        ("dump.sql", LeftOutReason.OVER_BUDGET)
    ]
    assert max(lengths) < 10_000


def test_the_prompt_explains_citations_only_if_the_project_has_files():
    listed = assemble(
        make_inputs(file_listing=FileListing(1, (FileEntry("docs/plan.md", 10, ""),))), count
    ).prompt.system
    assert "[docs/plan.md:12-40]" in listed
    assert "[round 7]" in listed
    assert "[round 7]" not in assemble(make_inputs(), count).prompt.system
