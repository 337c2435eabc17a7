"""Turn routes: send a message, follow its replies, stop, retry, continue, summarise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request
from starlette.responses import Response

from tertulia.core.blind import anonymised_turn
from tertulia.core.turns import Turn
from tertulia.engine.estimates import Estimate, NewEstimate, estimate
from tertulia.engine.open_turn import OpenedTurn
from tertulia.engine.requests import NewSynthesis, NewTurn, RetryRequest
from tertulia.server.access import CurrentActor, InjectedApp, InjectedState
from tertulia.server.responses import json_response
from tertulia.server.turn_stream import encoding_for, stream_turn
from tertulia.store import turns

router = APIRouter(tags=["turns"])

RoundNumber = Annotated[int, Path(ge=1, le=1_000_000_000)]


@dataclass(frozen=True, slots=True)
class NewStop:
    reply_id: str | None = None
    """The reply to stop; None stops all replies of the turn."""


@dataclass(frozen=True, slots=True)
class NewSkip:
    reply_id: str | None = None
    """The reply whose wait ends; None ends the waits of all replies of the turn."""


@router.post("/api/turn", response_model=OpenedTurn, status_code=202)
async def open_turn(tertulia: InjectedApp, actor: CurrentActor, request: Request, new: NewTurn) -> Response:
    """Sends a message. Responds with 202 or, if the client accepts a stream, with the turn's events."""
    opened = await tertulia.turns.open(actor, new)
    encoding = encoding_for(request.headers.get("accept", ""))
    if encoding is None:
        return json_response(opened.as_told(), 202)
    return stream_turn(tertulia, actor, opened.turn, encoding)


@router.post("/api/estimate", response_model=Estimate)
async def estimate_turn(state: InjectedState, actor: CurrentActor, new: NewEstimate) -> Response:
    """Estimates the tokens and the cost of a message for each voice; nothing is sent or saved."""
    async with state.limiter.slot(actor.user_id):
        return json_response(await estimate(state.tertulia.dependencies, actor, new))


@router.get("/api/turns/{turn_id}", response_model=Turn)
async def get_turn(tertulia: InjectedApp, actor: CurrentActor, turn_id: str) -> Response:
    return json_response(anonymised_turn(await tertulia.db.read(lambda tx: turns.get(tx, actor, turn_id))))


@router.get("/api/turns/{turn_id}/events")
async def follow_turn(
    tertulia: InjectedApp,
    actor: CurrentActor,
    request: Request,
    turn_id: str,
    after: Annotated[str, Query(max_length=80)] = "",
    last_event_id: Annotated[str, Header(max_length=80)] = "",
) -> Response:
    """The turn's events after an event id, as SSE or NDJSON, until the turn ends."""
    encoding = encoding_for(request.headers.get("accept", ""), otherwise="text/event-stream")
    assert encoding is not None
    turn = await tertulia.db.read(lambda tx: turns.get(tx, actor, turn_id))
    return stream_turn(tertulia, actor, turn, encoding, last_event_id or after)


@router.post("/api/turns/{turn_id}/stop", response_model=Turn, status_code=202)
async def stop_turn(
    tertulia: InjectedApp, actor: CurrentActor, turn_id: str, new: NewStop | None = None
) -> Response:
    stopped = await tertulia.turns.stop(actor, turn_id, new.reply_id if new else None)
    return json_response(anonymised_turn(stopped), 202)


@router.post("/api/turns/{turn_id}/retry-now", response_model=Turn, status_code=202)
async def retry_now(
    tertulia: InjectedApp, actor: CurrentActor, turn_id: str, new: NewSkip | None = None
) -> Response:
    """Ends the wait before a retry, so that the provider is called again at once."""
    turn = await tertulia.turns.retry_now(actor, turn_id, new.reply_id if new else None)
    return json_response(anonymised_turn(turn), 202)


@router.post("/api/messages/{message_id}/retry", response_model=OpenedTurn, status_code=202)
async def retry_reply(
    tertulia: InjectedApp, actor: CurrentActor, message_id: str, new: RetryRequest
) -> Response:
    return json_response((await tertulia.turns.retry(actor, message_id, new)).as_told(), 202)


@router.post("/api/messages/{message_id}/continue", response_model=OpenedTurn, status_code=202)
async def continue_reply(
    tertulia: InjectedApp, actor: CurrentActor, message_id: str, new: RetryRequest
) -> Response:
    return json_response((await tertulia.turns.resume(actor, message_id, new)).as_told(), 202)


@router.post(
    "/api/conversations/{conversation_id}/rounds/{number}/synthesis",
    response_model=OpenedTurn,
    status_code=202,
)
async def synthesise_round(
    tertulia: InjectedApp, actor: CurrentActor, conversation_id: str, number: RoundNumber, new: NewSynthesis
) -> Response:
    """The chair writes a summary of a finished round."""
    return json_response(
        (await tertulia.turns.synthesise(actor, conversation_id, number, new)).as_told(), 202
    )
