"""Relevance: a question finds passages that fit it, and an off-topic message finds nothing.

These messages and texts are not the ones that the thresholds were chosen on.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import pytest

from tertulia import settings
from tertulia.core.chunks import Match
from tertulia.core.users import Actor
from tertulia.library import relevance
from tertulia.library.embedders import LocalEmbedder
from tertulia.library.index import embed_due
from tertulia.library.query import terms
from tertulia.library.relevance import Relevance, fit, question_terms
from tertulia.library.search import SearchIndex, SearchMode, SearchQuery, SearchResult, find
from tertulia.library.small_talk import NEAREST, SENTENCES, SmallTalk
from tertulia.library.snippets import found_in
from tertulia.providers import model_downloads
from tertulia.store.database import Database
from tests.library.bags import Bags
from tests.library.test_search import add_conversation, add_file
from tests.store.samples import home, person

HOME = settings.read(os.environ).home
needs_model = pytest.mark.skipif(
    not model_downloads.is_installed(model_downloads.get("minilm"), HOME),
    reason="run `tertulia models pull minilm` first",
)

FILES = {
    "docs/storage.md": (
        "# Storage\n\nAll sensor readings go to SQLite in WAL mode. One thread writes, readers are beside it."
        "\n\n"
        "Readings older than 90 days move to monthly Parquet files in the archive bucket.\n\n"
        "## Backup\n\nA copy is taken every night at 02:30 with the online backup API and kept 14 days."
    ),
    "docs/alarms.md": (
        "# Alarms\n\nA greenhouse raises an alarm when its humidity is above 92 % for twenty minutes.\n\n"
        "Alarms go to the duty phone first; after ten minutes without answer to the head gardener, Mr. Osei."
    ),
    "notes/supplier.md": (
        "The new valves come from Hydrotek in Delft, 48 euros each, eight weeks delivery.\n"
        "Contact: Ms. van Rijn. The warranty ends after 24 months."
    ),
    "src/poll.py": (
        "def poll_sensor(address: str, retries: int = 3) -> Reading:\n"
        '    """Reads temperature and humidity over Modbus; gives up after some retries."""\n'
        "    for attempt in range(retries):\n        reply = modbus.read(address)\n"
        "        if reply.ok:\n            return Reading(reply.temperature, reply.humidity)\n"
        "    raise SensorGone(address)\n"
    ),
}
TALK = (
    (
        "Should we replace SQLite with PostgreSQL for the readings?",
        "Not yet. At two thousand readings a minute SQLite is idle most of the time. PostgreSQL pays off "
        "once several greenhouses write to one server.",
    ),
    (
        "Why did the pump in house 3 stop on Friday?",
        "Its fuse had blown: the motor drew 14 ampere because the inlet filter was full of algae.",
    ),
    (
        "Draft an e-mail to the interns about watering on weekends.",
        "Dear all, please water houses 1 and 2 before nine on Saturdays and Sundays, and log it in the "
        "blue book.",
    ),
)
OFF_TOPIC = (
    "Hiya!", "howdy folks", "Greetings, friend", "Moin moin", "Hej hej", "Buon pomeriggio",
    "Guten Abend", "お疲れさま", "Ta very much", "Brilliant, thank you kindly",
    "Danke dir, das reicht mir", "merci bien", "много благодарю",
    "Write a limerick for my uncle's sixtieth birthday", "Compose a ballad about a lonely astronaut",
    "Invent a lullaby about the moon", "Schreib ein Liebesgedicht an meine Frau",
    "Écris un haïku sur la neige", "How do I poach salmon?", "A recipe for blueberry muffins please",
    "Wie mache ich Pfannkuchen?", "¿Cómo preparo una paella?", "Who was the first person on the moon?",
    "What is the currency of Norway?", "Wie heißt die Hauptstadt von Peru?",
    "What is the square root of 1024?", "Convert 5 miles to kilometres", "and in Italian?",
    "a bit longer please", "Now as a haiku", "kürzer bitte", "otra vez por favor",
    "Recommend a novel for the beach", "What should I pack for a trip to Iceland?",
    "How do I get rid of hiccups?", "I feel lonely tonight", "My cat refuses to eat",
    "Write a React component with a dropdown", "Explain monads in Haskell",
    "How do I rename a git branch?", "Translate 'see you soon' into Polish", "What rhymes with silver?",
    "gnarf blorp wibble", "umbrella", "violin", "Which phone should I buy?", "Wish me luck",
    "Tell me something interesting", "k", "hmm ok then", "明日の天気は？", "推荐一部电影",
    "Как приготовить плов?",
)  # fmt: skip
ON_TOPIC = {
    "How long are old readings kept before they are archived?": "90 days",
    "When is the nightly backup taken?": "02:30",
    "At what humidity does a greenhouse raise an alarm?": "92 %",
    "Who is called when nobody answers the duty phone?": "Osei",
    "What does a valve from Hydrotek cost?": "48 euros",
    "Where is the Modbus sensor read?": "poll_sensor",
    "Did we decide to move from SQLite to PostgreSQL?": "idle most of the time",
    "What was wrong with the pump in house 3?": "fuse had blown",
    "Which houses do the interns water at the weekend?": "houses 1 and 2",
}


@pytest.fixture
async def embedder() -> AsyncIterator[LocalEmbedder]:
    embedder = LocalEmbedder(HOME, os.environ)
    yield embedder
    await embedder.close()


@pytest.fixture
def ada(db: Database) -> Actor:
    return db.write_now(lambda tx: person(tx, "Ada"))


def fill(db: Database, ada: Actor) -> str:
    for path, text in FILES.items():
        add_file(db, ada, path, text)
    add_conversation(db, ada, *TALK)
    return db.read_now(lambda tx: home(tx, ada))


async def for_prompt(library: SearchIndex, ada: Actor, project_id: str, text: str) -> SearchResult:
    return await find(library, ada, [project_id], text, purpose=SearchQuery.PROMPT)


async def off_topic_with_hits(library: SearchIndex, ada: Actor, project_id: str) -> list[str]:
    """The off-topic messages for which a passage would enter the prompt."""
    return [text for text in OFF_TOPIC if (await for_prompt(library, ada, project_id, text)).hits]


async def unanswered(library: SearchIndex, ada: Actor, project_id: str) -> list[str]:
    """The questions whose answer is not among the passages for the prompt."""
    answers = {text: (await for_prompt(library, ada, project_id, text)).hits for text in ON_TOPIC}
    return [text for text, hits in answers.items() if not any(ON_TOPIC[text] in hit.content for hit in hits)]


@needs_model
async def test_at_most_one_in_twenty_off_topic_messages_gets_a_passage(
    db: Database, ada: Actor, embedder: LocalEmbedder
) -> None:
    library = SearchIndex(db, embedder)
    project_id = fill(db, ada)
    while await embed_due(library, 32):
        pass
    assert len(await off_topic_with_hits(library, ada, project_id)) <= len(OFF_TOPIC) // 20
    assert await unanswered(library, ada, project_id) == []


async def test_off_topic_messages_get_few_passages_without_an_embedder_too(db: Database, ada: Actor) -> None:
    bags = Bags()
    bags.reason = "There are no weights."
    library = SearchIndex(db, bags)
    project_id = fill(db, ada)
    assert len(await off_topic_with_hits(library, ada, project_id)) <= len(OFF_TOPIC) // 20
    assert len(await unanswered(library, ada, project_id)) <= 1


@needs_model
@pytest.mark.parametrize("text", ["zxqwv nothing at all", "qpfhx", "blorpt wibble fnord"])
async def test_a_search_for_words_that_no_file_contains_finds_nothing(
    db: Database, ada: Actor, embedder: LocalEmbedder, text: str
) -> None:
    library = SearchIndex(db, embedder)
    project_id = fill(db, ada)
    while await embed_due(library, 32):
        pass
    for mode in SearchMode:
        assert (await find(library, ada, [project_id], text, mode=mode)).hits == ()


async def test_one_matching_word_of_the_subject_is_enough_for_a_search(db: Database, ada: Actor) -> None:
    library = SearchIndex(db, Bags())
    project_id = fill(db, ada)
    hits = (await find(library, ada, [project_id], "zxqwv valves", mode=SearchMode.KEYWORD)).hits
    assert [hit.title for hit in hits] == ["notes/supplier.md"]


async def test_a_search_for_a_common_word_alone_finds_it(db: Database, ada: Actor) -> None:
    library = SearchIndex(db, Bags())
    project_id = fill(db, ada)
    hits = (await find(library, ada, [project_id], "please", mode=SearchMode.KEYWORD)).hits
    assert any("please water houses" in hit.content for hit in hits)


async def test_small_talk_is_embedded_once_for_all_queries(db: Database, ada: Actor) -> None:
    bags = Bags()
    library = SearchIndex(db, bags)
    project_id = fill(db, ada)
    while await embed_due(library, 32):
        pass
    for text in ("the valves", "the pump", "the alarm"):
        await find(library, ada, [project_id], text)
    assert [bags.embedded.count(sentence) for sentence in SENTENCES] == [1] * len(SENTENCES)


async def test_the_small_talk_baseline_is_higher_for_a_question_like_small_talk() -> None:
    bags = Bags()
    small_talk = SmallTalk(bags)
    sentence, nonsense = await bags.embed([SENTENCES[0], "zxqwv"])
    near, far = await small_talk.likeness([sentence, nonsense], lambda charge: None)
    assert far < near
    assert near >= 1 / NEAREST


def test_the_fit_is_lower_in_a_larger_project() -> None:
    near = Relevance(0.4, 0.2)
    sizes = [fit(1.0, near, chunks) for chunks in (1, 100, 10_000)]
    assert sizes == sorted(sizes, reverse=True)
    assert fit(1.0, near, 10_000) == fit(1.0, near, 1_000_000)


def test_a_passage_hardly_more_similar_than_small_talk_does_not_fit() -> None:
    assert fit(0.0, Relevance(0.8, 0.75), 10) < relevance.FITS
    assert fit(0.0, Relevance(0.5, 0.15), 10) >= relevance.FITS


def test_without_vectors_one_word_fits_in_a_small_project_and_two_in_a_large_one() -> None:
    assert fit(1.0, None, 10) >= relevance.FITS > fit(1.0, None, 5_000)
    assert fit(2.0, None, 5_000) >= relevance.FITS


def test_words_are_enough_in_a_language_that_the_model_hardly_knows() -> None:
    assert fit(2.0, Relevance(0.45, 0.6), 50) >= relevance.FITS
    assert fit(0.0, Relevance(0.6, 0.6), 50) < relevance.FITS


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        ("please explain the walnut harvest", "the harvest of walnuts", 2.0),
        ("Was kostet das bitte?", "Das ist mir egal, bitte.", 0.3),
        ("Danke schön für die Walnüsse", "Walnüsse und mehr für alle", 1.15),
        ("thanks", "thanks a lot", 0.15),
        ("天気はどうですか", "東京の天気", 0.4),
        ("ありがとうございます", "ありがとう、また明日", 0.0),
    ],
)
def test_common_words_weigh_little_and_words_of_the_subject_weigh_fully(
    question: str, text: str, expected: float
) -> None:
    words = terms(question)
    assert question_terms(words).count(found_in(text, words)) == pytest.approx(expected)


def test_a_fit_becomes_a_strong_good_or_weak_match() -> None:
    assert [relevance.match(fit) for fit in (0.9, relevance.STRONG, relevance.FITS, 0.0, -1.0)] == [
        Match.STRONG,
        Match.STRONG,
        Match.GOOD,
        Match.WEAK,
        Match.WEAK,
    ]
