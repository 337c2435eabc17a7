"""Dependencies: everything the engine works with, passed in once at the start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tertulia.core.files import FileLimits
from tertulia.core.ids import Clock, NewId
from tertulia.core.models import Model
from tertulia.engine.live import LiveHub
from tertulia.library.extract.extractor import Extractor
from tertulia.library.search import SearchIndex
from tertulia.providers.registry import ProviderRegistry
from tertulia.store.blobs import Blobs
from tertulia.store.database import Database


@dataclass(frozen=True, slots=True)
class Dependencies:
    db: Database
    providers: ProviderRegistry
    live: LiveHub
    clock: Clock
    monotonic: Callable[[], float]
    new_id: NewId
    counter: Callable[[Model], Callable[[str], int]]
    report: Callable[[Exception], str]
    """Logs an unexpected error and returns its incident id."""
    blobs: Blobs
    extractor: Extractor
    limits: FileLimits
    library: SearchIndex
