"""Every message shows the name of its author to everyone who may read it, even after the author left."""

from __future__ import annotations

from tests.world import Person


async def test_members_see_each_others_names_and_no_other_account_data(ada, bob):
    path = f"/api/projects/{ada.home}/people"
    await bob.get(path, expect=404)
    await ada.put(f"/api/projects/{ada.home}/members", {"user_id": bob.id, "role": "viewer"})
    expected = [{"id": ada.id, "name": "Ada"}, {"id": bob.id, "name": "Bob"}]
    for person in (ada, bob):
        assert (await person.get(path))["items"] == expected


async def test_the_name_of_a_former_member_stays_with_their_messages(ada, bob, upstream):
    await ada.put(f"/api/projects/{ada.home}/members", {"user_id": bob.id, "role": "editor"})
    [reply] = await bob.ask_and_wait("Shall we?", "alpha", project_id=ada.home)
    await ada.delete(f"/api/projects/{ada.home}/members/{bob.id}")
    page = await ada.get(f"/api/conversations/{reply['conversation_id']}")
    [author] = {message["created_by"] for message in page["rounds"][0]["messages"]}
    assert (await names(ada))[author] == "Bob"
    await bob.get(f"/api/projects/{ada.home}/people", expect=404)


async def test_a_new_member_and_a_changed_name_are_sent_as_events(ada, bob):
    cursor = (await ada.get(f"/api/projects/{ada.home}/people"))["cursor"]
    async with ada.live() as tab:
        await tab.follow(f"project:{ada.home}", cursor)
        await ada.put(f"/api/projects/{ada.home}/members", {"user_id": bob.id, "role": "viewer"})
        await ada.put(f"/api/users/{bob.id}", {"name": "Robert"})
        items = await tab.until(lambda item: item.get("value") == {"id": bob.id, "name": "Robert"})
    names_sent = [item["value"]["name"] for item in items if item.get("noun") == "person"]
    assert names_sent == ["Bob", "Robert"]


async def names(person: Person) -> dict[str, str]:
    people = (await person.get(f"/api/projects/{person.home}/people"))["items"]
    return {member["id"]: member["name"] for member in people}
