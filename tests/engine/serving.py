"""A real server in a process of its own, that can be killed, and a client that keeps its own record."""

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
    """A server over one data folder, started as often as it is killed."""

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
        """No goodbye."""
        self._process.send_signal(signal.SIGKILL)
        await self._process.wait()

    async def terminate(self) -> int:
        """Asks it to end; how it said it did."""
        self._process.send_signal(signal.SIGTERM)
        async with soon():
            await self._process.communicate()
        assert self._process.returncode is not None
        return self._process.returncode

    async def close(self) -> None:
        with suppress(ProcessLookupError):
            await self.kill()

    def written(self, turn_id: str) -> dict[str, str]:
        """What is on disk of the running replies of a turn."""
        with closing(sqlite3.connect(f"file:{self.home / 'tertulia.db'}?mode=ro", uri=True)) as database:
            found = database.execute("SELECT id, content FROM drafts WHERE turn_id = ?", [turn_id])
            return dict(found.fetchall())

    def is_sound(self) -> bool:
        """What the disk holds while nobody runs, looked at in a copy so that nothing is mended by looking."""
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
    """`before` is a program that starts the server, a tracer for instance."""
    server = Served(home, environ, before)
    await server.start()
    try:
        yield server
    finally:
        await server.close()


@dataclass
class Sent:
    """One turn as its sender knows it."""

    body: dict[str, Any]
    opened: dict[str, Any] | None = None
    """The answer 202, when it arrived."""
    heard: list[tuple[str, str]] = field(default_factory=list)
    """Which reply, which words."""
    last_mark: str = ""
    written: dict[str, str] = field(default_factory=dict)
    """What was on disk of each reply before the server died under it, where that matters."""

    @property
    def id(self) -> str:
        return str(self.body["id"])

    def text(self, reply_id: str) -> str:
        """What was heard of a reply."""
        return "".join(words for reply, words in self.heard if reply == reply_id)

    def has_heard(self, text: str = "") -> bool:
        """From every voice: anything, or this."""
        replies = {reply for reply, _ in self.heard}
        return len(replies) == len(self.body["voices"]) and all(text in self.text(one) for one in replies)


class Sender:
    """Someone who sends, listens, and remembers what was acknowledged."""

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
        """Sends and remembers; an answer that never comes is remembered too."""
        sent = Sent(turn(text, *models, **more))
        self.sent.append(sent)
        async with self.client() as client:
            with suppress(httpx2.TransportError):
                response = await client.post("/api/turn", json=sent.body)
                assert response.status_code == 202, response.text
                sent.opened = response.json()
        return sent

    async def listen(self, sent: Sent, enough: Any = None) -> None:
        """Follows a turn until it ends, the server dies, or enough was heard."""
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
        """All that is stored of a turn: its question and its replies."""
        turn_ = await self.get(f"/api/turns/{sent.id}")
        page = await self.get(f"/api/conversations/{turn_['conversation_id']}/messages?limit=100")
        return [m for round_ in page["rounds"] for m in round_["messages"] if m["turn_id"] == sent.id]
