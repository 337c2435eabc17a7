"""Sessions: a signed-in client, its device, and what it has open."""

from __future__ import annotations

from dataclasses import dataclass

IDLE_DAYS = 14
ABSOLUTE_DAYS = 90
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class ClientInfo:
    """The client's description of itself at sign-in."""

    browser: str
    system: str
    address: str


@dataclass(frozen=True, slots=True)
class Session:
    id: str
    user_id: str
    client_info: ClientInfo
    created_at: int
    last_active_at: int
    project_id: str | None = None
    conversation_id: str | None = None
    is_current: bool = False


def is_over(created_at: int, last_active_at: int, now: int) -> bool:
    return now - last_active_at > IDLE_DAYS * DAY_MS or now - created_at > ABSOLUTE_DAYS * DAY_MS
