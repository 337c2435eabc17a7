"""Tertulia: one conversation, many minds."""

from importlib.metadata import version

__version__ = version("tertulia")
