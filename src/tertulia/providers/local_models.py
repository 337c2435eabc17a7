"""Local models: runs model files on this machine, each in a worker process of its own.

The process starts with the first call, restarts when it dies, and ends with the server. Every GGUF file in
the models folder is a local model.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

from tertulia.core.models import FREE, Model, Tier
from tertulia.processes.child import ChildProcess, Program, Spawn, allowed_environment, spawn
from tertulia.processes.timers import GetClock
from tertulia.providers import gguf, model_downloads
from tertulia.providers.client_pool import ClientPool
from tertulia.providers.endpoints import Endpoint
from tertulia.providers.interface import Provider, ProviderError
from tertulia.providers.local_model_worker import WorkerConfig
from tertulia.providers.model_downloads import ModelFile

PROVIDER = "builtin"
SLOTS = 4
WINDOW = 8192
POOL_WINDOWS = 2
"""How many windows' worth of memory the slots share: 520 MB for the smallest model, instead of 880 MB for a
window each."""
OUTPUT = 2048
START_S = 90.0
STOP_S = 0.5
STABLE_AFTER_S = 60.0
"""A process that lived this long did not die of its start, so its earlier deaths no longer count."""
LONGEST_PAUSE_S = 60.0


def _catalogued(
    model_id: str, name: str, tier: Tier, *, is_demo: bool = False, vocabulary: str = "qwen"
) -> Model:
    return Model(
        provider=PROVIDER,
        model_id=model_id,
        display_name=name,
        context_window=WINDOW,
        max_output_tokens=OUTPUT,
        tier=tier,
        prices=FREE,
        is_local=True,
        is_demo=is_demo,
        vocabulary=vocabulary,
    )


SMOLLM2 = _catalogued("smollm2-135m-instruct", "SmolLM2 135M", Tier.CHEAP, is_demo=True, vocabulary="smollm2")
KNOWN = {
    "smollm2": SMOLLM2,
    "qwen2.5-coder-0.5b": _catalogued("qwen2.5-coder-0.5b-instruct", "Qwen2.5 Coder 0.5B", Tier.CHEAP),
    "qwen2.5-coder-1.5b": _catalogued("qwen2.5-coder-1.5b-instruct", "Qwen2.5 Coder 1.5B", Tier.CHEAP),
}
"""The chat models of the download manifest, by their name there."""


@dataclass(frozen=True, slots=True)
class LocalModel:
    model: Model
    path: Path
    model_file: ModelFile | None = None
    """None for a file that someone put into the folder."""


ENDPOINT = Endpoint(
    PROVIDER, "The built-in model", "", output_limit="max_tokens", is_free=True, is_self_hosted=True
)
"""The endpoint of a local model; its address and key are filled in when a process runs."""


class LocalModels:
    name = "Built in"
    endpoint = ENDPOINT

    def __init__(
        self,
        home: Path,
        clients: ClientPool,
        environ: Mapping[str, str],
        *,
        monotonic: Callable[[], float] = time.monotonic,
        get_clock: GetClock = asyncio.get_running_loop,
        spawn: Spawn = spawn,
    ) -> None:
        self._home = home
        self._clients = clients
        self._program = Program("tertulia.providers.local_model_worker", (), allowed_environment(environ))
        self._monotonic = monotonic
        self._get_clock = get_clock
        self._spawn = spawn
        self._starts: dict[str, asyncio.Task[ModelProcess]] = {}
        self._processes: list[ModelProcess] = []
        self._backoffs: dict[str, RestartBackoff] = {}
        self._is_closed = False

    # --- models --------------------------------------------------------------------------------------------

    def models(self) -> tuple[Model, ...]:
        return tuple(local_model.model for local_model in self._all_models())

    def find(self, key: str) -> Model | None:
        local_model = self._find_model(key)
        return local_model.model if local_model else None

    def is_available(self, model: Model) -> bool:
        return self.unavailable_reason(model) is None

    def unavailable_reason(self, model: Model) -> str | None:
        local_model = self._find_model(model.key)
        if local_model is None:
            return f"There is no model {model.key}. Choose another."
        if local_model.model_file is None or model_downloads.is_installed(local_model.model_file, self._home):
            return None
        which = "the built-in model" if local_model.model.is_demo else local_model.model.display_name
        return f"Run `tertulia models pull {local_model.model_file.name}` to fetch {which}."

    def _find_model(self, key: str) -> LocalModel | None:
        if not key.startswith(f"{PROVIDER}:"):
            return None
        return next((local_model for local_model in self._all_models() if local_model.model.key == key), None)

    def _all_models(self) -> Iterator[LocalModel]:
        folder = model_downloads.folder(self._home)
        chat_files = [model_file for model_file in model_downloads.manifest() if model_file.kind == "chat"]
        for model_file in chat_files:
            yield LocalModel(KNOWN[model_file.name], folder / model_file.file, model_file)
        for path in sorted(folder.glob("[!.]*.gguf")):
            if path.name not in {model_file.file for model_file in chat_files} and (
                model := _model_in_file(path)
            ):
                yield LocalModel(model, path)

    # --- requests ------------------------------------------------------------------------------------------

    async def client_for(self, model: Model) -> Provider:
        process = await self._running_process(model)
        return await self._clients.client_for(process.endpoint, "openai_chat")

    async def _running_process(self, model: Model) -> ModelProcess:
        """The running process of this model. Cancelling the wait for a start does not cancel the start."""
        start = self._starts.get(model.key)
        if start is None or self._must_start_again(model.key, start):
            start = self._starts[model.key] = asyncio.create_task(self._start(model))
        return await asyncio.shield(start)

    def _must_start_again(self, key: str, start: asyncio.Task[ModelProcess]) -> bool:
        if not start.done():
            return False
        if start.cancelled() or start.exception() is not None:
            return True
        process = start.result()
        if not process.has_ended:
            return False
        self._backoff_of(key).add(self._monotonic(), lived_s=self._monotonic() - process.began_at)
        return True

    async def _start(self, model: Model) -> ModelProcess:
        if self._is_closed:
            raise _start_failed("The server is stopping.")
        await self._remove_dead()
        backoff = self._backoff_of(model.key)
        if (pause_s := backoff.pause_s(self._monotonic())) > 0:
            raise _start_failed(f"It stopped {backoff.count} times in a row.", pause_s)
        local_model = self._find_model(model.key)
        assert local_model is not None, "a model that can be asked has weights"
        child = ChildProcess(self._program, self._get_clock, self._spawn)
        process = ModelProcess(child, self._monotonic())
        self._processes.append(process)
        try:
            await process.load(local_model)
        except ProviderError:
            backoff.add(self._monotonic(), lived_s=0)
            raise
        return process

    def _backoff_of(self, key: str) -> RestartBackoff:
        return self._backoffs.setdefault(key, RestartBackoff())

    async def _remove_dead(self) -> None:
        """Releases the clients and pipes of processes that have ended."""
        for process in [process for process in self._processes if process.has_ended]:
            self._processes.remove(process)
            await self._clients.forget(process.endpoint)
            await asyncio.to_thread(process.stop)

    async def close(self) -> None:
        """Stops all processes, even one that is just starting, and starts no more."""
        self._is_closed = True
        await self._stop_all()
        await asyncio.gather(*self._starts.values(), return_exceptions=True)
        await self._stop_all()
        self._starts.clear()

    async def _stop_all(self) -> None:
        while self._processes:
            await asyncio.to_thread(self._processes.pop().stop)


@dataclass(slots=True)
class RestartBackoff:
    """Counts the early deaths of a process and delays its next start."""

    count: int = 0
    until: float = 0.0

    def add(self, now: float, lived_s: float) -> None:
        self.count = 1 if lived_s >= STABLE_AFTER_S else self.count + 1
        # A single death may be an accident: the next call restarts the process at once.
        self.until = now + min(2.0 ** (self.count - 1), LONGEST_PAUSE_S) if self.count > 1 else 0.0

    def pause_s(self, now: float) -> float:
        return self.until - now


class ModelProcess:
    """A worker process that serves one model."""

    def __init__(self, child: ChildProcess, began_at: float) -> None:
        self._child = child
        self.began_at = began_at
        self.endpoint = ENDPOINT

    @property
    def has_ended(self) -> bool:
        return self._child.has_ended

    async def load(self, local_model: LocalModel) -> None:
        """Starts the process and waits until it serves the model. Raises ProviderError if it cannot."""
        window = local_model.model.context_window
        config = WorkerConfig(
            weights=str(local_model.path),
            name=local_model.model.model_id,
            key=secrets.token_urlsafe(24),
            threads=max(1, _core_count() - 1),
            slots=SLOTS,
            window=window,
            pool=window * POOL_WINDOWS,
        )
        response = await self._child.within(START_S, partial(self._start, config))
        if "address" not in response:
            await asyncio.to_thread(self.stop)
            raise _start_failed(response.get("error") or "Its process stopped before it was ready.")
        self.endpoint = replace(ENDPOINT, base_url=f"{response['address']}/v1", key=config.key)

    def stop(self) -> None:
        """Asks the process to end, and kills it after half a second; it has no data to lose."""
        self._child.stop(STOP_S)

    def _start(self, config: WorkerConfig) -> dict[str, str]:
        """Blocks until the process answers; the answer is empty if it has ended."""
        try:
            self._child.start()
            self._child.stdin.write(json.dumps(asdict(config)).encode() + b"\n")
            self._child.stdin.flush()
            response: dict[str, str] = json.loads(self._child.stdout.readline() or b"{}")
            return response
        except (OSError, ValueError, EOFError):
            return {}


def _start_failed(detail: str, pause_s: float | None = None) -> ProviderError:
    message = "The built-in model could not be started."
    return ProviderError("unavailable", message, detail=detail, retry_after_s=pause_s, is_retryable=True)


def _core_count() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _model_in_file(path: Path) -> Model | None:
    try:
        return _read_model(path, path.stat().st_mtime_ns)
    except (OSError, gguf.NotGguf):
        return None


@lru_cache(maxsize=256)
def _read_model(path: Path, changed_at: int) -> Model:
    """The model as its file header describes it; cached until the file changes."""
    header = gguf.read_header(path)
    window = min(header.context_length or WINDOW, WINDOW)
    return Model(
        provider=PROVIDER,
        model_id=path.stem.lower(),
        display_name=f"{header.name or path.stem}",
        context_window=window,
        max_output_tokens=min(OUTPUT, window // 2),
        tier=Tier.CHEAP,
        prices=FREE,
        is_local=True,
    )
