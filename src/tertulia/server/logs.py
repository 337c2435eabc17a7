"""Logging: Tertulia logs at the configured level, libraries only warnings.

At debug level libraries would log whole requests, with cookies and keys.
"""

from __future__ import annotations

import logging

from tertulia.core.errors import CannotStart

LEVELS = ("debug", "info", "warning", "error")


def configure(level: str) -> None:
    """Starts logging to the terminal."""
    if level not in LEVELS:
        raise CannotStart(f"TERTULIA_LOG_LEVEL is {level!r}; it must be one of {', '.join(LEVELS)}.")
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("tertulia").setLevel(level.upper())
