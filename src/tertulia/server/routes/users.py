"""Users: the accounts of this server, for its administrators."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter
from starlette.responses import Response

from tertulia.core.users import ServerRole, User, check_password, clean_email, clean_name
from tertulia.server.access import Admin, TheDoor, TheHouse
from tertulia.server.answers import answer
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
async def list_users(house: TheHouse, admin: Admin) -> Response:
    return answer(UserList(await house.db.read(lambda tx: users.visible_to(tx, admin))))


@router.post("/api/users", response_model=User, status_code=201)
async def add_user(door: TheDoor, admin: Admin, new: NewUser) -> Response:
    name, email = clean_name(new.name), clean_email(new.email)
    check_password(new.password)
    hashed = await door.passwords.hash(new.password)
    return answer(await door.house.db.write(lambda tx: users.add(tx, name, email, hashed, new.role)), 201)


@router.put("/api/users/{user_id}", response_model=User)
async def change_user(house: TheHouse, admin: Admin, user_id: str, change: UserChange) -> Response:
    name = None if change.name is None else clean_name(change.name)
    return answer(
        await house.db.write(
            lambda tx: users.save(tx, admin, user_id, name=name, role=change.role, suspended=change.suspended)
        )
    )
