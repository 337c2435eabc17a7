"""Commit listener: brings committed events to the live turns and to the watched topics.

The events of other nodes arrive here too. They are the truth about the mirrors of their turns.
"""

from __future__ import annotations

from collections.abc import Iterable

from tertulia.core.events import Event
from tertulia.core.messages import Message
from tertulia.core.serialization import from_json
from tertulia.core.turns import Turn
from tertulia.engine.live import LiveHub
from tertulia.engine.live_turn import LiveTurn


def publish(hub: LiveHub, events: Iterable[Event]) -> None:
    """Called after each commit."""
    for event in events:
        if event.noun == "message":
            _drop_draft(hub, event)
        elif event.noun == "turn":
            _apply_remote_turn(hub, event)
        hub.feeds.append(event)


def _drop_draft(hub: LiveHub, event: Event) -> None:
    """A reply that is stored as a message is no longer a draft, even before its turn reports it."""
    for live in hub.running_in(event.topic.partition(":")[2]):
        if live.is_here or event.value is None:
            live.replies.pop(event.id, None)
        elif not live.has_ended(event.id):
            _finish_mirrored(hub, live, from_json(Message, event.value))


def _finish_mirrored(hub: LiveHub, mirror: LiveTurn, message: Message) -> None:
    if message.turn_id == mirror.turn.id and message.voice is not None:
        _append_missing(hub, mirror, message)
        hub.finish_reply(mirror, message)


def _append_missing(hub: LiveHub, mirror: LiveTurn, message: Message) -> None:
    """If the message has overtaken its last deltas, their text is appended before the reply is finished."""
    reply = mirror.replies.get(message.id)
    if reply is None:
        return
    thinking = message.thinking.text if message.thinking else ""
    for received, complete, is_thought in (
        (reply.thinking, thinking, True),
        (reply.text, message.content, False),
    ):
        if len(received) < len(complete) and complete.startswith(received):
            hub.append_text(mirror, reply, message.id, complete[len(received) :], is_thought)


def _apply_remote_turn(hub: LiveHub, event: Event) -> None:
    """The state that another node has written for its turn is also the state of the mirror."""
    live = hub.find(event.id)
    if live is None or live.is_here or live.is_over or event.value is None:
        return
    live.turn = from_json(Turn, event.value)
    if live.turn.state.is_over:
        hub.end_turn(live, live.turn)
