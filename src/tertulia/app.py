"""The application: builds Tertulia from its settings, starts its background tasks, and closes it.

settings ─▶ Dependencies ─▶ workers, NodeRelay ─▶ Tertulia ─▶ recovery ─▶ background tasks ─▶ close
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from tertulia.core.ids import ulid
from tertulia.core.jobs import EmbedChunks, IndexFile
from tertulia.engine import models
from tertulia.engine.attachments import Attachments
from tertulia.engine.commit_listener import publish
from tertulia.engine.dependencies import Dependencies
from tertulia.engine.draft_writer import DraftWriter
from tertulia.engine.files import Files
from tertulia.engine.heartbeat import Heartbeat
from tertulia.engine.jobs.sweep_daily import enqueue_sweep
from tertulia.engine.live import LiveHub
from tertulia.engine.node_relay import NodeRelay
from tertulia.engine.recovery import recover
from tertulia.engine.replays import Replays
from tertulia.engine.turns import Turns
from tertulia.engine.uploads import Uploads
from tertulia.engine.worker import Worker
from tertulia.library import embedders
from tertulia.library.extract.extractor import Extractor
from tertulia.library.search import SearchIndex
from tertulia.providers.egress import Egress
from tertulia.providers.limits import Limits
from tertulia.providers.registry import ProviderRegistry
from tertulia.providers.tokens import counter
from tertulia.settings import Settings, make_home
from tertulia.store import files, jobs, personas
from tertulia.store.blobs import Blobs
from tertulia.store.database import Database, Tx

log = logging.getLogger("tertulia")


@dataclass(frozen=True, slots=True)
class Tertulia:
    """The application object: everything that the server and the tests need of a running Tertulia."""

    settings: Settings
    db: Database
    providers: ProviderRegistry
    live: LiveHub
    turns: Turns
    relay: NodeRelay
    files: Files
    attachments: Attachments
    replays: Replays
    dependencies: Dependencies
    wake_workers: Callable[[], None]
    """Called after a commit that may have added a job, so that the workers look for it at once."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def new_id() -> str:
    return ulid(now_ms(), os.urandom(10))


def log_incident(error: Exception) -> str:
    """Logs an unexpected error. Returns the incident id, which is all that a client gets to see of it."""
    incident = new_id()
    log.error("incident %s", incident, exc_info=error)
    return incident


@asynccontextmanager
async def open_app(settings: Settings, environ: Mapping[str, str], egress: Egress) -> AsyncIterator[Tertulia]:
    """Opens Tertulia, yields it while its background tasks run, and closes everything in reverse order."""
    dependencies = await _dependencies(settings, environ, egress)
    workers = _workers(dependencies, new_id())
    relay = NodeRelay(dependencies.db, dependencies.live, new_id, log_incident)
    tertulia = _tertulia(settings, dependencies, workers, relay)
    await _recover(tertulia)
    heartbeat = Heartbeat(dependencies, workers.others.wake, relay, tertulia.replays)
    background = (
        DraftWriter(dependencies).run(),
        relay.run(),
        heartbeat.run(),
        workers.files.run(),
        workers.others.run(),
        dependencies.providers.warm(),
    )
    tasks = [asyncio.create_task(run_logged(work)) for work in background]
    try:
        yield tertulia
    finally:
        await tertulia.replays.close()
        await tertulia.turns.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await _close(dependencies)


async def run_logged(work: Awaitable[None]) -> None:
    """Runs a background task and logs its unexpected errors, since no request waits for its result."""
    try:
        await work
    except Exception as error:
        log_incident(error)
        raise


async def _dependencies(settings: Settings, environ: Mapping[str, str], egress: Egress) -> Dependencies:
    """Opens the database first: without it nothing else can start."""
    make_home(settings.home)
    db = await asyncio.to_thread(Database.open, settings.database_url, clock=now_ms, new_id=new_id)
    if warning := await asyncio.to_thread(db.clock_warning):
        log.warning(warning)
    live = LiveHub()
    db.on_commit(partial(publish, live))
    return Dependencies(
        db=db,
        providers=ProviderRegistry.from_environment(
            environ, settings.home, egress, limits=Limits(first_byte_s=settings.answer_timeout_s)
        ),
        live=live,
        clock=now_ms,
        monotonic=time.monotonic,
        new_id=new_id,
        counter=counter,
        report=log_incident,
        blobs=await asyncio.to_thread(Blobs, db, settings.home / "blobs", new_id),
        extractor=Extractor(settings.file_limits),
        limits=settings.file_limits,
        library=SearchIndex(db, embedders.embedder_for(settings.embeddings, environ, settings.home, egress)),
    )


@dataclass(frozen=True, slots=True)
class _Workers:
    """Two workers: indexing a file may take a minute, and titles should not wait for a thousand files."""

    files: Worker
    others: Worker

    def wake(self) -> None:
        self.files.wake()
        self.others.wake()


def _workers(dependencies: Dependencies, node: str) -> _Workers:
    others = Worker(dependencies, node, but=IndexFile.kind)
    return _Workers(Worker(dependencies, node, only=IndexFile.kind, wake_workers=others.wake), others)


def _tertulia(
    settings: Settings, dependencies: Dependencies, workers: _Workers, relay: NodeRelay
) -> Tertulia:
    turns = Turns(dependencies, workers.others.wake, relay)
    uploads = Uploads(dependencies, wake_workers=workers.wake)
    return Tertulia(
        settings=settings,
        db=dependencies.db,
        providers=dependencies.providers,
        live=dependencies.live,
        turns=turns,
        relay=relay,
        files=Files(dependencies, workers.wake, uploads),
        attachments=Attachments(dependencies, uploads),
        replays=Replays(dependencies, turns),
        dependencies=dependencies,
        wake_workers=workers.wake,
    )


async def _recover(tertulia: Tertulia) -> None:
    """Repairs what the last run left unfinished, and adds the jobs of every start."""
    await models.reread(tertulia.dependencies)
    await recover(tertulia.db)
    await tertulia.replays.resume()
    for step in (files.recover, personas.seed, enqueue_sweep, _enqueue_embedding):
        await tertulia.db.write(step)


def _enqueue_embedding(tx: Tx) -> None:
    """Embeds chunks without vectors: the embedding model may be new since the last run."""
    jobs.enqueue_once(tx, EmbedChunks())
    jobs.run_now(tx, EmbedChunks.kind)


async def _close(dependencies: Dependencies) -> None:
    dependencies.extractor.close()
    await dependencies.library.embedder.close()
    await dependencies.providers.close()
    dependencies.blobs.close()
    dependencies.db.close()
