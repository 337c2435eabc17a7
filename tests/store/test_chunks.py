"""Chunks: found by their words alike on both databases, gone with what they came from."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from tertulia.core.chunks import Filters, Location, Source, Weights
from tertulia.core.files import MetadataChange
from tertulia.core.users import Actor
from tertulia.library.query import terms
from tertulia.store import chunks, conversations, files, projects, retrieval, vectors, versions
from tertulia.store.chunks import NewChunk
from tertulia.store.database import Database, Tx
from tertulia.store.words import ENOUGH
from tests.store.samples import answered, conversation, file, home, person

EVEN = Weights(body=1.0, heading=1.0, place=1.0, around=1.0)


@pytest.fixture(params=["sqlite", "postgres", "plain_postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """Once more on PostgreSQL without the extension that compares vectors."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


def piece(
    content: str, *, heading: str = "", place: str = "", around: str = "", path: str = "a.md"
) -> NewChunk:
    return NewChunk(
        content, heading, Location(path=path, start_line=1, end_line=1), content, 1, place, around
    )


def put(tx: Tx, who: Actor, path: str, *contents: str) -> str:
    made = file(tx, who, path, f"{path} {contents}")
    chunks.remove_file(tx, made.id)
    chunks.add_to_file(tx, made.id, made.project_id, 0, [piece(one, path=path) for one in contents])
    return made.id


def found(tx: Tx, who: Actor, *words: str, filters: Filters = Filters(), project_id: str = "") -> list[str]:  # noqa: B008
    ids = [project_id or home(tx, who)]
    within = retrieval.narrowed(tx, ids, Source.FILE, filters)
    scored = retrieval.by_words(tx, ids, Source.FILE, words, EVEN, 200, within)
    by_number = chunks.get_many(tx, who, [one.number for one in scored])
    return [by_number[one.number].chunk.content for one in scored if one.number in by_number]


CORPUS = (
    "the quick brown foxes jumped",
    "Crème brûlée at O'Reilly's café",
    "C++ templates and C# generics",
    "東京都の天気は晴れです",
    "Привет, мир! Как дела?",
    "مرحبا بالعالم",
    "שלום עולם",
    "naïve 🦊 emoji fox",
    "snake_case and camelCase names",
    "version 3.11 of 2024",
    "ภาษาไทย",
    "대한민국의 수도는 서울입니다",
    "Łódź, Straße, smørrebrød, Diyarbakır",
    "co\u00adop\u00aderation at the end of a line",
)
ASKED = {
    "fox": {0, 7},
    "jumping": {0},
    "creme": {1},
    "BRÛLÉE": {1},
    "O'Reilly": {1},
    "C++": {2},
    "東京": {3},
    "京都": {3},
    "天気": {3},
    "天都": set(),
    "привет": {4},
    "дела": {4},
    "بالعالم": {5},
    "עולם": {6},
    "naive": {7},
    "🦊": set(),
    "snake_case": {8},
    "camelcase": {8},
    "3.11": {9},
    "2024": {9},
    "ไทย": {10},
    "수도": {11},
    "서울": {11},
    "울서": set(),
    "Lodz": {12},
    "STRASSE": {12},
    "smorrebrod": {12},
    "diyarbakir": {12},
    "cooperation": {13},
    "the": {0, 13},
    "nothing-like-it": set(),
}


@pytest.mark.parametrize("asked", ASKED)
async def test_every_script_is_found_alike_on_both_databases(db: Database, asked: str) -> None:
    def look(tx: Tx) -> list[str]:
        ada = person(tx, "Ada")
        put(tx, ada, "corpus.md", *CORPUS)
        return found(tx, ada, *asked.replace("'", " ").replace(".", " ").split())

    assert set(await db.write(look)) == {CORPUS[index] for index in ASKED[asked]}


HOSTILE = [
    'owner:alice"',
    "{title body}: x",
    "rowid:1",
    "rank MATCH 'bm25'",
    "x OR owner_id",
    "NEAR(a b, 3)",
    "a*",
    "^a",
    '"',
    "'",
    "''; DROP TABLE users; --",
    "\\",
    "a:b|c&d!e<->f",
    "(((",
    "\x00",
    "\ud800",
    "%_",
    "-",
    "col : *",
    "$1",
    ":x",
]


@pytest.mark.parametrize("asked", HOSTILE)
async def test_whatever_is_asked_is_only_words(db: Database, asked: str) -> None:
    def look(tx: Tx) -> list[str]:
        ada, bruno = person(tx, "Ada"), person(tx, "Bruno")
        put(tx, ada, "mine.md", "alice owner x title body rank match near a b c d e f drop table users col")
        put(tx, bruno, "his.md", "alice owner x title body rank match near a b c d e f drop table users col")
        return found(tx, ada, asked, *asked.split())

    assert len(await db.write(look)) <= 1


async def test_another_project_is_never_searched(db: Database) -> None:
    def look(tx: Tx) -> tuple[list[str], list[str], dict[int, object]]:
        ada, bruno = person(tx, "Ada"), person(tx, "Bruno")
        put(tx, ada, "a.md", "walnut of Ada")
        put(tx, bruno, "b.md", "walnut of Bruno")
        theirs = retrieval.by_words(tx, [home(tx, bruno)], Source.FILE, ["walnut"], EVEN, 9)
        hidden = chunks.get_many(tx, ada, [one.number for one in theirs])
        facts = chunks.facts(tx, ada, [one.number for one in theirs])
        return found(tx, ada, "walnut"), found(tx, bruno, "walnut"), {**hidden, **facts}

    assert await db.write(look) == (["walnut of Ada"], ["walnut of Bruno"], {})


async def test_a_project_that_is_most_of_everything_is_searched_quicker_and_finds_the_same(
    db: Database,
) -> None:
    texts = [f"walnut {'oak ' * (index % 7)} {'elm' if index % 3 else 'ash'} {index}" for index in range(60)]

    def look(tx: Tx) -> None:
        ada, bruno = person(tx, "Ada"), person(tx, "Bruno")
        for index, one in enumerate(texts):
            put(tx, bruno if index % 5 == 0 else ada, f"{index}.md", one)
        for words in (["walnut", "oak"], ["elm", "oak", "7"], ["ash"], ["oak", "oak", "elm"]):
            asked = ([home(tx, ada)], Source.FILE, words, EVEN, 9)
            assert retrieval.by_words(tx, *asked, many=1) == retrieval.by_words(tx, *asked)

    await db.write(look)


@pytest.mark.parametrize("limit", [3, 200])
async def test_a_search_in_most_projects_finds_what_one_in_each_of_them_finds(
    db: Database, limit: int
) -> None:
    def look(tx: Tx) -> None:
        people = [person(tx, name) for name in ("Ada", "Bruno", "Cleo", "Dora")]
        for index in range(60):
            put(tx, people[index % 4], f"{index}.md", f"walnut {'oak ' * (index % 7)} {index}")
        hers = [home(tx, who) for who in people[:3]]
        for words in (["walnut", "oak"], ["oak"], ["17", "23"]):
            together = retrieval.by_words(tx, hers, Source.FILE, words, EVEN, limit)
            each = {
                one.number
                for place in hers
                for one in retrieval.by_words(tx, [place], Source.FILE, words, EVEN, 200)
            }
            assert len(together) == min(limit, len(each))
            assert {one.number for one in together} <= each

    await db.write(look)


async def test_words_that_most_rows_have_count_and_do_not_find(db: Database) -> None:
    """What each row scores is the same as when every word finds. PostgreSQL never hurries."""

    def look(tx: Tx) -> None:
        words, ada = tx.words, person(tx, "Ada")
        if not words.hurries:
            return
        for index in range(40):
            put(tx, ada, f"{index}.md", f"oak {'walnut' if index % 4 == 0 else ''} {'elm ' * (index % 3)}")
        asked = ["walnut", "oak", "elm"]
        hurried, times = words.hurried(asked, {"walnut": ENOUGH, "oak": ENOUGH + 1, "elm": ENOUGH + 2})
        quick = tx.execute(words.find(EVEN, ""), query=hurried, limit=100)
        full = tx.execute(words.find(EVEN, ""), query=words.query((), asked), limit=100)
        assert len(quick) == 10
        assert len(full) == 40
        scores = {row.number: row.score for row in full}
        assert [row.score for row in quick] == pytest.approx([times * scores[row.number] for row in quick])

    await db.write(look)


async def test_a_rare_word_weighs_more_than_a_common_one(db: Database) -> None:
    def look(tx: Tx) -> list[str]:
        ada = person(tx, "Ada")
        common = [f"common words number {index}" for index in range(30)]
        put(tx, ada, "a.md", *common, "a rare walnut stands here")
        return found(tx, ada, "common", "walnut")

    assert (await db.write(look))[0] == "a rare walnut stands here"


async def test_new_chunks_of_a_file_leave_none_of_the_old(db: Database) -> None:
    def look(tx: Tx) -> tuple[list[str], list[str]]:
        ada = person(tx, "Ada")
        file_id = put(tx, ada, "a.md", "the first walnut", "another walnut")
        chunks.remove_file(tx, file_id)
        chunks.add_to_file(tx, file_id, home(tx, ada), 0, [piece("only hazel now")])
        return found(tx, ada, "walnut"), found(tx, ada, "hazel")

    assert await db.write(look) == ([], ["only hazel now"])


async def test_words_written_with_vowel_signs_are_found_as_words(db: Database) -> None:
    """Taken apart at each sign, any text that has one of the letters would be found."""

    def look(tx: Tx) -> list[str]:
        ada = person(tx, "Ada")
        put(tx, ada, "a.md", "मैं हिन्दी बोलता हूँ", "दिन में हवा नहीं")
        return found(tx, ada, *terms("हिन्दी"))

    assert await db.write(look) == ["मैं हिन्दी बोलता हूँ"]


async def test_a_file_read_anew_keeps_the_date_of_what_stands_in_it(db: Database) -> None:
    ada, file_id = await db.write(lambda tx: (ada := person(tx, "Ada"), put(tx, ada, "a.md", "a walnut")))
    written_at = (await db.read(lambda tx: versions.of_file(tx, ada, home(tx, ada), file_id)))[0].created_at

    def read_anew(tx: Tx) -> list[int]:
        tx.now += 86_400_000
        chunks.remove_file(tx, file_id)
        chunks.add_to_file(tx, file_id, home(tx, ada), 0, [piece("a walnut")])
        numbers = [one.number for one in vectors.due(tx, 9)]
        return [one.created_at for one in chunks.facts(tx, ada, numbers).values()]

    assert await db.write(read_anew) == [written_at]


async def test_a_file_has_its_vectors_by_what_they_were_made_from(db: Database) -> None:
    def look(tx: Tx) -> list[bytes | None]:
        ada = person(tx, "Ada")
        file_id = put(tx, ada, "a.md", "a walnut")
        config = vectors.set_config(tx, "m", 4)
        vectors.save(tx, config, [(one.number, b"12345678") for one in vectors.due(tx, 9)])
        kept, moved = vectors.of_file(tx, file_id, "a.md"), vectors.of_file(tx, file_id, "b.md")
        vectors.set_config(tx, "another", 4)
        other = vectors.of_file(tx, file_id, "a.md")
        texts = ("a walnut", "a hazelnut")
        return [one.of("", written) for one in (kept, moved, other) for written in texts]

    assert await db.write(look) == [b"12345678", None, None, None, None, None]


async def test_chunks_words_and_vectors_go_with_a_file_a_conversation_and_a_project(db: Database) -> None:
    def fill(tx: Tx) -> tuple[Actor, str, str, str]:
        ada = person(tx, "Ada")
        file_id = put(tx, ada, "a.md", "walnut in a file")
        said = conversation(tx, ada)
        _, replies = answered(tx, ada, said.id)
        chunks.replace_message(tx, replies[0].id, said.id, said.project_id, tx.now, [piece("walnut said")])
        other = projects.add(tx, ada, "Other")
        third = file(tx, ada, "c.md", project_id=other.id)
        chunks.add_to_file(tx, third.id, other.id, 0, [piece("walnut elsewhere")])
        config = vectors.set_config(tx, "m", 4)
        vectors.save(tx, config, [(one.number, b"12345678") for one in vectors.due(tx, 9)])
        return ada, file_id, said.id, other.id

    ada, file_id, conversation_id, project_id = await db.write(fill)
    assert await db.read(_rows) == (3, 3)
    await db.write(lambda tx: files.remove(tx, ada, home(tx, ada), file_id))
    assert await db.read(_rows) == (2, 2)
    await db.write(lambda tx: conversations.remove(tx, ada, conversation_id))
    assert await db.read(_rows) == (1, 1)
    await db.write(lambda tx: projects.remove(tx, ada, project_id))
    assert await db.read(_rows) == (0, 0)
    if db.version.startswith("SQLite"):
        left = await db.read(lambda tx: tx.execute(text("SELECT rowid FROM retrieval_index")))
        assert left == []


def _rows(tx: Tx) -> tuple[int, int]:
    count = "SELECT (SELECT COUNT(*) FROM content_chunks) AS a, (SELECT COUNT(*) FROM chunk_vectors) AS b"
    row = tx.one(text(count))
    return row.a, row.b


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        (Filters(), {"docs/plan.md", "docs/deep/notes.txt", "src/main.py"}),
        (Filters(file_types=(".md",)), {"docs/plan.md"}),
        (Filters(file_types=("MD", "*.py")), {"docs/plan.md", "src/main.py"}),
        (Filters(paths=("docs",)), {"docs/plan.md", "docs/deep/notes.txt"}),
        (Filters(paths=("docs/plan.md",)), {"docs/plan.md"}),
        (Filters(paths=("doc",)), set()),
        (Filters(paths=("./Docs/",)), {"docs/plan.md", "docs/deep/notes.txt"}),
        (Filters(paths=("docs/*", "*.py")), {"docs/plan.md", "docs/deep/notes.txt", "src/main.py"}),
        (Filters(paths=(".",)), {"docs/plan.md", "docs/deep/notes.txt", "src/main.py"}),
        (Filters(tags=("chosen",)), {"src/main.py"}),
        (Filters(since=1), {"docs/plan.md", "docs/deep/notes.txt", "src/main.py"}),
        (Filters(until=1), set()),
    ],
)
async def test_filters_leave_out_and_lose_nothing_else(
    db: Database, filters: Filters, names: set[str]
) -> None:
    def look(tx: Tx) -> set[str]:
        ada = person(tx, "Ada")
        for path in ("docs/plan.md", "docs/deep/notes.txt", "src/main.py"):
            file_id = put(tx, ada, path, f"walnut {path}")
        files.set_metadata(tx, ada, home(tx, ada), file_id, MetadataChange(tags=("chosen",)))
        return {content.removeprefix("walnut ") for content in found(tx, ada, "walnut", filters=filters)}

    assert await db.write(look) == names


async def test_another_model_makes_every_chunk_due_again_and_the_same_one_none(db: Database) -> None:
    def fill(tx: Tx) -> list[int]:
        ada = person(tx, "Ada")
        put(tx, ada, "a.md", "one", "two", "three")
        counts = []
        for model in ("first", "first", "second"):
            config = vectors.set_config(tx, model, 4)
            counts.append(len(vectors.due(tx, 9)))
            vectors.save(tx, config, [(one.number, b"12345678") for one in vectors.due(tx, 9)])
        assert vectors.find_config(tx, "first", 4) is None
        assert vectors.find_config(tx, "second", 4) == config
        return counts

    assert await db.write(fill) == [3, 0, 3]


async def test_a_message_whose_surroundings_change_keeps_its_vector(db: Database) -> None:
    def fill(tx: Tx) -> tuple[int, list[str]]:
        ada = person(tx, "Ada")
        said = conversation(tx, ada)
        _, replies = answered(tx, ada, said.id)
        for around in ("before", "after the walnut"):
            chunks.replace_message(
                tx, replies[0].id, said.id, said.project_id, tx.now, [piece("a chestnut", around=around)]
            )
            config = vectors.set_config(tx, "m", 4)
            due = vectors.due(tx, 9)
            vectors.save(tx, config, [(one.number, b"12345678") for one in due])
        hits = retrieval.by_words(tx, [said.project_id], Source.MESSAGE, ["walnut"], EVEN, 9)
        return len(due), [
            found.chunk.content for found in chunks.get_many(tx, ada, [h.number for h in hits]).values()
        ]

    assert await db.write(fill) == (0, ["a chestnut"])
