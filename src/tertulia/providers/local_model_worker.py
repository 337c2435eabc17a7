"""Local model worker: the process that serves one model on loopback for the server that started it.

It reads its configuration as one line of JSON from standard input, so that its key appears neither in its
arguments nor in its environment. It writes its address to standard output. It ends when standard input
closes, which happens even when the server is killed.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from typing import Any, BinaryIO

from tertulia.processes import worker

PROMPT_CACHE_MIB = 64
"""The default of the runtime is 8 GiB."""
SLEEP_AFTER_S = 15 * 60
"""An unused model leaves the memory after this time and is loaded again by the next request."""


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    weights: str
    name: str
    key: str
    threads: int
    slots: int
    window: int
    """The maximum tokens of one conversation."""
    pool: int
    """The tokens that all conversations share. Memory for them is reserved whether or not it is used."""


def main() -> None:
    worker.begin()
    answers = worker.reserve_stdout()
    config = WorkerConfig(**json.loads(sys.stdin.readline()))
    try:
        server = _start_server(config)
    except Exception as error:  # noqa: BLE001 - the server gets every error of the runtime
        _write_line(answers, {"error": str(error) or type(error).__name__})
        os._exit(1)
    _write_line(answers, {"address": server.listening_address})
    sys.stdin.read()
    os._exit(0)


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


def _write_line(answers: BinaryIO, message: dict[str, str]) -> None:
    answers.write(json.dumps(message).encode() + b"\n")
    answers.flush()


if __name__ == "__main__":
    main()
