"""Builds everything from settings, starts it and stops it."""

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
    """The whole of a running Tertulia."""

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
    """Wakes the workers."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def new_id() -> str:
    return ulid(now_ms(), os.urandom(10))


def report(error: Exception) -> str:
    """Writes down what should not have happened; the incident id is all a client is told."""
    incident = new_id()
    log.error("incident %s", incident, exc_info=error)
    return incident


@asynccontextmanager
async def open_app(settings: Settings, environ: Mapping[str, str]) -> AsyncIterator[Tertulia]:
    """Everything open and at work; closed in the opposite order."""
    dependencies = await _dependencies(settings, environ)
    workers = _workers(dependencies, new_id())
    relay = NodeRelay(dependencies.db, dependencies.live, new_id, report)
    tertulia = _tertulia(settings, dependencies, workers, relay)
    await _recover(tertulia)
    heartbeat = Heartbeat(dependencies, workers.others.wake, relay, tertulia.replays)
    at_work = (workers.files.run(), workers.others.run())
    works = (
        DraftWriter(dependencies).run(),
        relay.run(),
        heartbeat.run(),
        *at_work,
        dependencies.providers.warm(),
    )
    tasks = [asyncio.create_task(reported(work)) for work in works]
    try:
        yield tertulia
    finally:
        await tertulia.replays.close()
        await tertulia.turns.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await _close(dependencies)


async def reported(work: Awaitable[None]) -> None:
    """What runs beside the requests and breaks is written down: nobody waits for it who would notice."""
    try:
        await work
    except Exception as error:
        report(error)
        raise


async def _dependencies(settings: Settings, environ: Mapping[str, str]) -> Dependencies:
    """The database first: without it nothing else is worth opening."""
    make_home(settings.home)
    db = await asyncio.to_thread(Database.open, settings.database_url, clock=now_ms, new_id=new_id)
    if trouble := await asyncio.to_thread(db.clock_trouble):
        log.warning(trouble)
    live = LiveHub()
    db.on_commit(partial(publish, live))
    return Dependencies(
        db=db,
        providers=ProviderRegistry.from_environment(
            environ, settings.home, limits=Limits(first_byte_s=settings.answer_timeout_s)
        ),
        live=live,
        clock=now_ms,
        monotonic=time.monotonic,
        new_id=new_id,
        counter=counter,
        report=report,
        blobs=await asyncio.to_thread(Blobs, db, settings.home / "blobs", new_id),
        extractor=Extractor(settings.file_limits),
        limits=settings.file_limits,
        library=SearchIndex(db, embedders.embedder_for(settings.embeddings, environ, settings.home)),
    )


@dataclass(frozen=True, slots=True)
class _Workers:
    """Files have one of their own: one may take a minute, and nobody's title waits for a thousand."""

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
    """What the last run left undone, and what every run begins with."""
    await models.reread(tertulia.dependencies)
    await recover(tertulia.db)
    await tertulia.replays.resume()
    for step in (files.recover, personas.seed, enqueue_sweep, _look_for_vectors):
        await tertulia.db.write(step)


def _look_for_vectors(tx: Tx) -> None:
    """Weights may have come, or another embedding model."""
    jobs.enqueue_once(tx, EmbedChunks())
    jobs.run_now(tx, EmbedChunks.kind)


async def _close(dependencies: Dependencies) -> None:
    dependencies.extractor.close()
    await dependencies.library.embedder.close()
    await dependencies.providers.close()
    dependencies.blobs.close()
    dependencies.db.close()
