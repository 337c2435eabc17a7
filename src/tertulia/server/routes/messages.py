"""Message routes: the context receipt of a reply, and removing a message."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from tertulia.core.receipts import Receipt
from tertulia.core.trees import MessageDeletionPreview
from tertulia.server.access import CurrentActor, InjectedApp
from tertulia.server.responses import json_response, no_content
from tertulia.store import blind, receipts, trees
from tertulia.store.database import Tx

router = APIRouter(tags=["turns"])


@router.get("/api/messages/{message_id}/receipt", response_model=Receipt)
async def get_receipt(tertulia: InjectedApp, actor: CurrentActor, message_id: str) -> Response:
    """The receipt of a reply. It is refused while the round is blind, because it names the model."""

    def read(tx: Tx) -> Receipt:
        blind.must_be_known(tx, actor, message_id)
        return receipts.get(tx, actor, message_id)

    return json_response(await tertulia.db.read(read))


@router.get("/api/messages/{message_id}/removal", response_model=MessageDeletionPreview)
async def preview_message_removal(tertulia: InjectedApp, actor: CurrentActor, message_id: str) -> Response:
    """Lists what would be deleted with the message."""
    return json_response(await tertulia.db.read(lambda tx: trees.message_removal(tx, actor, message_id)))


@router.delete("/api/messages/{message_id}", status_code=204)
async def remove_message(tertulia: InjectedApp, actor: CurrentActor, message_id: str) -> Response:
    """Deletes a reply with its versions, or a question with its round; branches continue without them."""
    await tertulia.db.write(lambda tx: trees.remove_message(tx, actor, message_id))
    tertulia.wake_workers()
    return no_content()
