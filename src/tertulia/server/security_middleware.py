"""Security middleware: checks host, origin and body of each request before a route, and adds the headers.

request ─▶ origin_check ─▶ json_body (uploads: their route reads the body) ─▶ routes ─▶ response_headers

It is a plain ASGI layer: a BaseHTTPMiddleware costs three times as much per streamed chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from tertulia.core.errors import TertuliaError, WrongType
from tertulia.server.asgi_scope import content_type, is_api
from tertulia.server.errors import respond, unknown
from tertulia.server.json_body import SILENCE_S, read_json_body
from tertulia.server.origin_check import OriginCheck
from tertulia.server.response_headers import API_HEADERS, SECURITY_HEADERS, Header, WithHeaders

IsUpload = Callable[[str, str], bool]
"""True if requests with this method to this path carry the bytes of files."""


class SecurityMiddleware:
    def __init__(
        self,
        app: ASGIApp,
        hosts: Iterable[str],
        policy: str,
        public_url: str = "",
        is_upload: IsUpload = lambda method, path: False,
        silence_s: float = SILENCE_S,
    ) -> None:
        self._app = app
        self._origin = OriginCheck(hosts, public_url)
        self._policy = (b"content-security-policy", policy.encode())
        self._is_upload = is_upload
        self._silence_s = silence_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        try:
            self._origin.check(scope)
            receive = await self._checked_body(scope, receive)
        except TertuliaError as error:
            await self._refuse(scope, receive, send, error)
            return
        if scope["type"] == "websocket":
            await self._app(scope, receive, send)
        else:
            await self._respond(scope, receive, WithHeaders(send, self._headers(scope)))

    async def _checked_body(self, scope: Scope, receive: Receive) -> Receive:
        """An upload's route reads the body itself, in pieces and with its own limits."""
        if scope["type"] == "http" and self._is_upload(scope["method"], scope["path"]):
            _must_be_upload(scope)
            return receive
        return await read_json_body(scope, receive, self._silence_s)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send, error: TertuliaError) -> None:
        if scope["type"] == "websocket":
            await _deny_websocket(receive, send, error, can_respond=_can_respond(scope))
        else:
            await respond(error)(scope, receive, WithHeaders(send, self._headers(scope)))

    async def _respond(self, scope: Scope, receive: Receive, send: WithHeaders) -> None:
        """Turns unexpected exceptions into a response here, so that it has the same headers as all others."""
        try:
            await self._app(scope, receive, send)
        except Exception as error:
            if send.has_begun:
                raise
            await unknown(error)(scope, receive, send)

    def _headers(self, scope: Scope) -> Sequence[Header]:
        return (*SECURITY_HEADERS, self._policy, *(API_HEADERS if is_api(scope) else ()))


def _must_be_upload(scope: Scope) -> None:
    if content_type(scope) not in ("application/octet-stream", "multipart/form-data"):
        raise WrongType("Send a file with Content-Type: application/octet-stream, or several in a form.")


def _can_respond(scope: Scope) -> bool:
    """True if the ASGI server can answer a WebSocket request with an HTTP response."""
    return "websocket.http.response" in scope.get("extensions", {})


async def _deny_websocket(receive: Receive, send: Send, error: TertuliaError, *, can_respond: bool) -> None:
    """Refuses before the upgrade, with the status that an HTTP request would get."""
    await receive()
    if not can_respond:
        await send({"type": "websocket.close", "code": 4403})
        return
    response: Response = respond(error)
    headers = list(response.raw_headers)
    await send({"type": "websocket.http.response.start", "status": response.status_code, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": response.body})
