"""Access control: dependencies that authenticate a request; each route uses one that names its access class.

ANYONE      needs no credential
SIGNED_IN   needs a session; the store's queries decide what its user may see
ADMIN       needs a session of an administrator
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from fastapi import Depends, Request
from starlette.requests import HTTPConnection

from tertulia.app import Tertulia, now_ms
from tertulia.core.errors import NotSignedIn
from tertulia.core.users import Actor
from tertulia.server.state import ServerState
from tertulia.store import sessions
from tertulia.store.sessions import SignedIn


class Access(StrEnum):
    ANYONE = "anyone"
    SIGNED_IN = "signed_in"
    ADMIN = "admin"


def token_hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


async def signed_in(connection: HTTPConnection) -> SignedIn:
    """Authenticates a request or a WebSocket by its session cookie; raises NotSignedIn."""
    state: ServerState = connection.app.state.server
    token = connection.cookies.get(state.cookie, "")
    if token and len(token) <= 200:
        hashed = token_hash(token)
        client = await state.tertulia.db.read(lambda tx: sessions.find_signed_in(tx, hashed))
        if client is not None:
            await _touch(state, client)
            return client
    raise NotSignedIn("Sign in first.")


async def _touch(state: ServerState, client: SignedIn) -> None:
    """Records that the session is in use, so that it does not expire; at most once per TOUCH_MS."""
    if now_ms() - client.session.last_active_at >= sessions.TOUCH_MS:
        await state.tertulia.db.write(lambda tx: sessions.touch(tx, client.session.id))


async def _anyone() -> None:
    return None


async def _signed_in(request: Request) -> SignedIn:
    return await signed_in(request)


async def _actor(request: Request) -> Actor:
    return (await signed_in(request)).actor


async def _admin(request: Request) -> Actor:
    actor = (await signed_in(request)).actor
    actor.must_be_admin()
    return actor


async def _server_state(request: Request) -> ServerState:
    """A coroutine, because FastAPI would run a plain function in a thread."""
    state: ServerState = request.app.state.server
    return state


async def _tertulia(request: Request) -> Tertulia:
    return (await _server_state(request)).tertulia


Public = Annotated[None, Depends(_anyone)]
CurrentSession = Annotated[SignedIn, Depends(_signed_in)]
CurrentActor = Annotated[Actor, Depends(_actor)]
Admin = Annotated[Actor, Depends(_admin)]
InjectedState = Annotated[ServerState, Depends(_server_state)]
InjectedApp = Annotated[Tertulia, Depends(_tertulia)]

CLASSES = {
    _anyone: Access.ANYONE,
    _signed_in: Access.SIGNED_IN,
    _actor: Access.SIGNED_IN,
    _admin: Access.ADMIN,
}


@dataclass(frozen=True, slots=True)
class RouteAccess:
    method: str
    path: str
    access: Access
    ids: tuple[str, ...] = ()
    """The parameters that name an object by its id, in the path, the query or the body."""
    addresses: tuple[str, ...] = ()
    """The parameters that could name an address to connect to."""
