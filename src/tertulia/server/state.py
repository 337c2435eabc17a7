"""Server state: the application object and what else the routes share, such as throttling and limits."""

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
    """Printed when the server starts; the first account needs it if other people can reach the server too."""
    passwords: Passwords
    limiter: PerUserLimiter = field(default_factory=PerUserLimiter)
    """For searches and estimates, which read a whole project."""

    @property
    def cookie(self) -> str:
        return "__Host-tertulia" if self.tertulia.settings.is_secure else "tertulia"

    @property
    def needs_setup_token(self) -> bool:
        return not self.tertulia.settings.is_private

    def peer(self, connection: HTTPConnection) -> str:
        """The client's address: from X-Forwarded-For if a trusted proxy sent it, else from the connection."""
        peer = connection.client.host if connection.client else ""
        if peer in self.tertulia.settings.trusted_proxies:
            # The proxy appends its value to the last line. The values before it may come from the client.
            forwarded = ",".join(connection.headers.getlist("x-forwarded-for"))
            return forwarded.rpartition(",")[2].strip() or peer
        return peer
