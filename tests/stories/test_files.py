"""Files are stored unchanged, shown to all project members live, and keep every version."""

from __future__ import annotations

from typing import Any

from tests.library.documents import docx, paragraph, pdf_of, png, zipped
from tests.world import Person, Tab, World


async def create_shared_project(ada: Person, bob: Person, role: str = "editor") -> str:
    project: str = (await ada.post("/api/projects", {"name": "Ours"}, expect=201))["id"]
    await ada.put(f"/api/projects/{project}/members", {"user_id": bob.id, "role": role})
    return project


async def wait_until_indexed(tab: Tab, path: str) -> dict[str, Any]:
    """Waits for the event that ends the indexing of a file, and returns the file."""
    final_states = ("indexed", "not_indexed", "failed")

    def is_settled(item: dict[str, Any]) -> bool:
        value = item.get("value") or {}
        return (
            item.get("noun") == "file"
            and value.get("path") == path
            and value["index"]["state"] in final_states
        )

    value: dict[str, Any] = (await tab.until(is_settled))[-1]["value"]
    return value


async def test_file_events_show_the_indexing_state_to_every_member(ada: Person, bob: Person) -> None:
    project = await create_shared_project(ada, bob)
    async with bob.live() as tab:
        await tab.follow(f"project:{project}")
        uploaded = await ada.upload("notes/tea.docx", docx(paragraph("Oolong, ninety degrees.")), project)
        file = await wait_until_indexed(tab, "notes/tea.docx")
    assert file["id"] == uploaded["id"]
    assert file["index"]["state"] in ("indexed", "indexing")
    text = await bob.get(f"/api/projects/{project}/files/{uploaded['id']}/text")
    assert text["text"] == "Oolong, ninety degrees.\n\n"


async def test_an_unreadable_file_is_stored_with_the_reason(ada: Person) -> None:
    files = {
        "cat.png": (png(4, 4), "not_indexed", "An image holds no text that can be searched."),
        "broken.docx": (docx("<w:p>"), "failed", "Its XML is broken"),
        "empty.txt": (b"", "not_indexed", "This file holds no text."),
    }
    async with ada.live() as tab:
        await tab.follow(f"project:{ada.home}")
        for path, (content, state, reason) in files.items():
            uploaded = await ada.upload(path, content)
            file = await wait_until_indexed(tab, path)
            assert (file["index"]["state"], file["index"]["chunks"]) == (state, 0)
            assert file["index"]["reason"].startswith(reason)
            assert (
                await ada.client.get(f"/api/projects/{ada.home}/files/{uploaded['id']}")
            ).content == content


async def test_concurrent_changes_of_a_file_keep_every_version(ada: Person, bob: Person) -> None:
    project = await create_shared_project(ada, bob)
    uploaded = await ada.upload("plan.md", b"one\n", project)
    url = f"/api/projects/{project}/files/{uploaded['id']}"
    headers = {"Content-Type": "application/octet-stream", "If-Match": '"1"'}
    first = await ada.client.put(url, content=b"one\ntwo\n", headers=headers)
    second = await bob.client.put(url, content=b"one\nthree\n", headers=headers)
    assert (first.status_code, second.status_code) == (200, 412)
    assert "version 2" in second.json()["message"]
    await bob.client.put(url, content=b"one\nthree\n", headers=headers | {"If-Match": '"2"'})
    restored = await ada.post(f"{url}/versions/2/restore")
    assert restored["version"] == 4
    authors = [version["created_by"] for version in (await bob.get(f"{url}/versions"))["items"]]
    assert authors == [ada.id, bob.id, ada.id, ada.id]
    diff = await bob.get(f"{url}/versions/4/diff", against=3)
    assert "-three\n+two\n" in diff["unified"]


async def test_a_zip_upload_is_unpacked_and_deleted_with_its_project(ada: Person, bob: Person) -> None:
    project = await create_shared_project(ada, bob, "viewer")
    archive = zipped({"docs/a.md": "# A", "docs/b.md": "# B", "../../etc/cron": "no"})
    answer = await ada.client.post(
        f"/api/projects/{project}/files", params={"unzip": "true"}, files=[("file", ("docs.zip", archive))]
    )
    result = answer.json()
    assert [item["path"] for item in result["items"]] == ["docs/a.md", "docs/b.md"]
    assert [rejected["path"] for rejected in result["refused"]] == ["../../etc/cron"]
    await bob.upload("mine.md", b"x", project, expect=403)
    assert len((await bob.get(f"/api/projects/{project}/files", prefix="docs/"))["items"]) == 2
    bytes_before = (await ada.get(f"/api/projects/{project}/files"))["used_bytes"]
    await ada.delete(f"/api/projects/{project}")
    assert (await ada.get(f"/api/projects/{ada.home}/files"))["used_bytes"] == bytes_before - 6


async def test_a_deleted_file_is_gone_for_every_member(ada: Person, bob: Person, world: World) -> None:
    project = await create_shared_project(ada, bob)
    uploaded = await ada.upload("secret.md", b"The canary sings.", project)
    async with bob.live() as tab:
        await tab.follow(f"project:{project}")
        await ada.delete(f"/api/projects/{project}/files/{uploaded['id']}")
        await tab.until(lambda item: item.get("kind") == "removed" and item["id"] == uploaded["id"])
    url = f"/api/projects/{project}/files"
    assert (await bob.get(url))["items"] == []
    for path in ("", "/text", "/info", "/versions", "/versions/1", "/versions/1/diff"):
        await bob.get(f"{url}/{uploaded['id']}{path}", expect=404)


async def test_a_slow_extraction_does_not_delay_other_jobs(ada: Person) -> None:
    """Its extraction takes a minute; meanwhile a conversation gets its title."""
    async with ada.live() as tab:
        await tab.follow(f"project:{ada.home}")
        slow_file = await ada.upload("slow.pdf", pdf_of([b"BT (x) Tj ET " * 1_000_000], compress=True))
        url = f"/api/projects/{ada.home}/files/{slow_file['id']}"
        await tab.until(lambda item: (item.get("value") or {}).get("index", {}).get("state") == "reading")
        opened = await ada.ask("Where do the cranes winter?", project_id=ada.home)
        title = {"noun": "conversation", "id": opened["conversation"]["id"]}
        await tab.until(lambda item: title.items() <= item.items() and item["value"]["title"])
    assert (await ada.get(f"{url}/info"))["index"]["state"] == "reading"
    await ada.delete(url)
