"""Background tasks: their exceptions are logged."""

from __future__ import annotations

import asyncio

import pytest

from tertulia.app import reported


async def test_an_exception_in_a_background_task_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        raise ZeroDivisionError("a mistake of ours")

    with pytest.raises(ZeroDivisionError):
        await reported(work())
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [ZeroDivisionError]


async def test_a_cancelled_background_task_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    task = asyncio.create_task(reported(asyncio.sleep(60)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert caplog.records == []
