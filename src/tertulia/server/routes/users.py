"""User routes: the accounts of this server, for administrators."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter
from starlette.responses import Response

from tertulia.core.users import ServerRole, User, check_password, clean_email, clean_name
from tertulia.server.access import Admin, InjectedApp, InjectedState
from tertulia.server.responses import json_response
from tertulia.store import users

router = APIRouter(tags=["account"])


@dataclass(frozen=True, slots=True)
class UserList:
    items: tuple[User, ...]


@dataclass(frozen=True, slots=True)
class NewUser:
    name: str
    email: str
    password: str
    role: ServerRole = ServerRole.MEMBER


@dataclass(frozen=True, slots=True)
class UserChange:
    name: str | None = None
    role: ServerRole | None = None
    suspended: bool | None = None


@router.get("/api/users", response_model=UserList)
async def list_users(tertulia: InjectedApp, admin: Admin) -> Response:
    return json_response(UserList(await tertulia.db.read(lambda tx: users.visible_to(tx, admin))))


@router.post("/api/users", response_model=User, status_code=201)
async def add_user(state: InjectedState, admin: Admin, new: NewUser) -> Response:
    name, email = clean_name(new.name), clean_email(new.email)
    check_password(new.password)
    hashed = await state.passwords.hash(new.password)
    return json_response(
        await state.tertulia.db.write(lambda tx: users.add(tx, name, email, hashed, new.role)), 201
    )


@router.put("/api/users/{user_id}", response_model=User)
async def change_user(tertulia: InjectedApp, admin: Admin, user_id: str, change: UserChange) -> Response:
    name = None if change.name is None else clean_name(change.name)
    return json_response(
        await tertulia.db.write(
            lambda tx: users.save(tx, admin, user_id, name=name, role=change.role, suspended=change.suspended)
        )
    )
