"""Fixtures for the tests of the library: an extractor shared by all tests of a module."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tertulia.library.extract.extractor import Extractor
from tests.library.reading import LIMITS
from tests.patience import PATIENCE_S
from tests.timers import timers  # noqa: F401 - a fixture


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def extractor() -> AsyncIterator[Extractor]:
    extractor = Extractor(LIMITS, PATIENCE_S)
    yield extractor
    extractor.close()
