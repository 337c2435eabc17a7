"""Votes: one per user and round, emitted in every conversation that shows the reply it was cast on.

A tie belongs to one reply of the round as well: it is shown where that reply is and deleted with it. A vote
that was taken back stays stored as such: a later vote of that user is not blind, as the names were shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tertulia.core import votes
from tertulia.core.errors import Conflict
from tertulia.core.events import EventKind, conversation_topic
from tertulia.core.messages import Message, Round
from tertulia.core.serialization import from_json
from tertulia.core.users import Actor
from tertulia.core.votes import Contender, Vote, VoteValue
from tertulia.store import access, blind, events, messages, turns
from tertulia.store.column_values import as_json
from tertulia.store.sql import sql
from tertulia.store.transactions import Row, Tx

COUNTED = 10_000
"""How many of a project's newest votes and replies its leaderboard counts."""

_COLUMNS = """
    v.id, v.conversation_id, v.round_number, v.message_id, v.user_id, v.verdict, v.is_blind, v.contenders,
    v.created_at
"""


def cast(tx: Tx, actor: Actor, message_id: str, verdict: VoteValue) -> Vote:
    """Stores the actor's vote in a round, and replaces an earlier one."""
    reply = messages.get(tx, actor, message_id)
    access.to_conversation(tx, actor, reply.conversation_id).must_write()
    tx.lock(conversation_topic(reply.conversation_id))  # orders simultaneous votes
    if verdict is VoteValue.NONE:
        return _withdraw(tx, actor, reply)
    round_ = messages.round(tx, reply.conversation_id, reply.round_number)
    contenders = votes.contenders(round_, reply, verdict)
    is_blind = _reveal_if_blind(tx, actor, round_)
    before = _find(tx, actor, reply)
    row = tx.one(
        _CAST,
        id=tx.new_id(),
        conversation_id=reply.conversation_id,
        round_number=reply.round_number,
        user_id=actor.user_id,
        verdict=verdict.value,
        message_id=reply.id,
        contenders=as_json(contenders),
        is_blind=is_blind,
        now=tx.now,
    )
    vote = _vote(row)
    if before is not None:
        _emit_removed(tx, actor, before)
    for topic in messages.topics_showing(tx, reply):
        tx.emit(topic, EventKind.CHANGED, "vote", vote.id, vote)
    return vote


_CAST = sql(f"""
    INSERT INTO votes AS v (
        id, project_id, conversation_id, round_number, user_id, verdict, message_id, contenders, is_blind,
        created_at
    )
    SELECT :id, c.project_id, c.id, CAST(:round_number AS BIGINT), :user_id, :verdict,
        :message_id, :contenders, CAST(:is_blind AS BOOLEAN), CAST(:now AS BIGINT)
    FROM conversations AS c WHERE c.id = :conversation_id
    ON CONFLICT (conversation_id, round_number, user_id) DO UPDATE SET
        verdict = excluded.verdict, message_id = excluded.message_id, contenders = excluded.contenders,
        is_blind = excluded.is_blind, created_at = excluded.created_at
    RETURNING {_COLUMNS.replace("v.", "")}
""")


def _reveal_if_blind(tx: Tx, actor: Actor, round_: Round) -> bool:
    """Reveals a blind round's names if this is its first vote by any user; returns whether it was."""
    question = round_.question
    tx.lock(conversation_topic(question.conversation_id))  # of two simultaneous first votes, one is blind
    if not turns.get(tx, actor, question.turn_id).is_blind:
        return False
    for conversation_id in {message.conversation_id for message in round_.messages}:
        if any(turn.round_number == round_.number for turn in turns.waiting_or_running(tx, conversation_id)):
            raise Conflict("The names come to light with the first vote: wait until all have finished.")
    blind.reveal(tx, question)
    return True


def _withdraw(tx: Tx, actor: Actor, reply: Message) -> Vote:
    before = _find(tx, actor, reply)
    if before is None:
        raise Conflict("You have not voted in this round, so there is nothing to take back.")
    _emit_removed(tx, actor, before)
    return _vote(tx.one(_WITHDRAW, id=before.id))


_WITHDRAW = sql(f"""
    UPDATE votes SET verdict = 'none' WHERE id = :id RETURNING {_COLUMNS.replace("v.", "")}
""")


def _find(tx: Tx, actor: Actor, reply: Message) -> Row | None:
    """The row of the actor's current vote in a round."""
    return tx.maybe(
        _FIND,
        conversation_id=reply.conversation_id,
        round_number=reply.round_number,
        user_id=actor.user_id,
    )


_FIND = sql("""
    SELECT id, message_id FROM votes
    WHERE conversation_id = :conversation_id AND round_number = :round_number AND user_id = :user_id
        AND verdict <> 'none'
""")


def _emit_removed(tx: Tx, actor: Actor, row: Row) -> None:
    for topic in messages.topics_showing(tx, messages.get(tx, actor, row.message_id)):
        events.redact(tx, topic, "vote", row.id)
        tx.emit(topic, EventKind.REMOVED, "vote", row.id)


def _vote(row: Row) -> Vote:
    return Vote(
        id=row.id,
        conversation_id=row.conversation_id,
        round_number=row.round_number,
        message_id=row.message_id if row.verdict == VoteValue.BEST else None,
        user_id=row.user_id,
        verdict=VoteValue(row.verdict),
        is_blind=bool(row.is_blind),
        contenders=from_json(tuple[Contender, ...], row.contenders),
        created_at=row.created_at,
    )


# ── reading


def of_rounds(tx: Tx, actor: Actor, conversation_id: str, rounds: Iterable[Round]) -> tuple[Vote, ...]:
    """The votes on the messages of these rounds.

    A branch shows only votes on replies that it shows itself.
    """
    access.to_conversation(tx, actor, conversation_id)
    return tuple(_in_rounds(tx, tuple(rounds)))


def chosen(tx: Tx, rounds: Iterable[Round]) -> frozenset[str]:
    """The ids of the replies marked best in these rounds."""
    all_rounds = tuple(rounds)
    return votes.chosen(all_rounds, tuple(_in_rounds(tx, all_rounds)))


def _in_rounds(tx: Tx, rounds: tuple[Round, ...]) -> Iterator[Vote]:
    message_ids = {message.id for round_ in rounds for message in round_.messages}
    numbers: dict[str, set[int]] = {}
    for round_ in rounds:
        for message in round_.messages:
            numbers.setdefault(message.conversation_id, set()).add(round_.number)
    for conversation_id, round_numbers in numbers.items():
        rows = tx.execute(
            _BETWEEN, conversation_id=conversation_id, first=min(round_numbers), last=max(round_numbers)
        )
        yield from (
            _vote(row) for row in rows if row.round_number in round_numbers and row.message_id in message_ids
        )


_BETWEEN = sql(f"""
    SELECT {_COLUMNS} FROM votes AS v
    WHERE v.conversation_id = :conversation_id AND v.round_number BETWEEN :first AND :last
        AND v.verdict <> 'none'
    ORDER BY v.round_number, v.created_at, v.id
""")


def of_project(tx: Tx, actor: Actor, project_id: str) -> tuple[Vote, ...]:
    """The votes of a project, newest first."""
    access.to_project(tx, actor, project_id)
    return tuple(map(_vote, tx.execute(_OF_PROJECT, project_id=project_id, limit=COUNTED)))


_OF_PROJECT = sql(f"""
    SELECT {_COLUMNS} FROM votes AS v WHERE v.project_id = :project_id AND v.verdict <> 'none'
    ORDER BY v.created_at DESC, v.id DESC LIMIT :limit
""")


@dataclass(frozen=True, slots=True)
class ReplyCost:
    """The cost and latency of one reply."""

    persona_id: str | None
    model: str
    cost_micros: int | None
    latency_ms: int
    first_token_ms: int | None


def reply_costs(tx: Tx, actor: Actor, project_id: str) -> tuple[ReplyCost, ...]:
    """The cost and latency of a project's newest complete replies."""
    access.to_project(tx, actor, project_id)
    rows = tx.execute(_REPLY_COSTS, project_id=project_id, limit=COUNTED)
    return tuple(
        ReplyCost(row.persona_id, row.model_id, row.cost_micros, row.latency_ms, row.first_token_ms)
        for row in rows
    )


_REPLY_COSTS = sql("""
    SELECT m.persona_id, m.model_id, u.cost_micros, u.latency_ms, u.first_token_ms
    FROM usage AS u JOIN conversation_messages AS m ON m.id = u.message_id
    WHERE u.project_id = :project_id AND m.role = 'advisor' AND m.status = 'complete'
    ORDER BY u.created_at DESC, u.id DESC LIMIT :limit
""")
