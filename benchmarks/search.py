"""The speed of search: 200,000 messages in one project, and 100,000 chunks in a hundred projects.

    python -m benchmarks.search          all of them
    python -m benchmarks.search 0.1      a tenth, to see that it runs

Words are as common as in English: the n-th comes once in about ten times n (Zipf), and the first 150, which a
search leaves out, are half of every text. Vectors are random. The time is that of the whole process for one
question, without embedding it.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import accumulate
from statistics import median

import numpy as np

from benchmarks.figures import Figure, tell
from benchmarks.pulse import Pulse
from tertulia.app import new_id, now_ms
from tertulia.core.chunks import Location
from tertulia.core.conversations import Visibility
from tertulia.core.messages import Message, Role, Status
from tertulia.core.users import Actor, ServerRole
from tertulia.library.embedders import OnCharge, not_charged
from tertulia.library.search import SearchIndex, SearchMode, find
from tertulia.store import chunks, conversations, messages, projects, users, vectors
from tertulia.store.chunks import NewChunk
from tertulia.store.database import Database, Tx

MESSAGES = 200_000
WORDS_IN_A_MESSAGE = 40
PROJECTS, CHUNKS_IN_A_PROJECT = 100, 1_000
WORDS_IN_A_CHUNK = 130
QUESTIONS = 60
VOCABULARY = 50_000
SMALL_WORDS = 150
BATCH = 2_000


class Vectors:
    """Random directions; nothing is read."""

    model, dimensions = "random", 384

    def __init__(self) -> None:
        self._random = np.random.default_rng(1)

    def unavailable_reason(self) -> str | None:
        return None

    async def embed(
        self, texts: Sequence[str], *, is_query: bool = False, billed: OnCharge = not_charged
    ) -> tuple[bytes, ...]:
        made = self._random.standard_normal((len(texts), self.dimensions)).astype(np.float32)
        made /= np.linalg.norm(made, axis=1, keepdims=True)
        return tuple(row.tobytes() for row in made.astype(np.float16))

    async def close(self) -> None:
        return None


@dataclass
class Language:
    chance: random.Random
    words: list[str]
    weights: list[float]

    @classmethod
    def spoken(cls) -> Language:
        chance = random.Random(1)
        syllables = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]
        words = list(
            {"".join(chance.choices(syllables, k=chance.randint(2, 5))) for _ in range(VOCABULARY * 2)}
        )
        words = sorted(words)[:VOCABULARY]
        chance.shuffle(words)
        return cls(chance, words, list(accumulate(1 / (rank + 3.7) for rank in range(len(words)))))

    def text(self, count: int) -> str:
        return " ".join(self.chance.choices(self.words, cum_weights=self.weights, k=count))

    def question(self) -> str:
        """Five content words, the common ones as often as they are said."""
        small = set(self.words[:SMALL_WORDS])
        drawn = self.chance.choices(self.words, cum_weights=self.weights, k=60)
        return " ".join([word for word in drawn if word not in small][:5])


def fill_messages(db: Database, actor: Actor, language: Language, count: int) -> str:
    project_id = db.write_now(lambda tx: projects.add(tx, actor, "Talk")).id

    def batch(tx: Tx, first: int) -> None:
        for start in range(first, first + BATCH, 100):
            said = conversations.add(
                tx, actor, project_id, mode="parallel", table=(), visibility=Visibility.OPEN
            )
            texts = [language.text(WORDS_IN_A_MESSAGE) for _ in range(100)]
            for number, text in enumerate(texts, start=1):
                message = Message(
                    tx.new_id(),
                    said.id,
                    number,
                    "t",
                    "user",
                    Role.USER,
                    text,
                    Status.COMPLETE,
                    actor.user_id,
                    tx.now,
                )
                messages.add(tx, message)
                around = f"{texts[number - 2]} {texts[number % 100]}"
                location = Location(conversation_id=said.id, round_number=number, speaker="user")
                new = NewChunk(
                    text, "Ada, 1 May 2026", location, text[:80], 60, "Friday 1 May 2026", around, "Ada"
                )
                chunks.replace_message(tx, message.id, said.id, project_id, tx.now + start, [new])

    for first in range(0, count, BATCH):
        db.write_now(lambda tx, first=first: batch(tx, first))  # type: ignore[misc]
    return project_id


def fill_projects(db: Database, actor: Actor, language: Language, size: int) -> list[str]:
    def one(tx: Tx, number: int) -> str:
        project_id = projects.add(tx, actor, f"Project {number}").id
        said = conversations.add(tx, actor, project_id, mode="parallel", table=(), visibility=Visibility.OPEN)
        for index in range(1, size + 1):
            text = language.text(WORDS_IN_A_CHUNK)
            message = Message(
                tx.new_id(),
                said.id,
                index,
                "t",
                "user",
                Role.USER,
                text,
                Status.COMPLETE,
                actor.user_id,
                tx.now,
            )
            messages.add(tx, message)
            location = Location(conversation_id=said.id, round_number=index, speaker="user")
            new = NewChunk(text, "Ada, 1 May 2026", location, text[:80], 200, "Friday 1 May 2026", "", "Ada")
            chunks.replace_message(tx, message.id, said.id, project_id, tx.now, [new])
        return project_id

    return [db.write_now(lambda tx, number=number: one(tx, number)) for number in range(PROJECTS)]  # type: ignore[misc]


async def embed_all(library: SearchIndex) -> None:
    config = await library.db.write(lambda tx: vectors.set_config(tx, "random", 384))
    while due := await library.db.read(lambda tx: vectors.due(tx, BATCH)):
        made = await library.embedder.embed([""] * len(due))
        rows = [(one.number, vector) for one, vector in zip(due, made, strict=True)]
        await library.db.write(lambda tx, rows=rows: vectors.save(tx, config, rows))  # type: ignore[misc]


async def ask(
    library: SearchIndex,
    actor: Actor,
    project_ids: Sequence[str],
    mode: SearchMode,
    language: Language,
    questions: int = QUESTIONS,
) -> list[float]:
    spent = []
    for number in range(questions):
        project_id, question = project_ids[number % len(project_ids)], language.question()
        began = time.process_time()
        found = await find(library, actor, [project_id], question, mode=mode)
        spent.append((time.process_time() - began) * 1000)
        assert found.hits
    return sorted(spent)


@asynccontextmanager
async def tertulia() -> AsyncIterator[tuple[SearchIndex, Actor]]:
    with tempfile.TemporaryDirectory() as folder:
        db = Database.open(f"sqlite:///{folder}/bench.db", clock=now_ms, new_id=new_id)
        user = db.write_now(lambda tx: users.add(tx, "Ada", "ada@example.org", "", ServerRole.MEMBER))
        try:
            yield SearchIndex(db, Vectors()), Actor(user.id, ServerRole.MEMBER)
        finally:
            db.close()


async def main(part: float) -> None:
    language = Language.spoken()
    async with tertulia() as (library, actor):
        hundred = fill_projects(library.db, actor, language, int(CHUNKS_IN_A_PROJECT * part))
        with Pulse() as pulse:
            filtered = await ask(library, actor, hundred, SearchMode.KEYWORD, language)
    async with tertulia() as (library, actor):
        large = [fill_messages(library.db, actor, language, int(MESSAGES * part))]
        await embed_all(library)
        await ask(library, actor, large, SearchMode.HYBRID, language, 1)  # it reads the vectors once
        with Pulse() as large_pulse:
            keyword = await ask(library, actor, large, SearchMode.KEYWORD, language)
            hybrid = await ask(library, actor, large, SearchMode.HYBRID, language)
    pulse.slowed = max(1.0, min(pulse.slowed, large_pulse.slowed))
    rows = [
        (name, median(spent), spent[int(len(spent) * 0.95)])
        for name, spent in (("1 of 100", filtered), ("200k, words", keyword), ("200k, both", hybrid))
    ]
    figures = [
        Figure("words in 1 of 100 projects with 100,000 chunks", median(filtered), "ms CPU", 10, is_cpu=True),
        Figure("words in 200,000 messages", median(keyword), "ms CPU", 15, is_cpu=True),
        Figure("both in 200,000 messages", median(hybrid), "ms CPU", 30, is_cpu=True),
    ]
    tell("search", ("ms CPU p50", "ms CPU p95"), rows, figures, pulse)


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0))
