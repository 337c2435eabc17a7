"""Limits: timeouts and maximum sizes of one call to a provider."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_BYTE_S = 300.0


@dataclass(frozen=True, slots=True)
class Limits:
    connect_s: float = 10.0
    first_byte_s: float | None = None
    """Seconds of silence allowed before the first text: for the response headers, while the model thinks,
    while a server reads a long prompt. Anything that arrives restarts the time. None: five minutes, or no
    limit if the server runs on this machine."""
    idle_s: float = 90.0
    """Seconds of silence allowed between two events after the first text."""
    keep_alive_factor: int = 10
    """How many times longer the wait is while the provider sends only keep-alive signals."""
    total_s: float = 30 * 60.0
    after_finish_s: float = 5.0
    """Seconds to wait for the token count after the provider has sent its finish reason."""
    line_bytes: int = 4 << 20
    reply_bytes: int = 32 << 20
    reply_events: int = 250_000
    """More events than any model sends token by token. A flood of small events costs more to read than to
    send."""
    error_body_bytes: int = 64 << 10
    """How many bytes of an error response are read."""
    retries: int = 2
    longest_retry_wait_s: float = 60.0
    """The longest wait before a retry. If the provider asks for more, the call fails at once."""

    @property
    def silence_s(self) -> float:
        """Seconds of silence allowed before the first text, with the default filled in."""
        return FIRST_BYTE_S if self.first_byte_s is None else self.first_byte_s
