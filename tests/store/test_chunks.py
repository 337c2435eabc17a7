"""Chunks and full-text search: equal results on both databases; chunks are deleted with their source."""

from __future__ import annotations

import pytest

from tertulia.core.chunks import Filters, Location, Source, Weights
from tertulia.core.files import MetadataChange
from tertulia.core.users import Actor
from tertulia.library.query import terms
from tertulia.store import chunks, conversations, files, projects, retrieval, vectors, versions
from tertulia.store.chunks import NewChunk
from tertulia.store.database import Database, Tx
from tertulia.store.sql import sql
from tertulia.store.text_index import ENOUGH
from tests.store.samples import answered, conversation, file, home, person

EQUAL_WEIGHTS = Weights(body=1.0, heading=1.0, place=1.0, around=1.0)


@pytest.fixture(params=["sqlite", "postgres", "plain_postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """The third database is PostgreSQL without the pgvector extension."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


def new_chunk(
    content: str, *, heading: str = "", place: str = "", around: str = "", path: str = "a.md"
) -> NewChunk:
    return NewChunk(
        content, heading, Location(path=path, start_line=1, end_line=1), content, 1, place, around
    )


def add_file(tx: Tx, actor: Actor, path: str, *contents: str) -> str:
    file_ = file(tx, actor, path, f"{path} {contents}")
    chunks.remove_file(tx, file_.id)
    chunks.add_to_file(
        tx, file_.id, file_.project_id, 0, [new_chunk(content, path=path) for content in contents]
    )
    return file_.id


def find_texts(
    tx: Tx,
    actor: Actor,
    *words: str,
    filters: Filters = Filters(),  # noqa: B008
    project_id: str = "",
) -> list[str]:
    ids = [project_id or home(tx, actor)]
    resolved = retrieval.filter_for(tx, ids, Source.FILE, filters)
    scored = retrieval.by_words(tx, ids, Source.FILE, words, EQUAL_WEIGHTS, 200, resolved)
    by_number = chunks.get_many(tx, actor, [hit.number for hit in scored])
    return [by_number[hit.number].chunk.content for hit in scored if hit.number in by_number]


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
QUERIES = {
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


@pytest.mark.parametrize("query", QUERIES)
async def test_a_query_in_any_script_finds_the_same_chunks_on_both_databases(
    db: Database, query: str
) -> None:
    def search(tx: Tx) -> list[str]:
        ada = person(tx, "Ada")
        add_file(tx, ada, "corpus.md", *CORPUS)
        return find_texts(tx, ada, *query.replace("'", " ").replace(".", " ").split())

    assert set(await db.write(search)) == {CORPUS[index] for index in QUERIES[query]}


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


@pytest.mark.parametrize("query", HOSTILE)
async def test_query_syntax_in_a_search_is_treated_as_plain_words(db: Database, query: str) -> None:
    def search(tx: Tx) -> list[str]:
        ada, bruno = person(tx, "Ada"), person(tx, "Bruno")
        add_file(
            tx, ada, "mine.md", "alice owner x title body rank match near a b c d e f drop table users col"
        )
        add_file(
            tx, bruno, "his.md", "alice owner x title body rank match near a b c d e f drop table users col"
        )
        return find_texts(tx, ada, query, *query.split())

    assert len(await db.write(search)) <= 1


async def test_a_search_never_finds_chunks_of_another_project(db: Database) -> None:
    def search(tx: Tx) -> tuple[list[str], list[str], dict[int, object]]:
        ada, bruno = person(tx, "Ada"), person(tx, "Bruno")
        add_file(tx, ada, "a.md", "walnut of Ada")
        add_file(tx, bruno, "b.md", "walnut of Bruno")
        brunos_hits = retrieval.by_words(tx, [home(tx, bruno)], Source.FILE, ["walnut"], EQUAL_WEIGHTS, 9)
        brunos_chunks = chunks.get_many(tx, ada, [hit.number for hit in brunos_hits])
        facts = chunks.facts(tx, ada, [hit.number for hit in brunos_hits])
        return find_texts(tx, ada, "walnut"), find_texts(tx, bruno, "walnut"), {**brunos_chunks, **facts}

    assert await db.write(search) == (["walnut of Ada"], ["walnut of Bruno"], {})


async def test_the_fast_search_of_a_dominant_project_finds_the_same_chunks(
    db: Database,
) -> None:
    texts = [f"walnut {'oak ' * (index % 7)} {'elm' if index % 3 else 'ash'} {index}" for index in range(60)]

    def compare(tx: Tx) -> None:
        ada, bruno = person(tx, "Ada"), person(tx, "Bruno")
        for index, text_ in enumerate(texts):
            add_file(tx, bruno if index % 5 == 0 else ada, f"{index}.md", text_)
        for words in (["walnut", "oak"], ["elm", "oak", "7"], ["ash"], ["oak", "oak", "elm"]):
            arguments = ([home(tx, ada)], Source.FILE, words, EQUAL_WEIGHTS, 9)
            assert retrieval.by_words(tx, *arguments, many=1) == retrieval.by_words(tx, *arguments)

    await db.write(compare)


@pytest.mark.parametrize("limit", [3, 200])
async def test_one_search_in_several_projects_finds_what_separate_searches_find(
    db: Database, limit: int
) -> None:
    def compare(tx: Tx) -> None:
        people = [person(tx, name) for name in ("Ada", "Bruno", "Cleo", "Dora")]
        for index in range(60):
            add_file(tx, people[index % 4], f"{index}.md", f"walnut {'oak ' * (index % 7)} {index}")
        project_ids = [home(tx, actor) for actor in people[:3]]
        for words in (["walnut", "oak"], ["oak"], ["17", "23"]):
            together = retrieval.by_words(tx, project_ids, Source.FILE, words, EQUAL_WEIGHTS, limit)
            separately = {
                hit.number
                for project_id in project_ids
                for hit in retrieval.by_words(tx, [project_id], Source.FILE, words, EQUAL_WEIGHTS, 200)
            }
            assert len(together) == min(limit, len(separately))
            assert {hit.number for hit in together} <= separately

    await db.write(compare)


async def test_very_common_words_affect_scores_but_select_no_rows(db: Database) -> None:
    """Each row scores the same as with the full query. PostgreSQL has no reduced query."""

    def compare(tx: Tx) -> None:
        text_index, ada = tx.text_index, person(tx, "Ada")
        if not text_index.prefers_global_query:
            return
        for index in range(40):
            add_file(
                tx, ada, f"{index}.md", f"oak {'walnut' if index % 4 == 0 else ''} {'elm ' * (index % 3)}"
            )
        query = ["walnut", "oak", "elm"]
        reduced_query, factor = text_index.global_query(
            query, {"walnut": ENOUGH, "oak": ENOUGH + 1, "elm": ENOUGH + 2}
        )
        reduced = tx.execute(text_index.find(EQUAL_WEIGHTS, ""), query=reduced_query, limit=100)
        complete = tx.execute(
            text_index.find(EQUAL_WEIGHTS, ""), query=text_index.query((), query), limit=100
        )
        assert len(reduced) == 10
        assert len(complete) == 40
        scores = {row.number: row.score for row in complete}
        assert [row.score for row in reduced] == pytest.approx(
            [factor * scores[row.number] for row in reduced]
        )

    await db.write(compare)


async def test_a_rare_word_ranks_a_chunk_above_a_common_one(db: Database) -> None:
    def search(tx: Tx) -> list[str]:
        ada = person(tx, "Ada")
        common = [f"common words number {index}" for index in range(30)]
        add_file(tx, ada, "a.md", *common, "a rare walnut stands here")
        return find_texts(tx, ada, "common", "walnut")

    assert (await db.write(search))[0] == "a rare walnut stands here"


async def test_new_chunks_of_a_file_replace_the_old_ones(db: Database) -> None:
    def replace_and_search(tx: Tx) -> tuple[list[str], list[str]]:
        ada = person(tx, "Ada")
        file_id = add_file(tx, ada, "a.md", "the first walnut", "another walnut")
        chunks.remove_file(tx, file_id)
        chunks.add_to_file(tx, file_id, home(tx, ada), 0, [new_chunk("only hazel now")])
        return find_texts(tx, ada, "walnut"), find_texts(tx, ada, "hazel")

    assert await db.write(replace_and_search) == ([], ["only hazel now"])


async def test_words_with_vowel_signs_are_searched_as_whole_words(db: Database) -> None:
    """If words were split at vowel signs, every text with one of the letters would match."""

    def search(tx: Tx) -> list[str]:
        ada = person(tx, "Ada")
        add_file(tx, ada, "a.md", "मैं हिन्दी बोलता हूँ", "दिन में हवा नहीं")
        return find_texts(tx, ada, *terms("हिन्दी"))

    assert await db.write(search) == ["मैं हिन्दी बोलता हूँ"]


async def test_chunks_of_a_reindexed_file_keep_the_date_of_its_version(db: Database) -> None:
    ada, file_id = await db.write(
        lambda tx: (ada := person(tx, "Ada"), add_file(tx, ada, "a.md", "a walnut"))
    )
    written_at = (await db.read(lambda tx: versions.of_file(tx, ada, home(tx, ada), file_id)))[0].created_at

    def reindex(tx: Tx) -> list[int]:
        tx.now += 86_400_000
        chunks.remove_file(tx, file_id)
        chunks.add_to_file(tx, file_id, home(tx, ada), 0, [new_chunk("a walnut")])
        numbers = [item.number for item in vectors.due(tx, 9)]
        return [item.created_at for item in chunks.facts(tx, ada, numbers).values()]

    assert await db.write(reindex) == [written_at]


async def test_vectors_are_reused_only_for_the_same_text_path_and_model(db: Database) -> None:
    def lookups(tx: Tx) -> list[bytes | None]:
        ada = person(tx, "Ada")
        file_id = add_file(tx, ada, "a.md", "a walnut")
        config = vectors.set_config(tx, "m", 4)
        vectors.save(tx, config, [(item.number, b"12345678") for item in vectors.due(tx, 9)])
        same_path, other_path = vectors.of_file(tx, file_id, "a.md"), vectors.of_file(tx, file_id, "b.md")
        vectors.set_config(tx, "another", 4)
        other_model = vectors.of_file(tx, file_id, "a.md")
        texts = ("a walnut", "a hazelnut")
        return [item.of("", text_) for item in (same_path, other_path, other_model) for text_ in texts]

    assert await db.write(lookups) == [b"12345678", None, None, None, None, None]


async def test_deleting_a_file_conversation_or_project_deletes_its_chunks_and_vectors(db: Database) -> None:
    def fill(tx: Tx) -> tuple[Actor, str, str, str]:
        ada = person(tx, "Ada")
        file_id = add_file(tx, ada, "a.md", "walnut in a file")
        chat = conversation(tx, ada)
        _, replies = answered(tx, ada, chat.id)
        chunks.replace_message(
            tx, replies[0].id, chat.id, chat.project_id, tx.now, [new_chunk("walnut in a reply")]
        )
        project = projects.add(tx, ada, "Other")
        other_file = file(tx, ada, "c.md", project_id=project.id)
        chunks.add_to_file(tx, other_file.id, project.id, 0, [new_chunk("walnut elsewhere")])
        config = vectors.set_config(tx, "m", 4)
        vectors.save(tx, config, [(item.number, b"12345678") for item in vectors.due(tx, 9)])
        return ada, file_id, chat.id, project.id

    ada, file_id, conversation_id, project_id = await db.write(fill)
    assert await db.read(_row_counts) == (3, 3)
    await db.write(lambda tx: files.remove(tx, ada, home(tx, ada), file_id))
    assert await db.read(_row_counts) == (2, 2)
    await db.write(lambda tx: conversations.remove(tx, ada, conversation_id))
    assert await db.read(_row_counts) == (1, 1)
    await db.write(lambda tx: projects.remove(tx, ada, project_id))
    assert await db.read(_row_counts) == (0, 0)
    if db.version.startswith("SQLite"):
        index_rows = await db.read(lambda tx: tx.execute(sql("SELECT rowid FROM retrieval_index")))
        assert index_rows == []


def _row_counts(tx: Tx) -> tuple[int, int]:
    count = "SELECT (SELECT COUNT(*) FROM content_chunks) AS a, (SELECT COUNT(*) FROM chunk_vectors) AS b"
    row = tx.one(sql(count))
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
async def test_a_filter_excludes_exactly_the_files_that_do_not_match(
    db: Database, filters: Filters, names: set[str]
) -> None:
    def search(tx: Tx) -> set[str]:
        ada = person(tx, "Ada")
        for path in ("docs/plan.md", "docs/deep/notes.txt", "src/main.py"):
            file_id = add_file(tx, ada, path, f"walnut {path}")
        files.set_metadata(tx, ada, home(tx, ada), file_id, MetadataChange(tags=("chosen",)))
        return {content.removeprefix("walnut ") for content in find_texts(tx, ada, "walnut", filters=filters)}

    assert await db.write(search) == names


async def test_changing_the_embedding_model_makes_every_chunk_due_again(db: Database) -> None:
    def due_counts(tx: Tx) -> list[int]:
        ada = person(tx, "Ada")
        add_file(tx, ada, "a.md", "one", "two", "three")
        counts = []
        for model in ("first", "first", "second"):
            config = vectors.set_config(tx, model, 4)
            counts.append(len(vectors.due(tx, 9)))
            vectors.save(tx, config, [(item.number, b"12345678") for item in vectors.due(tx, 9)])
        assert vectors.find_config(tx, "first", 4) is None
        assert vectors.find_config(tx, "second", 4) == config
        return counts

    assert await db.write(due_counts) == [3, 0, 3]


async def test_a_message_keeps_its_vector_when_only_the_texts_around_it_change(db: Database) -> None:
    def change_surroundings(tx: Tx) -> tuple[int, list[str]]:
        ada = person(tx, "Ada")
        chat = conversation(tx, ada)
        _, replies = answered(tx, ada, chat.id)
        for around in ("before", "after the walnut"):
            chunks.replace_message(
                tx, replies[0].id, chat.id, chat.project_id, tx.now, [new_chunk("a chestnut", around=around)]
            )
            config = vectors.set_config(tx, "m", 4)
            due = vectors.due(tx, 9)
            vectors.save(tx, config, [(item.number, b"12345678") for item in due])
        hits = retrieval.by_words(tx, [chat.project_id], Source.MESSAGE, ["walnut"], EQUAL_WEIGHTS, 9)
        return len(due), [
            find_texts.chunk.content
            for find_texts in chunks.get_many(tx, ada, [hit.number for hit in hits]).values()
        ]

    assert await db.write(change_surroundings) == (0, ["a chestnut"])
