"""Live route: one WebSocket per tab, with the events and deltas of every topic that the tab follows."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.websockets import WebSocket

from tertulia.core.errors import NotSignedIn
from tertulia.server.access import signed_in
from tertulia.server.errors import respond
from tertulia.server.live_socket import LiveSocket

router = APIRouter()


@router.websocket("/api/live")
async def live(socket: WebSocket) -> None:
    try:
        client = await signed_in(socket)
    except NotSignedIn as error:
        await socket.send_denial_response(respond(error))
        return
    await socket.accept()
    await LiveSocket(socket, socket.app.state.server.tertulia, client.actor).run()
