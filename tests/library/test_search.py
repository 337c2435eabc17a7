"""Search: what was written or said is found, by words and by meaning, and by nobody who may not see it."""

from __future__ import annotations

from unicodedata import normalize

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tertulia.core.chunks import Filters, Hit, Source
from tertulia.core.errors import NotFound
from tertulia.core.users import Actor
from tertulia.library import fuse
from tertulia.library.chunk import LINES
from tertulia.library.index import embed_due, of_file, of_messages, read_rounds, write_rounds
from tertulia.library.query import terms
from tertulia.library.search import Library, Mode, find
from tertulia.library.snippets import snippet, words_found
from tertulia.library.vectors import Block
from tertulia.store import chunks, files, messages
from tertulia.store.database import Database, Tx
from tertulia.store.vectors import LibraryState
from tests.library.bags import Bags
from tests.store.samples import conversation, file, home, opened, person, reply
from tests.store_fixtures import Clock


@pytest.fixture(params=["sqlite", "postgres", "plain_postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """Once more on PostgreSQL without the extension that compares vectors."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
def bags() -> Bags:
    return Bags()


@pytest.fixture
def library(db: Database, bags: Bags) -> Library:
    return Library(db, bags)


@pytest.fixture
def ada(db: Database) -> Actor:
    return db.write_now(lambda tx: person(tx, "Ada"))


def put(db: Database, who: Actor, path: str, text: str) -> str:
    def write(tx: Tx) -> str:
        made = file(tx, who, path, text)
        chunks.remove_file(tx, made.id)
        chunks.add_to_file(tx, made.id, made.project_id, 0, tuple(of_file(made, text, LINES)))
        return made.id

    return db.write_now(write)


def say(db: Database, who: Actor, *rounds: tuple[str, str]) -> str:
    """A conversation of questions and answers."""

    def write(tx: Tx) -> str:
        said = conversation(tx, who)
        for question, answer in rounds:
            turn = opened(tx, who, said.id, question)
            messages.add(tx, reply(tx, turn, text=answer))
            spoken = read_rounds(tx, said.id, turn.round_number, turn.round_number)
            assert spoken is not None
            assert write_rounds(tx, spoken, of_messages(spoken.said))
        return said.id

    return db.write_now(write)


async def look(library: Library, who: Actor, text: str, **more: object) -> tuple[Hit, ...]:
    place = library.db.read_now(lambda tx: home(tx, who))
    return (await find(library, who, [place], text, **more)).hits  # type: ignore[arg-type]


async def embed_all(library: Library) -> None:
    while await embed_due(library, 32):
        pass


async def test_a_file_is_found_at_its_exact_place(library: Library, ada: Actor) -> None:
    text = "# Trees\n\nOaks grow slowly.\n\n## Nuts\n\nA walnut is a nut\nof the tree called walnut.\n"
    put(library.db, ada, "docs/trees.md", text)
    (hit, *_) = await look(library, ada, "Which tree bears walnuts?")
    assert (hit.title, hit.source_type) == ("docs/trees.md", Source.FILE)
    where = hit.location
    assert text[where.start_char : where.end_char] == hit.content
    assert "\n".join(text.split("\n")[where.start_line - 1 : where.end_line]).strip() == hit.content
    marked = {hit.snippet[span.start : span.end].lower() for span in hit.highlights}
    assert {"walnut", "tree"} <= marked
    assert "keyword" in hit.found_by
    assert hit.why


async def test_what_was_said_is_found_with_round_and_speaker(library: Library, ada: Actor) -> None:
    conversation_id = say(library.db, ada, ("Hello", "Good day"), ("Do walnuts float?", "They do, mostly."))
    (hit, *_) = await look(library, ada, "walnuts")
    assert hit.source_type is Source.MESSAGE
    assert (hit.location.conversation_id, hit.location.round_number) == (conversation_id, 2)
    assert hit.location.speaker == "user"
    assert hit.heading == "Ada, 14 November 2023"


async def test_an_answer_is_found_by_the_words_of_its_question(library: Library, ada: Actor) -> None:
    say(library.db, ada, ("What is the capital of Peru?", "Lima."), ("And of Spain?", "Madrid."))
    hits = await look(library, ada, "capital Peru", mode=Mode.KEYWORD)
    assert "Lima." in [hit.content for hit in hits]


async def test_a_passage_is_found_by_the_words_beside_it_and_code_by_the_parts_of_its_names(
    library: Library, ada: Actor
) -> None:
    put(library.db, ada, "a.md", f"{'All about Peru. ' * 5}\n\n# Capital\n\nIt is Lima, by the sea.")
    put(library.db, ada, "a.py", "def crackWalnut():\n    pass\n\n\ndef rest():\n    return crack")
    hits = await look(library, ada, "Peru", mode=Mode.KEYWORD)
    assert any(hit.content.startswith("# Capital") for hit in hits)
    (hit,) = await look(library, ada, "walnut", mode=Mode.KEYWORD)
    assert hit.content.startswith("def crackWalnut")
    assert [hit.snippet[span.start : span.end] for span in hit.highlights] == ["Walnut"]
    assert hit.why == "the word itself"


async def test_where_the_words_stand_is_said_when_they_are_not_in_the_text(
    library: Library, ada: Actor
) -> None:
    put(library.db, ada, "harvest/notes.md", f"# Walnuts\n\n{'They fall late. ' * 60}\n\n{'Or early. ' * 60}")
    say(library.db, ada, ("Who sings?", "Nobody."))
    for asked, where in {
        "harvest": "words of its path",
        "walnuts": "words of its heading",
        "november": "speaker or date",
    }.items():
        assert where in {hit.why for hit in await look(library, ada, asked, mode=Mode.KEYWORD)}


async def test_rounds_that_changed_after_they_were_read_are_not_written(library: Library, ada: Actor) -> None:
    """They are cut outside the transaction, so somebody may answer meanwhile."""
    said = library.db.write_now(lambda tx: conversation(tx, ada))
    turn = library.db.write_now(lambda tx: opened(tx, ada, said.id, "Do walnuts float?"))
    spoken = library.db.read_now(lambda tx: read_rounds(tx, said.id, 1, 1))
    assert spoken is not None
    library.db.write_now(lambda tx: messages.add(tx, reply(tx, turn, text="Walnuts do.")))
    assert not library.db.write_now(lambda tx: write_rounds(tx, spoken, of_messages(spoken.said)))
    assert await look(library, ada, "walnuts", mode=Mode.KEYWORD) == ()
    again = library.db.read_now(lambda tx: read_rounds(tx, said.id, 1, 1))
    assert again is not None
    assert library.db.write_now(lambda tx: write_rounds(tx, again, of_messages(again.said)))
    assert len(await look(library, ada, "walnuts", mode=Mode.KEYWORD)) == 2


async def test_equals_come_in_the_order_they_were_written(library: Library, ada: Actor) -> None:
    for number in range(fuse.LEG_LIMIT + 10):
        put(library.db, ada, f"{number:03}.md", "a walnut")
    hits = await look(library, ada, "walnut", mode=Mode.KEYWORD)
    assert [hit.title for hit in hits] == [f"{number:03}.md" for number in range(10)]


def test_of_equal_vectors_the_lowest_numbers_are_nearest() -> None:
    numbers = np.arange(50, 0, -1)
    same = np.ones((50, 4), dtype=np.float32)
    block = Block(1, LibraryState(), numbers, np.ones(50, dtype=bool), same, None)
    found = block.nearest(np.ones(4, dtype=np.float16).tobytes(), Source.FILE, 3)
    assert [one.number for one in found] == [1, 2, 3]


async def test_tests_come_after_what_they_test_unless_they_are_asked_for(
    library: Library, ada: Actor
) -> None:
    for path in ("tests/test_walnut.py", "src/walnut.py"):
        put(library.db, ada, path, "def crack_walnut():\n    return shell_of(walnut)")
    for number in range(9):
        put(library.db, ada, f"{number}.md", "what failed" if number == 0 else "something else")
    asked = "Walnut cannot be cracked\n\npytest says: crack_walnut() failed in my test"
    hits = await look(library, ada, asked, mode=Mode.KEYWORD)
    assert [hit.title for hit in hits][:2] == ["src/walnut.py", "tests/test_walnut.py"]
    hits = await look(library, ada, "the test of walnut", mode=Mode.KEYWORD)
    assert hits[0].title == "tests/test_walnut.py"


async def test_projects_take_turns_in_being_embedded(library: Library, ada: Actor) -> None:
    """Each gets its newest: a note does not wait for the vectors of another project's thousand files."""
    bob = library.db.write_now(lambda tx: person(tx, "Bob"))
    put(library.db, bob, "first.md", "Bob's first")
    for number in range(6):
        put(library.db, ada, f"{number}.md", f"Ada's {number}")
    made: list[str] = []
    while done := await embed_due(library, 2):
        made += [one.content for one in done]
    assert made.index("Bob's first") <= 2
    assert [one for one in made if one != "Bob's first"] == [f"Ada's {number}" for number in range(5, -1, -1)]


async def test_meaning_finds_what_no_word_says(library: Library, ada: Actor) -> None:
    put(library.db, ada, "a.md", "the kitten sleeps")
    put(library.db, ada, "b.md", "stocks fell sharply")
    await embed_all(library)
    (hit, *_) = await look(library, ada, "cat")
    assert (hit.title, hit.found_by) == ("a.md", ("meaning",))


async def test_without_weights_words_are_searched_and_the_reason_is_said(
    library: Library, ada: Actor, bags: Bags
) -> None:
    put(library.db, ada, "a.md", "a walnut")
    bags.reason = "Run `tertulia models pull minilm`."
    place = library.db.read_now(lambda tx: home(tx, ada))
    for mode in (Mode.HYBRID, Mode.MEANING):
        findings = await find(library, ada, [place], "walnut", mode=mode)
        assert [hit.title for hit in findings.hits] == ["a.md"]
        assert findings.without_meaning == bags.reason
    assert (await find(library, ada, [place], "walnut", mode=Mode.KEYWORD)).without_meaning is None
    assert bags.embedded == []


async def test_a_broken_embedder_does_not_break_search(library: Library, ada: Actor, bags: Bags) -> None:
    put(library.db, ada, "a.md", "a walnut")
    await embed_all(library)
    bags.is_broken = True
    place = library.db.read_now(lambda tx: home(tx, ada))
    findings = await find(library, ada, [place], "walnut")
    assert [hit.title for hit in findings.hits] == ["a.md"]
    assert findings.without_meaning == "It broke."


async def test_another_embedding_model_is_searched_by_words_until_all_is_embedded_anew(
    library: Library, ada: Actor
) -> None:
    put(library.db, ada, "a.md", "kitten walnut")
    await embed_all(library)
    other = Library(library.db, Bags("another"))
    place = library.db.read_now(lambda tx: home(tx, ada))
    findings = await find(other, ada, [place], "walnut")
    assert findings.without_meaning is not None
    assert [hit.title for hit in findings.hits] == ["a.md"]
    await embed_all(other)
    findings = await find(other, ada, [place], "cat")
    assert findings.without_meaning is None
    assert [hit.title for hit in findings.hits] == ["a.md"]


async def test_a_question_is_embedded_once_for_each_kind(library: Library, ada: Actor, bags: Bags) -> None:
    put(library.db, ada, "a.md", "a walnut")
    await embed_all(library)
    await look(library, ada, "What else is there?")  # with the first question everyday sentences are, too
    bags.embedded.clear()
    await look(library, ada, "Where is the walnut?")
    assert bags.embedded == ["Where is the walnut?", "walnut"]


async def test_vectors_follow_what_is_added_changed_and_removed(library: Library, ada: Actor) -> None:
    """The block in memory is brought up to date, not read again."""
    file_id = put(library.db, ada, "a.md", "the kitten sleeps")
    await embed_all(library)
    assert [hit.title for hit in await look(library, ada, "cat", mode=Mode.MEANING)] == ["a.md"]
    put(library.db, ada, "b.md", "an automobile")
    await embed_all(library)
    assert (await look(library, ada, "car", mode=Mode.MEANING))[0].title == "b.md"
    library.db.write_now(lambda tx: files.remove(tx, ada, home(tx, ada), file_id))
    assert await look(library, ada, "cat", mode=Mode.MEANING) == ()


async def test_nobody_finds_what_is_not_theirs(library: Library, ada: Actor) -> None:
    bruno = library.db.write_now(lambda tx: person(tx, "Bruno"))
    put(library.db, ada, "a.md", "the kitten and the walnut")
    say(library.db, ada, ("walnut kitten", "walnut kitten"))
    await embed_all(library)
    for mode in Mode:
        assert await look(library, bruno, "walnut cat", mode=mode) == ()
    adas = library.db.read_now(lambda tx: home(tx, ada))
    with pytest.raises(NotFound):
        await find(library, bruno, [adas], "walnut")
    brunos = library.db.read_now(lambda tx: home(tx, bruno))
    with pytest.raises(NotFound):
        await find(library, bruno, [brunos, adas], "walnut")


async def test_what_is_known_already_is_left_out(library: Library, ada: Actor) -> None:
    file_id = put(library.db, ada, "a.md", "a walnut")
    put(library.db, ada, "b.md", "another walnut")
    assert [hit.title for hit in await look(library, ada, "walnut", leaving_out=frozenset({file_id}))] == [
        "b.md"
    ]


@pytest.mark.parametrize("mode", Mode)
async def test_filters_hold_for_words_and_for_meaning(
    library: Library, ada: Actor, mode: Mode, clock: Clock
) -> None:
    put(library.db, ada, "a.md", "a walnut")
    put(library.db, ada, "b.txt", "a walnut")
    say(library.db, ada, ("a walnut", "a walnut indeed"))
    await embed_all(library)

    async def titles(**given: object) -> set[str]:
        hits = await look(library, ada, "walnut", filters=Filters(**given), mode=mode)  # type: ignore[arg-type]
        return {hit.title or (hit.location.speaker or "") for hit in hits}

    assert await titles() == {"a.md", "b.txt", "user", "agent:gpt-4o"}
    assert await titles(exclude_conversations=True) == {"a.md", "b.txt"}
    assert await titles(exclude_files=True) == {"user", "agent:gpt-4o"}
    assert await titles(file_types=(".txt",)) == {"b.txt"}
    assert await titles(speaker="user") == {"user"}
    assert await titles(speaker="Ada") == {"user"}
    assert await titles(speaker="GPT-4o") == {"agent:gpt-4o"}
    assert await titles(speaker="A_%") == set()
    assert await titles(until=clock.now - 1) == set()
    assert await titles(since=clock.now) == {"a.md", "b.txt", "user", "agent:gpt-4o"}


@pytest.mark.parametrize(
    "asked",
    [
        "C++",
        "O'Reilly",
        '"quoted" AND NOT (x',
        "a" * 512,
        "*",
        "",
        "   ",
        "???",
        "日本語",
        "🦊",
        "\x00",
        "\ud800 x",
        "AND OR",
    ],
)
async def test_any_question_is_safe(library: Library, ada: Actor, asked: str) -> None:
    put(library.db, ada, "a.md", "something of O'Reilly about C++")
    await embed_all(library)
    for mode in Mode:
        assert len(await look(library, ada, asked, mode=mode)) <= 1, "there is one passage to find"


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.from_regex(r"[a-z]{5,9}", fullmatch=True), min_size=1, max_size=40, unique=True), st.data()
)
async def test_any_word_of_a_text_finds_it(
    library: Library, ada: Actor, words: list[str], data: st.DataObject
) -> None:
    text = "".join(word + data.draw(st.sampled_from([" ", "\n", ".\n\n# "])) for word in words)
    put(library.db, ada, "a.md", text)
    word = data.draw(st.sampled_from(words))
    if not terms(word):
        return
    hits = await look(library, ada, word, mode=Mode.KEYWORD, limit=50)
    assert any(word in hit.content or word in hit.title for hit in hits)
    assert all(text[hit.location.start_char : hit.location.end_char] == hit.content for hit in hits)


async def test_a_file_that_has_the_word_comes_before_distant_talk_also_while_its_vectors_are_made(
    library: Library, ada: Actor
) -> None:
    say(library.db, ada, *[("Walnuts grow here.", "Walnuts grow here.")] * 2)
    await embed_all(library)
    put(library.db, ada, "a.md", "Marmalade stands on the shelf.")
    assert (await look(library, ada, "marmalade"))[0].title == "a.md"


async def test_what_has_the_word_comes_before_code_that_is_only_nearest(library: Library, ada: Actor) -> None:
    """Something is always nearest, and a little code is always a file's best."""
    put(library.db, ada, "lathe.py", "def turn(spindle):\n    return spindle.speed")
    put(library.db, ada, "a.md", "Marmalade stands on the shelf.")
    put(library.db, ada, "b.md", f"On the shelf there is also, {'far behind everything, ' * 9} marmalade.")
    await embed_all(library)
    hits = await look(library, ada, "marmalade")
    assert {hit.title for hit in hits[:2]} == {"a.md", "b.md"}
    assert all(0 < hit.score <= 1 for hit in hits[:2])


@pytest.mark.parametrize(
    ("content", "word", "marked"),
    [
        ("我们在北京大学学习中文。", "北京大学", ["北京大学"]),
        ("大人在北京，不在大学", "北京大学", ["北京", "大学"]),
        ("大人不在", "大学", []),
        ("猫が好きです", "猫", ["猫"]),
        ("ภาษาไทยเป็นภาษาที่สวยงาม", "เป็น", ["เป็น"]),
        ("मैं हिन्दी बोलता हूँ।", "हिन्दी", ["हिन्दी"]),
        ("two cafe\u0301s by the sea", "cafés", ["cafe\u0301s"]),
        ("see 第3章 and chapter 3", "第3章", ["第3章"]),
        ("수도는 서울입니다", "서울", ["서울"]),
        (normalize("NFD", "수도는 서울입니다"), "서울", [normalize("NFD", "서울")]),
        ("in der Straße", "strasse", ["Straße"]),
        ("co\u00adop\u00aderation", "cooperation", ["co\u00adop\u00aderation"]),
    ],
)
def test_in_other_scripts_only_what_was_looked_for_is_marked(
    content: str, word: str, marked: list[str]
) -> None:
    shown = snippet(content, terms(word))
    assert [shown.text[span.start : span.end] for span in shown.highlights] == marked
    assert words_found(content, terms(word)) >= bool(marked)


@pytest.mark.parametrize("one", ["a", "[", "@a.", " ", "a\u0301", "a b ", "1 May ", "test_"])
def test_a_megabyte_of_anything_is_read_in_linear_time(one: str) -> None:
    text = one * (1_000_000 // len(one))
    for work in (terms, fuse.dates, lambda given: snippet(given, ["a", "b"])):
        assert work(text) is not None, "a square of a million steps would take days"


async def test_of_twenty_thousand_words_some_are_asked(library: Library, ada: Actor) -> None:
    put(library.db, ada, "a.md", "word1 word2 word3")
    asked = " ".join(f"word{index}" for index in range(20_000))
    assert await look(library, ada, asked, mode=Mode.KEYWORD)


def test_a_named_day_holds_from_a_little_before_to_three_weeks_after() -> None:
    day = 86_400_000
    may_8 = 1_683_504_000_000  # 8 May 2023
    for asked in ("on 8 May 2023", "May 8, 2023", "2023-05-08", "the 8th of May"):
        (named,) = fuse.dates(asked)
        assert named.holds(may_8)
        assert named.holds(may_8 - 3 * day)
        assert named.holds(may_8 + 21 * day)
        assert not named.holds(may_8 - 4 * day)
        assert not named.holds(may_8 + 23 * day)
    assert fuse.dates("you may go") == ()
    assert fuse.dates("in May 2023")[0].holds(may_8)
    assert fuse.dates("99 June 99999")
