"""The whole house: what runs in it is not lost from sight."""

from __future__ import annotations

import asyncio

import pytest

from tertulia.app import reported


async def test_what_breaks_beside_the_requests_is_an_incident(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        raise ZeroDivisionError("a mistake of ours")

    with pytest.raises(ZeroDivisionError):
        await reported(work())
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [ZeroDivisionError]


async def test_what_ends_with_the_server_is_none(caplog: pytest.LogCaptureFixture) -> None:
    task = asyncio.create_task(reported(asyncio.sleep(60)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert caplog.records == []
