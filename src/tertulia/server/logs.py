"""Logs: what the house says of itself, at the level it was told.

Libraries speak only when something is wrong: at debug they write down whole requests, with cookies and keys.
"""

from __future__ import annotations

import logging

from tertulia.core.errors import CannotStart

LEVELS = ("debug", "info", "warning", "error")


def keep(level: str) -> None:
    """Writes to the terminal from now on."""
    if level not in LEVELS:
        raise CannotStart(f"TERTULIA_LOG_LEVEL is {level!r}; it must be one of {', '.join(LEVELS)}.")
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("tertulia").setLevel(level.upper())
