"""One corpus of many scripts, asked of both databases: both find the same, and no question breaks them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator

import pytest
from sqlalchemy import text

from tertulia.core.chunks import Location, Source, Weights
from tertulia.core.users import Actor
from tertulia.library.chunk import LINES
from tertulia.library.index import embed_due, of_file
from tertulia.library.query import terms
from tertulia.library.search import Library, Mode, find
from tertulia.store import chunks, retrieval
from tertulia.store.chunks import NewChunk
from tertulia.store.database import Database, Tx
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
    asked = [" ".join(chance.choices(words, k=chance.randint(1, 4))) for _ in range(QUESTIONS - len(HOSTILE))]
    return [*asked, *HOSTILE]


@pytest.fixture
def both(sqlite_url: str, postgres_url: str, clock: Clock) -> Iterator[tuple[Database, Database]]:
    opened = [Database.open(url, clock=clock, new_id=Ids(clock)) for url in (sqlite_url, postgres_url)]
    yield opened[0], opened[1]
    for db in opened:
        db.close()


def answers(db: Database) -> list[frozenset[int]]:
    """Which of the texts each question finds."""

    def write(tx: Tx) -> str:
        made = file(tx, person(tx, "Ada"), "corpus.md", "everything")
        new = [NewChunk(one, "", Location(path="corpus.md"), "", 1, "", "") for one in corpus()]
        chunks.add_to_file(tx, made.id, made.project_id, 0, new)
        return made.project_id

    project_id = db.write_now(write)
    db.write_now(lambda tx: tx.execute(text("ANALYZE")))  # as the database does itself, a little later

    def ask(tx: Tx) -> list[frozenset[int]]:
        found = [
            retrieval.by_words(tx, [project_id], Source.FILE, terms(one), EVEN, MESSAGES)
            for one in questions()
        ]
        # A database that was used before does not count from 1 again.
        first = tx.one(text("SELECT MIN(number) AS number FROM content_chunks")).number
        return [frozenset(one.number - first for one in scored) for scored in found]

    return db.read_now(ask)


def test_two_thousand_texts_of_many_scripts_are_found_alike_on_both_databases(
    both: tuple[Database, Database],
) -> None:
    on_sqlite, on_postgres = map(answers, both)
    different = [one for one, a, b in zip(questions(), on_sqlite, on_postgres, strict=True) if a != b]
    assert different == []
    assert sum(map(bool, on_sqlite)) > QUESTIONS * 0.85


@pytest.fixture
def library(db: Database) -> Library:
    return Library(db, Bags())


async def filled(library: Library) -> tuple[Actor, str]:
    def write(tx: Tx) -> tuple[Actor, str]:
        ada = person(tx, "Ada")
        for number, written in enumerate(corpus()[:60]):
            made = file(tx, ada, f"{number}.md", written)
            chunks.add_to_file(tx, made.id, made.project_id, 0, tuple(of_file(made, written, LINES)))
        return ada, home(tx, ada)

    ada, project_id = library.db.write_now(write)
    while await embed_due(library, 64):
        pass
    return ada, project_id


async def test_two_hundred_at_once_each_find_what_they_would_alone(library: Library) -> None:
    ada, project_id = await filled(library)
    asked = [questions()[number % 50] if number % 4 else HOSTILE[number // 4 % 26] for number in range(200)]

    async def look(text: str) -> list[str]:
        return [hit.chunk_id for hit in (await find(library, ada, [project_id], text)).hits]

    alone = {text: await look(text) for text in dict.fromkeys(asked)}
    together = await asyncio.gather(*map(look, asked))
    assert together == [alone[text] for text in asked]


@pytest.mark.parametrize(
    "asked",
    [
        " ".join(f"word{number}" for number in range(20_000)),
        " ".join(f"w{number}*" for number in range(2_000)),
        "fox walnut\n" * 90_000,
        '"' * 1_000_000,
        "東" * 300_000,
    ],
    ids=["20,000 words", "2,000 beginnings", "a megabyte", "quotation marks", "one long word"],
)
async def test_what_is_expensive_to_ask_is_cut_short(library: Library, asked: str) -> None:
    ada, project_id = await filled(library)
    for mode in Mode:
        with counted_calls() as calls:
            await find(library, ada, [project_id], asked, mode=mode)
        assert calls() < 500_000
