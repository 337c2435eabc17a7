"""Limits: how long and how much an answer may be before we stop listening."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    connect_s: float = 10.0
    first_byte_s: float = 60.0
    """From the request to the first byte of the answer, connecting included."""
    idle_s: float = 90.0
    """Between two events; a keep-alive is not one."""
    total_s: float = 30 * 60.0
    farewell_s: float = 5.0
    """After the provider said it is done: how long to wait for its token count."""
    line_bytes: int = 4 << 20
    answer_bytes: int = 32 << 20
    answer_events: int = 250_000
    """More than any model says word by word; a flood of small events costs more to read than to send."""
    refusal_bytes: int = 64 << 10
    """How much of an error page is read."""
    retries: int = 2
    retry_after_s: float = 60.0
    """The longest wait a provider can ask for."""
