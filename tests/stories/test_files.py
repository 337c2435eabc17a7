"""Files are kept as they came, seen by everyone in the project at once, and never lost by a change."""

from __future__ import annotations

from typing import Any

from tests.library.documents import docx, paragraph, pdf_of, png, zipped
from tests.world import Person, Tab, World


async def shared(ada: Person, bob: Person, role: str = "editor") -> str:
    project: str = (await ada.post("/api/projects", {"name": "Ours"}, expect=201))["id"]
    await ada.put(f"/api/projects/{project}/members", {"user_id": bob.id, "role": role})
    return project


async def settled(tab: Tab, path: str) -> dict[str, Any]:
    """Waits on the line until it is known what can be found in a file."""
    over = ("indexed", "not_indexed", "failed")

    def is_it(item: dict[str, Any]) -> bool:
        value = item.get("value") or {}
        return item.get("noun") == "file" and value.get("path") == path and value["index"]["state"] in over

    value: dict[str, Any] = (await tab.until(is_it))[-1]["value"]
    return value


async def test_a_file_appears_on_every_device_with_how_far_it_is(ada: Person, bob: Person) -> None:
    project = await shared(ada, bob)
    async with bob.live() as tab:
        await tab.follow(f"project:{project}")
        made = await ada.upload("notes/tea.docx", docx(paragraph("Oolong, ninety degrees.")), project)
        seen = await settled(tab, "notes/tea.docx")
    assert seen["id"] == made["id"]
    assert seen["index"]["state"] in ("indexed", "indexing")
    text = await bob.get(f"/api/projects/{project}/files/{made['id']}/text")
    assert text["text"] == "Oolong, ninety degrees.\n\n"


async def test_what_cannot_be_read_is_kept_and_says_why(ada: Person) -> None:
    files = {
        "cat.png": (png(4, 4), "not_indexed", "An image holds no text that can be searched."),
        "broken.docx": (docx("<w:p>"), "failed", "Its XML is broken"),
        "empty.txt": (b"", "not_indexed", "This file holds no text."),
    }
    async with ada.live() as tab:
        await tab.follow(f"project:{ada.home}")
        for path, (content, state, reason) in files.items():
            made = await ada.upload(path, content)
            seen = await settled(tab, path)
            assert (seen["index"]["state"], seen["index"]["chunks"]) == (state, 0)
            assert seen["index"]["reason"].startswith(reason)
            assert (await ada.client.get(f"/api/projects/{ada.home}/files/{made['id']}")).content == content


async def test_two_people_who_change_one_file_lose_nothing(ada: Person, bob: Person) -> None:
    project = await shared(ada, bob)
    made = await ada.upload("plan.md", b"one\n", project)
    where = f"/api/projects/{project}/files/{made['id']}"
    sent = {"Content-Type": "application/octet-stream", "If-Match": '"1"'}
    first = await ada.client.put(where, content=b"one\ntwo\n", headers=sent)
    second = await bob.client.put(where, content=b"one\nthree\n", headers=sent)
    assert (first.status_code, second.status_code) == (200, 412)
    assert "version 2" in second.json()["message"]
    await bob.client.put(where, content=b"one\nthree\n", headers=sent | {"If-Match": '"2"'})
    back = await ada.post(f"{where}/versions/2/restore")
    assert back["version"] == 4
    authors = [version["created_by"] for version in (await bob.get(f"{where}/versions"))["items"]]
    assert authors == [ada.id, bob.id, ada.id, ada.id]
    diff = await bob.get(f"{where}/versions/4/diff", against=3)
    assert "-three\n+two\n" in diff["unified"]


async def test_a_folder_comes_in_as_a_zip_and_goes_with_its_project(ada: Person, bob: Person) -> None:
    project = await shared(ada, bob, "viewer")
    packed = zipped({"docs/a.md": "# A", "docs/b.md": "# B", "../../etc/cron": "no"})
    answer = await ada.client.post(
        f"/api/projects/{project}/files", params={"unzip": "true"}, files=[("file", ("docs.zip", packed))]
    )
    taken = answer.json()
    assert [item["path"] for item in taken["items"]] == ["docs/a.md", "docs/b.md"]
    assert [one["path"] for one in taken["refused"]] == ["../../etc/cron"]
    await bob.upload("mine.md", b"x", project, expect=403)
    assert len((await bob.get(f"/api/projects/{project}/files", prefix="docs/"))["items"]) == 2
    used = (await ada.get(f"/api/projects/{project}/files"))["used_bytes"]
    await ada.delete(f"/api/projects/{project}")
    assert (await ada.get(f"/api/projects/{ada.home}/files"))["used_bytes"] == used - 6


async def test_a_deleted_file_is_gone_for_everyone(ada: Person, bob: Person, world: World) -> None:
    project = await shared(ada, bob)
    made = await ada.upload("secret.md", b"The canary sings.", project)
    async with bob.live() as tab:
        await tab.follow(f"project:{project}")
        await ada.delete(f"/api/projects/{project}/files/{made['id']}")
        await tab.until(lambda item: item.get("kind") == "removed" and item["id"] == made["id"])
    where = f"/api/projects/{project}/files"
    assert (await bob.get(where))["items"] == []
    for path in ("", "/text", "/info", "/versions", "/versions/1", "/versions/1/diff"):
        await bob.get(f"{where}/{made['id']}{path}", expect=404)


async def test_a_file_that_takes_long_keeps_nothing_else_waiting(ada: Person) -> None:
    """Its reader is busy for a minute; meanwhile what is said gets a name and can be found."""
    async with ada.live() as tab:
        await tab.follow(f"project:{ada.home}")
        slow = await ada.upload("slow.pdf", pdf_of([b"BT (x) Tj ET " * 1_000_000], compress=True))
        where = f"/api/projects/{ada.home}/files/{slow['id']}"
        await tab.until(lambda item: (item.get("value") or {}).get("index", {}).get("state") == "reading")
        asked = await ada.ask("Where do the cranes winter?", project_id=ada.home)
        title = {"noun": "conversation", "id": asked["conversation"]["id"]}
        await tab.until(lambda item: title.items() <= item.items() and item["value"]["title"])
    assert (await ada.get(f"{where}/info"))["index"]["state"] == "reading"
    await ada.delete(where)
