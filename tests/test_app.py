"""The application: unexpected errors of background tasks are logged as incidents."""

from __future__ import annotations

import asyncio

import pytest

from tertulia.app import run_logged


async def test_an_error_of_a_background_task_is_logged_as_an_incident(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def work() -> None:
        raise ZeroDivisionError("a bug")

    with pytest.raises(ZeroDivisionError):
        await run_logged(work())
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [ZeroDivisionError]


async def test_a_cancelled_background_task_logs_no_incident(caplog: pytest.LogCaptureFixture) -> None:
    task = asyncio.create_task(run_logged(asyncio.sleep(60)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert caplog.records == []
