"""The cost of a prompt: a conversation of 1,000 rounds in a project of 1,000 files, everything looked up.

Measured is all that happens between a turn's start and its call: what was said is gathered, files and what
was said long ago are looked up, the prompt is assembled and counted. Embedding the question is left out:
vectors are random. The time is that of the process, for one question.
"""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from benchmarks.figures import Figure, tell
from benchmarks.search import SMALL_WORDS, Language, Vectors, embed_all
from tertulia.app import log_incident, new_id, now_ms
from tertulia.context.assemble import Assembled, assemble
from tertulia.context.budget import output_limit
from tertulia.core.attachments import Attachment
from tertulia.core.conversations import Visibility
from tertulia.core.files import Content, Extracted, FileLimits, MetadataChange, ProjectFile
from tertulia.core.jobs import IndexRounds
from tertulia.core.messages import Message, Role, Status, Usage, speaker_of
from tertulia.core.models import Abilities, Model, Tier
from tertulia.core.receipts import Layer, SegmentReason
from tertulia.core.turns import Purpose, Turn, TurnState
from tertulia.core.users import Actor, ServerRole
from tertulia.core.voices import SeatRequest, Voice, assign_seats
from tertulia.engine.context_retrieval import retrieve
from tertulia.engine.dependencies import Dependencies
from tertulia.engine.jobs.index_round import index_rounds
from tertulia.engine.live import LiveHub
from tertulia.engine.turn_records import TurnRecords, read_question
from tertulia.library.extract import VERSION
from tertulia.library.extract.extractor import Extractor
from tertulia.library.index import of_file
from tertulia.library.search import SearchIndex
from tertulia.providers.egress import LOOPBACK_ONLY
from tertulia.providers.registry import ProviderRegistry
from tertulia.providers.tokens import counter
from tertulia.store import (
    attachments,
    chunks,
    conversations,
    extracted_texts,
    files,
    messages,
    projects,
    turns,
    users,
)
from tertulia.store.blobs import Blobs
from tertulia.store.database import Database, Tx
from tertulia.store.sql import sql

ROUNDS, FILES = 1_000, 1_000
VOICES = 3
LINES_IN_A_FILE, WORDS_IN_A_LINE = 120, 12
WORDS_IN_A_REPLY = 150
ALWAYS = 3
ATTACHED_EVERY = 5
"""So many rounds apart, a question brought a file along."""
WARM_UP, QUESTIONS = 10, 40
AT_ONCE = 100
TIERS = (Tier.SMART, Tier.FAST)


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        dependencies = opened(Path(folder))
        try:
            stage = Stage(dependencies, Language.spoken())
            await stage.fill()
            for _ in range(WARM_UP):
                await stage.ask(TIERS)
            spent = {tier.value: [await stage.ask((tier,)) for _ in range(QUESTIONS)] for tier in TIERS}
            spent["four voices"] = [await stage.ask((Tier.SMART,) * 4) for _ in range(QUESTIONS)]
        finally:
            dependencies.extractor.close()
            dependencies.blobs.close()
            dependencies.db.close()
    rows = [(name, median(ms), sorted(ms)[int(len(ms) * 0.95)]) for name, ms in spent.items()]
    most = max(median(spent[tier.value]) for tier in TIERS)
    figures = [Figure("context assembly, 1,000 rounds and 1,000 files", most, "ms CPU", 30, is_cpu=True)]
    tell("context_assembly", ("ms CPU p50", "ms CPU p95"), rows, figures)


def opened(folder: Path) -> Dependencies:
    db = Database.open(f"sqlite:///{folder}/bench.db", clock=now_ms, new_id=new_id)
    limits = FileLimits()
    return Dependencies(
        db,
        ProviderRegistry.from_environment({}, folder, LOOPBACK_ONLY),
        LiveHub(),
        now_ms,
        time.monotonic,
        new_id,
        counter,
        log_incident,
        Blobs(db, folder / "blobs", new_id),
        Extractor(limits),
        limits,
        SearchIndex(db, Vectors()),
    )


def model_of(tier: Tier, number: int = 0) -> Model:
    return Model("bench", f"{tier}-{number}", "Model", 200_000, 8_000, tier, Abilities(vision=True))


class Stage:
    """One person's project, filled, and questions to it."""

    def __init__(self, dependencies: Dependencies, language: Language) -> None:
        self._dependencies = dependencies
        self._db = dependencies.db
        self._language = language
        self._lines: list[str] = []
        """Some of what stands in the files, to be asked for."""
        user = self._db.write_now(lambda tx: users.add(tx, "Ada", "ada@example.org", "", ServerRole.MEMBER))
        self._actor = Actor(user.id, ServerRole.MEMBER)
        self._project_id = self._db.write_now(lambda tx: projects.add(tx, self._actor, "Large")).id
        self._table = assign_seats(
            SeatRequest(f"bench:voice-{number}", f"Voice {number}") for number in range(VOICES)
        )
        self._conversation_id = self._db.write_now(self._begun)

    def _begun(self, tx: Tx) -> str:
        return conversations.add(
            tx, self._actor, self._project_id, mode="parallel", table=self._table, visibility=Visibility.OPEN
        ).id

    # ── filling

    async def fill(self) -> None:
        for first in range(0, FILES, AT_ONCE):
            self._db.write_now(lambda tx, first=first: self._file_some(tx, first))  # type: ignore[misc]
        for first in range(1, ROUNDS + 1, AT_ONCE):
            self._db.write_now(self._say_some)
            await index_rounds(
                self._dependencies, IndexRounds(self._conversation_id, first, first + AT_ONCE - 1)
            )
        await embed_all(self._dependencies.library)

    def _file_some(self, tx: Tx, first: int) -> None:
        for number in range(first, first + AT_ONCE):
            written = self._written(LINES_IN_A_FILE)
            self._lines.append(" ".join(written.splitlines()[:2]))
            made = files.put(
                tx,
                self._actor,
                self._project_id,
                f"folder-{number % 25}/{number}.md",
                self._kept(tx, written),
            )
            chunks.add_to_file(tx, made.id, self._project_id, 0, tuple(of_file(made, written, 50)))
            if number < ALWAYS:
                self._always(tx, made)

    def _always(self, tx: Tx, file: ProjectFile) -> None:
        always = MetadataChange(always_in_context=True)
        files.set_metadata(tx, self._actor, self._project_id, file.id, always)

    def _kept(self, tx: Tx, written: str) -> Content:
        """Bytes that are there, and were read before."""
        raw = written.encode()
        content = Content(hashlib.sha256(raw).hexdigest(), len(raw), "text/markdown")
        tx.execute(_KEEP, hash=content.hash, size_bytes=content.size_bytes, content=raw, now=tx.now)
        extracted_texts.save(tx, content.hash, VERSION, Extracted(written, content.mime_type))
        return content

    def _written(self, lines: int) -> str:
        return "\n".join(self._language.text(WORDS_IN_A_LINE) for _ in range(lines))

    def _say_some(self, tx: Tx) -> None:
        for _ in range(AT_ONCE):
            number = turns.next_round(tx, self._conversation_id)
            brought = self._brought(tx) if number % ATTACHED_EVERY == 0 else ()
            question = self._message(tx, number, None, brought)
            messages.add(tx, question)
            attachments.send(tx, brought, question.id)
            for voice in self._table:
                messages.add(tx, self._message(tx, number, voice))

    def _brought(self, tx: Tx) -> tuple[Attachment, ...]:
        content = self._kept(tx, self._written(60))
        return (attachments.add(tx, self._actor, self._project_id, "notes.md", content),)

    def _message(
        self, tx: Tx, number: int, voice: Voice | None, brought: tuple[Attachment, ...] = ()
    ) -> Message:
        return Message(
            id=tx.new_id(),
            conversation_id=self._conversation_id,
            round_number=number,
            turn_id=tx.new_id(),
            speaker="user" if voice is None else speaker_of(voice.model),
            role=Role.USER if voice is None else Role.ADVISOR,
            content=self._language.text(20 if voice is None else WORDS_IN_A_REPLY),
            status=Status.COMPLETE,
            created_by=self._actor.user_id,
            created_at=tx.now,
            voice=voice,
            usage=None if voice is None else Usage(900, 0, 320, 0, None, 2100, 180),
            attachments=brought,
        )

    # ── asking

    async def ask(self, tiers: Sequence[Tier]) -> float:
        """Milliseconds of CPU for one question to so many voices."""
        models = {model.key: model for model in (model_of(tier, n) for n, tier in enumerate(tiers))}
        table = assign_seats(
            SeatRequest(model.key, f"Voice {number}") for number, model in enumerate(models.values())
        )
        question = self._question()
        began = time.process_time()
        records = await self._db.read(lambda tx: self._records(tx, table, models, question))
        inputs = await retrieve(self._dependencies, self._actor, records)
        made = [
            assemble(inputs.prompt_inputs(voice, models[voice.model], output_limit(model)), counter(model))
            for voice, model in zip(table, models.values(), strict=True)
        ]
        spent = (time.process_time() - began) * 1000
        _must_be_whole(made[0])
        return spent

    def _question(self) -> str:
        """Five of the words that stand together in a file: words drawn by chance would fit nothing."""
        small = set(self._language.words[:SMALL_WORDS])
        line = self._language.chance.choice(self._lines[ALWAYS:])
        return " ".join([word for word in dict.fromkeys(line.split()) if word not in small][:5])

    def _records(
        self, tx: Tx, table: tuple[Voice, ...], models: dict[str, Model], question: str
    ) -> TurnRecords:
        conversation = conversations.get(tx, self._actor, self._conversation_id)
        project = projects.get(tx, self._actor, self._project_id)
        turn = Turn(
            id=new_id(),
            conversation_id=conversation.id,
            round_number=ROUNDS + 1,
            purpose=Purpose.ASK,
            mode="parallel",
            table=table,
            visibility=Visibility.OPEN,
            state=TurnState.RUNNING,
            created_by=self._actor.user_id,
            created_at=tx.now,
        )
        asked = replace(self._message(tx, ROUNDS + 1, None), content=question)
        return read_question(tx, self._actor, project, "Much", turn, asked, models)


_KEEP = sql("""
    INSERT INTO blobs (hash, size_bytes, keeping, content, used_at)
    VALUES (:hash, :size_bytes, 'row', :content, :now) ON CONFLICT (hash) DO NOTHING
""")


def _must_be_whole(assembled: Assembled) -> None:
    """It would be cheap to show nothing."""
    shown = assembled.receipt.segments
    assert sum(segment.layer is Layer.ALWAYS for segment in shown) == ALWAYS
    assert any(segment.reason is SegmentReason.ATTACHED for segment in shown)
    assert any(segment.layer is Layer.RETRIEVED and segment.source_id for segment in shown)
    assert len({segment.round_number for segment in shown if segment.layer is Layer.ROUNDS}) >= 5


if __name__ == "__main__":
    asyncio.run(main())
