"""Local model worker: the process that serves one model on loopback for the server that started it.

It reads its configuration as one line of JSON from standard input, so that its key appears neither in its
arguments nor in its environment. It writes its address to standard output. It ends when standard input
closes, which happens even when the server is killed. On Linux the kernel ends it too.
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
"""The default of the runtime is 8 GiB."""
SLEEP_AFTER_S = 15 * 60
"""An unused model leaves the memory after this time and is loaded again by the next request."""


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    weights: str
    name: str
    key: str
    parent: int
    threads: int
    slots: int
    window: int
    """The maximum tokens of one conversation."""
    pool: int
    """The tokens that all conversations share. Memory for them is reserved whether or not it is used."""


def main() -> None:
    output = _reserve_stdout()
    config = WorkerConfig(**json.loads(sys.stdin.readline()))
    _exit_with_parent(config.parent)
    _limit_resources()
    try:
        server = _start_server(config)
    except Exception as error:  # noqa: BLE001 - the server gets every error of the runtime
        _write_line(output, {"error": str(error) or type(error).__name__})
        os._exit(1)
    _write_line(output, {"address": server.listening_address})
    sys.stdin.read()
    os._exit(0)


def _reserve_stdout() -> int:
    """Keeps standard output for our messages, because the runtime prints to it."""
    output = os.dup(1)
    os.dup2(2, 1)
    return output


def _exit_with_parent(parent: int) -> None:
    """Ends this process with its parent. Ctrl-C in a terminal reaches this process too, but only the server
    decides when to stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)  # The parent died before the signal was set up.


def _limit_resources() -> None:
    """Gives the web server priority, and prevents core dumps, which would write conversations to disk."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):
        os.nice(5)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write("500")


def _start_server(config: WorkerConfig) -> Any:
    # Waiting threads must sleep: spinning threads made a busy two-core machine twenty times slower.
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    import xllamacpp  # type: ignore[import-untyped]

    params = xllamacpp.CommonParams()
    params.model.path = config.weights
    params.model_alias = {config.name}
    params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [config.key]
    params.n_ctx, params.n_parallel = config.pool, config.slots
    params.kv_unified, params.kv_unified_per_slot = True, config.window
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = config.threads
    params.cache_ram_mib, params.sleep_idle_seconds = PROMPT_CACHE_MIB, SLEEP_AFTER_S
    params.use_jinja, params.ui, params.endpoint_slots, params.verbosity = True, False, False, 0
    # Small models lose the thread at the usual temperature and repeat themselves below it.
    params.sampling.temp, params.sampling.top_p = 0.2, 0.9
    params.sampling.penalty_repeat, params.sampling.penalty_last_n = 1.1, 64
    return xllamacpp.Server(params)


def _write_line(output: int, message: dict[str, str]) -> None:
    os.write(output, json.dumps(message).encode() + b"\n")


if __name__ == "__main__":
    main()
