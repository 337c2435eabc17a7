"""What a model is shown: examples, and properties over random conversations."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.context.assemble import WITH_THE_OLDEST, DoesNotFit, assemble, rebuild
from tertulia.context.budget import (
    PER_MESSAGE,
    budget_tokens,
    picture_tokens,
    tier_for,
    window_start,
)
from tertulia.context.material import TAKEN_OUT, AttachedText, FileText, Material
from tertulia.core.attachments import Attachment
from tertulia.core.chunks import Hit, Location, Source
from tertulia.core.conversations import Visibility
from tertulia.core.files import FileEntry, Folder, Shelf
from tertulia.core.messages import Message, Role, Round, Status, speaker_of
from tertulia.core.models import WORKING_ROUNDS, Abilities, Model, Tier
from tertulia.core.projects import ContextStrategy
from tertulia.core.receipts import Layer
from tertulia.core.text import visible
from tertulia.core.voices import Wanted, seat

ANNA, BERT, CARA = seat([Wanted("x:anna", "Anna"), Wanted("x:bert", "Bert"), Wanted("y:cara", "Cara")])
TABLE = (ANNA, BERT, CARA)
WIDE = Model("x", "anna", "Anna", context_window=200_000, max_output_tokens=4_000, tier=Tier.SMART)


def count(text: str) -> int:
    return len(text) // 4 + 1


def message(number: int, voice=None, content: str = "", **more) -> Message:
    return Message(
        id=f"m{number}{voice.name if voice else ''}{more.get('replaces_id') or ''}",
        conversation_id="c",
        round_number=number,
        turn_id=f"t{number}",
        speaker=speaker_of(voice.model) if voice else "user",
        role=Role.ADVISOR if voice else Role.USER,
        content=content,
        status=more.pop("status", Status.COMPLETE),
        created_by="u",
        created_at=number,
        voice=voice,
        **more,
    )


def round_(number: int, question: str | None = None, voices=TABLE) -> Round:
    replies = [message(number, voice, f"{voice.name} says {number}") for voice in voices]
    return Round(number, (message(number, None, question or f"question {number}"), *replies))


def material(rounds: tuple[Round, ...] = (), question: str | Message = "And now?", **more) -> Material:
    number = len(rounds) + 1 if not rounds else rounds[-1].number + 1
    asked = question if isinstance(question, Message) else message(number, None, question)
    given = {
        "voice": ANNA,
        "model": WIDE,
        "project_name": "Home",
        "instructions": "",
        "conversation_title": "Tea",
        "rounds": rounds,
        "question": asked,
        "visibility": Visibility.OPEN,
        "context_strategy": ContextStrategy.SMART,
        "max_context_tokens": 128_000,
        "max_output_tokens": 4_000,
    }
    return Material(**(given | more))


def rounds(many: int) -> tuple[Round, ...]:
    return tuple(round_(number) for number in range(1, many + 1))


# ── examples


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


def test_in_its_own_lane_a_voice_sees_nothing_of_the_others_and_the_receipt_names_it():
    assembled = assemble(material(rounds(3), visibility=Visibility.OWN_LANE), count)
    prompt = assembled.prompt
    everything = prompt.system + "".join(m.content for m in prompt.messages)
    assert "Bert" not in everything
    assert "Anna says 3" in everything
    assert "round 3, Bert" in [left.name for left in assembled.receipt.left_out]


def test_in_its_own_lane_a_voice_finds_nothing_that_the_others_said_elsewhere():
    said = ("user", speaker_of(ANNA.model), speaker_of(BERT.model))
    found = tuple(
        hit(f"k{n}", f"said {n}", conversation_id="elsewhere", speaker=one) for n, one in enumerate(said)
    )
    assembled = assemble(material(hits=found, visibility=Visibility.OWN_LANE), count)
    kept = [s.source_id for s in assembled.receipt.segments if s.layer is Layer.RETRIEVED and s.source_id]
    assert kept == ["k0", "k1"]
    [left] = assembled.receipt.left_out
    assert (left.source_id, left.reason) == ("k2", "visibility own lane: someone else said it")


def test_only_the_reply_marked_best_is_seen_where_that_was_chosen():
    best = message(1, BERT, "Bert says 1")
    given_material = material(
        (round_(1), round_(2)), visibility=Visibility.CHOSEN, chosen=frozenset([best.id])
    )
    text = "\n".join(m.content for m in assemble(given_material, count).prompt.messages)
    assert ("Bert says 1" in text, "Anna says 1" in text, "Cara says 1" in text) == (True, False, False)
    assert all(f"{voice.name} says 2" in text for voice in TABLE)


def test_taking_out_the_reply_marked_best_does_not_bring_the_others_to_light():
    best = frozenset([message(1, BERT).id])
    given_material = material((round_(1),), visibility=Visibility.CHOSEN, chosen=best, without=best)
    text = "\n".join(m.content for m in assemble(given_material, count).prompt.messages)
    assert "says 1" not in text


def test_a_personas_instructions_stand_last_in_the_system_prompt():
    given_material = material(instructions="Rhyme.", persona_instructions="Doubt.")
    assert assemble(given_material, count).prompt.system.endswith("Your character at this table:\nDoubt.")


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


def test_a_reply_is_quoted_for_the_model_in_at_most_three_hundred_characters():
    quoted = message(1, BERT, "b" * 500)
    last = assemble(material(rounds(1), quoted=quoted), count).prompt.messages[-1].content
    assert f'[Replying to Bert: "{"b" * 300}"]' in last
    assert "b" * 301 not in last


def test_to_continue_the_partial_text_stands_as_its_own_reply_before_the_last_word():
    prompt = assemble(material(partial="The answer is fo"), count).prompt
    assert [(m.role, m.content) for m in prompt.messages[-2:-1]] == [("assistant", "The answer is fo")]
    assert prompt.messages[-1].role == "user"


@pytest.mark.parametrize(("tier", "working"), [("smart", 20), ("balanced", 10), ("fast", 5), ("cheap", 5)])
def test_the_window_has_the_rounds_of_its_tier_and_says_how_many_are_hidden(tier, working):
    model = replace(WIDE, tier=Tier(tier))
    assembled = assemble(material(rounds(40), model=model), count)
    shown = {s.round_number for s in assembled.receipt.segments if s.layer is Layer.ROUNDS}
    assert working <= len(shown) < working * 1.5
    assert max(shown) == 40
    assert f"The first {40 - len(shown)} are not shown" in assembled.prompt.messages[-1].content
    assert (
        assembled.receipt.left_out[0].reason == f"the first {40 - len(shown)} rounds are outside the window"
    )


def test_a_minimal_project_shows_a_smart_model_as_little_as_a_cheap_one():
    assert tier_for(WIDE, ContextStrategy.MINIMAL) is Tier.CHEAP
    assert tier_for(WIDE, ContextStrategy.BALANCED) is Tier.BALANCED
    assert tier_for(WIDE, ContextStrategy.SMART) is Tier.SMART


def test_a_question_that_cannot_fit_is_refused_with_both_numbers():
    small = replace(WIDE, context_window=1_000)
    with pytest.raises(DoesNotFit, match=r"Anna has room for [\d,]+ tokens and this needs [\d,]+"):
        assemble(material(question="x" * 10_000, model=small, max_output_tokens=200), count)


def test_over_the_budget_the_oldest_rounds_go_first_and_the_receipt_says_so():
    small = replace(WIDE, context_window=900)
    assembled = assemble(material(rounds(20), model=small, max_output_tokens=200), count)
    shown = sorted({s.round_number for s in assembled.receipt.segments if s.layer is Layer.ROUNDS})
    gone = [left.round_number for left in assembled.receipt.left_out if left.round_number]
    assert shown == list(range(shown[0], 21))
    assert gone == list(range(gone[0], shown[0]))


def test_a_voice_is_told_how_many_rounds_it_is_not_shown_also_when_there_was_no_room_for_them():
    small = replace(WIDE, context_window=900)
    assembled = assemble(material(rounds(20), model=small, max_output_tokens=200), count)
    shown = {s.round_number for s in assembled.receipt.segments if s.layer is Layer.ROUNDS}
    assert 0 < len(shown) < 20
    last = assembled.prompt.messages[-1].content
    assert f"The first {20 - len(shown)} are not shown here." in last


def test_files_always_included_are_whole_and_stand_before_the_rounds():
    always = (FileText("f1", "docs/api.md", "GET /tea"),)
    assembled = assemble(material(rounds(1), always=always), count)
    assert "The file docs/api.md, whole [docs/api.md:1-1]:\nGET /tea" in assembled.prompt.system
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
            hits=(hit("k", hidden, path="b.md", start_line=1, end_line=1),),
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


def test_looked_up_text_says_where_it_is_from_and_why():
    found = (
        hit("k1", "def brew(): ...", 0.91, path="tea.py", start_line=4, end_line=9),
        hit(
            "k2",
            "Green tea at 80 degrees.",
            0.5,
            conversation_id="other",
            round_number=3,
            speaker="agent:gpt",
        ),
    )
    assembled = assemble(material(hits=found), count)
    last = assembled.prompt.messages[-1].content
    assert "From tea.py [tea.py:4-9]:\ndef brew(): ..." in last
    assert 'From the conversation "Other talk", round 3, gpt:\nGreen tea at 80 degrees.' in last
    assert [s.reason for s in assembled.receipt.segments if s.source_id == "k1:4-9"] == ["hit 0.91"]


def test_the_best_hits_are_kept_and_the_receipt_names_the_rest():
    found = tuple(
        hit(f"k{i}", f"text {i}", 1 - i / 20, path="a.py", start_line=1, end_line=2) for i in range(6)
    )
    receipt = assemble(material(hits=found, model=replace(WIDE, tier=Tier.CHEAP)), count).receipt
    kept = [s.source_id for s in receipt.segments if s.layer is Layer.RETRIEVED and s.source_id]
    assert kept == ["k0:1-2", "k1:1-2", "k2:1-2"]
    assert [left.source_id for left in receipt.left_out] == ["k3:1-2", "k4:1-2", "k5:1-2"]


def test_looked_up_text_fills_a_fifth_of_the_budget_and_not_more_however_much_room_there_is():
    found = tuple(
        hit(f"k{i}", "x" * 4 * 900, 1 - i / 20, path="a.py", start_line=i, end_line=i) for i in range(10)
    )
    receipt = assemble(material(hits=found, max_context_tokens=10_000), count).receipt
    shown = sum(s.tokens for s in receipt.segments if s.layer is Layer.RETRIEVED)
    assert 1_800 < shown <= 2_000
    assert {left.reason for left in receipt.left_out} == {"over the share of what is looked up"}


@pytest.mark.parametrize("size", range(150, 200))
def test_what_announces_the_looked_up_text_is_in_its_share(size):
    found = (hit("k", "x" * 4 * size, path="a.py", start_line=1, end_line=1),)
    receipt = assemble(material(hits=found, max_context_tokens=1_000), count).receipt
    shown = [s for s in receipt.segments if s.layer is Layer.RETRIEVED]
    assert sum(s.tokens + PER_MESSAGE for s in shown) <= 200


@pytest.mark.parametrize(
    ("strategy", "most", "shown"),
    [("smart", 10, 10), ("balanced", 10, 5), ("minimal", 10, 3), ("smart", 4, 4)],
)
def test_a_project_that_wants_little_context_has_less_looked_up(strategy, most, shown):
    found = tuple(hit(f"k{i}", f"text {i}", path="a.py", start_line=i, end_line=i) for i in range(12))
    given = material(hits=found, context_strategy=ContextStrategy(strategy), max_results=most)
    segments = assemble(given, count).receipt.segments
    assert sum(s.layer is Layer.RETRIEVED and s.source_id is not None for s in segments) == shown


@pytest.mark.parametrize(
    ("window", "project", "budget"),
    [(100_000, 128_000, 94_000), (200_000, 128_000, 128_000), (5_000, 128_000, 900), (2_000, 128_000, 0)],
)
def test_the_budget_is_the_window_less_the_answer_less_a_margin_and_never_above_the_projects(
    window, project, budget
):
    assert budget_tokens(replace(WIDE, context_window=window), 4_000, project) == budget


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


def test_a_round_outside_the_window_is_recalled_whole_when_a_hit_lies_in_it():
    talk = rounds(40)
    found = (hit("k", "Bert says 2", source_id="m2Bert", conversation_id="c", round_number=2),)
    given = material(talk, hits=found, recalled=talk[:3], model=replace(WIDE, tier=Tier.FAST))
    last = assemble(given, count).prompt.messages[-1].content
    assert "Earlier in this conversation [round 2]:\n[User]: question 2\n[Anna]: Anna says 2\n[Bert]:" in last


def test_a_recalled_round_that_a_person_took_out_stays_out_whichever_of_its_messages_is_found():
    talk = rounds(40)
    for found in ("m2", "m2Bert"):
        hits = (hit("k", "says 2", source_id=found, conversation_id="c", round_number=2),)
        given = material(talk, hits=hits, recalled=talk[:3], without=frozenset(["m2Bert"]))
        receipt = assemble(given, count).receipt
        assert [s for s in receipt.segments if s.layer is Layer.RETRIEVED] == []
        assert (TAKEN_OUT, 2) in [(left.reason, left.round_number) for left in receipt.left_out]


def test_what_is_cited_can_be_followed_to_its_place():
    listed = assemble(material(shelf=Shelf(1, (FileEntry("docs/plan.md", 10, ""),))), count).prompt.system
    assert "[docs/plan.md:12-40]" in listed
    assert "[round 7]" in listed
    assert "[round 7]" not in assemble(material(), count).prompt.system


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


# ── properties

texts = st.text(min_size=1, max_size=300)
TEXT, PICTURE = "text/plain", "image/png"


@st.composite
def conversations(draw) -> tuple[Round, ...]:
    many = draw(st.integers(0, 30))
    made = []
    for number in range(1, many + 1):
        voices = draw(st.lists(st.sampled_from(TABLE), unique=True))
        replies = [message(number, voice, draw(st.text(max_size=200))) for voice in voices]
        question = message(number, None, draw(texts), attachments=draw(brought_along(number)))
        made.append(Round(number, (question, *replies)))
    return tuple(made)


@st.composite
def brought_along(draw, number: int) -> tuple[Attachment, ...]:
    kinds = draw(st.one_of(st.just([]), st.lists(st.sampled_from([TEXT, PICTURE]), max_size=3)))
    sides = st.one_of(st.none(), st.integers(1, 9000))
    return tuple(
        Attachment(
            f"a{number}.{i}",
            f"{number}-{i}",
            kind,
            draw(st.integers(1, 6_000_000)),
            f"hash {number}.{i}",
            draw(sides) if kind == PICTURE else None,
            draw(sides) if kind == PICTURE else None,
        )
        for i, kind in enumerate(kinds)
    )


@st.composite
def read_from(draw, made: tuple[Round, ...], *more: Attachment) -> tuple[AttachedText, ...]:
    """What the attachments hold: much, little, nothing, or nobody could read them."""
    brought = [one for round_ in made for one in round_.question.attachments]
    held = st.one_of(st.text(max_size=60), st.integers(0, 5000).map(lambda long: "word " * long))
    reasons = st.one_of(st.none(), st.just("Only the first pages were read."))
    return tuple(
        AttachedText(one.id, draw(held), draw(reasons))
        for one in (*brought, *more)
        if not one.is_picture and draw(st.integers(0, 9))
    )


def hit(chunk_id: str, content: str, score: float = 0.5, **where) -> Hit:
    source = Source.FILE if "path" in where else Source.MESSAGE
    source_id = where.pop("source_id", chunk_id)
    return Hit(
        chunk_id,
        source,
        source_id,
        "p",
        "Other talk",
        Location(**where),
        content,
        "",
        (),
        score,
        (),
        "",
        "",
        0,
        0,
    )


file_hits = st.builds(
    lambda i, text, score: hit(f"k{i}", text, score, path=f"x/{i}.py", start_line=1, end_line=9),
    st.integers(0, 50), st.text(max_size=200), st.floats(0, 1),
)  # fmt: skip


def round_hits(made: tuple[Round, ...]) -> st.SearchStrategy[Hit]:
    said = [m for r in made for m in r.messages] or [message(0, None, "nothing")]
    return st.sampled_from(said).map(
        lambda m: hit(f"k{m.id}", m.content, source_id=m.id, conversation_id="c", round_number=m.round_number)
    )


@st.composite
def materials(draw) -> Material:
    tier = draw(st.sampled_from(list(Tier)))
    window = draw(st.integers(900, 20_000))
    made = draw(conversations())
    asked = draw(brought_along(0))
    files = tuple(
        FileText(f"f{i}", f"a/{i}.md", text)
        for i, text in enumerate(draw(st.lists(st.text(max_size=80), max_size=2)))
    )
    abilities = Abilities(vision=draw(st.booleans()))
    number = len(made) + 1
    return material(
        made,
        question=message(number, None, draw(st.text(min_size=1, max_size=100)), attachments=asked),
        attached=draw(read_from(made, *asked)),
        model=replace(WIDE, tier=tier, context_window=window, abilities=abilities),
        visibility=draw(st.sampled_from(list(Visibility))),
        chosen=frozenset(
            reply.id
            for one in made
            if draw(st.booleans())
            for reply in one.replies[draw(st.integers(0, 2)) :][:1]
        ),
        max_output_tokens=200,
        max_context_tokens=draw(st.integers(700, 30_000)),
        always=files,
        hits=tuple(draw(st.lists(st.one_of(file_hits, round_hits(made)), max_size=12))),
        recalled=made,
    )


@given(materials())
def test_a_prompt_is_never_over_its_budget(given_material):
    prompt = assemble(given_material, count).prompt
    size = count(prompt.system) + sum(count(m.content) + PER_MESSAGE for m in prompt.messages)
    said = [given_material.question, *(r.question for r in given_material.rounds)]
    sizes = {a.content_hash: picture_tokens(a.width, a.height) for m in said for a in m.attachments}
    seen = sum(sizes[picture.content_hash] for m in prompt.messages for picture in m.pictures)
    budget = budget_tokens(given_material.model, 200, given_material.max_context_tokens)
    assert size + seen <= budget


@given(materials())
def test_the_receipt_rebuilds_the_request_exactly(given_material):
    assembled = assemble(given_material, count)
    assert rebuild(assembled.receipt) == assembled.prompt


@given(materials())
def test_the_same_material_gives_the_same_prompt(given_material):
    assert assemble(given_material, count) == assemble(given_material, count)


@given(materials())
def test_a_round_is_shown_whole_or_not_at_all(given_material):
    receipt = assemble(given_material, count).receipt
    for number in {s.round_number for s in receipt.segments if s.layer is Layer.ROUNDS}:
        here = given_material.rounds[number - 1]
        shown = [s for s in receipt.segments if s.layer is Layer.ROUNDS]
        sources = [s.source_id for s in shown if s.round_number == number and s.reason == "recent"]
        seen = [here.question, *allowed(here, given_material)]
        assert sorted(sources) == sorted(m.id for m in seen)
        hidden = [left.source_id for left in receipt.left_out if left.reason.startswith("visibility ")]
        kept_back = {r.id for r in here.replies if r.content} - {m.id for m in seen}
        assert kept_back <= set(hidden)
        assert not set(hidden) & set(sources)


def allowed(here: Round, given_material: Material) -> list[Message]:
    """What the visibility lets Anna see, said once more and in the plainest way."""
    said = [reply for reply in here.replies if reply.content]
    match given_material.visibility:
        case Visibility.OPEN:
            return said
        case Visibility.OWN_LANE:
            return [reply for reply in said if reply.voice is ANNA]
        case Visibility.CHOSEN:
            return [reply for reply in said if reply.id in given_material.chosen] or said


@given(materials())
def test_what_was_looked_up_takes_at_most_a_fifth_and_repeats_nothing_in_the_window(given_material):
    receipt = assemble(given_material, count).receipt
    found = [s for s in receipt.segments if s.layer is Layer.RETRIEVED]
    assert sum(s.tokens for s in found) <= receipt.budget_tokens * 0.2
    window = {s.round_number for s in receipt.segments if s.layer is Layer.ROUNDS}
    assert not window & {s.round_number for s in found if s.round_number}


@given(materials())
def test_a_recalled_round_comes_once_whole_and_only_as_far_as_it_may_be_seen(given_material):
    receipt = assemble(given_material, count).receipt
    found = [s for s in receipt.segments if s.layer is Layer.RETRIEVED and s.round_number]
    assert len({s.round_number for s in found}) == len(found)
    for segment in found:
        here = given_material.rounds[segment.round_number - 1]
        assert here.question.content in segment.text
        seen = allowed(here, given_material)
        for reply in here.replies:
            if reply in seen:
                assert f"[{reply.voice.name}]: {reply.content}" in segment.text
            elif all(other.voice is not reply.voice for other in seen):
                rest = segment.text
                for shown in (here.question, *seen):
                    rest = rest.replace(shown.content, "")
                assert f"[{reply.voice.name}]:" not in rest


@given(materials())
def test_looked_up_text_is_given_up_before_any_round(given_material):
    receipt = assemble(given_material, count).receipt
    with_nothing = assemble(replace(given_material, hits=()), count).receipt
    rounds_shown = [s.source_id for s in receipt.segments if s.layer is Layer.ROUNDS]
    assert rounds_shown == [s.source_id for s in with_nothing.segments if s.layer is Layer.ROUNDS]


@given(materials())
def test_roles_alternate_and_the_question_is_last(given_material):
    prompt = assemble(given_material, count).prompt
    roles = [m.role for m in prompt.messages]
    assert roles[0] == roles[-1] == "user"
    assert all(a != b for a, b in zip(roles, roles[1:], strict=False))
    assert prompt.messages[-1].content.endswith(given_material.question.content)


@given(st.integers(0, 200), st.sampled_from(sorted(set(WORKING_ROUNDS.values()))))
def test_the_window_grows_by_up_to_half_and_drops_back(history, working):
    shown = history - window_start(history, working)
    assert shown == history if history <= working else working <= shown < working + max(1, working // 2) + 1


@pytest.mark.parametrize("working", sorted(set(WORKING_ROUNDS.values())))
def test_the_window_begins_at_the_same_round_for_half_its_size(working):
    starts = [window_start(history, working) for history in range(working, working + 40)]
    assert len(set(starts)) == -(-40 // (working // 2))


@st.composite
def talks(draw) -> tuple[tuple[Round, ...], tuple[AttachedText, ...], Model]:
    """At least two rounds, what they brought along, and a model that may have eyes."""
    made = draw(conversations().filter(lambda made: len(made) > 1))
    model = replace(WIDE, abilities=Abilities(vision=draw(st.booleans())))
    return made, draw(read_from(made)), model


@given(talks())
def test_the_next_turns_prompt_begins_as_this_one_did_unless_the_receipt_says_why(talk):
    made, attached, model = talk
    before = assemble(material(made[:-1], made[-1].question, attached=attached, model=model), count).receipt
    after = assemble(material(made, attached=attached, model=model), count).receipt
    stable = [s for s in before.segments if s.layer in (Layer.SYSTEM, Layer.ROUNDS)]
    moved = window_start(len(made), 20) != window_start(len(made) - 1, 20)
    full = any(left.reason == "over the budget" for left in after.left_out)
    assert bytes_of(after.segments[: len(stable)]) == bytes_of(stable) or moved or full


@pytest.mark.parametrize("tokens", [100, 150, 220, 400])
def test_where_the_budget_ends_before_the_window_the_prompt_still_begins_alike_for_several_turns(tokens):
    model = replace(WIDE, context_window=2_600)
    talk = tuple(round_(number, "x" * tokens * 4) for number in range(1, 62))
    begins = []
    for asked in range(30, 60):
        receipt = assemble(material(talk[:asked], model=model, max_output_tokens=200), count).receipt
        assert receipt.left_out[-1].reason in ("over the budget", WITH_THE_OLDEST)
        begins.append(next(s.round_number for s in receipt.segments if s.layer is Layer.ROUNDS))
    assert begins == sorted(begins)
    assert len(set(begins)) <= len(begins) // 2 + 1


@given(materials())
def test_of_the_rounds_for_which_there_is_room_more_than_half_are_shown(given_material):
    receipt = assemble(given_material, count).receipt
    going = [left.round_number for left in receipt.left_out if left.reason == WITH_THE_OLDEST]
    gone = [
        left.round_number
        for left in receipt.left_out
        if left.layer is Layer.ROUNDS and left.reason == "over the budget" and not left.source_id
    ]
    shown = sorted({s.round_number for s in receipt.segments if s.layer is Layer.ROUNDS})
    assert len(going) <= len(shown)
    assert gone or not going
    in_order = [*gone, *going, *shown]
    assert in_order == sorted(in_order)


@given(talks())
def test_what_is_marked_to_stay_is_sent_again_in_the_same_bytes(talk):
    made, attached, model = talk
    before = assemble(material(made[:-1], made[-1].question, attached=attached, model=model), count)
    after = assemble(material(made, attached=attached, model=model), count)
    ends = [place for place, m in enumerate(before.prompt.messages) if m.ends_cacheable]
    assert len(ends) <= 1
    moved = window_start(len(made), 20) != window_start(len(made) - 1, 20)
    if ends and not moved and not any(left.reason == "over the budget" for left in after.receipt.left_out):
        kept = ends[0] + 1
        assert [m.content for m in after.prompt.messages[:kept]] == [
            m.content for m in before.prompt.messages[:kept]
        ]


@given(talks())
def test_what_a_question_brought_along_has_the_same_bytes_once_it_is_history(talk):
    made, attached, model = talk
    asked = assemble(material(made[:-1], made[-1].question, attached=attached, model=model), count).receipt
    later = assemble(material(made, attached=attached, model=model), count).receipt
    number = made[-1].number
    then = [s for s in asked.segments if s.layer is Layer.QUESTION and s.round_number == number]
    now = [s for s in later.segments if s.layer is Layer.ROUNDS and s.round_number == number]
    full = any(left.reason == "over the budget" for left in (*asked.left_out, *later.left_out))
    assert bytes_of(now[: len(then)]) == bytes_of(then) or full


def bytes_of(segments) -> list:
    return [(s.text, s.picture) for s in segments]


@given(materials())
def test_everything_brought_along_is_shown_whole_or_named_with_its_reason(given_material):
    receipt = assemble(given_material, count).receipt
    shown = {s.source_id: s for s in receipt.segments if s.reason == "attached"}
    left = {one.source_id: one for one in receipt.left_out if (one.source_id or "").startswith("a")}
    rounds_shown = {s.round_number for s in receipt.segments if s.layer is Layer.ROUNDS}
    in_sight = [r.question for r in given_material.rounds if r.number in rounds_shown]
    texts = {one.id: one.text for one in given_material.attached}
    for one in (a for m in (*in_sight, given_material.question) for a in m.attachments):
        assert (one.id in shown) != (one.id in left)
        if one.id in left:
            assert (left[one.id].name, bool(left[one.id].reason)) == (one.name, True)
        elif one.is_picture:
            assert shown[one.id].picture.content_hash == one.content_hash
        else:
            assert shown[one.id].text.endswith(":\n" + visible(texts[one.id]))
