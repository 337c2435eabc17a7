"""Messages: the receipt of what each reply's model was shown."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from tertulia.core.receipts import Receipt
from tertulia.server.access import Someone, TheHouse
from tertulia.server.answers import answer
from tertulia.store import receipts

router = APIRouter(tags=["turns"])


@router.get("/api/messages/{message_id}/receipt", response_model=Receipt)
async def get_receipt(house: TheHouse, actor: Someone, message_id: str) -> Response:
    return answer(await house.db.read(lambda tx: receipts.get(tx, actor, message_id)))
