"""Embedding worker process: runs the MiniLM model and turns texts into unit vectors for its server.

Each request is one line of JSON on standard input; the answer is the vectors as half floats, joined. The
process ends when standard input closes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, BinaryIO

from tertulia.library.wordpiece import WordPieces
from tertulia.processes import worker

BATCH = 8
"""Larger batches are not faster and need more memory."""
TOKENS = 256


def main() -> None:
    worker.begin()
    answers = worker.reserve_stdout()
    model = MiniLm(Path(sys.argv[2]))
    _send(answers, b"")
    for line in sys.stdin.buffer:
        _send(answers, model.embed(json.loads(line)))


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
        means = (states * weights).sum(axis=1) / weights.sum(axis=1)
        return means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)


if __name__ == "__main__":
    main()
