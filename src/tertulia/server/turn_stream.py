"""Turn stream: sends the events of one turn to one client, as SSE or NDJSON, from any event to the last."""

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
from tertulia.server.encodings import Encoding, Snapshot, event_id, joined, number_of
from tertulia.server.encodings.ndjson import NDJSON
from tertulia.server.encodings.sse import SSE
from tertulia.server.live_permissions import CHECK_INTERVAL_S, LivePermissions
from tertulia.store import blind, messages
from tertulia.store.database import Tx

ENCODINGS = {encoding.media_type: encoding for encoding in (SSE, NDJSON)}
FRAME_S = 0.033


def encoding_for(accept: str, otherwise: str | None = None) -> Encoding | None:
    """The first encoding that the Accept header names; else the one for `otherwise`, or None."""
    accepted = (part.partition(";")[0].strip() for part in accept.split(","))
    encoding = next((ENCODINGS[media_type] for media_type in accepted if media_type in ENCODINGS), None)
    return encoding or (ENCODINGS[otherwise] if otherwise else None)


def stream_turn(
    tertulia: Tertulia, actor: Actor, turn: Turn, encoding: Encoding, after: str = ""
) -> Response:
    """Streams a turn that the caller has read as this actor, so that a refusal is an ordinary response."""
    return StreamingResponse(
        _frames(tertulia, actor, turn, after, encoding),
        media_type=encoding.media_type,
        headers={"X-Accel-Buffering": "no"},
    )


async def _frames(
    tertulia: Tertulia, actor: Actor, turn: Turn, resume_id: str, encoding: Encoding
) -> AsyncIterator[bytes]:
    live = tertulia.live.find(turn.id) or tertulia.relay.mirror(turn)
    if live is None:
        yield encoding.snapshot(
            event_id(turn.id, 0), Snapshot(anonymised_turn(turn), await _stored(tertulia, turn), ())
        )
        return
    after = number_of(resume_id, live.name)
    if after is None or after > live.number or not (resume_id or live.is_here):
        # A mirror may have begun late: the replies that ended before are in the store.
        stored = () if live.is_here else await _stored(tertulia, turn)
        after = live.number
        yield encoding.snapshot(event_id(live.name, after), _snapshot(live, stored, turn.is_blind))
    async for frame in _follow(tertulia, actor, live, after, encoding, turn.is_blind):
        yield frame


async def _follow(
    tertulia: Tertulia, actor: Actor, live: LiveTurn, after: int, encoding: Encoding, is_blind: bool
) -> AsyncIterator[bytes]:
    something_new = WakeUp()
    permissions = LivePermissions(tertulia, actor, something_new.wake)
    live.watchers.add(something_new.wake)
    ending = asyncio.create_task(live.over.wait())
    try:
        while True:
            if permissions.are_due and (reason := await _revocation(permissions, live)):
                yield encoding.gone(event_id(live.name, after), reason)
                return
            log = live.after(after)
            events = joined(map(anonymised, log) if is_blind else log, after + 1)
            if events:
                after = events[-1][0]
                yield b"".join(encoding.event(event_id(live.name, number), event) for number, event in events)
            if live.is_over and after == live.number:
                return
            if any(isinstance(event, Delta) for _, event in events):
                # The first delta was sent at once. The next ones can be joined, but the end is not delayed.
                await asyncio.wait((ending,), timeout=FRAME_S)
            elif not events and not await _is_woken(something_new):
                yield encoding.heartbeat
    finally:
        ending.cancel()
        live.watchers.discard(something_new.wake)
        permissions.close()


async def _revocation(permissions: LivePermissions, live: LiveTurn) -> str | None:
    """The reason why the client may no longer receive the turn; None if it may."""
    revoked = await permissions.check([conversation_topic(live.turn.conversation_id)])
    return "signed_out" if revoked.is_signed_out else "not_found" if revoked.topics else None


async def _is_woken(something_new: WakeUp) -> bool:
    """False if nothing happened within the check interval."""
    try:
        async with asyncio.timeout(CHECK_INTERVAL_S):
            await something_new.wait()
    except TimeoutError:
        return False
    return True


def _snapshot(live: LiveTurn, stored: Sequence[Message], is_blind: bool) -> Snapshot:
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
