"""Streaming one turn to one reader, from any point of it, to its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from starlette.responses import Response, StreamingResponse

from tertulia.app import Tertulia
from tertulia.core.blind import anonymised_turn
from tertulia.core.events import conversation_topic
from tertulia.core.messages import Message
from tertulia.core.turns import Turn
from tertulia.core.users import Actor
from tertulia.engine.live_turn import LiveTurn
from tertulia.engine.turn_events import Delta, ReplyFinished, anonymised
from tertulia.engine.wake_up import WakeUp
from tertulia.server.encodings import Encoding, Snapshot, joined, mark, number_of
from tertulia.server.encodings.ndjson import NDJSON
from tertulia.server.encodings.sse import SSE
from tertulia.server.live_permissions import LOOK_AGAIN_S, LivePermissions
from tertulia.store import blind, messages
from tertulia.store.database import Tx

ENCODINGS = {encoding.media_type: encoding for encoding in (SSE, NDJSON)}
FRAME_S = 0.033


def encoding_for(accept: str, otherwise: str | None = None) -> Encoding | None:
    wanted = (part.partition(";")[0].strip() for part in accept.split(","))
    found = next((ENCODINGS[kind] for kind in wanted if kind in ENCODINGS), None)
    return found or (ENCODINGS[otherwise] if otherwise else None)


def stream_turn(
    tertulia: Tertulia, actor: Actor, turn: Turn, encoding: Encoding, after: str = ""
) -> Response:
    """Whoever hands in the turn has read it as this actor: a refusal was an ordinary answer before this."""
    return StreamingResponse(
        _frames(tertulia, actor, turn, after, encoding),
        media_type=encoding.media_type,
        headers={"X-Accel-Buffering": "no"},
    )


async def _frames(
    tertulia: Tertulia, actor: Actor, turn: Turn, resumed: str, encoding: Encoding
) -> AsyncIterator[bytes]:
    live = tertulia.live.find(turn.id) or tertulia.relay.mirror(turn)
    if live is None:
        yield encoding.snapshot(
            mark(turn.id, 0), Snapshot(anonymised_turn(turn), await _stored(tertulia, turn), ())
        )
        return
    after = number_of(resumed, live.name)
    if after is None or after > live.number or not (resumed or live.is_here):
        # A mirror may have come late: what was said before it is in the store.
        stored = () if live.is_here else await _stored(tertulia, turn)
        after = live.number
        yield encoding.snapshot(mark(live.name, after), _of_live(live, stored, turn.is_blind))
    async for frame in _follow(tertulia, actor, live, after, encoding, turn.is_blind):
        yield frame


async def _follow(
    tertulia: Tertulia, actor: Actor, live: LiveTurn, after: int, encoding: Encoding, is_blind: bool
) -> AsyncIterator[bytes]:
    bell = WakeUp()
    rights = LivePermissions(tertulia, actor, bell.wake)
    live.watchers.add(bell.wake)
    ending = asyncio.create_task(live.over.wait())
    try:
        while True:
            if rights.are_in_doubt and (reason := await _lost(rights, live)):
                yield encoding.gone(mark(live.name, after), reason)
                return
            told = map(anonymised, live.after(after)) if is_blind else live.after(after)
            events = joined(told, after + 1)
            if events:
                after = events[-1][0]
                yield b"".join(encoding.event(mark(live.name, number), event) for number, event in events)
            if live.is_over and after == live.number:
                return
            if any(isinstance(event, Delta) for _, event in events):
                # The first word went out at once; the next ones may gather, but nothing waits for the last.
                await asyncio.wait((ending,), timeout=FRAME_S)
            elif not events and not await _rung(bell):
                yield encoding.heartbeat
    finally:
        ending.cancel()
        live.watchers.discard(bell.wake)
        rights.close()


async def _lost(rights: LivePermissions, live: LiveTurn) -> str | None:
    lost = await rights.lost([conversation_topic(live.turn.conversation_id)])
    return "signed_out" if lost.is_signed_out else "not_found" if lost.places else None


async def _rung(bell: WakeUp) -> bool:
    try:
        async with asyncio.timeout(LOOK_AGAIN_S):
            await bell.wait()
    except TimeoutError:
        return False
    return True


def _of_live(live: LiveTurn, stored: Sequence[Message], is_blind: bool) -> Snapshot:
    log = map(anonymised, live.log) if is_blind else live.log
    done = {message.id: message for message in stored}
    done |= {event.message.id: event.message for event in log if isinstance(event, ReplyFinished)}
    drafts = tuple(draft for draft in live.drafts() if draft.id not in done)
    return Snapshot(anonymised_turn(live.turn) if is_blind else live.turn, tuple(done.values()), drafts)


async def _stored(tertulia: Tertulia, turn: Turn) -> tuple[Message, ...]:
    def of_turn(tx: Tx) -> tuple[Message, ...]:
        [here] = blind.as_told(tx, [messages.round(tx, turn.conversation_id, turn.round_number)])
        return tuple(m for m in here.messages if m.turn_id == turn.id and m.voice is not None)

    return await tertulia.db.read(of_turn)
