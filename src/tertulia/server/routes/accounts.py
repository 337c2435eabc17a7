"""Account routes: the first account, signing in and out, the user's own account."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from functools import partial

from fastapi import APIRouter, Request
from starlette.responses import Response

from tertulia.core.errors import AlreadySetUp, Forbidden, NotSignedIn, SetupTokenNeeded, TooLarge
from tertulia.core.events import user_topic
from tertulia.core.personas import Persona
from tertulia.core.projects import Project
from tertulia.core.sessions import Session
from tertulia.core.tables import Defaults, SavedTable
from tertulia.core.users import PASSWORD_LIMIT, Actor, User, check_password, clean_email, clean_name
from tertulia.server.access import CurrentSession, InjectedState, Public, token_hash
from tertulia.server.responses import json_response, no_content
from tertulia.server.state import SESSION_S, ServerState
from tertulia.server.user_agents import client_info
from tertulia.store import config, events, personas, projects, sessions, tables, users
from tertulia.store.database import Tx

router = APIRouter(tags=["account"])


@dataclass(frozen=True, slots=True)
class SetupState:
    needed: bool
    token_needed: bool
    instance_name: str


@dataclass(frozen=True, slots=True)
class NewSetup:
    name: str
    email: str
    password: str
    token: str = ""


@dataclass(frozen=True, slots=True)
class NewLogin:
    email: str
    password: str


@dataclass(frozen=True, slots=True)
class NewPassword:
    current: str
    new: str


@dataclass(frozen=True, slots=True)
class Me:
    user: User
    session: Session
    projects: tuple[Project, ...]
    personas: tuple[Persona, ...]
    """Those of the server and of the user; a project's are listed with the project."""
    tables: tuple[SavedTable, ...]
    """Those of the user."""
    defaults: Defaults
    default_models: tuple[str, ...]
    """The server's default models, used if neither the user nor the project has chosen any."""
    cursor: int
    """The last event of the user's topic that this response includes."""


@router.get("/api/setup", response_model=SetupState)
async def get_setup(state: InjectedState, anyone: Public) -> Response:
    count, settings = await state.tertulia.db.read(lambda tx: (users.count(tx), config.get_all(tx)))
    name = str(settings.get("instance_name") or state.tertulia.settings.instance_name)
    return json_response(SetupState(count == 0, count == 0 and state.needs_setup_token, name))


@router.post("/api/setup", response_model=Me, status_code=201)
async def set_up(state: InjectedState, anyone: Public, request: Request, new: NewSetup) -> Response:
    """Creates the first account, which is the administrator's, and signs it in."""
    name, email = clean_name(new.name), clean_email(new.email)
    check_password(new.password)
    if await state.tertulia.db.read(users.count):
        raise AlreadySetUp(
            "This server already has an administrator. Sign in, or ask the administrator for an account."
        )
    if state.needs_setup_token:
        _must_have_token(state, request, new.token)
    hashed = await state.passwords.hash(new.password)
    user = await state.tertulia.db.write(lambda tx: users.add_first(tx, name, email, hashed))
    return await _start_session(state, request, user, 201)


@router.post("/api/login", response_model=Me)
async def log_in(state: InjectedState, anyone: Public, request: Request, new: NewLogin) -> Response:
    """A wrong password and a missing account get the same response, after the same work."""
    _must_be_short(new.email, new.password)
    email = new.email.strip().lower()
    account, peer = f"account:{email}", f"peer:{state.peer(request)}"
    may_try = partial(state.throttle.must_be_open, account, peer)
    may_try()
    stored = await state.tertulia.db.read(lambda tx: users.find_credentials(tx, email))
    is_right = await state.passwords.match(new.password, stored.password_hash if stored else None, may_try)
    if stored is None or not is_right or stored.user.suspended:
        state.throttle.record_failure(account, peer)
        raise NotSignedIn("E-mail and password do not match an account here.")
    state.throttle.record_success(
        account
    )  # not the peer: with an account of their own, people could guess others' passwords without limit
    return await _start_session(state, request, stored.user, 200)


@router.post("/api/logout", status_code=204)
async def log_out(state: InjectedState, client: CurrentSession) -> Response:
    await state.tertulia.db.write(lambda tx: sessions.remove(tx, client.actor, client.session.id))
    response = no_content()
    response.delete_cookie(
        state.cookie, path="/", secure=state.tertulia.settings.is_secure, httponly=True, samesite="lax"
    )
    return response


@router.get("/api/me", response_model=Me)
async def get_me(state: InjectedState, client: CurrentSession) -> Response:
    return json_response(
        await state.tertulia.db.read(lambda tx: _me(tx, client.actor, client.user, client.session))
    )


@router.put("/api/me/password", status_code=204)
async def change_password(state: InjectedState, client: CurrentSession, new: NewPassword) -> Response:
    """Ends every other session of the account."""
    check_password(new.new)
    _must_be_short(new.current)
    account = f"account:{client.user.email}"
    may_try = partial(state.throttle.must_be_open, account)
    current = await state.tertulia.db.read(lambda tx: users.password_hash(tx, client.user.id))
    if not await state.passwords.match(new.current, current, may_try):
        state.throttle.record_failure(account)
        raise Forbidden("The current password is not right.")
    hashed = await state.passwords.hash(new.new)
    await state.tertulia.db.write(
        lambda tx: users.set_password(tx, client.user.id, hashed, keep_session=client.session.id)
    )
    return no_content()


def _must_be_short(*credentials: str) -> None:
    """Refuses long credentials before they are hashed, which would cost the server much time."""
    if any(len(credential) > PASSWORD_LIMIT for credential in credentials):
        raise TooLarge("The e-mail address or the password is too long.")


def _must_have_token(state: ServerState, request: Request, token: str) -> None:
    key = f"setup:{state.peer(request)}"
    state.throttle.must_be_open(key)
    if not hmac.compare_digest(token.encode(), state.setup_token.encode()):
        state.throttle.record_failure(key)
        raise SetupTokenNeeded("Enter the set-up token that the server printed when it started.")


async def _start_session(state: ServerState, request: Request, user: User, status: int) -> Response:
    """Starts a session with a new token, and ends the session of the client's cookie, if any."""
    token = secrets.token_urlsafe(32)
    previous_hash = token_hash(request.cookies.get(state.cookie, ""))
    info = client_info(request.headers.get("user-agent", ""), state.peer(request))

    def begin(tx: Tx) -> Me:
        if previous := sessions.find_signed_in(tx, previous_hash):
            sessions.remove(tx, previous.actor, previous.session.id)
        session = sessions.add(tx, user.id, token_hash(token), info)
        return _me(tx, Actor(user.id, user.role, session.id), user, session)

    response = json_response(await state.tertulia.db.write(begin), status)
    is_secure = state.tertulia.settings.is_secure
    response.set_cookie(
        state.cookie, token, max_age=SESSION_S, path="/", secure=is_secure, httponly=True, samesite="lax"
    )
    return response


def _me(tx: Tx, actor: Actor, user: User, session: Session) -> Me:
    cursor = events.last_number(tx, user_topic(user.id))
    return Me(
        user=user,
        session=session,
        projects=projects.visible_to(tx, actor),
        personas=personas.visible_to(tx, actor),
        tables=tables.visible_to(tx, actor),
        defaults=tables.defaults(tx, actor),
        default_models=config.default_models(tx),
        cursor=cursor,
    )
