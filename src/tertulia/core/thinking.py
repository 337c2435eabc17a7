"""Thinking: the requested thinking effort, and how the request of each model states it."""

from __future__ import annotations

from enum import StrEnum


class Effort(StrEnum):
    """How much a voice thinks; no value means the model's default."""

    OFF = "off"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class ThinkingForm(StrEnum):
    """How a request states the effort; it differs even between models of one company."""

    NONE = "none"
    """The request states nothing: the model has no setting, or does not think."""
    EFFORT = "effort"
    """The effort level by name."""
    TAGGED = "tagged"
    """The effort level by name, for a model that writes its thoughts between tags unless asked to separate
    them."""
    ADAPTIVE = "adaptive"
    """Claude from 4.6 on: the model decides how much the question needs, within a level."""
    BUDGET = "budget"
    """A number of tokens: older Claude and Gemini models."""
    LEVEL = "level"
    """A level, in Gemini from 3 on."""
