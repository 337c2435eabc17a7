"""Blind rounds: hide the names of models until people have voted, then reveal them."""

from __future__ import annotations

from collections.abc import Sequence

from tertulia.core.blind import anonymised_round
from tertulia.core.errors import Conflict
from tertulia.core.events import EventKind, conversation_topic
from tertulia.core.jobs import IndexRounds
from tertulia.core.messages import Message, Round
from tertulia.core.turns import Turn
from tertulia.core.users import Actor
from tertulia.store import jobs, messages, turns
from tertulia.store.lineage import LINEAGE
from tertulia.store.sql import sql
from tertulia.store.transactions import Tx


def as_told(tx: Tx, rounds: Sequence[Round]) -> tuple[Round, ...]:
    """The rounds with hidden names replaced by letters, as people and the search index may read them."""
    hidden_ids = {turn.id for turn in hidden_in(tx, rounds)}
    return tuple(anonymised_round(round_, hidden_ids) for round_ in rounds)


def hidden_in(tx: Tx, rounds: Sequence[Round]) -> tuple[Turn, ...]:
    """The turns of these rounds whose names are still hidden, oldest first."""
    if not any(message.voice and message.voice.letter for round_ in rounds for message in round_.messages):
        return ()
    return tuple(turn for turn in turns.of_rounds(tx, rounds) if turn.is_blind)


def reveal(tx: Tx, question: Message) -> None:
    """Reveals the names of a round in its conversation and in every branch that inherits the round."""
    round_number = question.round_number
    conversation_ids = (
        question.conversation_id,
        *(branch.id for branch in messages.inheriting_branches(tx, question)),
    )
    for turn in turns.reveal(tx, conversation_ids, round_number):
        for conversation_id in conversation_ids:
            tx.emit(conversation_topic(conversation_id), EventKind.CHANGED, "turn", turn.id, turn)
    for conversation_id in conversation_ids:
        for message in messages.of_round(tx, conversation_id, round_number):
            if message.voice is not None:
                messages.emit_changed(tx, message)
        jobs.enqueue_once(tx, IndexRounds.single(conversation_id, round_number))


def must_be_known(tx: Tx, actor: Actor, message_id: str) -> None:
    """Raises Conflict while names are hidden in the message's round or an earlier one.

    Views that show the model of a message also show the names in the rounds before it.
    """
    message = messages.get(tx, actor, message_id)
    turn = tx.maybe(_FIRST_HIDDEN, id=message.conversation_id, first_round=0, last_round=message.round_number)
    if turn is not None:
        raise Conflict(
            f"In round {turn.round_number} the names are hidden, and this would reveal them. "
            "Vote there first."
        )


_FIRST_HIDDEN = sql(f"""
    {LINEAGE}
    SELECT t.round_number FROM lineage AS l
    JOIN turns AS t ON t.conversation_id = l.id AND t.round_number <= l.last_round AND t.is_blind
    ORDER BY t.round_number LIMIT 1
""")
