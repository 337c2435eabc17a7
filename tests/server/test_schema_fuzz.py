"""Schema fuzzing: no operation responds with 5xx to valid or invalid generated requests (SQ 5)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode

from tertulia.app import new_id
from tertulia.server.asgi import bare
from tertulia.server.throttle import Throttle
from tests.patience import PATIENCE_S
from tests.server.cast import Things, things
from tests.upstream.scripted import scripted
from tests.world import Person, World, endpoints, running

pytestmark = pytest.mark.asyncio(loop_scope="module")

PER_KIND = 12
OPERATIONS = {
    operation.label: operation
    for operation in (
        operation.ok() for operation in schemathesis.openapi.from_dict(bare().openapi()).get_all_operations()
    )
}
DESTROYS = ("DELETE", "POST /api/logout")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with (
        scripted() as upstream,
        running(tmp_path_factory.mktemp("home"), {"TERTULIA_ENDPOINTS": endpoints(upstream)}) as made,
    ):
        made.app.state.server = replace(
            made.app.state.server, throttle=Throttle(time.monotonic, attempts=1_000_000)
        )
        yield made


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def ada(world: World) -> Person:
    return await world.set_up("Ada")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def its(ada: Person) -> Things:
    return await things(ada, "mine")


@pytest.mark.parametrize("label", sorted(OPERATIONS, key=lambda label: label.startswith(DESTROYS)))
async def test_no_operation_responds_with_a_server_error(
    world: World, ada: Person, its: Things, label: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Every run has the same cases. Half of them have ids of own objects, unless they would delete them."""
    cookie = {"tertulia": ada.client.cookies["tertulia"]}
    for number, case in enumerate(cases(label)):
        if number % 2 and not label.startswith(DESTROYS):
            case = about(case, its)
        answer = await asyncio.to_thread(
            case.call,
            base_url=world.url,
            headers={"Origin": world.url},
            cookies=cookie,
            timeout=PATIENCE_S,
        )
        assert answer.status_code < 500, (case.as_curl_command(), answer.text)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def cases(label: str) -> list[Case]:
    operation = OPERATIONS[label]
    modes = [GenerationMode.POSITIVE]
    if operation.body or operation.query:
        modes.append(GenerationMode.NEGATIVE)
    return [case for mode in modes for case in generated(operation, mode)]


def generated(operation: Any, mode: GenerationMode) -> list[Case]:
    cases: list[Case] = []

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=PER_KIND,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def collect(case: Case) -> None:
        cases.append(case)

    try:
        collect()
    except Unsatisfiable:
        assert mode is GenerationMode.NEGATIVE, operation.label
    return cases


def about(case: Case, its: Things) -> Case:
    """The case with existing ids and available models, so that it passes the first checks."""
    parameters = case.path_parameters or {}
    case.path_parameters = {name: getattr(its, name, value) for name, value in parameters.items()}
    if isinstance(case.body, dict):
        real = {"id": new_id(), "voices": [{"model": "voices:alpha"}], "model": "voices:alpha"}
        case.body |= {name: real[name] for name in real if name in case.body}
    return case
