"""Recovery: the next start ends each unfinished turn once, whenever the crash happened."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from tertulia.app import new_id
from tertulia.core.messages import Status
from tertulia.core.turns import TurnState
from tertulia.engine.recovery import recover
from tertulia.engine.requests import RetryRequest
from tertulia.store import drafts, events
from tests.engine.conftest import Engine, engine_in
from tests.patience import soon
from tests.upstream.scripted import Cut, Say, Stall, Think, refuses, says


async def test_a_running_reply_ends_as_interrupted_with_its_last_checkpoint(engine, tmp_path, upstream):
    upstream.plays((Think("Hm, "), Say("Saved. "), Stall()))
    opened = await engine.open("Talk", "alpha", "beta")
    await engine.said(opened.turn, "Saved. ", voices=2)
    await engine.writer.checkpoint()
    async with engine_in(crashed(tmp_path), upstream) as restarted:
        assert (await restarted.stored(opened.turn)).state is TurnState.INTERRUPTED
        replies = await restarted.replies(opened.turn)
        assert [(r.status, r.content) for r in replies] == [(Status.INTERRUPTED, "Saved. ")] * 2
        assert [r.failure.code for r in replies if r.failure] == ["restarted"] * 2
        assert [r.thinking.text for r in replies if r.thinking] == ["Hm, "] * 2
        assert await restarted.db.read(lambda tx: drafts.of_turn(tx, opened.turn.id)) == ()


async def test_the_draft_becomes_a_message_under_its_own_id(engine, tmp_path, upstream):
    """A device that shows the draft replaces it with the message."""
    upstream.plays((Say("Saved."), Stall()))
    opened = await engine.open("Talk")
    await engine.said(opened.turn, "Saved.")
    await engine.writer.checkpoint()
    live = engine.dependencies.live.find(opened.turn.id)
    assert live is not None
    [draft_id] = live.replies
    async with engine_in(crashed(tmp_path), upstream) as restarted:
        [reply] = await restarted.replies(opened.turn)
        assert reply.id == draft_id


async def test_a_voice_that_had_not_begun_gets_an_empty_reply_that_can_be_retried(engine, tmp_path, upstream):
    upstream.plays((Stall(),))
    opened = await engine.open("Talk", "alpha", "beta")
    waiting = await engine.open("And then?", "gamma", conversation_id=opened.conversation.id)
    async with engine_in(crashed(tmp_path), upstream) as restarted:
        for turn, names in ((opened.turn, ["Alpha", "Beta"]), (waiting.turn, ["Gamma"])):
            replies = await restarted.replies(turn)
            assert [(r.voice.name, r.status, r.content) for r in replies if r.voice] == [
                (name, Status.INTERRUPTED, "") for name in names
            ]
        upstream.says("Here now.")
        retried = await restarted.turns.retry(restarted.actor, replies[0].id, RetryRequest(new_id()))
        assert await restarted.over(retried.turn) is TurnState.COMPLETE
        [reply] = await restarted.replies(waiting.turn)
        assert reply.content == "Here now."


async def test_a_synthesis_interrupted_by_a_crash_still_names_the_replies_it_read(engine, tmp_path, upstream):
    upstream.plays(says("Mine."), (Say("Both "), Stall()), model="alpha")
    opened = await engine.open("Talk", "alpha", "beta", mode="brain_trust")
    await upstream.wait_for_request(3)
    await engine.said(opened.turn, "Both ")
    await engine.writer.checkpoint()
    async with engine_in(crashed(tmp_path), upstream) as restarted:
        *answers, synthesis = await restarted.replies(opened.turn)
        assert synthesis.content == "Both "
        assert [one.message_id for one in synthesis.read_replies] == [answer.id for answer in answers]


async def test_a_reply_that_was_being_continued_keeps_its_beginning(engine, tmp_path, upstream):
    upstream.plays((Say("Once upon"), Cut()), (Stall(),))
    opened = await engine.open("Tell")
    await engine.over(opened.turn)
    [broken] = await engine.replies(opened.turn)
    continued = await engine.turns.resume(engine.actor, broken.id, RetryRequest(new_id()))
    await upstream.wait_for_request(2)
    async with engine_in(crashed(tmp_path), upstream) as restarted:
        [reply] = await restarted.replies(continued.turn)
        assert (reply.status, reply.content) == (Status.INTERRUPTED, "Once upon")
        assert reply.replaces_id == broken.id
        upstream.plays(says(" a time."))
        again = await restarted.turns.resume(restarted.actor, reply.id, RetryRequest(new_id()))
        await restarted.over(again.turn)
        [whole] = await restarted.replies(opened.turn)
        assert whole.content == "Once upon a time."


async def test_a_draft_stored_after_its_reply_is_not_a_second_reply(engine, tmp_path, upstream):
    """A voice finished while another was writing, and its draft was stored once more after its message."""
    upstream.says("Finished.", model="alpha")
    upstream.plays((Say("Still going"), Stall()), model="beta")
    opened = await engine.open("Talk", "alpha", "beta")
    await engine.said(opened.turn, "Still going")
    await engine.writer.checkpoint()
    finished = await first_reply(engine, opened.turn)
    left = await engine.db.read(lambda tx: drafts.of_turn(tx, opened.turn.id))
    if finished.id not in [draft.id for draft in left]:
        behind = replace(left[0], id=finished.id, voice=finished.voice, content="Finish")
        await engine.db.write(lambda tx: drafts.begin(tx, [behind]))
    async with engine_in(crashed(tmp_path), upstream) as restarted:
        replies = await restarted.replies(opened.turn)
        assert [(r.status, r.content) for r in replies] == [
            (Status.COMPLETE, "Finished."),
            (Status.INTERRUPTED, "Still going"),
        ]


async def test_recovery_can_be_repeated(engine, tmp_path, upstream):
    upstream.plays((Say("Saved."), Stall()))
    opened = await engine.open("Talk", "alpha", "beta")
    await engine.said(opened.turn, "Saved.")
    await engine.writer.checkpoint()
    home = crashed(tmp_path)
    async with engine_in(home, upstream) as once:
        before = await once.round(opened.turn)
        assert await recover(once.db) == 0
    async with engine_in(home, upstream) as twice:
        assert await twice.round(opened.turn) == before


async def test_devices_receive_the_events_of_a_recovered_turn(engine, tmp_path, upstream):
    upstream.plays((Say("Saved."), Stall()))
    opened = await engine.open("Talk")
    await engine.said(opened.turn, "Saved.")
    await engine.writer.checkpoint()
    place = f"conversation:{opened.conversation.id}"
    cursor = await engine.db.read(lambda tx: events.last_number(tx, place))
    async with engine_in(crashed(tmp_path), upstream) as restarted:
        news = await restarted.db.read(lambda tx: events.after(tx, place, cursor))
    assert [(event.number, event.noun) for event in news] == [(cursor + 1, "message"), (cursor + 2, "turn")]


async def test_the_conversation_goes_on_after_a_crash(engine, tmp_path, upstream):
    upstream.plays((Say("Half"), Stall()))
    opened = await engine.open("One")
    await engine.said(opened.turn, "Half")
    await engine.writer.checkpoint()
    async with engine_in(crashed(tmp_path), upstream) as restarted:
        upstream.says("Whole.")
        second = await restarted.open("Two", conversation_id=opened.conversation.id)
        assert await restarted.over(second.turn) is TurnState.COMPLETE
        assert [m["content"] for m in upstream.last.body["messages"] if m["role"] == "assistant"] == ["Half"]


def crashed(home: Path) -> Path:
    """A copy of the disk as a crash would leave it now: database and journal, without a shutdown."""
    copy = home / "after the crash"
    copy.mkdir()
    for file in home.glob("tertulia.db*"):
        if not file.name.endswith((".lock", "-shm")):
            shutil.copyfile(file, copy / file.name)
    return copy


async def first_reply(engine: Engine, turn):
    async with soon():
        while not (replies := await engine.replies(turn)):
            pass
    return replies[0]


async def test_a_retry_continues_the_council_that_a_crash_interrupted(engine, tmp_path, upstream):
    """The advisors stay, the interrupted one is asked again, and then the chair writes its synthesis."""
    upstream.plays(says("Mine."), model="alpha")
    upstream.plays((Say("Half of "), Stall()), model="beta")
    opened = await engine.open("Talk", "alpha", "beta", mode="brain_trust")
    await engine.said(opened.turn, "Half of ", voices=1)
    await engine.writer.checkpoint()
    async with engine_in(crashed(tmp_path), upstream) as restarted:
        alpha, beta, chair = await restarted.replies(opened.turn)
        assert [(r.step, r.status) for r in (beta, chair)] == [
            ("answer", Status.INTERRUPTED),
            ("synthesis", Status.INTERRUPTED),
        ]
        assert (beta.content, chair.content) == ("Half of ", "")
        asked = len(upstream.requests)
        upstream.reset()
        upstream.plays(says("All of it."), model="beta")
        upstream.plays(says("Together."), says("{}"), model="alpha")
        retried = await restarted.turns.retry(restarted.actor, beta.id, RetryRequest(new_id()))
        assert await restarted.over(retried.turn) is TurnState.COMPLETE
        replies = {r.step: r for r in await restarted.replies(opened.turn)}
        assert (replies["synthesis"].content, replies["synthesis"].replaces_id) == ("Together.", chair.id)
        assert asked == 2


async def test_the_first_voice_of_a_relay_that_never_began_can_be_retried(engine, tmp_path, upstream):
    upstream.plays((Stall(),))
    opened = await engine.open("Talk", "alpha", "beta", mode="relay")
    async with engine_in(crashed(tmp_path), upstream) as restarted:
        [first] = await restarted.replies(opened.turn)
        assert (first.voice.name, first.content) == ("Alpha", "")
        upstream.reset()
        upstream.plays(says("One."), model="alpha")
        upstream.plays(says("Two."), model="beta")
        retried = await restarted.turns.retry(restarted.actor, first.id, RetryRequest(new_id()))
        assert await restarted.over(retried.turn) is TurnState.COMPLETE
        assert [r.content for r in await restarted.replies(opened.turn)] == ["One.", "Two."]


async def test_a_crash_during_a_round_and_a_retry_keeps_both_texts_once(engine, tmp_path, upstream):
    upstream.plays(refuses(401), (Say("Alpha again"), Stall()), model="alpha")
    upstream.plays((Say("Beta begins"), Stall()), model="beta")
    opened = await engine.open("Talk", "alpha", "beta", mode="brain_trust")
    await engine.said(opened.turn, "Beta begins")
    failed = await first_reply(engine, opened.turn)
    retried = await engine.turns.retry(engine.actor, failed.id, RetryRequest(new_id()))
    await engine.said(retried.turn, "Alpha again")
    await engine.writer.checkpoint()
    async with engine_in(crashed(tmp_path), upstream) as restarted:
        assert [
            (r.voice.name, r.step, r.status, r.content) for r in await restarted.replies(opened.turn)
        ] == [
            ("Alpha", "answer", Status.INTERRUPTED, "Alpha again"),
            ("Beta", "answer", Status.INTERRUPTED, "Beta begins"),
            ("Alpha", "synthesis", Status.INTERRUPTED, ""),
        ]
        for turn in (opened.turn, retried.turn):
            assert (await restarted.stored(turn)).state is TurnState.INTERRUPTED
        alpha = (await restarted.replies(opened.turn))[0]
        assert alpha.replaces_id == failed.id
        upstream.reset()
        upstream.plays(says(" and on."), says("The sum."), says("{}"), model="alpha")
        continued = await restarted.turns.resume(restarted.actor, alpha.id, RetryRequest(new_id()))
        assert await restarted.over(continued.turn) is TurnState.COMPLETE
        assert [r.content for r in await restarted.replies(opened.turn) if r.step != "outline"] == [
            "Alpha again and on.",
            "Beta begins",
            "The sum.",
        ]
