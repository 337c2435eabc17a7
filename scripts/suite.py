"""Runs the checks and the tests, side by side where they do not disturb each other, and sums up at the end.

    python scripts/suite.py check    format, lint, types, rooms, generated files
    python scripts/suite.py test     and every test

A step that passes is one line; a step that fails shows what it said. pytest speaks while it runs.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROGRAMS = Path(sys.executable).parent
NPM = (sys.executable, str(ROOT / "scripts" / "node.py"), "npm", "run", "--silent")
WORKERS = str(max(2, min(4, os.cpu_count() or 2)))
ENVIRONMENT = os.environ if sys.stdout.isatty() else os.environ | {"NO_COLOR": "1"}


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    command: Sequence[str | Path]
    folder: Path = ROOT
    speaks: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    step: Step
    passed: bool
    seconds: float


Lane = tuple[Step, ...]  # one after the other; the lanes of a stage run at the same time
Stage = tuple[Lane, ...]

PYTHON: Lane = (
    Step("format", [PROGRAMS / "ruff", "format", "--check", "--quiet", "."]),
    Step("lint", [PROGRAMS / "ruff", "check", "--quiet", "."]),
    Step("rooms", [PROGRAMS / "lint-imports"]),
    Step("types", [PROGRAMS / "mypy"]),
)
WEB: Lane = (
    Step("API types", [sys.executable, "scripts/api_types.py", "--check"]),
    Step("web types", [*NPM, "check"], ROOT / "web"),
    Step("web lint", [*NPM, "lint"], ROOT / "web"),
)
WEB_TESTS: Lane = (Step("web tests", [*NPM, "test"], ROOT / "web"),)
TESTS: Lane = (Step("tests", [PROGRAMS / "pytest", "-q", "-n", WORKERS, "--dist", "worksteal"], speaks=True),)

# pytest comes last and alone: its workers take all the processors there are.
PLANS: dict[str, tuple[Stage, ...]] = {
    "check": ((PYTHON, WEB),),
    "test": ((PYTHON, WEB + WEB_TESTS), (TESTS,)),
}

speaking = threading.Lock()


def main(plan: str) -> None:
    outcomes = [outcome for stage in PLANS[plan] for outcome in run_stage(stage)]
    sum_up(outcomes)
    sys.exit(not all(outcome.passed for outcome in outcomes))


def run_stage(lanes: Stage) -> list[Outcome]:
    with ThreadPoolExecutor(len(lanes)) as pool:
        return [outcome for lane in pool.map(run_lane, lanes) for outcome in lane]


def run_lane(lane: Lane) -> list[Outcome]:
    return [run_step(step) for step in lane]


def run_step(step: Step) -> Outcome:
    began = time.monotonic()
    output = None if step.speaks else subprocess.PIPE
    ended = subprocess.run(
        step.command, cwd=step.folder, env=ENVIRONMENT, stdout=output, stderr=subprocess.STDOUT, text=True
    )
    outcome = Outcome(step, ended.returncode == 0, time.monotonic() - began)
    report(outcome, ended.stdout or "")
    return outcome


def report(outcome: Outcome, said: str) -> None:
    with speaking:
        print(line(outcome), flush=True)
        if not outcome.passed:
            print(said, flush=True)


def line(outcome: Outcome) -> str:
    return f"{'✓' if outcome.passed else '✗'} {outcome.step.name:<10} {outcome.seconds:6.1f} s"


def sum_up(outcomes: list[Outcome]) -> None:
    failed = [outcome.step.name for outcome in outcomes if not outcome.passed]
    print("\n" + "\n".join(line(outcome) for outcome in outcomes))
    print(f"\nFailed: {', '.join(failed)}." if failed else "\nAll good.")


if __name__ == "__main__":
    main(sys.argv[1])
