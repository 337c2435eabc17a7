"""Project files: paths, versions, metadata, indexing state, quota, removal."""

from __future__ import annotations

import asyncio

import pytest

from tertulia.core.errors import Conflict, Forbidden, Invalid, NotFound, VersionConflict
from tertulia.core.events import EventKind, project_topic
from tertulia.core.files import (
    Content,
    FileEntry,
    FileListing,
    FileMetadata,
    Folder,
    IndexPhase,
    IndexState,
    MetadataChange,
)
from tertulia.core.jobs import IndexFile, encode
from tertulia.core.projects import ProjectRole
from tertulia.core.users import Actor
from tertulia.store import events, file_listing, files, jobs, projects, versions
from tertulia.store.database import Database, Tx
from tertulia.store.sql import sql
from tertulia.store.transactions import Row
from tests.store.samples import content, file
from tests.store_fixtures import Clock, Watch


async def test_a_new_file_has_an_index_job_waiting(
    db: Database, ada: Actor, adas_home: str, watch: Watch, clock: Clock
) -> None:
    async with watch(ada):
        saved = await db.write(lambda tx: file(tx, ada, "docs//./plan.md"))
    assert (saved.path, saved.version, saved.index) == ("docs/plan.md", 1, IndexState(IndexPhase.QUEUED))
    assert (saved.metadata, saved.created_by, saved.created_at) == (FileMetadata(), ada.user_id, clock.now)
    assert await db.read(lambda tx: files.get(tx, ada, adas_home, saved.id)) == saved
    job = await db.write(lambda tx: jobs.claim(tx, "node", 1000))
    assert job is not None
    assert (job.kind, job.payload, job.key) == (
        "index_file",
        encode(IndexFile(saved.id)),
        f"index_file:{saved.id}:1",
    )


async def test_storing_at_an_existing_path_adds_a_version(db: Database, ada: Actor, watch: Watch) -> None:
    first = await db.write(lambda tx: file(tx, ada, written="one\n"))
    async with watch(ada):
        second = await db.write(lambda tx: file(tx, ada, written="two\n"))
    assert (second.id, second.version) == (first.id, 2)
    stored_versions = await db.read(lambda tx: versions.of_file(tx, ada, first.project_id, first.id))
    assert [(version.number, version.content_hash) for version in stored_versions] == [
        (2, second.content_hash),
        (1, first.content_hash),
    ]


async def test_storing_equal_content_again_changes_nothing(db: Database, ada: Actor, watch: Watch) -> None:
    first = await db.write(lambda tx: file(tx, ada))
    async with watch.untouched():
        assert await db.write(lambda tx: file(tx, ada)) == first


async def test_one_path_in_two_unicode_forms_is_one_file(db: Database, ada: Actor) -> None:
    composed = await db.write(lambda tx: file(tx, ada, "caf\u00e9.md"))
    decomposed = await db.write(lambda tx: file(tx, ada, "cafe\u0301.md", "other"))
    assert (decomposed.id, decomposed.path) == (composed.id, "caf\u00e9.md")


async def test_look_alike_paths_and_other_case_are_separate_files(
    db: Database, ada: Actor, adas_home: str
) -> None:
    names = ["a/b.md", "a\u2215b.md", "a\uff0fb.md", "A/b.md", "\u2024\u2024/b.md"]
    for name in names:
        await db.write(lambda tx, name=name: file(tx, ada, name))
    page = await db.read(lambda tx: file_listing.page(tx, ada, adas_home, limit=100))
    assert {item.path for item in page.items} == set(names)


async def test_a_change_of_an_outdated_version_is_refused(db: Database, ada: Actor, watch: Watch) -> None:
    saved = await db.write(lambda tx: file(tx, ada, written="one"))
    await db.write(lambda tx: files.change(tx, ada, saved.project_id, saved.id, content(tx, "two"), seen=1))
    async with watch.untouched():
        with pytest.raises(VersionConflict, match="version 2"):
            await db.write(
                lambda tx: files.change(tx, ada, saved.project_id, saved.id, content(tx, "three"), seen=1)
            )


async def test_a_file_can_be_renamed_but_not_to_a_path_in_use(db: Database, ada: Actor, watch: Watch) -> None:
    saved = await db.write(lambda tx: file(tx, ada, "a.md"))
    detected = Content(saved.content_hash, saved.size_bytes, "text/plain")
    await db.write(lambda tx: file(tx, ada, "b.md"))
    async with watch(ada):
        renamed = await db.write(
            lambda tx: files.rename(tx, ada, saved.project_id, saved.id, "c/a.txt", detected)
        )
    assert (renamed.id, renamed.path, renamed.version) == (saved.id, "c/a.txt", 1)
    assert (renamed.mime_type, renamed.index.state) == ("text/plain", IndexPhase.QUEUED)
    async with watch.untouched():
        with pytest.raises(Conflict):
            await db.write(lambda tx: files.rename(tx, ada, saved.project_id, saved.id, "b.md"))
        with pytest.raises(Invalid):
            await db.write(lambda tx: files.rename(tx, ada, saved.project_id, saved.id, "../b.md"))


async def test_a_rename_ignores_a_mime_type_detected_in_other_bytes(db: Database, ada: Actor) -> None:
    saved = await db.write(lambda tx: file(tx, ada, "a.md"))
    other_content = Content("0" * 64, 1, "image/png")
    renamed = await db.write(
        lambda tx: files.rename(tx, ada, saved.project_id, saved.id, "b.md", other_content)
    )
    assert (renamed.path, renamed.mime_type) == ("b.md", saved.mime_type)


async def test_metadata_of_a_file_is_cleaned_and_stored(db: Database, ada: Actor, watch: Watch) -> None:
    saved = await db.write(lambda tx: file(tx, ada))
    change = MetadataChange(True, False, False, (" two  words ", "b", "b"), " A  plan. ")
    async with watch(ada):
        changed = await db.write(lambda tx: files.set_metadata(tx, ada, saved.project_id, saved.id, change))
    assert changed.metadata == FileMetadata(True, False, False, ("two words", "b"), "A plan.")
    assert changed.version == 1
    assert [
        listed.id for listed in await db.read(lambda tx: file_listing.always_included(tx, saved.project_id))
    ] == [saved.id]
    for invalid in (MetadataChange(tags=("x" * 51,)), MetadataChange(summary="x" * 1001)):
        with pytest.raises(Invalid):
            await db.write(
                lambda tx, invalid=invalid: files.set_metadata(tx, ada, saved.project_id, saved.id, invalid)
            )


async def test_concurrent_changes_of_different_metadata_are_both_stored(
    db: Database, ada: Actor, watch: Watch
) -> None:
    saved = await db.write(lambda tx: file(tx, ada))
    changes = (MetadataChange(tags=("plan",)), MetadataChange(always_in_context=True))
    async with watch(ada):
        await asyncio.gather(
            *(
                db.write(
                    lambda tx, change=change: files.set_metadata(tx, ada, saved.project_id, saved.id, change)
                )
                for change in changes
            )
        )
    current = await db.read(lambda tx: files.get(tx, ada, saved.project_id, saved.id))
    assert current.metadata == FileMetadata(always_in_context=True, tags=("plan",))


async def test_a_file_is_indexed_again_only_when_retrieval_eligible_changes(db: Database, ada: Actor) -> None:
    saved = await db.write(lambda tx: file(tx, ada))
    await db.write(lambda tx: files.set_index(tx, saved.id, IndexState(IndexPhase.INDEXED, 3, 100)))

    def set_metadata(**changes: bool) -> IndexPhase:
        return db.write_now(
            lambda tx: files.set_metadata(tx, ada, saved.project_id, saved.id, MetadataChange(**changes))
        ).index.state

    assert set_metadata(always_in_context=True) is IndexPhase.INDEXED
    assert set_metadata(always_in_context=True, retrieval_eligible=False) is IndexPhase.QUEUED


async def test_an_index_state_emits_an_event_unless_its_version_is_outdated(
    db: Database, ada: Actor, watch: Watch
) -> None:
    saved = await db.write(lambda tx: file(tx, ada, written="one"))
    failed = IndexState(IndexPhase.FAILED, reason="This PDF is locked with a password.")
    async with watch(ada):
        assert (await db.write(lambda tx: files.set_index(tx, saved.id, failed, version=1))).index == failed
    await db.write(lambda tx: file(tx, ada, written="two"))
    async with watch.untouched():
        assert await db.write(lambda tx: files.set_index(tx, saved.id, failed, version=1)) is None


async def test_files_are_listed_in_path_order_in_pages(db: Database, ada: Actor, adas_home: str) -> None:
    names = ["B.md", "a.md", "docs/1.md", "docs/2.md", "docs-old.md", "\u00e9.md", "z.md"]
    for name in names:
        await db.write(lambda tx, name=name: file(tx, ada, name))
    paths: list[str] = []
    cursor = None
    while True:
        page = await db.read(lambda tx, at=cursor: file_listing.page(tx, ada, adas_home, limit=2, cursor=at))
        paths += [item.path for item in page.items]
        if (cursor := page.next) is None:
            break
    assert paths == sorted(names)
    folder = await db.read(lambda tx: file_listing.page(tx, ada, adas_home, limit=9, prefix="docs/"))
    assert [item.path for item in folder.items] == ["docs/1.md", "docs/2.md"]
    listing = await db.read(lambda tx: file_listing.of_project(tx, adas_home))
    assert (listing.count, listing.entries[0]) == (len(names), FileEntry("B.md", 7, ""))
    assert [entry.path for entry in listing.entries] == sorted(names)
    assert listing.folders == ()


async def test_a_project_of_more_than_fifty_files_lists_only_its_top_folders(
    db: Database, ada: Actor, adas_home: str
) -> None:
    names = [*(f"docs/{number}.md" for number in range(30)), *(f"a/b/{number}" for number in range(20))]
    await db.write(lambda tx: [file(tx, ada, name) for name in names])
    short_listing = await db.read(lambda tx: file_listing.of_project(tx, adas_home))
    assert [entry.path for entry in short_listing.entries] == sorted(names)
    await db.write(lambda tx: file(tx, ada, "x"))
    long_listing = await db.read(lambda tx: file_listing.of_project(tx, adas_home))
    assert long_listing == FileListing(51, folders=(Folder("", 1), Folder("a/", 20), Folder("docs/", 30)))


@pytest.mark.parametrize("tag", ["plan", 'a "quoted" one', "50%", "x_y", "\u00e9\u4e2d", "back\\slash"])
async def test_filtering_by_a_tag_lists_only_files_with_exactly_that_tag(
    db: Database, ada: Actor, adas_home: str, tag: str
) -> None:
    def add_tagged_files(tx: Tx) -> None:
        for path, tags in (("a", (tag, "other")), ("b", (tag + "x",)), ("c", ("x" + tag,)), ("d", ())):
            saved = file(tx, ada, path)
            files.set_metadata(tx, ada, adas_home, saved.id, MetadataChange(tags=tags))

    await db.write(add_tagged_files)
    page = await db.read(lambda tx: file_listing.page(tx, ada, adas_home, limit=9, tag=tag))
    assert [item.path for item in page.items] == ["a"]


@pytest.mark.parametrize("cursor", ["x", "Li4vYQ==", "/w==", "' OR 1=1 --", "\u00e9"])
async def test_a_malformed_list_cursor_is_refused(
    db: Database, ada: Actor, adas_home: str, cursor: str
) -> None:
    with pytest.raises(Invalid):
        await db.read(lambda tx: file_listing.page(tx, ada, adas_home, limit=5, cursor=cursor))


async def test_used_bytes_count_equal_contents_of_a_user_once(db: Database, ada: Actor, bob: Actor) -> None:
    await db.write(lambda tx: file(tx, ada, "a", "12345"))
    await db.write(lambda tx: file(tx, ada, "b", "12345"))
    await db.write(lambda tx: file(tx, ada, "a", "1234567"))
    await db.write(lambda tx: file(tx, ada, "a", "12345"))
    await db.write(lambda tx: file(tx, bob, "a", "123"))
    assert await db.read(lambda tx: files.used_bytes(tx, ada.user_id)) == 12
    assert await db.read(lambda tx: files.used_bytes(tx, bob.user_id)) == 3


async def test_a_removed_file_leaves_no_content_in_events_and_no_job(
    db: Database, ada: Actor, watch: Watch
) -> None:
    saved = await db.write(lambda tx: file(tx, ada))
    async with watch(ada):
        await db.write(lambda tx: files.remove(tx, ada, saved.project_id, saved.id))
    with pytest.raises(NotFound):
        await db.read(lambda tx: files.get(tx, ada, saved.project_id, saved.id))
    log = await db.read(lambda tx: events.after(tx, project_topic(saved.project_id), 0))
    assert {(event.kind, event.value) for event in log if event.noun == "file"} == {(EventKind.REMOVED, None)}
    assert "index_file" not in [job.kind for job in await waiting_jobs(db)]
    assert await db.read(lambda tx: files.used_bytes(tx, ada.user_id)) == 0


async def test_the_next_start_adds_an_index_job_for_a_file_whose_job_was_set_aside(
    db: Database, ada: Actor
) -> None:
    saved = await db.write(lambda tx: file(tx, ada))
    await db.write(files.recover)
    kinds = [job.kind for job in await waiting_jobs(db)]
    assert sorted(kinds) == ["index_file", "sweep_blobs"]
    await db.write(lambda tx: tx.execute(sql("UPDATE jobs SET state = 'aside' WHERE kind = 'index_file'")))
    for _ in range(2):
        await db.write(files.recover)
    waiting = [job for job in await waiting_jobs(db) if job.kind == "index_file"]
    assert [job.payload for job in waiting] == [encode(IndexFile(saved.id))]
    await db.write(lambda tx: files.set_index(tx, saved.id, IndexState(IndexPhase.FAILED, reason="broken")))
    await db.write(lambda tx: jobs.cancel(tx, IndexFile(saved.id)))
    await db.write(files.recover)
    assert [job.kind for job in await waiting_jobs(db)] == ["sweep_blobs"]


async def waiting_jobs(db: Database) -> list[Row]:
    statement = sql("SELECT kind, payload FROM jobs WHERE state = 'waiting'")
    return await db.read(lambda tx: tx.execute(statement))


async def test_removing_a_project_removes_its_files_and_their_jobs(
    db: Database, ada: Actor, watch: Watch
) -> None:
    project = await db.write(lambda tx: projects.add(tx, ada, "Atlas"))
    saved = await db.write(lambda tx: file(tx, ada, project_id=project.id))
    async with watch(ada):
        await db.write(lambda tx: projects.remove(tx, ada, project.id))
    assert await db.read(lambda tx: files.find(tx, saved.id)) is None
    assert await db.read(lambda tx: files.used_bytes(tx, ada.user_id)) == 0
    assert await db.write(lambda tx: jobs.claim(tx, "node", 1000)) is None


async def test_a_viewer_can_read_files_but_not_change_them(
    db: Database, ada: Actor, bob: Actor, adas_home: str, watch: Watch
) -> None:
    saved = await db.write(lambda tx: file(tx, ada))
    await db.write(lambda tx: projects.set_member(tx, ada, adas_home, bob.user_id, ProjectRole.VIEWER))
    assert await db.read(lambda tx: files.get(tx, bob, adas_home, saved.id)) == saved
    writes = (
        lambda tx: files.put(tx, bob, adas_home, "x.md", content(tx, "# Plan\n")),
        lambda tx: files.change(tx, bob, adas_home, saved.id, content(tx, "# Plan\n")),
        lambda tx: files.rename(tx, bob, adas_home, saved.id, "x.md"),
        lambda tx: files.set_metadata(tx, bob, adas_home, saved.id, MetadataChange()),
        lambda tx: files.remove(tx, bob, adas_home, saved.id),
    )
    async with watch.untouched():
        for write in writes:
            with pytest.raises(Forbidden):
                await db.write(write)


async def test_a_file_is_not_found_through_another_project(db: Database, ada: Actor, watch: Watch) -> None:
    """Ada owns both projects; the file must belong to the project in the request."""
    saved = await db.write(lambda tx: file(tx, ada))
    other_id = (await db.write(lambda tx: projects.add(tx, ada, "Atlas"))).id
    calls = (
        lambda tx: files.get(tx, ada, other_id, saved.id),
        lambda tx: files.change(tx, ada, other_id, saved.id, content(tx, "# Plan\n")),
        lambda tx: files.rename(tx, ada, other_id, saved.id, "x.md"),
        lambda tx: files.set_metadata(tx, ada, other_id, saved.id, MetadataChange()),
        lambda tx: versions.of_file(tx, ada, other_id, saved.id),
        lambda tx: versions.get(tx, ada, other_id, saved.id, 1),
        lambda tx: files.remove(tx, ada, other_id, saved.id),
    )
    async with watch.untouched():
        for call in calls:
            with pytest.raises(NotFound):
                await db.write(call)


async def test_concurrent_writes_to_one_path_each_add_a_version(
    db: Database, ada: Actor, watch: Watch
) -> None:
    async with watch(ada):
        results = await asyncio.gather(
            *(db.write(lambda tx, n=n: file(tx, ada, "a.md", f"text {n}")) for n in range(8))
        )
    assert len({result.id for result in results}) == 1
    assert sorted(result.version for result in results) == list(range(1, 9))
