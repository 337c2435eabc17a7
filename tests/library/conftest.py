"""For the tests of the library: the process that reads files."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tertulia.library.extract.extractor import Extractor
from tests.library.reading import LIMITS
from tests.patience import PATIENCE_S
from tests.timers import timers  # noqa: F401 - a fixture


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def extractor() -> AsyncIterator[Extractor]:
    made = Extractor(LIMITS, PATIENCE_S)
    yield made
    made.close()
