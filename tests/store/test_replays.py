"""Replays: which of them nobody is at work on."""

from __future__ import annotations

from tertulia.core.replays import Replay, ReplayState
from tertulia.core.turns import State
from tertulia.core.users import Actor
from tertulia.store import branches, replays, turns
from tertulia.store.database import Database, Tx
from tests.store.samples import answered, conversation, opened
from tests.store_fixtures import Clock


async def test_a_replay_is_abandoned_when_nothing_was_asked_in_it_for_a_while(
    db: Database, ada: Actor, clock: Clock
) -> None:
    def begin(tx: Tx) -> Replay:
        source = conversation(tx, ada)
        answered(tx, ada, source.id)
        branch = branches.add(tx, ada, source.id, at_round=0)
        made = Replay(branch.id, source.id, 1, 1, 0, None, 0, ReplayState.RUNNING, "", ada.user_id, tx.now)
        replays.add(tx, made, "as it came")
        return made

    async def abandoned() -> list[str]:
        found = await db.read(lambda tx: replays.abandoned(tx, tx.now - 1000))
        assert {request for _, request in found} <= {"as it came"}
        return [replay.id for replay, _ in found]

    replay = await db.write(begin)
    assert await abandoned() == []
    clock.forward(1001)
    assert await abandoned() == [replay.id]
    turn = await db.write(lambda tx: opened(tx, ada, replay.id))
    clock.forward(5000)
    assert await abandoned() == []  # something is being answered
    await db.write(lambda tx: turns.set_state(tx, turn.id, State.COMPLETE))
    clock.forward(1000)
    assert await abandoned() == []  # it has only just ended
    clock.forward(1)
    assert await abandoned() == [replay.id]
    await db.write(lambda tx: replays.end(tx, replay.id, ReplayState.COMPLETE))
    assert await abandoned() == []
