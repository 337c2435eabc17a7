"""Replays: the questions of a conversation asked once more of another table, in a branch."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter
from starlette.responses import Response

from tertulia.core.replays import Replay
from tertulia.engine.replays import NewReplay, ReplayEstimate, ReplayProgress
from tertulia.server.access import CurrentActor, InjectedApp, InjectedState
from tertulia.server.responses import json_response
from tertulia.store import replays

router = APIRouter(tags=["branches"])


@dataclass(frozen=True, slots=True)
class ReplayView:
    replay: Replay | None
    """None for a conversation that a person leads."""


@router.post("/api/conversations/{conversation_id}/replay/estimate", response_model=ReplayEstimate)
async def estimate_replay(
    state: InjectedState, actor: CurrentActor, conversation_id: str, new: NewReplay
) -> Response:
    """What it would cost, round by round; nothing is asked or kept."""
    async with state.limiter.slot(actor.user_id):
        return json_response(await state.tertulia.replays.estimate(actor, conversation_id, new))


@router.post("/api/conversations/{conversation_id}/replay", response_model=ReplayProgress, status_code=202)
async def begin_replay(
    tertulia: InjectedApp, actor: CurrentActor, conversation_id: str, new: NewReplay
) -> Response:
    """A branch in which the questions are asked again, one after the other."""
    return json_response(await tertulia.replays.begin(actor, conversation_id, new), 202)


@router.get("/api/conversations/{conversation_id}/replay", response_model=ReplayView)
async def get_replay(tertulia: InjectedApp, actor: CurrentActor, conversation_id: str) -> Response:
    """How far the replay is that fills this conversation."""
    found = await tertulia.db.read(lambda tx: replays.find(tx, actor, conversation_id))
    return json_response(ReplayView(found))


@router.post("/api/conversations/{conversation_id}/replay/stop", response_model=ReplayView)
async def stop_replay(tertulia: InjectedApp, actor: CurrentActor, conversation_id: str) -> Response:
    return json_response(ReplayView(await tertulia.replays.stop(actor, conversation_id)))
