"""Fixtures for the engine's tests: the engine without a server."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest

from tertulia.app import new_id, now_ms
from tertulia.core.files import FileLimits
from tertulia.core.messages import Message, Round
from tertulia.core.tables import VoiceRef
from tertulia.core.turns import Turn, TurnState
from tertulia.core.users import Actor, ServerRole
from tertulia.engine.commit_listener import publish
from tertulia.engine.dependencies import Dependencies
from tertulia.engine.draft_writer import DraftWriter
from tertulia.engine.live import LiveHub
from tertulia.engine.node_relay import NodeRelay
from tertulia.engine.open_turn import OpenedTurn
from tertulia.engine.recovery import recover
from tertulia.engine.requests import NewTurn
from tertulia.engine.turns import Turns
from tertulia.engine.worker import Worker
from tertulia.library.embedders import LocalEmbedder
from tertulia.library.extract.extractor import Extractor
from tertulia.library.search import SearchIndex
from tertulia.providers.egress import LOOPBACK_ONLY
from tertulia.providers.limits import Limits
from tertulia.providers.registry import ProviderRegistry
from tertulia.providers.tokens import counter
from tertulia.store import messages, turns, users
from tertulia.store.blobs import Blobs
from tertulia.store.database import Database, Tx
from tests.patience import PATIENCE_S, soon
from tests.timers import timers  # noqa: F401 - a fixture
from tests.upstream.scripted import Upstream, scripted
from tests.world import endpoints

ONCE = Limits(retries=0)


@dataclass
class Engine:
    """The engine with one user."""

    dependencies: Dependencies
    turns: Turns
    relay: NodeRelay
    worker: Worker
    writer: DraftWriter
    actor: Actor
    incidents: list[Exception] = field(default_factory=list)

    def replace_dependencies(self, **changed: object) -> None:
        """Opens and runs the turns from now on with other dependencies."""
        dependencies = replace(self.dependencies, **changed)  # type: ignore[arg-type]
        self.turns = Turns(dependencies, self.worker.wake, self.relay)

    @property
    def db(self) -> Database:
        return self.dependencies.db

    async def open(self, text: str, *models: str, **more: object) -> OpenedTurn:
        voices = tuple(VoiceRef(f"voices:{model}") for model in models or ("alpha",))
        return await self.turns.open(self.actor, NewTurn(new_id(), text, voices, **more))  # type: ignore[arg-type]

    async def over(self, turn: Turn) -> TurnState:
        """Waits for the end of a turn."""
        live = self.dependencies.live.find(turn.id)
        assert live is not None
        woken = asyncio.Event()
        live.watchers.add(woken.set)
        async with soon():
            while not live.is_over:
                woken.clear()
                await woken.wait()
        return live.turn.state

    async def said(self, turn: Turn, text: str, voices: int = 1) -> None:
        """Waits until this text is in so many replies of the turn."""
        live = self.dependencies.live.find(turn.id)
        assert live is not None
        woken = asyncio.Event()
        live.watchers.add(woken.set)
        async with soon():
            while sum(text in reply.text for reply in live.replies.values()) < voices:
                woken.clear()
                await woken.wait()

    async def round(self, turn: Turn) -> Round:
        return await self.db.read(lambda tx: messages.round(tx, turn.conversation_id, turn.round_number))

    async def replies(self, turn: Turn) -> tuple[Message, ...]:
        return (await self.round(turn)).replies

    async def stored(self, turn: Turn) -> Turn:
        return await self.db.read(lambda tx: turns.get(tx, self.actor, turn.id))


@asynccontextmanager
async def engine_in(
    home: Path,
    upstream: Upstream,
    limits: Limits | None = None,
    url: str | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncIterator[Engine]:
    """Opens the engine on a folder, as the server would; only turns and the relay run in the background."""
    incidents: list[Exception] = []

    def report(error: Exception) -> str:
        incidents.append(error)
        return f"incident {len(incidents)}"

    db = Database.open(url or f"sqlite:///{home / 'tertulia.db'}", clock=now_ms, new_id=new_id)
    environ = {"TERTULIA_ENDPOINTS": endpoints(upstream)}
    providers = ProviderRegistry.from_environment(
        environ, home, LOOPBACK_ONLY, limits=limits, random=random.Random(1).random
    )
    live = LiveHub()
    db.on_commit(partial(publish, live))
    limits_ = FileLimits()
    embedder = LocalEmbedder(home, {})
    blobs, extractor = Blobs(db, home / "blobs", new_id), Extractor(limits_, PATIENCE_S)
    dependencies = Dependencies(
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
        limits_,
        SearchIndex(db, embedder),
    )
    worker = Worker(dependencies, node=new_id())
    relay = NodeRelay(db, live, new_id, report)
    turns_ = Turns(dependencies, worker.wake, relay, sleep)
    await recover(db)
    engine = Engine(
        dependencies, turns_, relay, worker, DraftWriter(dependencies), await db.write(_somebody), incidents
    )
    relaying = asyncio.create_task(relay.run())
    try:
        yield engine
    finally:
        relaying.cancel()
        await engine.turns.close()
        extractor.close()
        await embedder.close()
        await providers.close()
        blobs.close()
        db.close()


def _somebody(tx: Tx) -> Actor:
    known = users.find_credentials(tx, "ada@example.org")
    user = known.user if known else users.add(tx, "Ada", "ada@example.org", "no password", ServerRole.ADMIN)
    return Actor(user.id, user.role)


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with scripted() as made:
        yield made


@pytest.fixture
async def engine(tmp_path: Path, upstream: Upstream) -> AsyncIterator[Engine]:
    async with engine_in(tmp_path, upstream) as made:
        yield made
