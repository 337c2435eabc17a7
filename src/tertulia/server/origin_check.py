"""Origin check: the Host header must name this server, and no other site's page may read or write the API."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from starlette.types import Scope

from tertulia.core.errors import Malformed, UnknownHost, WrongOrigin
from tertulia.server.asgi_scope import header_values, is_api, is_safe

_HOST = re.compile(r"^(?P<name>\[[0-9a-f:.]{2,45}\]|[a-z0-9](?:[a-z0-9.\-]{0,252}))(?::(?P<port>\d{1,5}))?$")


@dataclass(frozen=True, slots=True)
class Host:
    name: str
    port: int | None


class OriginCheck:
    def __init__(self, hosts: Iterable[str], public_url: str = "") -> None:
        self._hosts = frozenset(hosts)
        self._public_url = public_url.lower()

    def check(self, scope: Scope) -> None:
        """Raises Malformed, UnknownHost or WrongOrigin."""
        self._must_be_same_origin(scope, self._host(scope))

    def _host(self, scope: Scope) -> Host:
        """The host of the request. A DNS name that an attacker points at 127.0.0.1 is refused here."""
        names = header_values(scope, b"host")
        host = parse_host(names[0]) if len(names) == 1 else None
        if host is None:
            raise Malformed("The Host header is missing or cannot be read.")
        if host.name not in self._hosts:
            raise UnknownHost("This server does not answer to that name. Add it to TERTULIA_ALLOWED_HOSTS.")
        return host

    def _must_be_same_origin(self, scope: Scope, host: Host) -> None:
        """A write or a WebSocket must prove that a page of this server sent it; a read must not disprove it.

        Links from other sites to pages are allowed. A page on another port of this machine is another
        origin, even though the browser sends our cookie with its requests.
        """
        if is_safe(scope) and not is_api(scope):
            return
        origins, sites = header_values(scope, b"origin"), header_values(scope, b"sec-fetch-site")
        own_sites = ("same-origin", "none") if is_safe(scope) else ("same-origin",)
        if any(site not in own_sites for site in sites) or not all(self._is_own(o, host) for o in origins):
            raise WrongOrigin("This request came from another site.")
        if not (is_safe(scope) or origins or sites):
            raise WrongOrigin("The request has no origin. Send an Origin header with this server's address.")

    def _is_own(self, origin: str, host: Host) -> bool:
        """True for the requested host and for the public URL, which a proxy may have replaced in Host."""
        scheme, _, rest = origin.partition("://")
        if scheme not in ("http", "https"):
            return False
        return parse_host(rest) == host or origin.lower() == self._public_url


def parse_host(text: str) -> Host | None:
    match = _HOST.match(text.lower())
    if match is None:
        return None
    port = match["port"]
    if port is not None and not 0 < int(port) <= 65535:
        return None
    return Host(match["name"], int(port) if port else None)
