"""Search in a corpus of many scripts: both databases find the same, and no query breaks or slows them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator

import pytest

from tertulia.core.chunks import Location, Source, Weights
from tertulia.core.users import Actor
from tertulia.library.chunk import LINES
from tertulia.library.index import embed_due, of_file
from tertulia.library.query import terms
from tertulia.library.search import SearchIndex, SearchMode, find
from tertulia.store import chunks, retrieval
from tertulia.store.chunks import NewChunk
from tertulia.store.database import Database, Tx
from tertulia.store.sql import sql
from tests.calls import counted_calls
from tests.library.bags import Bags
from tests.store.samples import file, home, person
from tests.store_fixtures import Clock, Ids

MESSAGES = 2_000
QUESTIONS = 300
EVEN = Weights(body=1.0, heading=1.0, place=1.0, around=1.0)
WORDS = (
    "walnut running runs ran fox foxes café naïve brûlée Straße ΑΘΗΝΑ αθήνα İstanbul ılık fiancée résumé",
    "東京都 天気 漢字 日本語 ひらがな カタカナ 北京 中文 한국어 서울 날씨 ภาษาไทย กรุงเทพ ไทย",
    "Привет мир дела ёлка Київ їжак مرحبا بالعالم كتاب שלום עולם ספר नमस्ते दुनिया",
    "🦊 👩‍👩‍👧 ❤️ ½ ① Ⅳ ﬁle e\u0301tude A\u030angstrom \u200bzero\u200bwidth",
    "getUserName parse_auth_log HTTPServer C++ C# .NET x->y foo::bar a.b.c() __init__ λx $PATH #tag @name",
    "3.11 2024 2024-05-08 1,000,000 0x1F 1e-9 192.168.0.1 +1-555-0100 v2.0.0-rc1 §7 №5 100%",
    "O'Reilly don't rock'n'roll e-mail state-of-the-art \"quoted\" (aside) [1] {json: true} <b>bold</b>",
)
HOSTILE = (
    "owner:alice", "{title body}: x", "rowid:1", "rank MATCH 'bm25'", "x OR owner_id", "NEAR(fox walnut, 3)",
    "fox*", "^fox", '"', "'", "''; DROP TABLE users; --", "\\", "a:b|c&d!e<->f", "(((", "\x00", "\ud800",
    "%_", "-fox", "col : *", "$1", ":x", "fox AND NOT walnut", "AND OR NOT", "fox & ! walnut", "\n\t",
    "fox <-> walnut",
)  # fmt: skip


def corpus() -> list[str]:
    chance = random.Random(1)
    scripts = [line.split(" ") for line in WORDS]
    return [
        " ".join(chance.choices(chance.choice(scripts), k=3) + chance.choices(sum(scripts, []), k=3))
        for _ in range(MESSAGES)
    ]


def questions() -> list[str]:
    chance = random.Random(2)
    words = " ".join(WORDS).split(" ")
    count = QUESTIONS - len(HOSTILE)
    ordinary = [" ".join(chance.choices(words, k=chance.randint(1, 4))) for _ in range(count)]
    return [*ordinary, *HOSTILE]


@pytest.fixture
def both(sqlite_url: str, postgres_url: str, clock: Clock) -> Iterator[tuple[Database, Database]]:
    databases = [Database.open(url, clock=clock, new_id=Ids(clock)) for url in (sqlite_url, postgres_url)]
    yield databases[0], databases[1]
    for db in databases:
        db.close()


def answers(db: Database) -> list[frozenset[int]]:
    """For each question the indexes of the texts that it finds."""

    def write(tx: Tx) -> str:
        added = file(tx, person(tx, "Ada"), "corpus.md", "everything")
        new = [NewChunk(content, "", Location(path="corpus.md"), "", 1, "", "") for content in corpus()]
        chunks.add_to_file(tx, added.id, added.project_id, 0, new)
        return added.project_id

    project_id = db.write_now(write)
    db.write_now(lambda tx: tx.execute(sql("ANALYZE")))  # the database would run it by itself a little later

    def ask(tx: Tx) -> list[frozenset[int]]:
        results = [
            retrieval.by_words(tx, [project_id], Source.FILE, terms(question), EVEN, MESSAGES)
            for question in questions()
        ]
        # In a database that was used before, the numbers do not begin at 1.
        first = tx.one(sql("SELECT MIN(number) AS number FROM content_chunks")).number
        return [frozenset(scored.number - first for scored in result) for result in results]

    return db.read_now(ask)


def test_sqlite_and_postgresql_find_the_same_texts_in_many_scripts(
    both: tuple[Database, Database],
) -> None:
    on_sqlite, on_postgres = map(answers, both)
    different = [
        question for question, a, b in zip(questions(), on_sqlite, on_postgres, strict=True) if a != b
    ]
    assert different == []
    assert sum(map(bool, on_sqlite)) > QUESTIONS * 0.85


@pytest.fixture
def library(db: Database) -> SearchIndex:
    return SearchIndex(db, Bags())


async def filled(library: SearchIndex) -> tuple[Actor, str]:
    def write(tx: Tx) -> tuple[Actor, str]:
        ada = person(tx, "Ada")
        for number, content in enumerate(corpus()[:60]):
            added = file(tx, ada, f"{number}.md", content)
            chunks.add_to_file(tx, added.id, added.project_id, 0, tuple(of_file(added, content, LINES)))
        return ada, home(tx, ada)

    ada, project_id = library.db.write_now(write)
    while await embed_due(library, 64):
        pass
    return ada, project_id


async def test_two_hundred_concurrent_searches_find_the_same_as_one_at_a_time(library: SearchIndex) -> None:
    ada, project_id = await filled(library)
    queries = [questions()[number % 50] if number % 4 else HOSTILE[number // 4 % 26] for number in range(200)]

    async def search(text: str) -> list[str]:
        return [hit.chunk_id for hit in (await find(library, ada, [project_id], text)).hits]

    alone = {text: await search(text) for text in dict.fromkeys(queries)}
    together = await asyncio.gather(*map(search, queries))
    assert together == [alone[text] for text in queries]


@pytest.mark.parametrize(
    "query",
    [
        " ".join(f"word{number}" for number in range(20_000)),
        " ".join(f"w{number}*" for number in range(2_000)),
        "fox walnut\n" * 90_000,
        '"' * 1_000_000,
        "東" * 300_000,
    ],
    ids=["20,000 words", "2,000 prefixes", "a megabyte", "quotation marks", "one long word"],
)
async def test_an_expensive_query_is_cut_to_a_bounded_amount_of_work(
    library: SearchIndex, query: str
) -> None:
    ada, project_id = await filled(library)
    for mode in SearchMode:
        with counted_calls() as calls:
            await find(library, ada, [project_id], query, mode=mode)
        assert calls() < 500_000
