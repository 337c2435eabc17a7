"""Who may come in: every route names its class of access here, and nowhere else decides.

ANYONE      no credential needed
SIGNED_IN   a session; what it may see is decided by the store's queries
ADMIN       a session of an administrator
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
    """Who sent this, by its session cookie alone."""
    state: ServerState = connection.app.state.server
    token = connection.cookies.get(state.cookie, "")
    if token and len(token) <= 200:
        mark = token_hash(token)
        found = await state.tertulia.db.read(lambda tx: sessions.find_signed_in(tx, mark))
        if found is not None:
            await _keep(state, found)
            return found
    raise NotSignedIn("Sign in first.")


async def _keep(state: ServerState, client: SignedIn) -> None:
    """A session that is used does not grow idle; written down now and then, not on every request."""
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
    """A coroutine like the others here: FastAPI sends every plain function to a thread and back."""
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
    """What names someone's things, in the path, the query or the body."""
    addresses: tuple[str, ...] = ()
    """What the server might be asked to connect to."""
