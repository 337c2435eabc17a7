"""Extraction errors: the ways in which reading a file ends without its complete text."""

from __future__ import annotations


class NoTextFound(Exception):
    """This type of file has no text; the message tells the person so."""


class Unreadable(Exception):
    """The file is damaged, encrypted or unsafe; the message says which."""


class Truncated(Exception):
    """Only a part of the text was read and is used; the message says why."""
