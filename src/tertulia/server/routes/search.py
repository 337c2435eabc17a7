"""Search: in one project or in all one may see, over files and everything said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tertulia.core.chunks import Filters, Hit
from tertulia.core.errors import Invalid
from tertulia.core.users import Actor
from tertulia.engine.jobs.rebuild import enqueue_rebuild
from tertulia.library.search import SearchMode, find
from tertulia.server.access import CurrentActor, InjectedApp, InjectedState
from tertulia.server.responses import json_response, large_json_response
from tertulia.server.state import ServerState
from tertulia.store import access, projects
from tertulia.store.database import Tx

router = APIRouter(tags=["search"])

QUERY_LIMIT = 10_000
HITS_LIMIT = 50
FILTER_LIMIT = 100


@dataclass(frozen=True, slots=True)
class SearchRequest:
    query: str
    filters: Filters = field(default_factory=Filters)
    limit: int = 10
    mode: SearchMode = SearchMode.HYBRID
    cursor: str | None = None
    """Where the page begins: the last answer's `next`, with everything else as it was asked for."""


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    hits: tuple[Hit, ...]
    took_ms: int
    without_meaning: str | None
    """Why only words were looked for; null when meaning was, or was not wanted."""
    next: str | None
    """Where the next page begins; null on the last. No hits at all: nothing has the words or is near."""


@dataclass(frozen=True, slots=True)
class Rebuilding:
    jobs: int


@router.post("/api/projects/{project_id}/search", response_model=SearchAnswer)
async def search_project(
    request: Request, door: InjectedState, actor: CurrentActor, project_id: str, search: SearchRequest
) -> Response:
    """Words in any order; the best hits first, each with where it is and why it was found."""
    return large_json_response(request, await _found(door, actor, [project_id], search))


@router.post("/api/search/global", response_model=SearchAnswer)
async def search_everywhere(
    request: Request, door: InjectedState, actor: CurrentActor, search: SearchRequest
) -> Response:
    """The same in all projects one is a member of."""
    visible = await door.tertulia.db.read(lambda tx: projects.visible_to(tx, actor))
    return large_json_response(
        request, await _found(door, actor, [project.id for project in visible], search)
    )


@router.post("/api/projects/{project_id}/rebuild", response_model=Rebuilding, status_code=202)
async def rebuild_index(tertulia: InjectedApp, actor: CurrentActor, project_id: str) -> Response:
    """Re-indexes all files and messages of the project; search works meanwhile."""

    def leave(tx: Tx) -> int:
        access.to_project(tx, actor, project_id).must_write()
        return enqueue_rebuild(tx, project_id)

    left = await tertulia.db.write(leave)
    tertulia.wake_workers()
    return json_response(Rebuilding(left), 202)


async def _found(
    door: ServerState, actor: Actor, project_ids: Sequence[str], search: SearchRequest
) -> SearchAnswer:
    _must_be_sane(search)
    start = _rank(search.cursor)
    dependencies = door.tertulia.dependencies
    began = dependencies.monotonic()
    async with door.turnstile.passed(actor.user_id):
        found = await find(
            dependencies.library,
            actor,
            project_ids,
            search.query,
            search.filters,
            search.limit,
            search.mode,
            start=start,
        )
    took_ms = int((dependencies.monotonic() - began) * 1000)
    return SearchAnswer(
        found.hits, took_ms, found.without_meaning, None if found.next is None else str(found.next)
    )


def _rank(cursor: str | None) -> int:
    """Which of the ranked hits is next. A forged one moves the reader within the same hits."""
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 6):
        raise Invalid("This page does not exist. Begin again with the first one.")
    return int(cursor)


def _must_be_sane(search: SearchRequest) -> None:
    if len(search.query) > QUERY_LIMIT:
        raise Invalid(f"A search has at most {QUERY_LIMIT:,} characters.")
    if not 1 <= search.limit <= HITS_LIMIT:
        raise Invalid(f"limit must be 1 to {HITS_LIMIT}.")
    given = (
        search.filters.file_types,
        search.filters.paths,
        search.filters.tags,
        search.filters.conversations,
    )
    if any(len(one) > FILTER_LIMIT or any(len(text) > 1024 for text in one) for one in given):
        raise Invalid(f"A filter has at most {FILTER_LIMIT} values of at most 1,024 characters.")
    times = (search.filters.since, search.filters.until)
    if any(time is not None and not 0 <= time < 1 << 53 for time in times):
        raise Invalid("since and until are times in milliseconds.")
