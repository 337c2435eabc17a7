"""Project files and their versions."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import text

from tertulia.core.errors import Conflict, Forbidden, Invalid, NotFound, Stale
from tertulia.core.events import Kind, project_place
from tertulia.core.files import (
    Content,
    FileEntry,
    FileMetadata,
    Folder,
    Indexing,
    IndexState,
    MetadataChange,
    Shelf,
)
from tertulia.core.projects import Membership
from tertulia.core.users import Actor
from tertulia.store import events, files, jobs, projects, shelves, versions
from tertulia.store.database import Database, Tx
from tertulia.store.transactions import Row
from tests.store.samples import content, file
from tests.store_fixtures import Clock, Watch


async def test_a_new_file_waits_to_be_indexed(
    db: Database, ada: Actor, adas_home: str, watch: Watch, clock: Clock
) -> None:
    async with watch(ada):
        made = await db.write(lambda tx: file(tx, ada, "docs//./plan.md"))
    assert (made.path, made.version, made.index) == ("docs/plan.md", 1, IndexState(Indexing.QUEUED))
    assert (made.metadata, made.created_by, made.created_at) == (FileMetadata(), ada.user_id, clock.now)
    assert await db.read(lambda tx: files.get(tx, ada, adas_home, made.id)) == made
    job = await db.write(lambda tx: jobs.claim(tx, "node", 1000))
    assert job is not None
    assert (job.kind, job.payload, job.key) == ("index_file", made.id, f"index_file:{made.id}:1")


async def test_a_path_that_is_there_gets_a_new_version(db: Database, ada: Actor, watch: Watch) -> None:
    first = await db.write(lambda tx: file(tx, ada, written="one\n"))
    async with watch(ada):
        second = await db.write(lambda tx: file(tx, ada, written="two\n"))
    assert (second.id, second.version) == (first.id, 2)
    kept = await db.read(lambda tx: versions.of_file(tx, ada, first.project_id, first.id))
    assert [(v.number, v.content_hash) for v in kept] == [
        (2, second.content_hash),
        (1, first.content_hash),
    ]


async def test_the_same_content_again_changes_nothing(db: Database, ada: Actor, watch: Watch) -> None:
    first = await db.write(lambda tx: file(tx, ada))
    async with watch.untouched():
        assert await db.write(lambda tx: file(tx, ada)) == first


async def test_one_path_in_two_unicode_forms_is_one_file(db: Database, ada: Actor) -> None:
    composed = await db.write(lambda tx: file(tx, ada, "caf\u00e9.md"))
    decomposed = await db.write(lambda tx: file(tx, ada, "cafe\u0301.md", "other"))
    assert (decomposed.id, decomposed.path) == (composed.id, "caf\u00e9.md")


async def test_look_alikes_and_cases_are_files_of_their_own(db: Database, ada: Actor, adas_home: str) -> None:
    names = ["a/b.md", "a\u2215b.md", "a\uff0fb.md", "A/b.md", "\u2024\u2024/b.md"]
    for name in names:
        await db.write(lambda tx, name=name: file(tx, ada, name))
    listed = await db.read(lambda tx: shelves.page(tx, ada, adas_home, limit=100))
    assert {item.path for item in listed.items} == set(names)


async def test_a_change_of_what_is_no_longer_there_is_refused(db: Database, ada: Actor, watch: Watch) -> None:
    made = await db.write(lambda tx: file(tx, ada, written="one"))
    await db.write(lambda tx: files.change(tx, ada, made.project_id, made.id, content(tx, "two"), seen=1))
    async with watch.untouched():
        with pytest.raises(Stale, match="version 2"):
            await db.write(
                lambda tx: files.change(tx, ada, made.project_id, made.id, content(tx, "three"), seen=1)
            )


async def test_a_file_can_be_renamed_but_not_onto_another(db: Database, ada: Actor, watch: Watch) -> None:
    made = await db.write(lambda tx: file(tx, ada, "a.md"))
    seen = Content(made.content_hash, made.size_bytes, "text/plain")
    await db.write(lambda tx: file(tx, ada, "b.md"))
    async with watch(ada):
        renamed = await db.write(lambda tx: files.rename(tx, ada, made.project_id, made.id, "c/a.txt", seen))
    assert (renamed.id, renamed.path, renamed.version) == (made.id, "c/a.txt", 1)
    assert (renamed.mime_type, renamed.index.state) == ("text/plain", Indexing.QUEUED)
    async with watch.untouched():
        with pytest.raises(Conflict):
            await db.write(lambda tx: files.rename(tx, ada, made.project_id, made.id, "b.md"))
        with pytest.raises(Invalid):
            await db.write(lambda tx: files.rename(tx, ada, made.project_id, made.id, "../b.md"))


async def test_a_kind_that_was_seen_in_other_bytes_is_not_heard(db: Database, ada: Actor) -> None:
    made = await db.write(lambda tx: file(tx, ada, "a.md"))
    other = Content("0" * 64, 1, "image/png")
    renamed = await db.write(lambda tx: files.rename(tx, ada, made.project_id, made.id, "b.md", other))
    assert (renamed.path, renamed.mime_type) == ("b.md", made.mime_type)


async def test_what_people_say_of_a_file_is_kept(db: Database, ada: Actor, watch: Watch) -> None:
    made = await db.write(lambda tx: file(tx, ada))
    said = MetadataChange(True, False, False, (" two  words ", "b", "b"), " A  plan. ")
    async with watch(ada):
        changed = await db.write(lambda tx: files.set_metadata(tx, ada, made.project_id, made.id, said))
    assert changed.metadata == FileMetadata(True, False, False, ("two words", "b"), "A plan.")
    assert changed.version == 1
    assert [one.id for one in await db.read(lambda tx: shelves.always_included(tx, made.project_id))] == [
        made.id
    ]
    for wrong in (MetadataChange(tags=("x" * 51,)), MetadataChange(summary="x" * 1001)):
        with pytest.raises(Invalid):
            await db.write(
                lambda tx, wrong=wrong: files.set_metadata(tx, ada, made.project_id, made.id, wrong)
            )


async def test_two_who_say_different_things_of_a_file_at_once_are_both_heard(
    db: Database, ada: Actor, watch: Watch
) -> None:
    made = await db.write(lambda tx: file(tx, ada))
    changes = (MetadataChange(tags=("plan",)), MetadataChange(always_in_context=True))
    async with watch(ada):
        await asyncio.gather(
            *(
                db.write(lambda tx, one=one: files.set_metadata(tx, ada, made.project_id, made.id, one))
                for one in changes
            )
        )
    now = await db.read(lambda tx: files.get(tx, ada, made.project_id, made.id))
    assert now.metadata == FileMetadata(always_in_context=True, tags=("plan",))


async def test_only_what_changes_how_it_is_found_asks_for_indexing(db: Database, ada: Actor) -> None:
    made = await db.write(lambda tx: file(tx, ada))
    await db.write(lambda tx: files.set_index(tx, made.id, IndexState(Indexing.INDEXED, 3, 100)))

    def say(**said: bool) -> Indexing:
        return db.write_now(
            lambda tx: files.set_metadata(tx, ada, made.project_id, made.id, MetadataChange(**said))
        ).index.state

    assert say(always_in_context=True) is Indexing.INDEXED
    assert say(always_in_context=True, retrieval_eligible=False) is Indexing.QUEUED


async def test_how_far_it_is_indexed_is_told(db: Database, ada: Actor, watch: Watch) -> None:
    made = await db.write(lambda tx: file(tx, ada, written="one"))
    failed = IndexState(Indexing.FAILED, reason="This PDF is locked with a password.")
    async with watch(ada):
        assert (await db.write(lambda tx: files.set_index(tx, made.id, failed, version=1))).index == failed
    await db.write(lambda tx: file(tx, ada, written="two"))
    async with watch.untouched():
        assert await db.write(lambda tx: files.set_index(tx, made.id, failed, version=1)) is None


async def test_a_list_is_in_the_order_of_paths_page_by_page(db: Database, ada: Actor, adas_home: str) -> None:
    names = ["B.md", "a.md", "docs/1.md", "docs/2.md", "docs-old.md", "\u00e9.md", "z.md"]
    for name in names:
        await db.write(lambda tx, name=name: file(tx, ada, name))
    seen: list[str] = []
    cursor = None
    while True:
        page = await db.read(lambda tx, at=cursor: shelves.page(tx, ada, adas_home, limit=2, cursor=at))
        seen += [item.path for item in page.items]
        if (cursor := page.next) is None:
            break
    assert seen == sorted(names)
    folder = await db.read(lambda tx: shelves.page(tx, ada, adas_home, limit=9, prefix="docs/"))
    assert [item.path for item in folder.items] == ["docs/1.md", "docs/2.md"]
    shelf = await db.read(lambda tx: shelves.of_project(tx, adas_home))
    assert (shelf.count, shelf.entries[0]) == (len(names), FileEntry("B.md", 7, ""))
    assert [entry.path for entry in shelf.entries] == sorted(names)
    assert shelf.folders == ()


async def test_of_more_than_fifty_files_only_the_top_folders_are_listed(
    db: Database, ada: Actor, adas_home: str
) -> None:
    names = [*(f"docs/{number}.md" for number in range(30)), *(f"a/b/{number}" for number in range(20))]
    await db.write(lambda tx: [file(tx, ada, name) for name in names])
    listed = await db.read(lambda tx: shelves.of_project(tx, adas_home))
    assert [entry.path for entry in listed.entries] == sorted(names)
    await db.write(lambda tx: file(tx, ada, "x"))
    shelf = await db.read(lambda tx: shelves.of_project(tx, adas_home))
    assert shelf == Shelf(51, folders=(Folder("", 1), Folder("a/", 20), Folder("docs/", 30)))


@pytest.mark.parametrize("tag", ["plan", 'a "quoted" one', "50%", "x_y", "\u00e9\u4e2d", "back\\slash"])
async def test_a_tag_finds_the_files_that_have_it_and_no_others(
    db: Database, ada: Actor, adas_home: str, tag: str
) -> None:
    def tagged(tx: Tx) -> None:
        for path, tags in (("a", (tag, "other")), ("b", (tag + "x",)), ("c", ("x" + tag,)), ("d", ())):
            made = file(tx, ada, path)
            files.set_metadata(tx, ada, adas_home, made.id, MetadataChange(tags=tags))

    await db.write(tagged)
    page = await db.read(lambda tx: shelves.page(tx, ada, adas_home, limit=9, tag=tag))
    assert [item.path for item in page.items] == ["a"]


@pytest.mark.parametrize("cursor", ["x", "Li4vYQ==", "/w==", "' OR 1=1 --", "\u00e9"])
async def test_a_cursor_nobody_gave_out_is_invalid(
    db: Database, ada: Actor, adas_home: str, cursor: str
) -> None:
    with pytest.raises(Invalid):
        await db.read(lambda tx: shelves.page(tx, ada, adas_home, limit=5, cursor=cursor))


async def test_what_a_person_keeps_is_counted_once_however_often_it_is_there(
    db: Database, ada: Actor, bob: Actor
) -> None:
    await db.write(lambda tx: file(tx, ada, "a", "12345"))
    await db.write(lambda tx: file(tx, ada, "b", "12345"))
    await db.write(lambda tx: file(tx, ada, "a", "1234567"))
    await db.write(lambda tx: file(tx, ada, "a", "12345"))
    await db.write(lambda tx: file(tx, bob, "a", "123"))
    assert await db.read(lambda tx: files.used_bytes(tx, ada.user_id)) == 12
    assert await db.read(lambda tx: files.used_bytes(tx, bob.user_id)) == 3


async def test_a_removed_file_leaves_nothing_to_find(db: Database, ada: Actor, watch: Watch) -> None:
    made = await db.write(lambda tx: file(tx, ada))
    async with watch(ada):
        await db.write(lambda tx: files.remove(tx, ada, made.project_id, made.id))
    with pytest.raises(NotFound):
        await db.read(lambda tx: files.get(tx, ada, made.project_id, made.id))
    log = await db.read(lambda tx: events.after(tx, project_place(made.project_id), 0))
    assert {(event.kind, event.value) for event in log if event.noun == "file"} == {(Kind.REMOVED, None)}
    assert "index_file" not in [job.kind for job in await all_jobs(db)]
    assert await db.read(lambda tx: files.used_bytes(tx, ada.user_id)) == 0


async def test_a_file_whose_job_was_given_up_gets_another_at_the_next_start(db: Database, ada: Actor) -> None:
    made = await db.write(lambda tx: file(tx, ada))
    await db.write(files.recover)
    kinds = [job.kind for job in await all_jobs(db)]
    assert sorted(kinds) == ["index_file", "sweep_blobs"]
    await db.write(lambda tx: tx.execute(text("UPDATE jobs SET state = 'aside' WHERE kind = 'index_file'")))
    for _ in range(2):
        await db.write(files.recover)
    waiting = [job for job in await all_jobs(db) if job.kind == "index_file"]
    assert [job.payload for job in waiting] == [made.id]
    await db.write(lambda tx: files.set_index(tx, made.id, IndexState(Indexing.FAILED, reason="broken")))
    await db.write(lambda tx: jobs.withdraw(tx, "index_file", made.id))
    await db.write(files.recover)
    assert [job.kind for job in await all_jobs(db)] == ["sweep_blobs"]


async def all_jobs(db: Database) -> list[Row]:
    waiting = text("SELECT kind, payload FROM jobs WHERE state = 'waiting'")
    return await db.read(lambda tx: tx.execute(waiting))


async def test_a_removed_project_takes_its_files_along(db: Database, ada: Actor, watch: Watch) -> None:
    project = await db.write(lambda tx: projects.add(tx, ada, "Atlas"))
    made = await db.write(lambda tx: file(tx, ada, project_id=project.id))
    async with watch(ada):
        await db.write(lambda tx: projects.remove(tx, ada, project.id))
    assert await db.read(lambda tx: files.find(tx, made.id)) is None
    assert await db.read(lambda tx: files.used_bytes(tx, ada.user_id)) == 0
    assert await db.write(lambda tx: jobs.claim(tx, "node", 1000)) is None


async def test_a_viewer_reads_files_and_changes_none(
    db: Database, ada: Actor, bob: Actor, adas_home: str, watch: Watch
) -> None:
    made = await db.write(lambda tx: file(tx, ada))
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, Membership.VIEWER))
    assert await db.read(lambda tx: files.get(tx, bob, adas_home, made.id)) == made
    writes = (
        lambda tx: files.put(tx, bob, adas_home, "x.md", content(tx, "# Plan\n")),
        lambda tx: files.change(tx, bob, adas_home, made.id, content(tx, "# Plan\n")),
        lambda tx: files.rename(tx, bob, adas_home, made.id, "x.md"),
        lambda tx: files.set_metadata(tx, bob, adas_home, made.id, MetadataChange()),
        lambda tx: files.remove(tx, bob, adas_home, made.id),
    )
    async with watch.untouched():
        for write in writes:
            with pytest.raises(Forbidden):
                await db.write(write)


async def test_a_file_is_not_reached_through_another_project(db: Database, ada: Actor, watch: Watch) -> None:
    """Both are Ada's: a child must belong to the parent named beside it."""
    made = await db.write(lambda tx: file(tx, ada))
    other = (await db.write(lambda tx: projects.add(tx, ada, "Atlas"))).id
    ways = (
        lambda tx: files.get(tx, ada, other, made.id),
        lambda tx: files.change(tx, ada, other, made.id, content(tx, "# Plan\n")),
        lambda tx: files.rename(tx, ada, other, made.id, "x.md"),
        lambda tx: files.set_metadata(tx, ada, other, made.id, MetadataChange()),
        lambda tx: versions.of_file(tx, ada, other, made.id),
        lambda tx: versions.get(tx, ada, other, made.id, 1),
        lambda tx: files.remove(tx, ada, other, made.id),
    )
    async with watch.untouched():
        for way in ways:
            with pytest.raises(NotFound):
                await db.write(way)


async def test_of_many_who_write_one_path_at_once_each_makes_a_version(
    db: Database, ada: Actor, watch: Watch
) -> None:
    async with watch(ada):
        made = await asyncio.gather(
            *(db.write(lambda tx, n=n: file(tx, ada, "a.md", f"text {n}")) for n in range(8))
        )
    assert len({one.id for one in made}) == 1
    assert sorted(one.version for one in made) == list(range(1, 9))
