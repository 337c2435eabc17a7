"""Secrets stay where they belong: in no log, no file, no answer and no command line (SE 6, SP 7, SP 8)."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import httpx2
import websockets

from tests import loopback_server
from tests.patience import soon
from tests.upstream.scripted import Upstream, refuses
from tests.world import turn

PASSWORD = "canary-password-5f1d9c"
WRONG = "canary-wrong-password-77a0"
QUERY = "canary-in-the-query-2be4"
HEADER = "canary-in-a-header-91c3"
KEY = "sk-canary-key-c0ffee5ba11ad"
WORDS = "canary words of a private message"


@dataclass
class Run:
    """A server in a process of its own, as a person starts it, that tells all it ever tells."""

    process: Process
    home: Path
    url: str = ""
    log: bytes = b""
    answers: list[str] = field(default_factory=list)

    async def greeted(self) -> None:
        """It says where it is."""
        assert self.process.stdout is not None
        while not (found := re.search(rb"http://[0-9.:]+", self.log)):
            line = await self.process.stdout.readline()
            assert line, self.log.decode()
            self.log += line
        self.url = found[0].decode()

    async def over(self) -> None:
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
        self.log += (await self.process.communicate())[0]


@asynccontextmanager
async def served(home: Path, environ: dict[str, str]) -> AsyncIterator[Run]:
    variables = os.environ | environ | {"TERTULIA_HOME": str(home), "TERTULIA_LOG_LEVEL": "debug"}
    variables |= {"TERTULIA_PORT": "0"}
    command = (sys.executable, *loopback_server.SCRIPT)
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=STDOUT, env=variables)
    run = Run(process, home)
    try:
        async with soon():
            await run.greeted()
        yield run
    finally:
        async with soon():
            await run.over()


async def test_a_whole_story_told_at_debug_level_gives_no_secret_away(
    tmp_path: Path, upstream: Upstream
) -> None:
    keys = {name: KEY for name in upstream.environ() if name.endswith("_KEY")}
    upstream.plays(refuses(401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}))
    async with served(tmp_path, upstream.environ() | keys) as run:
        token = await story(run, upstream)
        commands = "".join(command_lines(run.process.pid))
    secrets = (PASSWORD, WRONG, QUERY, HEADER, KEY, token)
    assert found(run.log, *secrets, WORDS) == []
    assert found("".join(run.answers).encode(), *secrets) == []
    assert found(commands.encode(), *secrets) == []
    assert [name for name, content in files(run.home) if found(content, *secrets)] == []
    assert KEY in repr([request.headers for request in upstream.requests])  # it was used, after all


async def story(run: Run, upstream: Upstream) -> str:
    """First visit, wrong and right passwords, refused and good answers, a socket. Returns the cookie."""
    async with httpx2.AsyncClient(base_url=run.url, headers={"Origin": run.url}, verify=False) as client:

        async def ask(method: str, path: str, body: object = None, **more: str) -> httpx2.Response:
            answer = await client.request(method, path, json=body, headers=more)
            run.answers.append(
                answer.text + repr([h for h in answer.headers.items() if h[0] != "set-cookie"])
            )
            return answer

        account = {"email": "ada@example.org", "password": PASSWORD}
        await ask("POST", "/api/setup", account | {"name": "Ada"})
        await ask("POST", "/api/login", account | {"password": WRONG})
        assert (await ask("POST", "/api/login", account)).status_code == 200
        await ask("PUT", "/api/me/password", {"current": WRONG, "new": WRONG})
        await ask("POST", "/api/login", {"email": "ada@example.org", "password": {"is": WRONG}})
        await ask("GET", f"/api/me?token={QUERY}&api_key={QUERY}", Authorization=f"Bearer {HEADER}")
        await ask("GET", f"/api/nothing/{QUERY}", **{"X-Api-Key": HEADER})
        models = (await ask("GET", "/api/models")).json()["items"]
        chosen = [m["key"] for m in models if m["is_available"] and m["provider"] in ("openai", "anthropic")]
        for script in (None, "Good."):
            if script:
                upstream.says(script)
            opened = (await ask("POST", "/api/turn", turn(WORDS, chosen[0], chosen[-1]))).json()
            await ask("GET", f"/api/turns/{opened['turn']['id']}/events")
            await ask("GET", f"/api/conversations/{opened['conversation']['id']}")
        await listen(run, client, opened["conversation"]["id"])
        return str(client.cookies["tertulia"])


async def listen(run: Run, client: httpx2.AsyncClient, conversation_id: str) -> None:
    cookie = f"tertulia={client.cookies['tertulia']}"
    async with websockets.connect(
        f"{run.url.replace('http', 'ws')}/api/live?token={QUERY}",
        additional_headers={"Cookie": cookie, "Authorization": HEADER},
        origin=websockets.Origin(run.url),
        proxy=None,
    ) as socket:
        place = f"conversation:{conversation_id}"
        await socket.send(json.dumps({"type": "follow", "place": place, "after": 0, "token": QUERY}))
        async with soon():
            while '"following"' not in (frame := str(await socket.recv())):
                run.answers.append(frame)


# ── looking


def found(content: bytes, *secrets: str) -> list[str]:
    return [secret for secret in secrets for form in forms(secret) if form in content]


def forms(secret: str) -> Iterator[bytes]:
    plain = secret.encode()
    yield plain
    yield plain.hex().encode()
    yield quote(secret, safe="").encode()
    yield json.dumps(secret)[1:-1].encode()
    yield secret.encode("utf-16-le")
    for shift in range(3):  # wherever it begins in what was encoded
        yield base64.b64encode(b"\0" * shift + plain)[4:-4]


def files(folder: Path) -> Iterator[tuple[str, bytes]]:
    return ((path.name, path.read_bytes()) for path in folder.rglob("*") if path.is_file())


def command_lines(pid: int) -> Iterator[str]:
    """Of the process and of all its children."""
    yield Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from command_lines(int(child))
