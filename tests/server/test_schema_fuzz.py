"""Every operation of the API, sent what its schema allows and what it does not: never a 5xx (SQ 5)."""

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
        found.ok() for found in schemathesis.openapi.from_dict(bare().openapi()).get_all_operations()
    )
}
DESTROYS = ("DELETE", "POST /api/logout")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with (
        scripted() as upstream,
        running(tmp_path_factory.mktemp("house"), {"TERTULIA_ENDPOINTS": endpoints(upstream)}) as made,
    ):
        made.app.state.door = replace(
            made.app.state.door, throttle=Throttle(time.monotonic, attempts=1_000_000)
        )
        yield made


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def ada(world: World) -> Person:
    return await world.set_up("Ada")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def its(ada: Person) -> Things:
    return await things(ada, "mine")


@pytest.mark.parametrize("label", sorted(OPERATIONS, key=lambda label: label.startswith(DESTROYS)))
async def test_an_operation_never_fails_from_what_it_is_sent(
    world: World, ada: Person, its: Things, label: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The same cases in every run. About nobody's things, and about one's own where nothing is deleted."""
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
    found: list[Case] = []

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
        found.append(case)

    try:
        collect()
    except Unsatisfiable:
        assert mode is GenerationMode.NEGATIVE, operation.label
    return found


def about(case: Case, its: Things) -> Case:
    """The same case with ids that exist and voices that can answer, so that it gets further in."""
    given = case.path_parameters or {}
    case.path_parameters = {name: getattr(its, name, value) for name, value in given.items()}
    if isinstance(case.body, dict):
        real = {"id": new_id(), "voices": [{"model": "voices:alpha"}], "model": "voices:alpha"}
        case.body |= {name: real[name] for name in real if name in case.body}
    return case
