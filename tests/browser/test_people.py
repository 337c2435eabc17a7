"""Two people in one conversation: each reads who asked what, in both directions, and live."""

from __future__ import annotations

import re

from playwright.async_api import Locator, expect

from tests.browser.room import Room
from tests.browser.windows import Windows
from tests.upstream.scripted import Upstream
from tests.world import Person, World


async def test_each_reads_the_others_name_and_a_former_members_stays(
    windows: Windows, world: World, administrator: Person, sam: Person, upstream: Upstream
) -> None:
    [reply] = await sam.hear("Who is here?", "alpha")
    here = Room(await windows.open(sam, f"/c/{reply['conversation_id']}"))
    await expect(here.reply("Alpha", "finished")).to_be_visible()

    zoe = await world.another(administrator, f"Zoe{sam.me['user']['name']}")
    name = zoe.me["user"]["name"]
    await sam.put(f"/api/projects/{sam.home}/members", {"user_id": zoe.id, "role": "editor"})
    there = Room(await windows.open(zoe, f"/c/{reply['conversation_id']}"))
    await expect(asked_by(there, sam.me["user"]["name"])).to_be_visible()
    await there.ask("I am.")
    await expect(asked_by(here, name)).to_be_visible()
    await zoe.hear("And this is mine.", "alpha", project_id=sam.home)
    mine = here.sidebar.get_by_role("link", name=re.compile(f"And this is mine.*, by {name}"))
    await expect(mine).to_be_visible()

    await sam.delete(f"/api/projects/{sam.home}/members/{zoe.id}")
    await here.page.reload()
    await expect(asked_by(here, name)).to_be_visible()
    await expect(here.feed.get_by_text("Someone")).to_have_count(0)


def asked_by(room: Room, name: str) -> Locator:
    return room.rounds.get_by_text(name, exact=True)
