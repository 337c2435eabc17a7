"""The stage: a provider, a bare relay and Tertulia, each in its own process, and people who are signed in."""

from __future__ import annotations

import json
import re
import secrets
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from benchmarks import client
from benchmarks.client import Caller
from benchmarks.processes import Server, free_port, running
from benchmarks.pulse import Pulse
from benchmarks.upstream import ANSWERS
from benchmarks.words import sentence
from tertulia.app import new_id, now_ms
from tertulia.core.sessions import ClientInfo
from tertulia.core.users import Actor, ServerRole
from tertulia.server.access import token_hash
from tertulia.store import projects, sessions, users
from tertulia.store.database import Database, Tx

SSE = "text/event-stream"
FIRST_WORDS = b"event: delta"
"""What a reader of Tertulia's SSE waits for."""
FIRST_PIECE = b'"content":"'
"""What a reader of the provider's own stream waits for."""


@dataclass(frozen=True, slots=True)
class Person:
    actor: Actor
    project_id: str
    cookie: str


@dataclass(frozen=True, slots=True)
class Stage:
    upstream: Server
    relay: Server
    tertulia: Server
    people: tuple[Person, ...]
    pulse: Pulse
    numbers: Iterator[int]
    """Makes every question another."""

    def direct(self, model: str, server: Server | None = None) -> bytes:
        """One question to the provider; with `server`, the same through the relay."""
        asked = {"role": "user", "content": self._question()}
        body = {"model": model, "stream": True, "messages": [asked]}
        return client.post((server or self.upstream).port, "/v1/chat/completions", body)

    def turn(self, person: Person, conversation_id: str, *models: str, accept: str = SSE) -> Asked:
        """One question to Tertulia, answered as a stream or, with another `accept`, by 202."""
        turn_id = new_id()
        body = {
            "id": turn_id,
            "text": self._question(),
            "voices": [{"model": f"bench:{model}"} for model in models],
            "mode": "quick" if len(models) == 1 else "parallel",
            "conversation_id": conversation_id,
            "project_id": person.project_id,
        }
        port = self.tertulia.port
        return Asked(turn_id, client.post(port, "/api/turn", body, person.cookie, accept))

    def _question(self) -> str:
        return sentence(12, ANSWERS + next(self.numbers))

    async def pieces_sent(self) -> int:
        caller = await Caller.connect(self.upstream.port)
        answer = await caller.ask(client.get(self.upstream.port, "/stats"))
        caller.close()
        pieces: int = answer.json()["pieces"]
        return pieces


@dataclass(frozen=True, slots=True)
class Asked:
    turn_id: str
    request: bytes


def replies(stream: bytes) -> list[str]:
    """What the voices of a turn said, from its SSE stream; empty unless the turn is complete."""
    said = stream.partition(b"\r\n\r\n")[2]
    if b'"state":"complete"' not in said:
        return []
    finished = re.findall(rb"event: finished\ndata: (.*)\n", said)
    return [json.loads(message)["content"] for message in finished]


@asynccontextmanager
async def stage(
    models: Sequence[str],
    people: int = 1,
    prepare: Callable[[Database, Sequence[Person]], None] | None = None,
    environ: Mapping[str, str] | None = None,
) -> AsyncIterator[Stage]:
    """All three up and answering; `prepare` may fill the database before the server opens it."""
    with tempfile.TemporaryDirectory(prefix="tertulia-bench-") as folder:
        home = Path(folder)
        there = _move_in(home, people, prepare)
        port, relay_port = free_port(), free_port()
        async with running(["benchmarks.upstream", str(port)], port) as upstream:
            relaying = ["benchmarks.relay", str(relay_port), upstream.url]
            async with (
                running(relaying, relay_port) as relay,
                serving(home, upstream, models, environ) as tertulia,
            ):
                with Pulse() as pulse:
                    yield Stage(upstream, relay, tertulia, there, pulse, count())


@asynccontextmanager
async def serving(
    home: Path, upstream: Server, models: Sequence[str], more: Mapping[str, str] | None = None
) -> AsyncIterator[Server]:
    port = free_port()
    endpoint = {
        "name": "bench",
        "base_url": f"{upstream.url}/v1",
        "models": [{"id": model} for model in models],
    }
    environ = {
        "TERTULIA_HOME": str(home),
        "TERTULIA_PORT": str(port),
        "TERTULIA_ENDPOINTS": json.dumps([endpoint]),
        **(more or {}),
    }
    async with running(["tertulia", "serve"], port, environ, "/api/health") as server:
        yield server


def _move_in(
    home: Path, people: int, prepare: Callable[[Database, Sequence[Person]], None] | None
) -> tuple[Person, ...]:
    """Accounts with a session each, as if they had signed in: hashing passwords is not what is measured."""
    db = Database.open(f"sqlite:///{home / 'tertulia.db'}", clock=now_ms, new_id=new_id)
    try:
        there = tuple(db.write_now(lambda tx, n=n: _person(tx, n)) for n in range(people))  # type: ignore[misc]
        if prepare is not None:
            prepare(db, there)
        return there
    finally:
        db.close()


def _person(tx: Tx, number: int) -> Person:
    role = ServerRole.MEMBER if number else ServerRole.ADMIN
    user = users.add(tx, f"Person {number}", f"person{number}@example.org", "never signs in", role)
    token = secrets.token_urlsafe(32)
    session = sessions.add(tx, user.id, token_hash(token), ClientInfo("benchmark", "Linux", "127.0.0.1"))
    actor = Actor(user.id, role, session.id)
    return Person(actor, projects.visible_to(tx, actor)[0].id, f"tertulia={token}")
