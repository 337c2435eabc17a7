"""Blind rounds: what may be told of them, and how their names come to light."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import text

from tertulia.core.blind import veiled_round
from tertulia.core.errors import Conflict
from tertulia.core.events import Kind, conversation_place
from tertulia.core.messages import Message, Round
from tertulia.core.turns import Turn
from tertulia.core.users import Actor
from tertulia.store import jobs, messages, turns
from tertulia.store.lineage import LINEAGE
from tertulia.store.transactions import Tx


def as_told(tx: Tx, rounds: Sequence[Round]) -> tuple[Round, ...]:
    """Rounds as people and the index may have them."""
    hidden = {turn.id for turn in hidden_in(tx, rounds)}
    return tuple(veiled_round(round_, hidden) for round_ in rounds)


def hidden_in(tx: Tx, rounds: Sequence[Round]) -> tuple[Turn, ...]:
    """The turns of these rounds whose names nobody is told yet, the oldest first."""
    if not any(one.voice and one.voice.letter for round_ in rounds for one in round_.messages):
        return ()
    return tuple(turn for turn in turns.of_rounds(tx, rounds) if turn.is_blind)


def reveal(tx: Tx, question: Message) -> None:
    """Says who said what in a round, wherever it is read."""
    number = question.round_number
    readers = (question.conversation_id, *(heir.id for heir in messages.heirs(tx, question)))
    for turn in turns.reveal(tx, readers, number):
        for reader in readers:
            tx.emit(conversation_place(reader), Kind.CHANGED, "turn", turn.id, turn)
    for reader in readers:
        for message in messages.of_round(tx, reader, number):
            if message.voice is not None:
                messages.tell(tx, message)
        jobs.add_once(tx, "index_round", f"{reader}:{number}")


def must_be_known(tx: Tx, actor: Actor, message_id: str) -> None:
    """For what shows a message's model, and with names what was said before it."""
    message = messages.get(tx, actor, message_id)
    row = tx.maybe(_FIRST_HIDDEN, id=message.conversation_id, first_round=0, last_round=message.round_number)
    if row is not None:
        raise Conflict(
            f"In round {row.round_number} the names are hidden, and this would reveal them. Vote there first."
        )


_FIRST_HIDDEN = text(f"""
    {LINEAGE}
    SELECT t.round_number FROM lineage AS l
    JOIN turns AS t ON t.conversation_id = l.id AND t.round_number <= l.last_round AND t.is_blind
    ORDER BY t.round_number LIMIT 1
""")
