"""Egress: checks the addresses that the server may connect to."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from tertulia.core.errors import CannotStart, Invalid


def checked_address(url: str) -> str:
    """An operator's base URL without its trailing slash. Raises Invalid for anything ambiguous."""
    if not url.isascii() or any(character <= " " or character in '\\"<>^`{|}\x7f' for character in url):
        raise Invalid(f"The address {url!r} has characters that do not belong in one.")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise Invalid(f"The address {url!r} cannot be read.") from None
    if parts.scheme not in ("http", "https") or not host or "%" in parts.netloc:
        raise Invalid(f"The address {url!r} must start with http:// or https:// and name a host.")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise Invalid(f"The address {url!r} must not carry a user name, a query or a fragment.")
    return url.rstrip("/")


def is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Egress:
    """The policy for outgoing connections, handed in by whoever builds the application."""

    require_loopback: bool = False

    def check(self, url: str) -> None:
        """Raises CannotStart if the policy forbids this address."""
        if self.require_loopback and not is_loopback(url):
            raise CannotStart(f"Only providers on loopback may be called here, not {url}.")


OPEN = Egress()
"""The policy of a server in use: it may connect to every address that its operator configured."""
LOOPBACK_ONLY = Egress(require_loopback=True)
"""The policy of tests and measurements: a call to another machine is an error."""
