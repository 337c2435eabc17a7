"""Hybrid search: files and messages are found by words and by meaning, only by users who may see them."""

from __future__ import annotations

from unicodedata import normalize

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tertulia.core.chunks import Filters, Hit, Source
from tertulia.core.errors import NotFound
from tertulia.core.users import Actor
from tertulia.library import rank_fusion
from tertulia.library.chunk import LINES
from tertulia.library.index import embed_due, of_file, of_messages, read_rounds, write_rounds
from tertulia.library.query import terms
from tertulia.library.search import SearchIndex, SearchMode, find
from tertulia.library.snippets import snippet, words_found
from tertulia.library.vector_cache import ProjectVectors
from tertulia.store import chunks, files, messages
from tertulia.store.database import Database, Tx
from tertulia.store.vectors import VectorGeneration
from tests.library.bags import Bags
from tests.store.samples import conversation, file, home, opened, person, reply
from tests.store_fixtures import Clock


@pytest.fixture(params=["sqlite", "postgres", "plain_postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """The third case is PostgreSQL without pgvector."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
def bags() -> Bags:
    return Bags()


@pytest.fixture
def library(db: Database, bags: Bags) -> SearchIndex:
    return SearchIndex(db, bags)


@pytest.fixture
def ada(db: Database) -> Actor:
    return db.write_now(lambda tx: person(tx, "Ada"))


def add_file(db: Database, actor: Actor, path: str, text: str) -> str:
    def write(tx: Tx) -> str:
        added = file(tx, actor, path, text)
        chunks.remove_file(tx, added.id)
        chunks.add_to_file(tx, added.id, added.project_id, 0, tuple(of_file(added, text, LINES)))
        return added.id

    return db.write_now(write)


def add_conversation(db: Database, actor: Actor, *rounds: tuple[str, str]) -> str:
    """Adds and indexes a conversation of questions and answers; returns its id."""

    def write(tx: Tx) -> str:
        added = conversation(tx, actor)
        for question, answer in rounds:
            turn = opened(tx, actor, added.id, question)
            messages.add(tx, reply(tx, turn, text=answer))
            to_index = read_rounds(tx, added.id, turn.round_number, turn.round_number)
            assert to_index is not None
            assert write_rounds(tx, to_index, of_messages(to_index.messages))
        return added.id

    return db.write_now(write)


async def search(library: SearchIndex, actor: Actor, text: str, **options: object) -> tuple[Hit, ...]:
    project_id = library.db.read_now(lambda tx: home(tx, actor))
    return (await find(library, actor, [project_id], text, **options)).hits  # type: ignore[arg-type]


async def embed_all(library: SearchIndex) -> None:
    while await embed_due(library, 32):
        pass


async def test_a_hit_in_a_file_has_the_exact_lines_and_characters(library: SearchIndex, ada: Actor) -> None:
    text = "# Trees\n\nOaks grow slowly.\n\n## Nuts\n\nA walnut is a nut\nof the tree called walnut.\n"
    add_file(library.db, ada, "docs/trees.md", text)
    (hit, *_) = await search(library, ada, "Which tree bears walnuts?")
    assert (hit.title, hit.source_type) == ("docs/trees.md", Source.FILE)
    location = hit.location
    assert text[location.start_char : location.end_char] == hit.content
    assert "\n".join(text.split("\n")[location.start_line - 1 : location.end_line]).strip() == hit.content
    highlighted = {hit.snippet[span.start : span.end].lower() for span in hit.highlights}
    assert {"walnut", "tree"} <= highlighted
    assert "keyword" in hit.found_by
    assert hit.why


async def test_a_hit_in_a_conversation_has_the_round_and_the_speaker(
    library: SearchIndex, ada: Actor
) -> None:
    conversation_id = add_conversation(
        library.db, ada, ("Hello", "Good day"), ("Do walnuts float?", "They do, mostly.")
    )
    (hit, *_) = await search(library, ada, "walnuts")
    assert hit.source_type is Source.MESSAGE
    assert (hit.location.conversation_id, hit.location.round_number) == (conversation_id, 2)
    assert hit.location.speaker == "user"
    assert hit.heading == "Ada, 14 November 2023"


async def test_an_answer_is_found_by_the_words_of_its_question(library: SearchIndex, ada: Actor) -> None:
    add_conversation(library.db, ada, ("What is the capital of Peru?", "Lima."), ("And of Spain?", "Madrid."))
    hits = await search(library, ada, "capital Peru", mode=SearchMode.KEYWORD)
    assert "Lima." in [hit.content for hit in hits]


async def test_a_passage_is_found_by_neighbouring_text_and_code_by_parts_of_identifiers(
    library: SearchIndex, ada: Actor
) -> None:
    add_file(library.db, ada, "a.md", f"{'All about Peru. ' * 5}\n\n# Capital\n\nIt is Lima, by the sea.")
    add_file(library.db, ada, "a.py", "def crackWalnut():\n    pass\n\n\ndef rest():\n    return crack")
    hits = await search(library, ada, "Peru", mode=SearchMode.KEYWORD)
    assert any(hit.content.startswith("# Capital") for hit in hits)
    (hit,) = await search(library, ada, "walnut", mode=SearchMode.KEYWORD)
    assert hit.content.startswith("def crackWalnut")
    assert [hit.snippet[span.start : span.end] for span in hit.highlights] == ["Walnut"]
    assert hit.why == "the word itself"


async def test_a_hit_says_where_the_words_are_if_they_are_not_in_its_text(
    library: SearchIndex, ada: Actor
) -> None:
    add_file(
        library.db, ada, "harvest/notes.md", f"# Walnuts\n\n{'They fall late. ' * 60}\n\n{'Or early. ' * 60}"
    )
    add_conversation(library.db, ada, ("Who sings?", "Nobody."))
    for query, reason in {
        "harvest": "words of its path",
        "walnuts": "words of its heading",
        "november": "speaker or date",
    }.items():
        assert reason in {hit.why for hit in await search(library, ada, query, mode=SearchMode.KEYWORD)}


async def test_rounds_that_changed_after_they_were_read_are_not_written(
    library: SearchIndex, ada: Actor
) -> None:
    """Rounds are chunked outside the transaction, so a reply may arrive in between."""
    added = library.db.write_now(lambda tx: conversation(tx, ada))
    turn = library.db.write_now(lambda tx: opened(tx, ada, added.id, "Do walnuts float?"))
    outdated = library.db.read_now(lambda tx: read_rounds(tx, added.id, 1, 1))
    assert outdated is not None
    library.db.write_now(lambda tx: messages.add(tx, reply(tx, turn, text="Walnuts do.")))
    assert not library.db.write_now(lambda tx: write_rounds(tx, outdated, of_messages(outdated.messages)))
    assert await search(library, ada, "walnuts", mode=SearchMode.KEYWORD) == ()
    current = library.db.read_now(lambda tx: read_rounds(tx, added.id, 1, 1))
    assert current is not None
    assert library.db.write_now(lambda tx: write_rounds(tx, current, of_messages(current.messages)))
    assert len(await search(library, ada, "walnuts", mode=SearchMode.KEYWORD)) == 2


async def test_hits_with_equal_scores_come_in_the_order_they_were_written(
    library: SearchIndex, ada: Actor
) -> None:
    for number in range(rank_fusion.LEG_LIMIT + 10):
        add_file(library.db, ada, f"{number:03}.md", "a walnut")
    hits = await search(library, ada, "walnut", mode=SearchMode.KEYWORD)
    assert [hit.title for hit in hits] == [f"{number:03}.md" for number in range(10)]


def test_equal_vectors_are_ranked_by_the_lowest_chunk_number() -> None:
    numbers = np.arange(50, 0, -1)
    same = np.ones((50, 4), dtype=np.float32)
    block = ProjectVectors(1, VectorGeneration(), numbers, np.ones(50, dtype=bool), same, None)
    result = block.nearest(np.ones(4, dtype=np.float16).tobytes(), Source.FILE, 3)
    assert [scored.number for scored in result] == [1, 2, 3]


async def test_test_files_rank_below_the_code_unless_the_query_asks_for_tests(
    library: SearchIndex, ada: Actor
) -> None:
    for path in ("tests/test_walnut.py", "src/walnut.py"):
        add_file(library.db, ada, path, "def crack_walnut():\n    return shell_of(walnut)")
    for number in range(9):
        add_file(library.db, ada, f"{number}.md", "what failed" if number == 0 else "something else")
    query = "Walnut cannot be cracked\n\npytest says: crack_walnut() failed in my test"
    hits = await search(library, ada, query, mode=SearchMode.KEYWORD)
    assert [hit.title for hit in hits][:2] == ["src/walnut.py", "tests/test_walnut.py"]
    hits = await search(library, ada, "the test of walnut", mode=SearchMode.KEYWORD)
    assert hits[0].title == "tests/test_walnut.py"


async def test_projects_take_turns_when_chunks_are_embedded(library: SearchIndex, ada: Actor) -> None:
    """Each batch begins with another project, so a note does not wait for a thousand files."""
    bob = library.db.write_now(lambda tx: person(tx, "Bob"))
    add_file(library.db, bob, "first.md", "Bob's first")
    for number in range(6):
        add_file(library.db, ada, f"{number}.md", f"Ada's {number}")
    texts: list[str] = []
    while embedded := await embed_due(library, 2):
        texts += [chunk.content for chunk in embedded]
    assert texts.index("Bob's first") <= 2
    assert [text for text in texts if text != "Bob's first"] == [
        f"Ada's {number}" for number in range(5, -1, -1)
    ]


async def test_vector_search_finds_a_text_without_a_matching_word(library: SearchIndex, ada: Actor) -> None:
    add_file(library.db, ada, "a.md", "the kitten sleeps")
    add_file(library.db, ada, "b.md", "stocks fell sharply")
    await embed_all(library)
    (hit, *_) = await search(library, ada, "cat")
    assert (hit.title, hit.found_by) == ("a.md", ("meaning",))


async def test_without_the_model_full_text_search_answers_and_the_reason_is_given(
    library: SearchIndex, ada: Actor, bags: Bags
) -> None:
    add_file(library.db, ada, "a.md", "a walnut")
    bags.reason = "Run `tertulia models pull minilm`."
    project_id = library.db.read_now(lambda tx: home(tx, ada))
    for mode in (SearchMode.HYBRID, SearchMode.MEANING):
        findings = await find(library, ada, [project_id], "walnut", mode=mode)
        assert [hit.title for hit in findings.hits] == ["a.md"]
        assert findings.without_meaning == bags.reason
    assert (await find(library, ada, [project_id], "walnut", mode=SearchMode.KEYWORD)).without_meaning is None
    assert bags.embedded == []


async def test_a_broken_embedder_does_not_break_search(library: SearchIndex, ada: Actor, bags: Bags) -> None:
    add_file(library.db, ada, "a.md", "a walnut")
    await embed_all(library)
    bags.is_broken = True
    project_id = library.db.read_now(lambda tx: home(tx, ada))
    findings = await find(library, ada, [project_id], "walnut")
    assert [hit.title for hit in findings.hits] == ["a.md"]
    assert findings.without_meaning == "It broke."


async def test_after_a_change_of_the_embedding_model_full_text_search_answers_until_all_is_embedded(
    library: SearchIndex, ada: Actor
) -> None:
    add_file(library.db, ada, "a.md", "kitten walnut")
    await embed_all(library)
    other = SearchIndex(library.db, Bags("another"))
    project_id = library.db.read_now(lambda tx: home(tx, ada))
    findings = await find(other, ada, [project_id], "walnut")
    assert findings.without_meaning is not None
    assert [hit.title for hit in findings.hits] == ["a.md"]
    await embed_all(other)
    findings = await find(other, ada, [project_id], "cat")
    assert findings.without_meaning is None
    assert [hit.title for hit in findings.hits] == ["a.md"]


async def test_a_query_is_embedded_once_for_files_and_once_for_messages(
    library: SearchIndex, ada: Actor, bags: Bags
) -> None:
    add_file(library.db, ada, "a.md", "a walnut")
    await embed_all(library)
    await search(library, ada, "What else is there?")  # the first query also embeds the small talk
    bags.embedded.clear()
    await search(library, ada, "Where is the walnut?")
    assert bags.embedded == ["Where is the walnut?", "walnut"]


async def test_the_vector_cache_follows_added_and_removed_files(library: SearchIndex, ada: Actor) -> None:
    """The cached vectors are updated instead of read again."""
    file_id = add_file(library.db, ada, "a.md", "the kitten sleeps")
    await embed_all(library)
    assert [hit.title for hit in await search(library, ada, "cat", mode=SearchMode.MEANING)] == ["a.md"]
    add_file(library.db, ada, "b.md", "an automobile")
    await embed_all(library)
    assert (await search(library, ada, "car", mode=SearchMode.MEANING))[0].title == "b.md"
    library.db.write_now(lambda tx: files.remove(tx, ada, home(tx, ada), file_id))
    assert await search(library, ada, "cat", mode=SearchMode.MEANING) == ()


async def test_a_user_finds_nothing_in_projects_of_others(library: SearchIndex, ada: Actor) -> None:
    bruno = library.db.write_now(lambda tx: person(tx, "Bruno"))
    add_file(library.db, ada, "a.md", "the kitten and the walnut")
    add_conversation(library.db, ada, ("walnut kitten", "walnut kitten"))
    await embed_all(library)
    for mode in SearchMode:
        assert await search(library, bruno, "walnut cat", mode=mode) == ()
    adas = library.db.read_now(lambda tx: home(tx, ada))
    with pytest.raises(NotFound):
        await find(library, bruno, [adas], "walnut")
    brunos = library.db.read_now(lambda tx: home(tx, bruno))
    with pytest.raises(NotFound):
        await find(library, bruno, [brunos, adas], "walnut")


async def test_excluded_files_are_not_found(library: SearchIndex, ada: Actor) -> None:
    file_id = add_file(library.db, ada, "a.md", "a walnut")
    add_file(library.db, ada, "b.md", "another walnut")
    project_id = library.db.read_now(lambda tx: home(tx, ada))
    result = await find(library, ada, [project_id], "walnut", excluded_ids=frozenset({file_id}))
    assert [hit.title for hit in result.hits] == ["b.md"]


@pytest.mark.parametrize("mode", SearchMode)
async def test_filters_apply_in_every_search_mode(
    library: SearchIndex, ada: Actor, mode: SearchMode, clock: Clock
) -> None:
    add_file(library.db, ada, "a.md", "a walnut")
    add_file(library.db, ada, "b.txt", "a walnut")
    add_conversation(library.db, ada, ("a walnut", "a walnut indeed"))
    await embed_all(library)

    async def titles(**filters: object) -> set[str]:
        hits = await search(library, ada, "walnut", filters=Filters(**filters), mode=mode)  # type: ignore[arg-type]
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
    "query",
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
async def test_no_query_breaks_the_search(library: SearchIndex, ada: Actor, query: str) -> None:
    add_file(library.db, ada, "a.md", "something of O'Reilly about C++")
    await embed_all(library)
    for mode in SearchMode:
        assert len(await search(library, ada, query, mode=mode)) <= 1, "there is one passage to find"


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.from_regex(r"[a-z]{5,9}", fullmatch=True), min_size=1, max_size=40, unique=True), st.data()
)
async def test_every_word_of_a_text_finds_it(
    library: SearchIndex, ada: Actor, words: list[str], data: st.DataObject
) -> None:
    text = "".join(word + data.draw(st.sampled_from([" ", "\n", ".\n\n# "])) for word in words)
    add_file(library.db, ada, "a.md", text)
    word = data.draw(st.sampled_from(words))
    if not terms(word):
        return
    hits = await search(library, ada, word, mode=SearchMode.KEYWORD, limit=50)
    assert any(word in hit.content or word in hit.title for hit in hits)
    assert all(text[hit.location.start_char : hit.location.end_char] == hit.content for hit in hits)


async def test_a_file_with_the_word_ranks_first_even_before_it_is_embedded(
    library: SearchIndex, ada: Actor
) -> None:
    add_conversation(library.db, ada, *[("Walnuts grow here.", "Walnuts grow here.")] * 2)
    await embed_all(library)
    add_file(library.db, ada, "a.md", "Marmalade stands on the shelf.")
    assert (await search(library, ada, "marmalade"))[0].title == "a.md"


async def test_files_with_the_word_rank_above_code_that_is_only_nearest(
    library: SearchIndex, ada: Actor
) -> None:
    """Vector search always finds a nearest chunk, and a single chunk is always the best of its file."""
    add_file(library.db, ada, "lathe.py", "def turn(spindle):\n    return spindle.speed")
    add_file(library.db, ada, "a.md", "Marmalade stands on the shelf.")
    add_file(
        library.db, ada, "b.md", f"On the shelf there is also, {'far behind everything, ' * 9} marmalade."
    )
    await embed_all(library)
    hits = await search(library, ada, "marmalade")
    assert {hit.title for hit in hits[:2]} == {"a.md", "b.md"}
    assert all(0 < hit.score <= 1 for hit in hits[:2])


@pytest.mark.parametrize(
    ("content", "word", "expected"),
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
def test_only_matching_words_are_highlighted_in_every_script(
    content: str, word: str, expected: list[str]
) -> None:
    excerpt = snippet(content, terms(word))
    assert [excerpt.text[span.start : span.end] for span in excerpt.highlights] == expected
    assert words_found(content, terms(word)) >= bool(expected)


@pytest.mark.parametrize("unit", ["a", "[", "@a.", " ", "a\u0301", "a b ", "1 May ", "test_"])
def test_a_megabyte_of_repeated_text_is_processed_in_linear_time(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    for work in (terms, rank_fusion.dates, lambda content: snippet(content, ["a", "b"])):
        assert work(text) is not None, "a million squared steps would take days"


async def test_a_query_of_twenty_thousand_words_finds_a_text_with_some_of_them(
    library: SearchIndex, ada: Actor
) -> None:
    add_file(library.db, ada, "a.md", "word1 word2 word3")
    query = " ".join(f"word{index}" for index in range(20_000))
    assert await search(library, ada, query, mode=SearchMode.KEYWORD)


def test_a_named_date_covers_three_days_before_to_three_weeks_after() -> None:
    day = 86_400_000
    may_8 = 1_683_504_000_000  # 8 May 2023
    for query in ("on 8 May 2023", "May 8, 2023", "2023-05-08", "the 8th of May"):
        (named,) = rank_fusion.dates(query)
        assert named.holds(may_8)
        assert named.holds(may_8 - 3 * day)
        assert named.holds(may_8 + 21 * day)
        assert not named.holds(may_8 - 4 * day)
        assert not named.holds(may_8 + 23 * day)
    assert rank_fusion.dates("you may go") == ()
    assert rank_fusion.dates("in May 2023")[0].holds(may_8)
    assert rank_fusion.dates("99 June 99999")
