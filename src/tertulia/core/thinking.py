"""Thinking: how much a model is asked to think before it answers, and in which form it is asked."""

from __future__ import annotations

from enum import StrEnum


class Effort(StrEnum):
    """How much a voice thinks; where none is chosen, as much as its model does by itself."""

    OFF = "off"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class ThinkingForm(StrEnum):
    """How a request says it. Models of one company differ."""

    NONE = "none"
    """Nothing is sent: the model cannot be told, or does not think."""
    EFFORT = "effort"
    """A level by its name."""
    TAGGED = "tagged"
    """The same, of a model that writes its thoughts between tags unless they are to be taken apart."""
    ADAPTIVE = "adaptive"
    """Claude from 4.6 on: as much as the question needs, with a level."""
    BUDGET = "budget"
    """A number of tokens: older Claude and Gemini models."""
    LEVEL = "level"
    """Gemini from 3 on."""
