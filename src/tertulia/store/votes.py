"""Votes: one of each person in each round, told wherever the reply is seen that it was cast on.

Also a tie hangs on the reply that named its round: it is seen where that one is, and goes with it. A vote
that was taken back is kept as such: whoever votes again after it has seen the names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlalchemy import text

from tertulia.core import votes
from tertulia.core.errors import Conflict
from tertulia.core.events import Kind, conversation_place
from tertulia.core.messages import Message, Round
from tertulia.core.plain import from_json
from tertulia.core.users import Actor
from tertulia.core.votes import Choice, Contender, Vote
from tertulia.store import access, blind, events, messages, turns
from tertulia.store.transactions import Row, Tx, as_json

COUNTED = 10_000
"""The newest votes and replies of a project that its leaderboard looks at."""

_COLUMNS = """
    v.id, v.conversation_id, v.round_number, v.message_id, v.user_id, v.verdict, v.is_blind, v.contenders,
    v.created_at
"""


def cast(tx: Tx, actor: Actor, message_id: str, verdict: Choice) -> Vote:
    """What someone says of a round; said again, the last word counts."""
    meant = messages.get(tx, actor, message_id)
    access.to_conversation(tx, actor, meant.conversation_id).must_write()
    tx.hold(conversation_place(meant.conversation_id))  # of two votes at once, one is the last word
    if verdict is Choice.NONE:
        return _take_back(tx, actor, meant)
    here = messages.round(tx, meant.conversation_id, meant.round_number)
    against = votes.contenders(here, meant, verdict)
    is_blind = _comes_to_light(tx, actor, here)
    before = _find(tx, actor, meant)
    row = tx.one(
        _CAST,
        id=tx.new_id(),
        conversation_id=meant.conversation_id,
        round_number=meant.round_number,
        user_id=actor.user_id,
        verdict=verdict.value,
        message_id=meant.id,
        contenders=as_json(against),
        is_blind=is_blind,
        now=tx.now,
    )
    vote = _vote(row)
    if before is not None:
        _gone(tx, actor, before)
    for place in messages.places(tx, meant):
        tx.emit(place, Kind.CHANGED, "vote", vote.id, vote)
    return vote


_CAST = text(f"""
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


def _comes_to_light(tx: Tx, actor: Actor, here: Round) -> bool:
    """Whether this is the first vote of a blind round, whosever it is: with it the names are told."""
    question = here.question
    tx.hold(conversation_place(question.conversation_id))  # of two first votes at once, one is blind
    if not turns.get(tx, actor, question.turn_id).is_blind:
        return False
    for conversation_id in {message.conversation_id for message in here.messages}:
        if any(one.round_number == here.number for one in turns.waiting_or_running(tx, conversation_id)):
            raise Conflict("The names come to light with the first vote: wait until all have finished.")
    blind.reveal(tx, question)
    return True


def _take_back(tx: Tx, actor: Actor, meant: Message) -> Vote:
    before = _find(tx, actor, meant)
    if before is None:
        raise Conflict("You have not voted in this round, so there is nothing to take back.")
    _gone(tx, actor, before)
    return _vote(tx.one(_TAKE_BACK, id=before.id))


_TAKE_BACK = text(f"""
    UPDATE votes SET verdict = 'none' WHERE id = :id RETURNING {_COLUMNS.replace("v.", "")}
""")


def _find(tx: Tx, actor: Actor, meant: Message) -> Row | None:
    """What someone has said of a round so far."""
    return tx.maybe(
        _FIND,
        conversation_id=meant.conversation_id,
        round_number=meant.round_number,
        user_id=actor.user_id,
    )


_FIND = text("""
    SELECT id, message_id FROM votes
    WHERE conversation_id = :conversation_id AND round_number = :round_number AND user_id = :user_id
        AND verdict <> 'none'
""")


def _gone(tx: Tx, actor: Actor, row: Row) -> None:
    for place in messages.places(tx, messages.get(tx, actor, row.message_id)):
        events.redact(tx, place, "vote", row.id)
        tx.emit(place, Kind.REMOVED, "vote", row.id)


def _vote(row: Row) -> Vote:
    return Vote(
        id=row.id,
        conversation_id=row.conversation_id,
        round_number=row.round_number,
        message_id=row.message_id if row.verdict == Choice.BEST else None,
        user_id=row.user_id,
        verdict=Choice(row.verdict),
        is_blind=bool(row.is_blind),
        contenders=from_json(tuple[Contender, ...], row.contenders),
        created_at=row.created_at,
    )


# ── reading


def of_rounds(tx: Tx, actor: Actor, conversation_id: str, rounds: Iterable[Round]) -> tuple[Vote, ...]:
    """What was voted on in rounds that were read; in a branch, as far as it has what was voted on."""
    access.to_conversation(tx, actor, conversation_id)
    return tuple(_in_rounds(tx, tuple(rounds)))


def chosen(tx: Tx, rounds: Iterable[Round]) -> frozenset[str]:
    """The replies that were marked best in rounds that were read."""
    read = tuple(rounds)
    return votes.chosen(read, tuple(_in_rounds(tx, read)))


def _in_rounds(tx: Tx, rounds: tuple[Round, ...]) -> Iterator[Vote]:
    there = {message.id for round_ in rounds for message in round_.messages}
    numbers: dict[str, set[int]] = {}
    for round_ in rounds:
        for message in round_.messages:
            numbers.setdefault(message.conversation_id, set()).add(round_.number)
    for conversation_id, its in numbers.items():
        rows = tx.execute(_BETWEEN, conversation_id=conversation_id, first=min(its), last=max(its))
        yield from (_vote(row) for row in rows if row.round_number in its and row.message_id in there)


_BETWEEN = text(f"""
    SELECT {_COLUMNS} FROM votes AS v
    WHERE v.conversation_id = :conversation_id AND v.round_number BETWEEN :first AND :last
        AND v.verdict <> 'none'
    ORDER BY v.round_number, v.created_at, v.id
""")


def of_project(tx: Tx, actor: Actor, project_id: str) -> tuple[Vote, ...]:
    """The newest first."""
    access.to_project(tx, actor, project_id)
    return tuple(map(_vote, tx.execute(_OF_PROJECT, project_id=project_id, limit=COUNTED)))


_OF_PROJECT = text(f"""
    SELECT {_COLUMNS} FROM votes AS v WHERE v.project_id = :project_id AND v.verdict <> 'none'
    ORDER BY v.created_at DESC, v.id DESC LIMIT :limit
""")


@dataclass(frozen=True, slots=True)
class Effort:
    """What one reply took."""

    persona_id: str | None
    model: str
    cost_micros: int | None
    latency_ms: int
    first_token_ms: int | None


def efforts(tx: Tx, actor: Actor, project_id: str) -> tuple[Effort, ...]:
    """Of the newest replies that came to their end in a project."""
    access.to_project(tx, actor, project_id)
    rows = tx.execute(_EFFORTS, project_id=project_id, limit=COUNTED)
    return tuple(
        Effort(row.persona_id, row.model_id, row.cost_micros, row.latency_ms, row.first_token_ms)
        for row in rows
    )


_EFFORTS = text("""
    SELECT m.persona_id, m.model_id, u.cost_micros, u.latency_ms, u.first_token_ms
    FROM usage AS u JOIN conversation_messages AS m ON m.id = u.message_id
    WHERE u.project_id = :project_id AND m.role = 'advisor' AND m.status = 'complete'
    ORDER BY u.created_at DESC, u.id DESC LIMIT :limit
""")
