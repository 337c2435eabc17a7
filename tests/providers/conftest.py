"""What the tests of providers share: a scripted upstream and everyone it plays."""

from collections.abc import AsyncIterator

import pytest

from tests.upstream.scripted import Upstream, scripted


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with scripted() as upstream:
        yield upstream
