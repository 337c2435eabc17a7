"""Context retrieval: what does not fit is found by the search, and a failed search costs nothing else."""

from __future__ import annotations

import pytest

from tertulia.core.conversations import Visibility
from tertulia.core.files import MetadataChange
from tertulia.core.jobs import IndexRounds
from tertulia.core.passages import SearchScope
from tertulia.core.projects import ProjectSettings, RetrievalConfig
from tertulia.core.receipts import Layer, LeftOutReason, Receipt, SourceLocation
from tertulia.core.turns import Turn, TurnState
from tertulia.core.votes import VoteValue
from tertulia.engine.context_retrieval import retrieve
from tertulia.engine.jobs.index_round import index_rounds
from tertulia.engine.turn_records import read_turn
from tertulia.store import conversations, events, files, projects, receipts, trees, turns, votes
from tertulia.store.sql import sql
from tests.engine.conftest import Engine
from tests.engine.test_files import Desk
from tests.library.bags import Bags
from tests.upstream.scripted import Upstream


class Raging(Bags):
    """An embedder that fails with an unexpected error."""

    def unavailable_reason(self) -> str | None:
        raise RuntimeError("nobody thought of this")


async def receipt_of(engine: Engine, turn: Turn) -> Receipt:
    [reply] = await engine.replies(turn)
    return await engine.db.read(lambda tx: receipts.get(tx, engine.actor, reply.id))


async def always(desk: Desk, path: str, content: bytes) -> None:
    file = await desk.add(path, content)
    marked = MetadataChange(always_in_context=True)
    await desk.engine.db.write(lambda tx: files.set_metadata(tx, desk.actor, desk.project, file.id, marked))
    await desk.index(file)


async def test_a_failed_search_leaves_the_files_in_the_prompt_and_is_named_in_the_receipt(
    engine: Engine, upstream: Upstream
) -> None:
    desk = Desk(engine)
    await always(desk, "rules.md", b"Be brief.")
    await desk.index(await desk.add("tea.md", b"Oolong at ninety degrees."))
    engine.dependencies.library.embedder = Raging()
    opened = await engine.open("How hot is the oolong?")
    assert await engine.over(opened.turn) is TurnState.COMPLETE
    receipt = await receipt_of(engine, opened.turn)
    assert ["Be brief." in s.text for s in receipt.segments if s.layer is Layer.ALWAYS] == [True]
    assert "- tea.md (25 bytes)" in str(upstream.last.body)
    assert [left.reason for left in receipt.left_out] == [LeftOutReason.SEARCH_FAILED]
    assert [str(one) for one in engine.incidents] == ["nobody thought of this"]


async def test_an_always_included_file_without_text_is_named_in_the_receipt(
    engine: Engine, upstream: Upstream
) -> None:
    await always(Desk(engine), "seal.bin", bytes(range(256)) * 40)
    opened = await engine.open("Hello")
    await engine.over(opened.turn)
    [left] = (await receipt_of(engine, opened.turn)).left_out
    assert (left.layer, left.location) == (Layer.ALWAYS, SourceLocation("seal.bin"))
    assert left.reason is LeftOutReason.UNREADABLE


async def test_only_as_much_text_is_loaded_as_the_largest_budget_holds(
    engine: Engine, upstream: Upstream
) -> None:
    """Hundreds of large always-included files would otherwise fill the memory with each question."""
    desk = Desk(engine)
    for path, size in (("1.md", 50_000), ("2.md", 40_000), ("3.md", 100), ("4.md", 99_000)):
        await always(desk, path, b"tea " * (size // 4))
    settings = ProjectSettings(max_context_tokens=1_000)
    await engine.db.write(lambda tx: projects.save(tx, desk.actor, desk.project, settings=settings))
    opened = await engine.open("Tea?")
    assert await engine.over(opened.turn) is TurnState.COMPLETE
    records = await engine.db.read(
        lambda tx: read_turn(tx, engine.actor, opened.turn, engine.dependencies.providers.find)
    )
    assert records.text_limit_bytes == 64_000
    assert [len(text.text) for text in records.files.texts if text] == [0, 40_000, 100, 0]
    left_out = (await receipt_of(engine, opened.turn)).left_out
    assert {(left.location, left.reason) for left in left_out} == {
        (SourceLocation(path), LeftOutReason.OVER_BUDGET) for path in ("1.md", "2.md", "4.md")
    }


async def test_a_round_dropped_from_the_prompt_is_found_by_the_search(
    engine: Engine, upstream: Upstream
) -> None:
    upstream.says("The password of the old lighthouse is marigold.", model="alpha")
    opened = await engine.open("What is the password of the lighthouse?")
    await engine.over(opened.turn)
    upstream.says("Waves and wind. " * 500, model="alpha")
    here = opened.conversation.id
    for number in range(2, 6):
        last = await engine.open(f"Remark {number} about the weather.", conversation_id=here)
        await engine.over(last.turn)
    await index_rounds(engine.dependencies, IndexRounds.single(here, 1))
    asked = await engine.open("Which password had the lighthouse?", conversation_id=here)
    await engine.over(asked.turn)
    receipt = await receipt_of(engine, asked.turn)
    assert (LeftOutReason.OVER_BUDGET, 1) in [(left.reason, left.round_number) for left in receipt.left_out]
    found = [s.round_number for s in receipt.segments if "marigold" in s.text]
    assert found == [1]


async def test_a_recalled_round_shows_only_its_best_reply_if_the_visibility_says_so(
    engine: Engine, upstream: Upstream
) -> None:
    upstream.says("The password is marigold.", model="alpha")
    upstream.says("The password is primrose.", model="beta")
    first = await engine.open("What is the password of the lighthouse?", "alpha", "beta")
    await engine.over(first.turn)
    _, best = sorted(await engine.replies(first.turn), key=lambda reply: reply.speaker)
    await engine.db.write(lambda tx: votes.cast(tx, engine.actor, best.id, VoteValue.BEST))
    upstream.says("Noted.", model="alpha")
    here = first.conversation.id
    for number in range(2, 19):
        last = await engine.open(f"Remark {number} about the weather.", conversation_id=here)
        await engine.over(last.turn)
    await index_rounds(engine.dependencies, IndexRounds.single(here, 1))
    asked = await engine.open(
        "Which password had the lighthouse?", conversation_id=here, visibility=Visibility.CHOSEN
    )
    await engine.over(asked.turn)
    [found] = [s.text for s in (await receipt_of(engine, asked.turn)).segments if "[round 1]" in s.text]
    assert ("primrose" in found, "marigold" in found) == (True, False)


async def test_the_search_leaves_out_the_rounds_that_are_shown_anyway(
    engine: Engine, upstream: Upstream
) -> None:
    desk = Desk(engine)
    await always(desk, "samovar.md", b"The samovar is brass.")
    upstream.says("The samovar is copper.")
    told = await engine.open("Is the samovar gold?")
    await engine.over(told.turn)
    asked = await engine.open("What is the samovar made of?", conversation_id=told.conversation.id)
    await engine.over(asked.turn)
    elsewhere = await engine.open("Where is the samovar?")
    await engine.over(elsewhere.turn)
    while await engine.worker.work():
        pass
    find = engine.dependencies.providers.find
    records = await engine.db.read(lambda tx: read_turn(tx, engine.actor, asked.turn, find))
    found = (await retrieve(engine.dependencies, engine.actor, records)).search.hits
    assert found
    assert {hit.location.conversation_id for hit in found} == {elsewhere.conversation.id}


async def test_there_is_no_search_if_the_prompt_shows_everything(engine: Engine, upstream: Upstream) -> None:
    engine.dependencies.library.embedder = Raging()
    first = await engine.open("Is the samovar gold?")
    await engine.over(first.turn)
    await index_rounds(engine.dependencies, IndexRounds.single(first.conversation.id, 1))
    second = await engine.open("What is the samovar made of?", conversation_id=first.conversation.id)
    assert await engine.over(second.turn) is TurnState.COMPLETE
    assert engine.incidents == []


@pytest.mark.parametrize("what", ["the message", "the conversation", "the file"])
async def test_a_deleted_source_is_redacted_from_the_receipts_that_show_it(
    engine: Engine, upstream: Upstream, what: str
) -> None:
    desk = Desk(engine)
    file = await desk.add("tea.md", b"The samovar is brass.")
    upstream.says("The samovar is copper.")
    told = await engine.open("Is the samovar gold?")
    await engine.over(told.turn)
    while await engine.worker.work():
        pass
    asked = await engine.open("What is the samovar made of?")
    await engine.over(asked.turn)
    before = await receipt_of(engine, asked.turn)
    assert found_in(before) == {"brass", "copper", "gold"}
    [reply] = await engine.replies(told.turn)
    await engine.db.write(
        lambda tx: {
            "the message": lambda: trees.remove_message(tx, desk.actor, reply.id),
            "the conversation": lambda: conversations.remove(tx, desk.actor, told.conversation.id),
            "the file": lambda: files.remove(tx, desk.actor, desk.project, file.id),
        }[what]()
    )
    while await engine.worker.work():
        pass
    gone = {"the message": {"copper"}, "the conversation": {"copper", "gold"}, "the file": {"brass"}}[what]
    after = await receipt_of(engine, asked.turn)
    assert found_in(after) == {"brass", "copper", "gold"} - gone
    assert after.tokens == before.tokens
    assert [s.text for s in after.segments].count(receipts.DELETED_TEXT) == len(gone)
    kept = await engine.db.read(
        lambda tx: str([row.text for row in tx.execute(sql("SELECT text FROM segments"))])
    )
    assert not any(word in kept for word in gone - {"gold"})


def found_in(receipt: Receipt) -> set[str]:
    shown = " ".join(s.text for s in receipt.segments if s.layer is Layer.RETRIEVED)
    return {word for word in ("brass", "copper", "gold") if word in shown}


async def found_for(engine: Engine, turn: Turn) -> list[tuple[str, int | None]]:
    """The passages below the question: each one's name, and its round or first line."""
    now = await engine.db.read(lambda tx: turns.get(tx, engine.actor, turn.id))
    return [(one.name, one.round_number or one.start_line) for one in now.found]


async def samovar(engine: Engine, upstream: Upstream) -> Desk:
    """A file, and a conversation about it; both are indexed."""
    desk = Desk(engine)
    await desk.index(await desk.add("tea.md", b"The samovar is brass."))
    upstream.says("The samovar is copper.")
    told = await engine.open("Is the samovar gold?")
    await engine.over(told.turn)
    while await engine.worker.work():
        pass
    return desk


async def test_a_passage_sent_to_several_voices_is_listed_once_below_the_question(
    engine: Engine, upstream: Upstream
) -> None:
    await samovar(engine, upstream)
    upstream.says("Brass.", model="alpha")
    upstream.says("Copper.", model="beta")
    asked = await engine.open("What is the samovar made of?", "alpha", "beta")
    await engine.over(asked.turn)
    assert ("tea.md", 1) in await found_for(engine, asked.turn)
    now = await engine.db.read(lambda tx: turns.get(tx, engine.actor, asked.turn.id))
    sources = [one.source_id for one in now.found]
    assert len(sources) == len(set(sources)) == 3  # the file, the question and the reply
    told = [
        event.value
        for event in await engine.db.read(
            lambda tx: events.after(tx, f"conversation:{asked.conversation.id}", 0)
        )
        if event.noun == "turn" and event.value and "tea.md" in event.value
    ]
    assert told


async def test_a_greeting_finds_nothing_and_has_no_passages_below_it(
    engine: Engine, upstream: Upstream
) -> None:
    await samovar(engine, upstream)
    asked = await engine.open("Hello, how are you?")
    await engine.over(asked.turn)
    assert await found_for(engine, asked.turn) == []
    assert not found_in(await receipt_of(engine, asked.turn))


@pytest.mark.parametrize(
    ("scope", "words", "why"),
    [
        (SearchScope(files=False), {"copper", "gold"}, [LeftOutReason.FILES_NOT_SEARCHED]),
        (SearchScope(conversations=False), {"brass"}, [LeftOutReason.CONVERSATIONS_NOT_SEARCHED]),
        (
            SearchScope(files=False, conversations=False),
            set(),
            [LeftOutReason.FILES_NOT_SEARCHED, LeftOutReason.CONVERSATIONS_NOT_SEARCHED],
        ),
    ],
)
async def test_the_search_covers_the_chosen_scope_and_the_receipt_names_the_rest(
    engine: Engine, upstream: Upstream, scope: SearchScope, words: set[str], why: list[LeftOutReason]
) -> None:
    await samovar(engine, upstream)
    asked = await engine.open("What is the samovar made of?", scope=scope)
    await engine.over(asked.turn)
    receipt = await receipt_of(engine, asked.turn)
    assert found_in(receipt) == words
    assert [left.reason for left in receipt.left_out] == why


async def test_a_conversation_keeps_its_search_scope_until_another_is_chosen(
    engine: Engine, upstream: Upstream
) -> None:
    await samovar(engine, upstream)
    asked = await engine.open("What is the samovar made of?", scope=SearchScope(conversations=False))
    await engine.over(asked.turn)
    here = asked.conversation.id
    again = await engine.open("And who polishes the samovar?", conversation_id=here)
    await engine.over(again.turn)
    assert found_in(await receipt_of(engine, again.turn)) == {"brass"}
    last = await engine.open("Tell of the samovar.", conversation_id=here, scope=SearchScope())
    await engine.over(last.turn)
    assert "copper" in found_in(await receipt_of(engine, last.turn))
    kept = await engine.db.read(lambda tx: conversations.get(tx, engine.actor, here))
    assert kept.scope == SearchScope()


async def test_the_project_scope_applies_to_conversations_without_their_own(
    engine: Engine, upstream: Upstream
) -> None:
    desk = await samovar(engine, upstream)
    config = RetrievalConfig(scope=SearchScope(conversations=False))
    settings = ProjectSettings(retrieval_config=config)
    await engine.db.write(lambda tx: projects.save(tx, desk.actor, desk.project, settings=settings))
    asked = await engine.open("What is the samovar made of?")
    await engine.over(asked.turn)
    assert found_in(await receipt_of(engine, asked.turn)) == {"brass"}


async def test_earlier_rounds_of_the_conversation_are_found_even_when_other_conversations_are_excluded(
    engine: Engine, upstream: Upstream
) -> None:
    upstream.says("The password of the old lighthouse is marigold.", model="alpha")
    opened = await engine.open("What is the password of the lighthouse?")
    await engine.over(opened.turn)
    upstream.says("Noted.", model="alpha")
    here = opened.conversation.id
    for number in range(2, 19):
        last = await engine.open(f"Remark {number} about the weather.", conversation_id=here)
        await engine.over(last.turn)
    await index_rounds(engine.dependencies, IndexRounds.single(here, 1))
    asked = await engine.open(
        "Which password had the lighthouse?",
        conversation_id=here,
        scope=SearchScope(files=False, conversations=False),
    )
    await engine.over(asked.turn)
    now = await engine.db.read(lambda tx: turns.get(tx, engine.actor, asked.turn.id))
    assert 1 in [one.round_number for one in now.found]
    assert {one.conversation_id for one in now.found} == {here}


@pytest.mark.parametrize("what", ["the message", "the conversation", "the file"])
async def test_a_deleted_passage_is_removed_from_below_the_questions_that_found_it(
    engine: Engine, upstream: Upstream, what: str
) -> None:
    desk = Desk(engine)
    file = await desk.add("tea.md", b"The samovar is brass.")
    upstream.says("The samovar is copper.")
    told = await engine.open("Is the samovar gold?")
    await engine.over(told.turn)
    while await engine.worker.work():
        pass
    asked = await engine.open("What is the samovar made of?")
    await engine.over(asked.turn)
    before = await engine.db.read(lambda tx: turns.get(tx, engine.actor, asked.turn.id))
    [reply] = await engine.replies(told.turn)
    await engine.db.write(
        lambda tx: {
            "the message": lambda: trees.remove_message(tx, desk.actor, reply.id),
            "the conversation": lambda: conversations.remove(tx, desk.actor, told.conversation.id),
            "the file": lambda: files.remove(tx, desk.actor, desk.project, file.id),
        }[what]()
    )
    while await engine.worker.work():
        pass
    after = await engine.db.read(lambda tx: turns.get(tx, engine.actor, asked.turn.id))
    gone = {one.source_id for one in before.found} - {one.source_id for one in after.found}
    assert (
        gone
        == {
            "the message": {reply.id},
            "the conversation": {told.message.id, reply.id},
            "the file": {file.id},
        }[what]
    )
    place = f"conversation:{asked.conversation.id}"
    kept = await engine.db.read(lambda tx: str(events.after(tx, place, 0)))
    assert not any(id in kept for id in gone)
