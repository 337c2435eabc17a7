"""Indexing: jobs make rounds and files searchable, and show their progress."""

from __future__ import annotations

import asyncio
import json
import os

from tertulia.core.files import IndexPhase, IndexState
from tertulia.core.jobs import EmbedChunks, IndexFile, decode, encode
from tertulia.core.users import Actor, ServerRole
from tertulia.engine.files import Files
from tertulia.engine.jobs.index_file import BROKEN, index_file
from tertulia.engine.jobs.rebuild import enqueue_rebuild
from tertulia.engine.worker import Worker
from tertulia.library.search import SearchIndex, SearchMode, find
from tertulia.store import files, jobs, projects, users, vectors
from tertulia.store.sql import sql
from tests.engine.conftest import engine_in
from tests.library.bags import Bags
from tests.store.samples import known_rows, many_chunks
from tests.store_fixtures import new_postgres_database

LONG = "\n\n".join(f"# Part {index}\n\nthe walnut falls on the grass below it" for index in range(500))
"""A text with one chunk for each part: more than one batch."""


async def done(engine) -> None:
    while await engine.worker.work():
        pass


async def bytes_of(text: str):
    yield text.encode()


def home(engine) -> str:
    return engine.db.read_now(lambda tx: projects.visible_to(tx, engine.actor))[0].id


async def titles(library: SearchIndex, actor: Actor, project_id: str, text: str) -> list[str]:
    return [
        hit.content for hit in (await find(library, actor, [project_id], text, mode=SearchMode.KEYWORD)).hits
    ]


async def test_a_finished_round_is_found_by_the_search(engine, upstream):
    opened = await engine.open("Where do walnuts grow?")
    await engine.over(opened.turn)
    await done(engine)
    found = await titles(engine.dependencies.library, engine.actor, opened.conversation.project_id, "walnuts")
    assert "Where do walnuts grow?" in found


async def test_a_file_is_found_by_its_words_before_its_vectors_are_computed(engine, upstream):
    """The vectors follow, and the file shows the progress."""
    bags = Bags()
    engine.dependencies.library.embedder = bags
    seen: list[tuple[str, int]] = []

    def listen(events):
        for event in events:
            if event.noun == "file" and event.value:
                index = json.loads(event.value)["index"]
                seen.append((index["state"], index["percent"]))

    engine.db.on_commit(listen)
    verbs = Files(engine.dependencies, wake_workers=lambda: None)
    written = "\n\n".join(f"# Part {index}\n\n{'the kitten sleeps ' * 20}" for index in range(120))
    file = await verbs.add(engine.actor, home(engine), "long.md", bytes_of(written))
    await done(engine)
    kept = await engine.db.read(lambda tx: files.find(tx, file.id))
    assert kept.index.state is IndexPhase.INDEXED
    assert kept.index.percent == 100
    assert kept.index.chunks == 120
    percents = [percent for state, percent in seen if state == "indexing"]
    assert percents == sorted(percents)
    assert {50} < set(percents)
    findings = await find(
        engine.dependencies.library, engine.actor, [home(engine)], "cat", mode=SearchMode.MEANING
    )
    assert findings.without_meaning is None
    assert findings.hits


async def test_a_file_is_indexed_without_an_embedding_model(engine, upstream):
    verbs = Files(engine.dependencies, wake_workers=lambda: None)
    file = await verbs.add(engine.actor, home(engine), "a.md", bytes_of("a walnut"))
    await done(engine)
    kept = await engine.db.read(lambda tx: files.find(tx, file.id))
    assert (kept.index.state, kept.index.percent, kept.index.chunks) == (IndexPhase.INDEXED, 100, 1)
    assert await engine.db.read(jobs.dead_jobs) == ()


async def test_an_embedding_model_added_later_embeds_the_existing_chunks(engine, upstream):
    verbs = Files(engine.dependencies, wake_workers=lambda: None)
    await verbs.add(engine.actor, home(engine), "a.md", bytes_of("the kitten sleeps"))
    await done(engine)
    engine.dependencies.library.embedder = Bags()
    await engine.db.write(lambda tx: jobs.enqueue_once(tx, EmbedChunks()))
    await done(engine)
    findings = await find(
        engine.dependencies.library, engine.actor, [home(engine)], "cat", mode=SearchMode.MEANING
    )
    assert [hit.title for hit in findings.hits] == ["a.md"]


async def test_a_file_is_incomplete_while_only_its_first_batch_has_vectors(engine, upstream):
    """Files and vectors are processed at the same time; further chunks of this file are still being added."""
    verbs = Files(engine.dependencies, wake_workers=lambda: None)
    file = await verbs.add(engine.actor, home(engine), "a.md", bytes_of("the kitten sleeps"))
    await done(engine)
    halfway = IndexState(IndexPhase.INDEXING, 1, 25)
    await engine.db.write(lambda tx: files.set_index(tx, file.id, halfway))
    engine.dependencies.library.embedder = Bags()
    await engine.db.write(lambda tx: jobs.enqueue_once(tx, EmbedChunks()))
    await done(engine)
    assert not await engine.db.read(lambda tx: vectors.due(tx, 1))
    assert (await engine.db.read(lambda tx: files.find(tx, file.id))).index == halfway


async def test_a_broken_embedder_leaves_the_text_index_and_is_tried_again(engine, upstream):
    bags = engine.dependencies.library.embedder = Bags()
    bags.is_broken = True
    verbs = Files(engine.dependencies, wake_workers=lambda: None)
    await verbs.add(engine.actor, home(engine), "a.md", bytes_of("the kitten sleeps"))
    await done(engine)
    assert await titles(engine.dependencies.library, engine.actor, home(engine), "kitten") == [
        "the kitten sleeps"
    ]
    assert await engine.db.read(lambda tx: vectors.due(tx, 1))
    bags.is_broken = False
    await engine.db.write(lambda tx: jobs.enqueue(tx, EmbedChunks()))
    await done(engine)
    assert not await engine.db.read(lambda tx: vectors.due(tx, 1))


async def test_an_index_job_that_runs_twice_leaves_one_index(engine, upstream):
    verbs = Files(engine.dependencies, wake_workers=lambda: None)
    file = await verbs.add(engine.actor, home(engine), "a.md", bytes_of("a walnut"))
    await done(engine)
    for _ in range(2):
        await engine.db.write(lambda tx: jobs.enqueue(tx, IndexFile(file.id)))
    await done(engine)
    assert await titles(engine.dependencies.library, engine.actor, home(engine), "walnut") == ["a walnut"]


async def test_many_files_of_one_user_do_not_delay_other_users_or_projects(engine, upstream):
    verbs = Files(engine.dependencies, wake_workers=lambda: None)
    other = await engine.db.write(lambda tx: projects.add(tx, engine.actor, "Other"))
    bob = await engine.db.write(lambda tx: users.add(tx, "Bob", "bob@example.org", "none", ServerRole.MEMBER))
    bobs = Actor(bob.id, bob.role)
    bobs_home = (await engine.db.read(lambda tx: projects.visible_to(tx, bobs)))[0].id
    for path in ("zip/1", "zip/2", "zip/3", "zip/4"):
        await verbs.add(engine.actor, home(engine), path, bytes_of(path))
    await verbs.add(engine.actor, other.id, "note", bytes_of("mine"))
    await verbs.add(bobs, bobs_home, "bob's note", bytes_of("his"))
    served = []

    async def serve(dependencies, payload):
        file_id = decode(IndexFile, payload).file_id
        served.append((await dependencies.db.read(lambda tx: files.find(tx, file_id))).path)

    await Worker(engine.dependencies, "node", {"index_file": serve}, only="index_file").work()
    assert sorted(served[:3]) == ["bob's note", "note", "zip/1"]
    assert served[3:] == ["zip/2", "zip/3", "zip/4"]


async def test_a_rebuild_does_not_delay_new_files_and_rounds(engine, upstream):
    verbs = Files(engine.dependencies, wake_workers=lambda: None)
    for path in ("a", "b", "c"):
        await verbs.add(engine.actor, home(engine), path, bytes_of(path))
        await engine.over((await engine.open(f"Where does {path} grow?")).turn)
    await done(engine)
    await engine.db.write(enqueue_rebuild)
    new = await verbs.add(engine.actor, home(engine), "new", bytes_of("new"))
    await engine.db.write(lambda tx: jobs.add_once(tx, "index_round", "new"))
    served = []

    async def serve(dependencies, payload):
        served.append(payload)

    known = {"index_file": serve, "index_round": serve}
    await Worker(engine.dependencies, "node", known, only="index_file").work()
    assert (served.index(encode(IndexFile(new.id))), len(served)) == (1, 4)
    served.clear()
    await Worker(engine.dependencies, "node", known, but="index_file").work()
    assert (served.index("new"), len(served)) == (1, 4)


async def test_indexing_a_large_file_updates_the_table_statistics(tmp_path, upstream, postgres_server):
    name = f"outgrown_{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}"
    async with engine_in(tmp_path, upstream, url=new_postgres_database(postgres_server, name)) as engine:
        verbs = Files(engine.dependencies, wake_workers=lambda: None)
        file = await verbs.add(engine.actor, home(engine), "a.md", bytes_of("a walnut"))
        await engine.db.write(lambda tx: many_chunks(tx, file, 4000))
        await done(engine)
        assert await engine.db.read(known_rows) > 0


async def test_equal_jobs_wait_once(engine, upstream):
    for _ in range(5):
        await engine.db.write(lambda tx: jobs.enqueue_once(tx, EmbedChunks()))
    worker = Worker(engine.dependencies, node="another")
    assert await worker.work() is True
    assert await worker.work() is False


async def test_two_runs_of_one_index_job_at_the_same_time_leave_one_index(engine, upstream):
    """This happens if a node was considered dead and was not."""
    verbs = Files(engine.dependencies, wake_workers=lambda: None)
    file = await verbs.add(engine.actor, home(engine), "long.md", bytes_of(LONG))
    await done(engine)
    await asyncio.gather(
        index_file(engine.dependencies, IndexFile(file.id)),
        index_file(engine.dependencies, IndexFile(file.id)),
    )
    assert await engine.db.read(lambda tx: vectors.count_due_in_file(tx, file.id)) == (500, 500)


async def test_a_file_whose_bytes_are_lost_is_marked_as_unreadable(engine, upstream):
    verbs = Files(engine.dependencies, wake_workers=lambda: None)
    file = await verbs.add(engine.actor, home(engine), "a.md", bytes_of("a walnut"))
    await engine.db.write(lambda tx: tx.execute(sql("UPDATE blobs SET keeping = 'disk', content = NULL")))
    await done(engine)
    kept = await engine.db.read(lambda tx: files.find(tx, file.id))
    assert (kept.index.state, kept.index.reason) == (IndexPhase.FAILED, BROKEN)


async def test_an_unchanged_chunk_of_a_changed_file_keeps_its_vector(engine, upstream):
    bags = engine.dependencies.library.embedder = Bags()
    verbs = Files(engine.dependencies, wake_workers=lambda: None)
    parts = [f"# Part {number}\n\nthe kitten number {number} sleeps in the grass" for number in range(150)]
    file = await verbs.add(engine.actor, home(engine), "a.md", bytes_of("\n\n".join(parts)))
    await done(engine)
    bags.embedded.clear()
    parts[120] = parts[120].replace("kitten", "puppy")
    await verbs.add(engine.actor, home(engine), "a.md", bytes_of("\n\n".join(parts)))
    await done(engine)
    assert [text.splitlines()[-1] for text in bags.embedded] == ["the puppy number 120 sleeps in the grass"]
    await engine.db.write(lambda tx: jobs.enqueue(tx, IndexFile(file.id)))
    await done(engine)
    kept = await engine.db.read(lambda tx: files.find(tx, file.id))
    assert (kept.index.state, kept.index.percent, kept.index.chunks) == (IndexPhase.INDEXED, 100, 150)
    assert len(bags.embedded) == 1
    await engine.db.write(lambda tx: files.rename(tx, engine.actor, home(engine), file.id, "b.md"))
    await done(engine)
    assert len(bags.embedded) == 151


async def test_a_round_indexed_again_keeps_its_vectors(engine, upstream):
    bags = engine.dependencies.library.embedder = Bags()
    opened = await engine.open("Where does the kitten sleep?")
    await engine.over(opened.turn)
    await done(engine)
    bags.embedded.clear()
    await engine.db.write(lambda tx: enqueue_rebuild(tx, home(engine)))
    await done(engine)
    assert bags.embedded == []
    findings = await find(
        engine.dependencies.library, engine.actor, [home(engine)], "cat", mode=SearchMode.MEANING
    )
    assert findings.hits[0].content == "Where does the kitten sleep?"
