"""Search routes: search the files and messages of one project or of all; rebuild the index."""

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
    """The `next` of the previous page, with the other fields unchanged; None for the first page."""


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    hits: tuple[Hit, ...]
    took_ms: int
    without_meaning: str | None
    """Why the search did not compare meanings; null if it did, or if only words were requested."""
    next: str | None
    """The cursor of the next page; null on the last page."""


@dataclass(frozen=True, slots=True)
class Rebuilding:
    jobs: int


@router.post("/api/projects/{project_id}/search", response_model=SearchAnswer)
async def search_project(
    request: Request, state: InjectedState, actor: CurrentActor, project_id: str, search: SearchRequest
) -> Response:
    """Searches a project. The best hits come first, each with its location and why it was found."""
    return large_json_response(request, await _search(state, actor, [project_id], search))


@router.post("/api/search/global", response_model=SearchAnswer)
async def search_everywhere(
    request: Request, state: InjectedState, actor: CurrentActor, search: SearchRequest
) -> Response:
    """Searches all projects of the user."""
    visible = await state.tertulia.db.read(lambda tx: projects.visible_to(tx, actor))
    return large_json_response(
        request, await _search(state, actor, [project.id for project in visible], search)
    )


@router.post("/api/projects/{project_id}/rebuild", response_model=Rebuilding, status_code=202)
async def rebuild_index(tertulia: InjectedApp, actor: CurrentActor, project_id: str) -> Response:
    """Re-indexes all files and messages of the project; search works meanwhile."""

    def enqueue(tx: Tx) -> int:
        access.to_project(tx, actor, project_id).must_write()
        return enqueue_rebuild(tx, project_id)

    count = await tertulia.db.write(enqueue)
    tertulia.wake_workers()
    return json_response(Rebuilding(count), 202)


async def _search(
    state: ServerState, actor: Actor, project_ids: Sequence[str], search: SearchRequest
) -> SearchAnswer:
    _check(search)
    start = _start_rank(search.cursor)
    dependencies = state.tertulia.dependencies
    began = dependencies.monotonic()
    async with state.limiter.slot(actor.user_id):
        result = await find(
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
        result.hits, took_ms, result.without_meaning, None if result.next is None else str(result.next)
    )


def _start_rank(cursor: str | None) -> int:
    """The rank of the first hit on the page. A forged cursor only selects another page of the same hits."""
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 6):
        raise Invalid("This page does not exist. Start with the first page.")
    return int(cursor)


def _check(search: SearchRequest) -> None:
    if len(search.query) > QUERY_LIMIT:
        raise Invalid(f"A search has at most {QUERY_LIMIT:,} characters.")
    if not 1 <= search.limit <= HITS_LIMIT:
        raise Invalid(f"limit must be 1 to {HITS_LIMIT}.")
    filter_values = (
        search.filters.file_types,
        search.filters.paths,
        search.filters.tags,
        search.filters.conversations,
    )
    if any(
        len(values) > FILTER_LIMIT or any(len(text) > 1024 for text in values) for values in filter_values
    ):
        raise Invalid(f"A filter has at most {FILTER_LIMIT} values of at most 1,024 characters.")
    times = (search.filters.since, search.filters.until)
    if any(time is not None and not 0 <= time < 1 << 53 for time in times):
        raise Invalid("since and until are times in milliseconds.")
