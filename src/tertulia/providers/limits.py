"""Limits: how long and how much an answer may be before we stop listening."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_BYTE_S = 300.0


@dataclass(frozen=True, slots=True)
class Limits:
    connect_s: float = 10.0
    first_byte_s: float | None = None
    """From the request to the first byte, and then of silence before the first word: a model thinks, a server
    reads a long prompt. Anything that arrives meanwhile starts it anew. None: five minutes, or any time where
    the server is on this machine."""
    idle_s: float = 90.0
    """Between two events, once the first word was said."""
    keep_alive_times: int = 10
    """So many times as long, where the provider at least says that the connection is open."""
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
    """The longest wait that a call sits through; a longer one is told at once."""

    @property
    def silence_s(self) -> float:
        """Before the first word."""
        return FIRST_BYTE_S if self.first_byte_s is None else self.first_byte_s
