"""The rules of tests: none depends on the speed of the machine, and each asserts something."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent
CLOCKS = {"monotonic", "perf_counter", "process_time", "thread_time", "perf_counter_ns", "monotonic_ns"}
ASSERTING = {"raises", "warns", "expect", "fail"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def test_no_test_sleeps() -> None:
    """A test waits for an event, polls (patience.until), or yields to other tasks (sleep(0))."""
    assert {name for name, tree in trees() if any(map(sleeps, calls(tree)))} == set()


def test_no_test_reads_a_clock() -> None:
    """A test passes in a clock, counts calls (calls.counted_calls), or has a limit of zero or of an hour."""
    clock_calls = {
        f"{name}:{call.lineno}"
        for name, tree in trees()
        for call in calls(tree)
        if called_name(call) in CLOCKS
    }
    assert clock_calls == set()


def test_every_test_asserts_something() -> None:
    """Asserts directly, or through a helper function."""
    all_functions = [function for _, tree in trees() for function in functions(tree)]
    asserting = {function.name for function in all_functions if asserts(function)}
    idle = {
        f"{name}:{function.name}"
        for name, tree in trees()
        for function in functions(tree)
        if function.name.startswith("test_") and not asserts(function) and not names(function) & asserting
    }
    assert idle == set()


@cache
def trees() -> tuple[tuple[str, ast.Module], ...]:
    paths = sorted(TESTS.rglob("*.py"))
    return tuple(
        (path.relative_to(TESTS).as_posix(), ast.parse(path.read_text(encoding="utf-8"))) for path in paths
    )


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def called_name(call: ast.Call) -> str:
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def sleeps(call: ast.Call) -> bool:
    match call.args:
        case [ast.Constant(value=int() | float() as seconds), *_]:
            return (
                called_name(call) in ("sleep", "wait_for_timeout")
                and seconds > 0
                and not is_only_started(call)
            )
    return False


def is_only_started(call: ast.Call) -> bool:
    """A sleep of a minute or more stands for a task that never ends, and no test waits for it."""
    return isinstance(call.args[0], ast.Constant) and call.args[0].value >= 60


def asserts(function: Function) -> bool:
    return any(isinstance(node, ast.Assert) for node in ast.walk(function)) or any(
        called_name(call) in ASSERTING or any(keyword.arg == "expect" for keyword in call.keywords)
        for call in calls(function)
    )


def names(function: Function) -> set[str]:
    """The functions and methods that a function may call: its called names, and the names that it reads."""
    read = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return read | {called_name(call) for call in calls(function)}
