"""Branch routes: create at a round or reply, show the tree, compare, edit a question, bring back."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import Response

from tertulia.core.conversations import Conversation
from tertulia.core.trees import Comparison, DeletionPreview, Tree
from tertulia.engine.open_turn import OpenedTurn
from tertulia.engine.requests import BringBackRequest, NewEdit, check_branch_id
from tertulia.server.access import CurrentActor, InjectedApp
from tertulia.server.responses import json_response, large_json_response
from tertulia.server.routes.turns import RoundNumber
from tertulia.store import branches, trees

router = APIRouter(tags=["branches"])


@dataclass(frozen=True, slots=True)
class NewBranch:
    at_round: int
    """The last round that the branch shares; 0 to share none."""
    message_id: str | None = None
    """A reply of that round, the only one with which the branch continues."""
    id: str | None = None
    """Created by the client, so that sending the request twice has no effect."""
    title: str | None = None


@router.post("/api/conversations/{conversation_id}/branches", response_model=Conversation, status_code=201)
async def branch_conversation(
    tertulia: InjectedApp, actor: CurrentActor, conversation_id: str, new: NewBranch
) -> Response:
    """Creates a conversation that continues from here; nothing is copied."""
    check_branch_id(new.id)
    branch = await tertulia.db.write(
        lambda tx: branches.add(
            tx,
            actor,
            conversation_id,
            at_round=new.at_round,
            message_id=new.message_id,
            id=new.id,
            title=new.title or "",
        )
    )
    return json_response(branch, 201)


@router.get("/api/conversations/{conversation_id}/tree", response_model=Tree)
async def get_tree(
    tertulia: InjectedApp, actor: CurrentActor, request: Request, conversation_id: str
) -> Response:
    """All branches of the conversation's tree, and the other versions of its own rounds."""
    return large_json_response(
        request, await tertulia.db.read(lambda tx: trees.get(tx, actor, conversation_id))
    )


@router.get("/api/conversations/{conversation_id}/compare/{other_id}", response_model=Comparison)
async def compare_branches(
    tertulia: InjectedApp, actor: CurrentActor, request: Request, conversation_id: str, other_id: str
) -> Response:
    """Compares two branches of one tree from the round where they differ."""
    comparison = await tertulia.db.read(lambda tx: trees.compared(tx, actor, conversation_id, other_id))
    return large_json_response(request, comparison)


@router.post(
    "/api/conversations/{conversation_id}/rounds/{number}/edit", response_model=OpenedTurn, status_code=202
)
async def edit_question(
    tertulia: InjectedApp, actor: CurrentActor, conversation_id: str, number: RoundNumber, new: NewEdit
) -> Response:
    """Asks an edited question in a new branch; the original round stays as it was."""
    return json_response((await tertulia.turns.edit(actor, conversation_id, number, new)).as_told(), 202)


@router.post("/api/conversations/{conversation_id}/bring-back", response_model=OpenedTurn, status_code=202)
async def bring_back(
    tertulia: InjectedApp, actor: CurrentActor, conversation_id: str, new: BringBackRequest
) -> Response:
    """One voice adds a summary of the branch to the conversation it came from."""
    return json_response((await tertulia.turns.bring_back(actor, conversation_id, new)).as_told(), 202)


@router.get("/api/conversations/{conversation_id}/removal", response_model=DeletionPreview)
async def preview_removal(tertulia: InjectedApp, actor: CurrentActor, conversation_id: str) -> Response:
    """Lists what would be deleted with the conversation."""
    return json_response(await tertulia.db.read(lambda tx: trees.removal(tx, actor, conversation_id)))
