"""Builds everything from settings, starts it and stops it."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tertulia.core.ids import ulid
from tertulia.engine.attachments import Attachments
from tertulia.engine.files import Files
from tertulia.engine.heartbeat import Heartbeat
from tertulia.engine.jobs.sweep_sessions import leave_sweep
from tertulia.engine.live import Live
from tertulia.engine.means import Means
from tertulia.engine.recovery import recover
from tertulia.engine.replays import Replays
from tertulia.engine.turns import Turns
from tertulia.engine.uploads import Uploads
from tertulia.engine.worker import Worker
from tertulia.engine.writer import Writer
from tertulia.library import embed
from tertulia.library.extract.extractor import Extractor
from tertulia.library.search import Library
from tertulia.providers.houses import Providers
from tertulia.providers.tokens import counter
from tertulia.settings import Settings
from tertulia.store import files as files_
from tertulia.store import jobs, personas
from tertulia.store.blobs import Blobs
from tertulia.store.database import Database, Tx

log = logging.getLogger("tertulia")


@dataclass(frozen=True, slots=True)
class House:
    """The whole of a running Tertulia."""

    settings: Settings
    db: Database
    providers: Providers
    live: Live
    turns: Turns
    files: Files
    attachments: Attachments
    replays: Replays
    means: Means
    job_left: Callable[[], None]
    """Wakes the worker."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def new_id() -> str:
    return ulid(now_ms(), os.urandom(10))


def report(error: Exception) -> str:
    """Writes down what should not have happened; the incident id is all a client is told."""
    incident = new_id()
    log.error("incident %s", incident, exc_info=error)
    return incident


def _look_for_vectors(tx: Tx) -> None:
    """Weights may have come, or another embedding model."""
    jobs.add_once(tx, "embed")
    jobs.hurry(tx, "embed")


@asynccontextmanager
async def open_house(settings: Settings, environ: Mapping[str, str]) -> AsyncIterator[House]:
    """Everything open and at work; closed in the opposite order."""
    settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    db = await asyncio.to_thread(Database.open, settings.database_url, clock=now_ms, new_id=new_id)
    providers = Providers.from_environment(environ, settings.home)
    live = Live()
    db.on_commit(live.publish)
    blobs = await asyncio.to_thread(Blobs, db, settings.home / "blobs", new_id)
    extractor = Extractor(settings.file_limits)
    embedder = embed.embedder_for(settings.embeddings, environ, settings.home)
    means = Means(
        db,
        providers,
        live,
        now_ms,
        time.monotonic,
        new_id,
        counter,
        report,
        blobs,
        extractor,
        settings.file_limits,
        Library(db, embedder),
    )
    worker = Worker(means, node=new_id())
    turns = Turns(means, job_left=worker.ring)
    uploads = Uploads(means, job_left=worker.ring)
    files = Files(means, worker.ring, uploads)
    attachments = Attachments(means, uploads)
    replays = Replays(means, turns)
    await recover(db)
    await replays.recover()
    await db.write(files_.recover)
    await db.write(personas.seed)
    await db.write(leave_sweep)
    await db.write(_look_for_vectors)
    heartbeat = Heartbeat(means, job_left=worker.ring)
    works = (Writer(means).run(), heartbeat.run(), worker.run(), providers.warm())
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield House(settings, db, providers, live, turns, files, attachments, replays, means, worker.ring)
    finally:
        await replays.close()
        await turns.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        extractor.close()
        await embedder.close()
        await providers.close()
        blobs.close()
        db.close()
