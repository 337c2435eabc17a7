"""The door: what the routes share beside the house itself."""

from __future__ import annotations

from dataclasses import dataclass, field

from starlette.requests import HTTPConnection

from tertulia.app import Tertulia
from tertulia.core.sessions import ABSOLUTE_DAYS
from tertulia.server.concurrency_limit import PerUserLimiter
from tertulia.server.passwords import Passwords
from tertulia.server.throttle import Throttle

SESSION_S = ABSOLUTE_DAYS * 86_400


@dataclass(frozen=True, slots=True)
class ServerState:
    tertulia: Tertulia
    throttle: Throttle
    setup_token: str
    """Shown at the start on the terminal; needed for the first account where others could be faster."""
    passwords: Passwords
    turnstile: PerUserLimiter = field(default_factory=PerUserLimiter)
    """For whatever makes the server look through everything there is."""

    @property
    def cookie(self) -> str:
        return "__Host-tertulia" if self.tertulia.settings.is_secure else "tertulia"

    @property
    def needs_setup_token(self) -> bool:
        return not self.tertulia.settings.is_private

    def peer(self, connection: HTTPConnection) -> str:
        """The real address behind the connection; a header is believed only from a proxy we know."""
        peer = connection.client.host if connection.client else ""
        if peer in self.tertulia.settings.trusted_proxies:
            # The proxy's own word comes last, in the last line: whatever stands before it, the client wrote.
            forwarded = ",".join(connection.headers.getlist("x-forwarded-for"))
            return forwarded.rpartition(",")[2].strip() or peer
        return peer
