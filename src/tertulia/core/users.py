"""User accounts, and the actor: the account and session that make the current request."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tertulia.core.errors import Forbidden, Invalid, WeakPassword

NAME_LIMIT = 100
EMAIL_LIMIT = 254
PASSWORD_MINIMUM = 10
PASSWORD_LIMIT = 1024


class ServerRole(StrEnum):
    """The role of an account on this server; projects have roles of their own."""

    ADMIN = "admin"
    MEMBER = "member"


@dataclass(frozen=True, slots=True)
class User:
    id: str
    name: str
    email: str
    role: ServerRole
    suspended: bool
    created_at: int


@dataclass(frozen=True, slots=True)
class Actor:
    """The account that makes a request, and its session."""

    user_id: str
    role: ServerRole
    session_id: str | None = None

    @property
    def is_admin(self) -> bool:
        return self.role is ServerRole.ADMIN

    def must_be_admin(self) -> None:
        if not self.is_admin:
            raise Forbidden("Only an administrator can do this.")


def clean_name(text: str) -> str:
    name = " ".join(text.split())
    if not name or len(name) > NAME_LIMIT:
        raise Invalid(f"A name has 1 to {NAME_LIMIT} characters.")
    return name


def clean_email(text: str) -> str:
    email = text.strip().lower()
    local, at, domain = email.rpartition("@")
    if not (at and local and domain) or len(email) > EMAIL_LIMIT or any(c.isspace() for c in email):
        raise Invalid("That is not an e-mail address. It looks like name@example.org.")
    return email


def check_password(password: str) -> None:
    if len(password) < PASSWORD_MINIMUM:
        raise WeakPassword(f"Choose a password of at least {PASSWORD_MINIMUM} characters.")
    if len(password) > PASSWORD_LIMIT:
        raise WeakPassword(f"Choose a password of at most {PASSWORD_LIMIT} characters.")
