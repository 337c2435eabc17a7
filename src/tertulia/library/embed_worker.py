"""Embedding worker process: runs the MiniLM model and turns texts into unit vectors for its server.

Each request is one line of JSON on standard input; the answer is the vectors as half floats, joined. The
process ends when standard input closes, and on Linux the kernel kills it when its parent dies.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from tertulia.library.wordpiece import WordPieces

PR_SET_PDEATHSIG = 1
BATCH = 8
"""Larger batches are not faster and need more memory."""
TOKENS = 256


def main() -> None:
    folder, parent = Path(sys.argv[1]), int(sys.argv[2])
    _die_with(parent)
    answers = _own_stdout()
    model = MiniLm(folder)
    _send(answers, b"")
    for line in sys.stdin.buffer:
        _send(answers, model.embed(json.loads(line)))


def _die_with(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)  # the parent died before prctl took effect
    with suppress(OSError):
        os.nice(5)


def _own_stdout() -> BinaryIO:
    """A private copy of standard output for the answers.

    Whatever the runtime prints goes to standard error.
    """
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def _send(answers: BinaryIO, payload: bytes) -> None:
    answers.write(len(payload).to_bytes(4, "big") + payload)
    answers.flush()


class MiniLm:
    def __init__(self, folder: Path) -> None:
        import onnxruntime  # type: ignore[import-untyped]

        options = onnxruntime.SessionOptions()
        # One thread, no spinning: the web server needs the other core.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(
            str(folder / "minilm-l6-int8.onnx"), options, providers=["CPUExecutionProvider"]
        )
        self._pieces = WordPieces(folder / "minilm-l6-tokenizer.json")

    def embed(self, texts: list[str]) -> bytes:
        """The vectors in the order of the texts; texts of similar length share a batch."""
        import numpy as np

        encoded = [self._pieces.encode(text, TOKENS) for text in texts]
        order = sorted(range(len(texts)), key=lambda index: len(encoded[index]))
        vectors: Any = np.zeros((len(texts), 384), dtype=np.float16)
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            vectors[batch] = self._vectors([encoded[index] for index in batch])
        joined: bytes = vectors.tobytes()
        return joined

    def _vectors(self, batch: list[list[int]]) -> Any:
        """For each text the mean of its token vectors, scaled to length one."""
        import numpy as np

        longest = max(map(len, batch))
        ids = np.zeros((len(batch), longest), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        states = self._session.run(None, inputs)[0]
        weights = mask[:, :, None].astype(np.float32)
        dependencies = (states * weights).sum(axis=1) / weights.sum(axis=1)
        return dependencies / np.maximum(np.linalg.norm(dependencies, axis=1, keepdims=True), 1e-9)


if __name__ == "__main__":
    main()
