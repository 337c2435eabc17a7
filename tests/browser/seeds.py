"""Long conversations, written directly into the database."""

from __future__ import annotations

from tertulia.core.conversations import Visibility
from tertulia.core.messages import Message, Role, Status, Usage, speaker_of
from tertulia.core.users import Actor, ServerRole
from tertulia.core.voices import SeatRequest, Voice, assign_seats
from tertulia.store import conversations, messages, turns
from tertulia.store.database import Tx
from tests.world import Person, World

VOICES = assign_seats(SeatRequest(f"voices:{name}", name.title()) for name in ("alpha", "beta", "gamma"))
ROUNDS_AT_ONCE = 250


async def long_conversation(world: World, person: Person, size: int) -> str:
    """Creates a conversation of this many messages, four to a round, and returns its id."""
    actor = Actor(person.id, ServerRole(person.me["user"]["role"]), person.me["session"]["id"])
    conversation = await world.tertulia.db.write(
        lambda tx: conversations.add(
            tx, actor, person.home, mode="parallel", table=VOICES, visibility=Visibility.OPEN
        )
    )
    rounds = size // (1 + len(VOICES))
    for begin in range(0, rounds, ROUNDS_AT_ONCE):
        count = min(ROUNDS_AT_ONCE, rounds - begin)
        await world.tertulia.db.write(lambda tx, count=count: _add_rounds(tx, actor, conversation.id, count))  # type: ignore[misc]
    return conversation.id


def _add_rounds(tx: Tx, actor: Actor, conversation_id: str, rounds: int) -> None:
    for _ in range(rounds):
        number = turns.next_round(tx, conversation_id)
        turn_id = tx.new_id()
        for voice in (None, *VOICES):
            messages.add(tx, _message(tx, actor, conversation_id, number, turn_id, voice))
    conversations.changed(tx, conversation_id)


def _message(
    tx: Tx, actor: Actor, conversation_id: str, number: int, turn_id: str, voice: Voice | None
) -> Message:
    return Message(
        id=tx.new_id(),
        conversation_id=conversation_id,
        round_number=number,
        turn_id=turn_id,
        speaker="user" if voice is None else speaker_of(voice.model),
        role=Role.USER if voice is None else Role.ADVISOR,
        content=f"Question {number}" if voice is None else _reply(number, voice),
        status=Status.COMPLETE,
        created_by=actor.user_id,
        created_at=tx.now,
        voice=voice,
        usage=None if voice is None else Usage(900, 0, 320, 0, None, 2100, 180),
    )


def _reply(number: int, voice: Voice) -> str:
    """A reply of varying length; every tenth has a program and a formula."""
    words = f"{voice.name} has an answer to question {number}, and says it at some length. "
    text = "\n\n".join([words * (2 + number % 5)] * (1 + (number + voice.seat) % 4))
    return text if number % 10 else f"{text}\n\n```python\nprint({number})\n```\n\n$$x^2 = {number}$$"
