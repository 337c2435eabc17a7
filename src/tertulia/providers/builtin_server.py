"""The process of a built-in model: weights served on loopback, for the server that started it and no longer.

It reads its orders from standard input, one line of JSON, so that no key stands in its arguments or
environment; says on standard output where it listens; and ends when standard input closes, which happens
whatever becomes of the server. On Linux the kernel ends it too.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

PR_SET_PDEATHSIG = 1
PROMPT_CACHE_MIB = 64
"""The runtime's own default is 8 GiB."""
SLEEP_AFTER_S = 15 * 60
"""Weights nobody uses leave the memory, and come back with the next request."""


@dataclass(frozen=True, slots=True)
class Orders:
    weights: str
    name: str
    key: str
    parent: int
    threads: int
    slots: int
    window: int
    """Tokens one conversation may take."""
    pool: int
    """Tokens all conversations share: memory for each, whether or not it is used."""


def main() -> None:
    said = _own_stdout()
    orders = Orders(**json.loads(sys.stdin.readline()))
    _die_with(orders.parent)
    _be_modest()
    try:
        server = _serve(orders)
    except Exception as error:  # noqa: BLE001 - whatever the runtime raises, the server should hear it
        _say(said, {"error": str(error) or type(error).__name__})
        os._exit(1)
    _say(said, {"address": server.listening_address})
    sys.stdin.read()
    os._exit(0)


def _own_stdout() -> int:
    """Keeps standard output for our one line; the runtime prints where it likes."""
    said = os.dup(1)
    os.dup2(2, 1)
    return said


def _die_with(parent: int) -> None:
    """Ctrl-C in a terminal reaches us too; whether that ends anything is the server's decision."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)  # It died before we could ask to be told.


def _be_modest() -> None:
    """People waiting on the web server come first; a crash leaves nothing of what was said on disk."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):
        os.nice(5)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write("500")


def _serve(orders: Orders) -> Any:
    # Waiting threads must sleep: spinning ones slowed a busy two-core machine down twentyfold.
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    import xllamacpp  # type: ignore[import-untyped]

    params = xllamacpp.CommonParams()
    params.model.path = orders.weights
    params.model_alias = {orders.name}
    params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [orders.key]
    params.n_ctx, params.n_parallel = orders.pool, orders.slots
    params.kv_unified, params.kv_unified_per_slot = True, orders.window
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = orders.threads
    params.cache_ram_mib, params.sleep_idle_seconds = PROMPT_CACHE_MIB, SLEEP_AFTER_S
    params.use_jinja, params.ui, params.endpoint_slots, params.verbosity = True, False, False, 0
    # Small models wander at the usual temperature, and go round in circles below it.
    params.sampling.temp, params.sampling.top_p = 0.2, 0.9
    params.sampling.penalty_repeat, params.sampling.penalty_last_n = 1.1, 64
    return xllamacpp.Server(params)


def _say(said: int, line: dict[str, str]) -> None:
    os.write(said, json.dumps(line).encode() + b"\n")


if __name__ == "__main__":
    main()
