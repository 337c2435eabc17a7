"""What someone wrote carries their name for everyone who may read it, also after they have left."""

from __future__ import annotations

from tests.world import Person


async def test_members_read_each_others_names_and_nothing_else_of_their_accounts(ada, bob):
    path = f"/api/projects/{ada.home}/people"
    await bob.get(path, expect=404)
    await ada.put(f"/api/projects/{ada.home}/members", {"user_id": bob.id, "role": "viewer"})
    expected = [{"id": ada.id, "name": "Ada"}, {"id": bob.id, "name": "Bob"}]
    for person in (ada, bob):
        assert (await person.get(path))["items"] == expected


async def test_a_former_members_name_stays_with_what_they_asked(ada, bob, upstream):
    await ada.put(f"/api/projects/{ada.home}/members", {"user_id": bob.id, "role": "editor"})
    [reply] = await bob.hear("Shall we?", "alpha", project_id=ada.home)
    await ada.delete(f"/api/projects/{ada.home}/members/{bob.id}")
    page = await ada.get(f"/api/conversations/{reply['conversation_id']}")
    [asked] = {message["created_by"] for message in page["rounds"][0]["messages"]}
    assert (await names(ada))[asked] == "Bob"
    await bob.get(f"/api/projects/{ada.home}/people", expect=404)


async def test_a_name_arrives_live_with_the_person_and_again_when_it_changes(ada, bob):
    cursor = (await ada.get(f"/api/projects/{ada.home}/people"))["cursor"]
    async with ada.live() as tab:
        await tab.follow(f"project:{ada.home}", cursor)
        await ada.put(f"/api/projects/{ada.home}/members", {"user_id": bob.id, "role": "viewer"})
        await ada.put(f"/api/users/{bob.id}", {"name": "Robert"})
        told = await tab.until(lambda item: item.get("value") == {"id": bob.id, "name": "Robert"})
    said = [item["value"]["name"] for item in told if item.get("noun") == "person"]
    assert said == ["Bob", "Robert"]


async def names(person: Person) -> dict[str, str]:
    people = (await person.get(f"/api/projects/{person.home}/people"))["items"]
    return {each["id"]: each["name"] for each in people}
