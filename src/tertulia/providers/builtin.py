"""The built-in models: weights on this machine, each run in a process of its own.

The process starts with the first call, is started again when it dies, and ends with the server. Any GGUF file
in the models folder is a built-in model.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path

from tertulia.core.models import FREE, Model, Tier
from tertulia.providers import assets, gguf
from tertulia.providers.assets import Asset
from tertulia.providers.builtin_server import Orders
from tertulia.providers.endpoints import Endpoint
from tertulia.providers.seam import Provider, ProviderFault
from tertulia.providers.speakers import Speakers

PROVIDER = "builtin"
SLOTS = 4
WINDOW = 8192
POOL_WINDOWS = 2
"""Windows' worth of memory the slots share: 520 MB for the smallest model, where one each would take 880."""
OUTPUT = 2048
START_S = 90.0
CALM_S = 60.0
"""A process that lived this long did not die of its start."""
LONGEST_PAUSE_S = 60.0
INHERITED = ("PATH", "LANG", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONPATH")
"""All a child learns of our environment: the keys in it are not its business."""


def _known(model_id: str, name: str, tier: Tier, *, is_demo: bool = False, vocabulary: str = "qwen") -> Model:
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


SMOLLM2 = _known("smollm2-135m-instruct", "SmolLM2 135M", Tier.CHEAP, is_demo=True, vocabulary="smollm2")
KNOWN = {
    "smollm2": SMOLLM2,
    "qwen2.5-coder-0.5b": _known("qwen2.5-coder-0.5b-instruct", "Qwen2.5 Coder 0.5B", Tier.CHEAP),
    "qwen2.5-coder-1.5b": _known("qwen2.5-coder-1.5b-instruct", "Qwen2.5 Coder 1.5B", Tier.CHEAP),
}
"""The chat models of the asset manifest, by their asset's name."""


@dataclass(frozen=True, slots=True)
class Weights:
    model: Model
    path: Path
    asset: Asset | None = None
    """None for a file someone put there."""


ENDPOINT = Endpoint(PROVIDER, "The built-in model", "", output_limit="max_tokens", is_free=True, is_near=True)
"""Where it will be asked, once a process is there."""


class BuiltIn:
    name = "Built in"
    endpoint = ENDPOINT

    def __init__(
        self,
        home: Path,
        speakers: Speakers,
        environ: Mapping[str, str],
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._home = home
        self._speakers = speakers
        self._environ = {name: environ[name] for name in INHERITED if name in environ}
        self._monotonic = monotonic
        self._starts: dict[str, asyncio.Task[Child]] = {}
        self._children: list[Child] = []
        self._deaths: dict[str, Deaths] = {}
        self._is_closed = False

    # --- what there is -------------------------------------------------------------------------------------

    def models(self) -> tuple[Model, ...]:
        return tuple(weights.model for weights in self._all())

    def find(self, key: str) -> Model | None:
        weights = self._weights(key)
        return weights.model if weights else None

    def is_available(self, model: Model) -> bool:
        return self.unavailable_reason(model) is None

    def unavailable_reason(self, model: Model) -> str | None:
        weights = self._weights(model.key)
        if weights is None:
            return f"There is no model {model.key}. Choose another."
        if weights.asset is None or assets.is_installed(weights.asset, self._home):
            return None
        which = "the built-in model" if weights.model.is_demo else weights.model.display_name
        return f"Run `tertulia models pull {weights.asset.name}` to fetch {which}."

    def _weights(self, key: str) -> Weights | None:
        if not key.startswith(f"{PROVIDER}:"):
            return None
        return next((weights for weights in self._all() if weights.model.key == key), None)

    def _all(self) -> Iterator[Weights]:
        place = assets.folder(self._home)
        chat = [asset for asset in assets.manifest() if asset.kind == "chat"]
        for asset in chat:
            yield Weights(KNOWN[asset.name], place / asset.file, asset)
        for path in sorted(place.glob("[!.]*.gguf")):
            if path.name not in {asset.file for asset in chat} and (model := _dropped_in(path)):
                yield Weights(model, path)

    # --- asking --------------------------------------------------------------------------------------------

    async def provider(self, model: Model) -> Provider:
        child = await self._child(model)
        return await self._speakers.speaker(child.endpoint, "openai_chat")

    async def _child(self, model: Model) -> Child:
        """The running process of this model. Whoever stops waiting for its start does not stop the start."""
        start = self._starts.get(model.key)
        if start is None or self._is_gone(model.key, start):
            start = self._starts[model.key] = asyncio.create_task(self._start(model))
        return await asyncio.shield(start)

    def _is_gone(self, key: str, start: asyncio.Task[Child]) -> bool:
        if not start.done():
            return False
        if start.cancelled() or start.exception() is not None:
            return True
        child = start.result()
        if child.is_alive:
            return False
        self._deaths_of(key).add(self._monotonic(), lived_s=self._monotonic() - child.began_at)
        return True

    async def _start(self, model: Model) -> Child:
        if self._is_closed:
            raise _down("The server is stopping.")
        await self._bury()
        deaths = self._deaths_of(model.key)
        if (pause_s := deaths.pause_s(self._monotonic())) > 0:
            raise _down(f"It stopped {deaths.count} times in a row.", pause_s)
        weights = self._weights(model.key)
        assert weights is not None, "a model that can be asked has weights"
        child = await asyncio.to_thread(Child.born, self._environ, self._monotonic())
        self._children.append(child)
        try:
            await asyncio.to_thread(child.load, weights)
        except ProviderFault:
            deaths.add(self._monotonic(), lived_s=0)
            raise
        return child

    def _deaths_of(self, key: str) -> Deaths:
        return self._deaths.setdefault(key, Deaths())

    async def _bury(self) -> None:
        """Lets go of what belonged to processes that are no more."""
        for child in [child for child in self._children if not child.is_alive]:
            self._children.remove(child)
            await self._speakers.forget(child.endpoint)
            await asyncio.to_thread(child.stop)

    async def close(self) -> None:
        """Stops them all, also one that was being born meanwhile; no other is born."""
        self._is_closed = True
        await self._stop_all()
        await asyncio.gather(*self._starts.values(), return_exceptions=True)
        await self._stop_all()
        self._starts.clear()

    async def _stop_all(self) -> None:
        while self._children:
            await asyncio.to_thread(self._children.pop().stop)


@dataclass(slots=True)
class Deaths:
    """How often a process died young, and how long it is left alone."""

    count: int = 0
    until: float = 0.0

    def add(self, now: float, lived_s: float) -> None:
        self.count = 1 if lived_s >= CALM_S else self.count + 1
        # One death may be an accident: the next call starts it again at once.
        self.until = now + min(2.0 ** (self.count - 1), LONGEST_PAUSE_S) if self.count > 1 else 0.0

    def pause_s(self, now: float) -> float:
        return self.until - now


class Child:
    """A process with weights in it."""

    def __init__(self, process: subprocess.Popen[bytes], began_at: float) -> None:
        self._process = process
        self.began_at = began_at
        self.endpoint = ENDPOINT

    @classmethod
    def born(cls, environ: Mapping[str, str], now: float) -> Child:
        command = [sys.executable, "-m", "tertulia.providers.builtin_server"]
        pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere, env=environ)
        return cls(process, now)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def load(self, weights: Weights) -> None:
        """Blocks until the model listens, or has failed to."""
        window = weights.model.context_window
        orders = Orders(
            weights=str(weights.path),
            name=weights.model.model_id,
            key=secrets.token_urlsafe(24),
            parent=os.getpid(),
            threads=max(1, _cores() - 1),
            slots=SLOTS,
            window=window,
            pool=window * POOL_WINDOWS,
        )
        answer = self._tell(orders)
        if "address" not in answer:
            self.stop()
            raise _down(answer.get("error") or "Its process stopped before it was ready.")
        self.endpoint = replace(ENDPOINT, base_url=f"{answer['address']}/v1", key=orders.key)

    def stop(self) -> None:
        """Closing its standard input asks it to go; it has nothing to lose, so it is not asked twice."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.close()
            self._process.wait(0.5)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _tell(self, orders: Orders) -> dict[str, str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        too_late = threading.Timer(START_S, self._process.kill)
        too_late.start()
        try:
            self._process.stdin.write(json.dumps(asdict(orders)).encode() + b"\n")
            self._process.stdin.flush()
            answer: dict[str, str] = json.loads(self._process.stdout.readline() or b"{}")
            return answer
        except (OSError, ValueError):
            return {}
        finally:
            too_late.cancel()


def _down(why: str, pause_s: float | None = None) -> ProviderFault:
    sentence = "The built-in model could not be started."
    return ProviderFault("unavailable", sentence, detail=why, retry_after_s=pause_s, is_retryable=True)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _dropped_in(path: Path) -> Model | None:
    try:
        return _described(path, path.stat().st_mtime_ns)
    except (OSError, gguf.NotGguf):
        return None


@lru_cache(maxsize=256)
def _described(path: Path, changed_at: int) -> Model:
    """What the file says of itself; remembered until it changes."""
    head = gguf.read_head(path)
    window = min(head.context_length or WINDOW, WINDOW)
    return Model(
        provider=PROVIDER,
        model_id=path.stem.lower(),
        display_name=f"{head.name or path.stem}",
        context_window=window,
        max_output_tokens=min(OUTPUT, window // 2),
        tier=Tier.CHEAP,
        prices=FREE,
        is_local=True,
    )
