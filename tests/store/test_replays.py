"""Replays: which running replays are abandoned."""

from __future__ import annotations

from tertulia.core.replays import Replay, ReplayState
from tertulia.core.turns import TurnState
from tertulia.core.users import Actor
from tertulia.store import branches, replays, turns
from tertulia.store.database import Database, Tx
from tests.store.samples import answered, conversation, opened
from tests.store_fixtures import Clock


async def test_a_running_replay_is_abandoned_after_some_time_without_a_turn(
    db: Database, ada: Actor, clock: Clock
) -> None:
    def start_replay(tx: Tx) -> Replay:
        source = conversation(tx, ada)
        answered(tx, ada, source.id)
        branch = branches.add(tx, ada, source.id, at_round=0)
        replay = Replay(branch.id, source.id, 1, 1, 0, None, 0, ReplayState.RUNNING, "", ada.user_id, tx.now)
        replays.add(tx, replay, "as it came")
        return replay

    async def find_abandoned() -> list[str]:
        rows = await db.read(lambda tx: replays.abandoned(tx, tx.now - 1000))
        assert {request for _, request in rows} <= {"as it came"}
        return [replay.id for replay, _ in rows]

    replay = await db.write(start_replay)
    assert await find_abandoned() == []
    clock.forward(1001)
    assert await find_abandoned() == [replay.id]
    turn = await db.write(lambda tx: opened(tx, ada, replay.id))
    clock.forward(5000)
    assert await find_abandoned() == []  # a turn is running
    await db.write(lambda tx: turns.set_state(tx, turn.id, TurnState.COMPLETE))
    clock.forward(1000)
    assert await find_abandoned() == []  # the turn ended only now
    clock.forward(1)
    assert await find_abandoned() == [replay.id]
    await db.write(lambda tx: replays.end(tx, replay.id, ReplayState.COMPLETE))
    assert await find_abandoned() == []
