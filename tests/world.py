"""A running server on loopback, and people who use it over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
import websockets
from argon2 import PasswordHasher
from fastapi import FastAPI

from tertulia import settings as settings_
from tertulia.app import Tertulia, new_id
from tertulia.providers.egress import LOOPBACK_ONLY
from tertulia.server.asgi import build
from tertulia.server.passwords import Passwords
from tertulia.server.uvicorn_server import UNREAD_TIMEOUT_MS, config, listen
from tests.patience import PATIENCE_S, soon, until
from tests.upstream.scripted import Upstream

PASSWORD = "correct horse battery"
SETUP_TOKEN = "the-token-on-the-terminal"
QUICK_HASHES = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


def endpoints(upstream: Upstream) -> str:
    """Three models that play the scripts of the upstream: voices:alpha, voices:beta, voices:gamma.

    They are hosted models without a price, so that no job asks them for a title.
    """
    models = [{"id": name, "name": name.title()} for name in ("alpha", "beta", "gamma")]
    return json.dumps(
        [{"name": "voices", "base_url": f"{upstream.url}/v1", "is_local": False, "models": models}]
    )


@dataclass
class World:
    """A running server."""

    app: FastAPI
    url: str
    home: Path
    listener: socket.socket | None = None
    """The listening socket, if the server runs in this process."""
    people: list[httpx2.AsyncClient] = field(default_factory=list)

    @property
    def tertulia(self) -> Tertulia:
        tertulia: Tertulia = self.app.state.server.tertulia
        return tertulia

    @property
    def host(self) -> str:
        return self.url.removeprefix("http://")

    def stranger(self) -> Person:
        client = httpx2.AsyncClient(
            base_url=self.url, headers={"Origin": self.url}, timeout=PATIENCE_S, trust_env=False, verify=False
        )
        self.people.append(client)
        return Person(self, client)

    async def set_up(self, name: str = "Ada") -> Person:
        """Sets the server up and returns its administrator."""
        person = self.stranger()
        answer = await person.post(
            "/api/setup",
            {"name": name, "email": f"{name.lower()}@example.org", "password": PASSWORD},
            expect=201,
        )
        return person.signed_in_as(answer)

    async def create_account(self, admin: Person, name: str) -> Person:
        """Creates an account and signs in with it."""
        email = f"{name.lower()}@example.org"
        await admin.post("/api/users", {"name": name, "email": email, "password": PASSWORD}, expect=201)
        return await self.sign_in(email)

    async def sign_in(self, email: str, password: str = PASSWORD) -> Person:
        person = self.stranger()
        return person.signed_in_as(await person.post("/api/login", {"email": email, "password": password}))


class Person:
    """A signed-in client: keeps cookies, sends JSON, checks the status."""

    def __init__(self, world: World, client: httpx2.AsyncClient) -> None:
        self.world = world
        self.client = client
        self.me: dict[str, Any] = {}

    def signed_in_as(self, me: dict[str, Any]) -> Person:
        self.me = me
        return self

    @property
    def id(self) -> str:
        return str(self.me["user"]["id"])

    @property
    def home(self) -> str:
        """The id of the person's first project."""
        return str(self.me["projects"][0]["id"])

    async def get(self, path: str, expect: int = 200, **params: Any) -> Any:
        return _read(await self.client.get(path, params=params), expect)

    async def post(self, path: str, body: Any = None, expect: int = 200, **headers: str) -> Any:
        return _read(await self.client.post(path, json=body, headers=headers), expect)

    async def put(self, path: str, body: Any, expect: int = 200) -> Any:
        return _read(await self.client.put(path, json=body), expect)

    async def delete(self, path: str, expect: int = 204) -> Any:
        return _read(await self.client.delete(path), expect)

    async def upload(
        self, path: str, content: bytes, project_id: str | None = None, expect: int = 201
    ) -> Any:
        """Uploads a file and returns it."""
        answer = await self.client.post(
            f"/api/projects/{project_id or self.home}/files",
            params={"path": path},
            content=content,
            headers={"Content-Type": "application/octet-stream"},
        )
        body = _read(answer, expect)
        return body["items"][0] if expect == 201 else body

    async def attach(
        self, name: str, content: bytes, project_id: str | None = None, expect: int = 201
    ) -> Any:
        """Uploads an attachment for the next message."""
        answer = await self.client.post(
            f"/api/projects/{project_id or self.home}/attachments",
            params={"name": name},
            content=content,
            headers={"Content-Type": "application/octet-stream"},
        )
        return _read(answer, expect)

    async def ask(self, text: str, *models: str, expect: int = 202, **more: Any) -> Any:
        """Opens a turn and returns at once."""
        return await self.post("/api/turn", turn(text, *models, **more), expect)

    async def ask_and_wait(self, text: str, *models: str, **more: Any) -> list[dict[str, Any]]:
        """Opens a turn, waits for its end and returns the replies in the order of their seats."""
        opened = await self.ask(text, *models, **more)
        await self.wait_for_end(opened["turn"]["id"])
        return await self.replies(opened["conversation"]["id"], opened["turn"]["round_number"])

    async def wait_for_end(self, turn_id: str) -> list[Event]:
        async with soon():
            return [event async for event in self.follow(turn_id)]

    async def replies(self, conversation_id: str, number: int) -> list[dict[str, Any]]:
        page = await self.get(f"/api/conversations/{conversation_id}/messages", before=number + 1, limit=1)
        replies = [m for m in page["rounds"][0]["messages"] if m["role"] != "user"]
        return sorted(replies, key=lambda m: (m["voice"]["seat"], m["id"]))

    async def follow(self, turn_id: str, after: str = "") -> AsyncIterator[Event]:
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": after} if after else {})
        async with self.client.stream("GET", f"/api/turns/{turn_id}/events", headers=headers) as response:
            assert response.status_code == 200, await response.aread()
            async for event in events(response.aiter_text()):
                yield event

    @asynccontextmanager
    async def live(self, **headers: str) -> AsyncIterator[Tab]:
        cookie = "; ".join(f"{name}={value}" for name, value in self.client.cookies.items())
        async with websockets.connect(
            f"ws://{self.world.host}/api/live",
            additional_headers={"Cookie": cookie},
            origin=websockets.Origin(headers.get("origin", self.world.url)),
            proxy=None,
            compression=None,
        ) as socket_:
            yield Tab(socket_)


class Tab:
    """A live connection that reads item by item."""

    def __init__(self, socket_: websockets.ClientConnection) -> None:
        self._socket = socket_
        self._items: list[dict[str, Any]] = []

    async def follow(self, place: str, after: int = 0) -> list[dict[str, Any]]:
        """Follows a topic and returns all items up to the one that says it has caught up."""
        await self._socket.send(json.dumps({"type": "follow", "place": place, "after": after}))
        return await self.until(lambda item: item["type"] in ("following", "gone", "reset"))

    async def send(self, message: Any) -> None:
        await self._socket.send(json.dumps(message))

    async def until(self, fits: Any) -> list[dict[str, Any]]:
        """Reads items up to the first that fits, and returns them all."""
        items: list[dict[str, Any]] = []
        async with soon():
            while not items or not fits(items[-1]):
                items.append(await self.next())
        return items

    async def next(self) -> dict[str, Any]:
        async with soon():
            while not self._items:
                self._items = json.loads(await self._socket.recv())
        return self._items.pop(0)

    async def closed(self) -> int | None:
        async with soon():
            await self._socket.wait_closed()
        return self._socket.close_code


@dataclass(frozen=True)
class Event:
    """One server-sent event."""

    id: str
    name: str
    data: Any


async def events(chunks: AsyncIterator[str]) -> AsyncIterator[Event]:
    buffer = ""
    async for chunk in chunks:
        buffer += chunk
        while "\n\n" in buffer:
            frame, buffer = buffer.split("\n\n", 1)
            lines = dict(line.split(": ", 1) for line in frame.split("\n") if not line.startswith(":"))
            if lines:
                yield Event(lines["id"], lines["event"], json.loads(lines["data"]))


def turn(text: str, *models: str, **more: Any) -> dict[str, Any]:
    voices = [{"model": f"voices:{model}" if ":" not in model else model} for model in models or ("alpha",)]
    return {"id": new_id(), "text": text, "voices": voices, "mode": "parallel"} | more


def _read(response: httpx2.Response, expect: int) -> Any:
    assert response.status_code == expect, f"{response.status_code}: {response.text[:500]}"
    return response.json() if response.content and "json" in response.headers["content-type"] else None


@asynccontextmanager
async def running(
    home: Path, environ: dict[str, str], unread_timeout_ms: int = UNREAD_TIMEOUT_MS, **settings: str
) -> AsyncIterator[World]:
    """Runs a server on a free port until the block ends."""
    variables = {"TERTULIA_HOME": str(home), "PYTEST_CURRENT_TEST": os.environ.get("PYTEST_CURRENT_TEST", "")}
    environment = variables | environ | settings
    app = build(settings_.read(environment), environment, SETUP_TOKEN, LOOPBACK_ONLY, Passwords(QUICK_HASHES))
    server = uvicorn.Server(config(app, loop="asyncio", timeout_graceful_shutdown=1))
    with listen("127.0.0.1", 0, unread_timeout_ms) as socket_:
        serving = asyncio.create_task(server.serve(sockets=[socket_]))
        world = World(app, f"http://127.0.0.1:{socket_.getsockname()[1]}", home, socket_)
        try:
            await _until_started(server, serving)
            yield world
        finally:
            await asyncio.gather(*(client.aclose() for client in world.people))
            server.should_exit = True
            async with soon():
                await serving


async def _until_started(server: uvicorn.Server, serving: asyncio.Task[None]) -> None:
    await until(lambda: server.started or serving.done())
    if serving.done():
        serving.result()
        raise RuntimeError("the server did not start")


def texts(events_: list[Event]) -> Iterator[str]:
    return (event.data.get("text", "") for event in events_ if event.name == "delta")
