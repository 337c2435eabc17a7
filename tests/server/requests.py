"""An example request for every route, from which the access tests are generated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tertulia.app import new_id
from tertulia.server.access import RouteAccess
from tertulia.server.asgi import bare
from tertulia.server.route_inventory import inventory
from tests.server.cast import Things, character
from tests.world import PASSWORD, turn

ENTRIES = inventory(bare())
HTTP = tuple(entry for entry in ENTRIES if entry.method != "WEBSOCKET")


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    params: dict[str, str]
    body: Any
    content: bytes | None = None
    """The bytes of a file, sent as the body."""

    @property
    def sent(self) -> dict[str, Any]:
        """The keyword arguments for the HTTP client."""
        if self.content is None:
            return {"json": self.body}
        return {"content": self.content, "headers": {"Content-Type": "application/octet-stream"}}


@dataclass(frozen=True)
class Example:
    """A request about a user's own objects; `probed` is the id that the test replaces, if any."""

    body: Callable[[Things, str | None], Any] | None = None
    params: Callable[[Things], dict[str, str]] = lambda its: {}
    content: bytes | None = None
    only_reads: bool = False
    """A POST that only reads, because its input is long; viewers may send it."""
    is_last: bool = False
    """True if it deletes something that later requests need."""


def _fixed(body: Any) -> Callable[[Things, str | None], Any]:
    return lambda its, probed: body


def _turn(its: Things, probed: str | None) -> dict[str, Any]:
    """Sent to the conversation or, if the project's id is probed, to a new conversation in the project."""
    where = (
        {"project_id": its.project_id} if probed == "project_id" else {"conversation_id": its.conversation_id}
    )
    sent = turn("Hello", "alpha", **where, **_referring(its, probed))
    return sent | {"voices": _voices(its, probed)}


def _referring(its: Things, probed: str | None) -> dict[str, Any]:
    reply = {"reply_to_id": its.reply_to_id} if probed in (None, "reply_to_id") else {}
    quotes = {"quotes": [{"message_id": its.message_id, "text": "Hm"}]} if probed == "message_id" else {}
    return reply | quotes


def _voices(its: Things, probed: str | None) -> list[dict[str, str]]:
    return [{"persona_id": its.persona_id} if probed == "persona_id" else {"model": "voices:alpha"}]


def _table(its: Things, probed: str | None) -> dict[str, Any]:
    return {"name": "Ours", "mode": "quick", "voices": _voices(its, probed), "visibility": "open"}


def _estimate(its: Things, probed: str | None) -> dict[str, Any]:
    sent = _turn(its, probed)
    return {key: value for key, value in sent.items() if key not in ("id", "mode")}


def _edit(its: Things, probed: str | None) -> dict[str, Any]:
    """Edits round 1; no earlier reply exists that the question could refer to."""
    referring = _referring(its, probed or "nothing") | _named(its, probed)
    return {"id": new_id(), "text": "Hello?", "voices": _voices(its, probed), "mode": "quick"} | referring


def _try(its: Things, probed: str | None) -> dict[str, Any]:
    return {"id": new_id(), "conversation_id": its.conversation_id} | _named(its, probed)


def _synthesis(its: Things, probed: str | None) -> dict[str, Any]:
    return {"id": new_id(), "chair": _voices(its, probed)[0]}


def _named(its: Things, probed: str | None) -> dict[str, Any]:
    return {"branch_id": its.branch_id} if probed == "branch_id" else {}


def _branch(its: Things, probed: str | None) -> dict[str, Any]:
    return {"id": new_id(), "at_round": 1, "message_id": its.message_id}


def _return(its: Things, probed: str | None) -> dict[str, Any]:
    return {"id": new_id(), "voice": _voices(its, probed)[0]}


def _replay(its: Things, probed: str | None) -> dict[str, Any]:
    return {"id": new_id(), "voices": _voices(its, probed), "chair": None}


FILES = "/api/projects/{project_id}/files"

EXAMPLES: dict[tuple[str, str], Example] = {
    ("GET", "/api/setup"): Example(),
    ("POST", "/api/setup"): Example(
        _fixed({"name": "Eve", "email": "eve@example.org", "password": PASSWORD})
    ),
    ("POST", "/api/login"): Example(_fixed({"email": "bruno@example.org", "password": PASSWORD})),
    ("POST", "/api/logout"): Example(is_last=True),
    ("GET", "/api/me"): Example(),
    ("GET", "/api/me/defaults"): Example(),
    ("PUT", "/api/me/defaults"): Example(
        lambda its, probed: {"table_id": its.table_id, "voices": _voices(its, probed)}
    ),
    ("PUT", "/api/me/password"): Example(_fixed({"current": PASSWORD, "new": PASSWORD})),
    ("POST", "/api/projects/{project_id}/attachments"): Example(
        params=lambda its: {"name": "new.md"}, content=b"# New\n"
    ),
    ("GET", "/api/attachments/{attachment_id}"): Example(),
    ("HEAD", "/api/attachments/{attachment_id}"): Example(),
    ("GET", "/api/attachments/{attachment_id}/text"): Example(),
    ("DELETE", "/api/attachments/{attachment_id}"): Example(is_last=True),
    ("GET", "/api/config"): Example(),
    ("POST", "/api/config"): Example(_fixed({"key": "instance_name", "value": "Ours"})),
    ("POST", "/api/config/bulk"): Example(_fixed({"instance_name": "Ours"})),
    ("GET", "/api/conversations"): Example(params=lambda its: {"project_id": its.project_id}),
    ("GET", "/api/conversations/{conversation_id}"): Example(),
    ("GET", "/api/conversations/{conversation_id}/messages"): Example(),
    ("PUT", "/api/conversations/{conversation_id}/title"): Example(_fixed({"title": "Another"})),
    ("PUT", "/api/conversations/{conversation_id}/pinned"): Example(_fixed({"pinned": True})),
    ("PUT", "/api/conversations/{conversation_id}/archived"): Example(_fixed({"archived": True})),
    ("DELETE", "/api/conversations/{conversation_id}"): Example(is_last=True),
    ("POST", "/api/conversations/{conversation_id}/branches"): Example(_branch),
    ("GET", "/api/conversations/{conversation_id}/tree"): Example(),
    ("GET", "/api/conversations/{conversation_id}/compare/{other_id}"): Example(),
    ("POST", "/api/conversations/{conversation_id}/rounds/{number}/edit"): Example(_edit),
    ("POST", "/api/conversations/{conversation_id}/bring-back"): Example(_return),
    ("GET", "/api/conversations/{conversation_id}/removal"): Example(),
    ("GET", "/api/messages/{message_id}/removal"): Example(),
    ("DELETE", "/api/messages/{message_id}"): Example(is_last=True),
    ("POST", "/api/conversations/{conversation_id}/rounds/{number}/synthesis"): Example(_synthesis),
    ("POST", "/api/conversations/{conversation_id}/replay/estimate"): Example(_replay, only_reads=True),
    ("POST", "/api/conversations/{conversation_id}/replay"): Example(_replay),
    ("GET", "/api/conversations/{conversation_id}/replay"): Example(),
    ("POST", "/api/conversations/{conversation_id}/replay/stop"): Example(),
    ("GET", f"{FILES}"): Example(),
    ("POST", f"{FILES}"): Example(params=lambda its: {"path": "new.md"}, content=b"# New\n"),
    ("DELETE", "/api/projects/{project_id}/uploads/{upload_key}"): Example(),
    ("GET", f"{FILES}/{{file_id}}"): Example(),
    ("HEAD", f"{FILES}/{{file_id}}"): Example(),
    ("PUT", f"{FILES}/{{file_id}}"): Example(content=b"# Changed\n"),
    ("DELETE", f"{FILES}/{{file_id}}"): Example(is_last=True),
    ("GET", f"{FILES}/{{file_id}}/info"): Example(),
    ("GET", f"{FILES}/{{file_id}}/text"): Example(),
    ("PUT", f"{FILES}/{{file_id}}/path"): Example(_fixed({"path": "another.md"})),
    ("PATCH", f"{FILES}/{{file_id}}/metadata"): Example(_fixed({"tags": ["plan"], "summary": "A plan."})),
    ("GET", f"{FILES}/{{file_id}}/versions"): Example(),
    ("GET", f"{FILES}/{{file_id}}/versions/{{number}}"): Example(),
    ("HEAD", f"{FILES}/{{file_id}}/versions/{{number}}"): Example(),
    ("GET", f"{FILES}/{{file_id}}/versions/{{number}}/diff"): Example(),
    ("POST", f"{FILES}/{{file_id}}/versions/{{number}}/restore"): Example(),
    ("GET", "/api/health"): Example(),
    ("GET", "/api/ready"): Example(),
    ("GET", "/api/messages/{message_id}/receipt"): Example(),
    ("POST", "/api/messages/{message_id}/retry"): Example(_try),
    ("POST", "/api/messages/{message_id}/continue"): Example(_try),
    ("POST", "/api/messages/{message_id}/vote"): Example(_fixed({"verdict": "best"})),
    ("GET", "/api/models"): Example(),
    ("GET", "/api/models/metadata"): Example(),
    ("PUT", "/api/models/metadata"): Example(
        _fixed({"input_micros": 1_000_000}), params=lambda its: {"model": "voices:alpha"}
    ),
    ("DELETE", "/api/models/metadata"): Example(params=lambda its: {"model": "voices:alpha"}),
    ("GET", "/api/personas"): Example(params=lambda its: {"project_id": its.project_id}),
    ("POST", "/api/personas"): Example(
        lambda its, probed: {
            "scope": "project",
            "project_id": its.project_id,
            "character": character("The Baker"),
        }
    ),
    ("PUT", "/api/personas/{persona_id}"): Example(_fixed({"character": character("The Baker")})),
    ("DELETE", "/api/personas/{persona_id}"): Example(is_last=True),
    ("POST", "/api/personas/{persona_id}/duplicate"): Example(
        lambda its, probed: {"scope": "project", "project_id": its.project_id}
    ),
    ("GET", "/api/personas/{persona_id}/versions/{number}"): Example(),
    ("GET", "/api/projects"): Example(),
    ("POST", "/api/projects"): Example(_fixed({"name": "Another"})),
    ("GET", "/api/projects/{project_id}"): Example(),
    ("PUT", "/api/projects/{project_id}"): Example(
        lambda its, probed: {"name": "Another", "settings": {"default_table_id": its.table_id}}
    ),
    ("DELETE", "/api/projects/{project_id}"): Example(is_last=True),
    ("GET", "/api/projects/{project_id}/members"): Example(),
    ("GET", "/api/projects/{project_id}/people"): Example(),
    ("PUT", "/api/projects/{project_id}/members"): Example(
        lambda its, probed: {"user_id": its.user_id, "role": "owner"}
    ),
    ("DELETE", "/api/projects/{project_id}/members/{user_id}"): Example(is_last=True),
    ("POST", "/api/projects/{project_id}/search"): Example(
        _fixed({"query": "kanarienvogel"}), only_reads=True
    ),
    ("POST", "/api/projects/{project_id}/rebuild"): Example(),
    ("GET", "/api/projects/{project_id}/leaderboard"): Example(),
    ("POST", "/api/search/global"): Example(_fixed({"query": "kanarienvogel"}), only_reads=True),
    ("GET", "/api/sessions"): Example(),
    ("DELETE", "/api/sessions/{session_id}"): Example(is_last=True),
    ("GET", "/api/tables"): Example(params=lambda its: {"project_id": its.project_id}),
    ("POST", "/api/tables"): Example(
        lambda its, probed: _table(its, probed) | {"scope": "project", "project_id": its.project_id}
    ),
    ("PUT", "/api/tables/{table_id}"): Example(_table),
    ("DELETE", "/api/tables/{table_id}"): Example(is_last=True),
    ("POST", "/api/turn"): Example(_turn),
    ("POST", "/api/estimate"): Example(_estimate, only_reads=True),
    ("GET", "/api/turns/{turn_id}"): Example(),
    ("GET", "/api/turns/{turn_id}/events"): Example(),
    ("POST", "/api/turns/{turn_id}/retry-now"): Example(lambda its, probed: {"reply_id": its.reply_id}),
    ("POST", "/api/turns/{turn_id}/stop"): Example(lambda its, probed: {"reply_id": its.reply_id}),
    ("GET", "/api/users"): Example(),
    ("POST", "/api/users"): Example(
        _fixed({"name": "Eve", "email": "eve@example.org", "password": PASSWORD, "role": "member"})
    ),
    ("PUT", "/api/users/{user_id}"): Example(_fixed({"name": "Another"})),
}


def request_to(entry: RouteAccess, its: Things, probed: str | None = None) -> Request:
    example = EXAMPLES[entry.method, entry.path]
    path = entry.path.replace("{number}", "1").replace("{upload_key}", "upload-1")
    for name in entry.ids:
        path = path.replace(f"{{{name}}}", getattr(its, name))
    body = example.body(its, probed) if example.body else None
    return Request(entry.method, path, example.params(its), body, example.content)
