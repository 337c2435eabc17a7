"""Tertulia: one conversation, many models."""

from importlib.metadata import version

__version__ = version("tertulia")
