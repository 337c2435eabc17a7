"""How reading a file can end other than with its whole text."""

from __future__ import annotations


class NoText(Exception):
    """There is nothing to read in this kind of file; the message says so to a person."""


class Unreadable(Exception):
    """The file is broken, locked or harmful; the message says which."""


class Enough(Exception):
    """What was read is good, but it is not all; the message says why."""
