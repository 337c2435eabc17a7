"""A server in its own process, which tests can kill, and a client that records what was acknowledged."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import sqlite3
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from tests import loopback_server
from tests.patience import PATIENCE_S, soon
from tests.world import PASSWORD, events, turn

STARTED = re.compile(rb"http://127\.0\.0\.1:(\d+)")


class Served:
    """`tertulia serve` on one data folder; it can be started again after a kill."""

    def __init__(self, home: Path, environ: dict[str, str], before: tuple[str, ...] = ()) -> None:
        self.home = home
        self._before = before
        self._environ = {
            "PATH": os.environ["PATH"],
            "TERTULIA_HOME": str(home),
            "TERTULIA_PORT": "0",
            "COLUMNS": "300",
        } | environ
        self._process: asyncio.subprocess.Process
        self.url = ""

    async def start(self) -> None:
        self._process = await self.run()
        assert self._process.stderr is not None
        async with soon():
            while not (found := STARTED.search(line := await self._process.stderr.readline())):
                assert line, "the server ended before it began to answer"
        self.url = f"http://127.0.0.1:{found[1].decode()}"

    async def run(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *self._before,
            sys.executable,
            *loopback_server.SCRIPT,
            env=self._environ,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )

    async def kill(self) -> None:
        """Kills the process without a shutdown."""
        self._process.send_signal(signal.SIGKILL)
        await self._process.wait()

    async def terminate(self) -> int:
        """Requests a shutdown and returns the exit code."""
        self._process.send_signal(signal.SIGTERM)
        async with soon():
            await self._process.communicate()
        assert self._process.returncode is not None
        return self._process.returncode

    async def close(self) -> None:
        with suppress(ProcessLookupError):
            await self.kill()

    def written(self, turn_id: str) -> dict[str, str]:
        """The stored drafts of a turn's running replies."""
        with closing(sqlite3.connect(f"file:{self.home / 'tertulia.db'}?mode=ro", uri=True)) as database:
            found = database.execute("SELECT id, content FROM drafts WHERE turn_id = ?", [turn_id])
            return dict(found.fetchall())

    def is_sound(self) -> bool:
        """Checks the database of a stopped server, in a copy, since opening it would repair it."""
        with tempfile.TemporaryDirectory() as folder:
            for file in self.home.glob("tertulia.db*"):
                if not file.name.endswith((".lock", "-shm")):
                    shutil.copyfile(file, Path(folder) / file.name)
            copy = sqlite3.connect(Path(folder) / "tertulia.db")
            try:
                found = copy.execute("PRAGMA integrity_check").fetchall()
                orphans = copy.execute("PRAGMA foreign_key_check").fetchall()
            finally:
                copy.close()
        return found == [("ok",)] and orphans == []


@asynccontextmanager
async def served(home: Path, environ: dict[str, str], *before: str) -> AsyncIterator[Served]:
    """`before` is a command that starts the server, such as a tracer."""
    server = Served(home, environ, before)
    await server.start()
    try:
        yield server
    finally:
        await server.close()


@dataclass
class Sent:
    """One turn, as its sender knows it."""

    body: dict[str, Any]
    opened: dict[str, Any] | None = None
    """The response with status 202, if it arrived."""
    heard: list[tuple[str, str]] = field(default_factory=list)
    """The received deltas: the reply's id and the text."""
    last_mark: str = ""
    written: dict[str, str] = field(default_factory=dict)
    """The stored text of each reply before the kill, where a test needs it."""

    @property
    def id(self) -> str:
        return str(self.body["id"])

    def text(self, reply_id: str) -> str:
        """The received text of a reply."""
        return "".join(words for reply, words in self.heard if reply == reply_id)

    def has_heard(self, text: str = "") -> bool:
        """Whether every voice has sent this text, or any text."""
        replies = {reply for reply, _ in self.heard}
        return len(replies) == len(self.body["voices"]) and all(text in self.text(one) for one in replies)


class Sender:
    """A client that sends and listens, and records what was acknowledged."""

    def __init__(self, server: Served) -> None:
        self._server = server
        self._cookies: dict[str, str] = {}
        self.sent: list[Sent] = []

    @asynccontextmanager
    async def client(self) -> AsyncIterator[httpx2.AsyncClient]:
        url = self._server.url
        async with httpx2.AsyncClient(
            base_url=url, headers={"Origin": url}, cookies=self._cookies, timeout=PATIENCE_S, trust_env=False
        ) as client:
            yield client

    async def set_up(self) -> None:
        account = {"name": "Ada", "email": "ada@example.org", "password": PASSWORD}
        async with self.client() as client:
            response = await client.post("/api/setup", json=account)
            assert response.status_code == 201, response.text
            self._cookies = dict(client.cookies)

    async def send(self, text: str, *models: str, **more: Any) -> Sent:
        """Sends a turn and records it, even when no response comes."""
        sent = Sent(turn(text, *models, **more))
        self.sent.append(sent)
        async with self.client() as client:
            with suppress(httpx2.TransportError):
                response = await client.post("/api/turn", json=sent.body)
                assert response.status_code == 202, response.text
                sent.opened = response.json()
        return sent

    async def listen(self, sent: Sent, enough: Any = None) -> None:
        """Follows a turn until it ends, the server dies, or `enough` is true."""
        headers = {"Accept": "text/event-stream", "Last-Event-ID": sent.last_mark}
        with suppress(httpx2.TransportError):
            async with (
                self.client() as client,
                client.stream("GET", f"/api/turns/{sent.id}/events", headers=headers) as response,
            ):
                async for event in events(response.aiter_text()):
                    sent.last_mark = event.id
                    if event.name == "delta":
                        sent.heard.append((event.data["reply_id"], event.data.get("text", "")))
                    if enough is not None and enough(sent):
                        return

    async def get(self, path: str, expect: int = 200) -> Any:
        async with self.client() as client:
            response = await client.get(path)
            assert response.status_code == expect, response.text
            return response.json()

    async def resend(self, sent: Sent) -> dict[str, Any]:
        async with self.client() as client:
            response = await client.post("/api/turn", json=sent.body)
            assert response.status_code == 202, response.text
            return dict(response.json())

    async def messages(self, sent: Sent) -> list[dict[str, Any]]:
        """The stored messages of a turn: its question and its replies."""
        turn_ = await self.get(f"/api/turns/{sent.id}")
        page = await self.get(f"/api/conversations/{turn_['conversation_id']}/messages?limit=100")
        return [m for round_ in page["rounds"] for m in round_["messages"] if m["turn_id"] == sent.id]
