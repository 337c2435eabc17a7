"""Messages: the receipt of what each reply's model was shown, and taking one out."""

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
    """Not before the names of a blind round are shown: it would reveal them."""

    def read(tx: Tx) -> Receipt:
        blind.must_be_known(tx, actor, message_id)
        return receipts.get(tx, actor, message_id)

    return json_response(await tertulia.db.read(read))


@router.get("/api/messages/{message_id}/removal", response_model=MessageDeletionPreview)
async def preview_message_removal(tertulia: InjectedApp, actor: CurrentActor, message_id: str) -> Response:
    """What deleting it would delete."""
    return json_response(await tertulia.db.read(lambda tx: trees.message_removal(tx, actor, message_id)))


@router.delete("/api/messages/{message_id}", status_code=204)
async def remove_message(tertulia: InjectedApp, actor: CurrentActor, message_id: str) -> Response:
    """Deletes a reply with its versions, a question with its round; branches continue without them."""
    await tertulia.db.write(lambda tx: trees.remove_message(tx, actor, message_id))
    tertulia.wake_workers()
    return no_content()
