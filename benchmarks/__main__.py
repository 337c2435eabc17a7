"""`python -m benchmarks`: every bar, one after the other, and all their figures once more at the end."""

from __future__ import annotations

import subprocess
import sys

BARS = (
    "first_token",
    "message_cpu",
    "chunk_cpu",
    "burst",
    "four_voices",
    "idle",
    "long_conversation",
    "context_assembly",
    "javascript",
    "search",
    "indexing",
)


def main(names: list[str]) -> None:
    lines = [_run(name) for name in names or BARS]
    print("\n".join(["", *lines]))


def _run(name: str) -> str:
    """The last line a benchmark said; what it says goes to the terminal as it comes."""
    last = f"{name}: it said nothing"
    with subprocess.Popen(
        [sys.executable, "-m", f"benchmarks.{name}"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            last = line.rstrip() or last
    print(flush=True)
    return last if process.returncode == 0 else f"{name}: it broke with status {process.returncode}"


if __name__ == "__main__":
    main(sys.argv[1:])
