"""A question is set as it was meant: programs as programs, lines as typed, and nothing in it runs."""

from __future__ import annotations

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser.hostile import CORPORA
from tests.browser.room import Room
from tests.browser.test_hostile_text import INERT
from tests.browser.windows import PHONE, Windows
from tests.upstream.scripted import Upstream
from tests.world import Person

QUESTION = """Why does **this** fail with `max_retry_count`?

```python
def retry(max_retry_count):
    return max_retry_count
```

first line
second line

- one
- two"""
LONG = "\n\n".join(f"Paragraph {number} of a question that goes on." for number in range(30))


def words(page: Page) -> Locator:
    """What the first question says."""
    return page.get_by_role("feed").locator(".ask .text").first


async def test_a_question_is_set_like_a_reply(windows: Windows, sam: Person, upstream: Upstream) -> None:
    [reply] = await sam.hear(QUESTION, "alpha")
    page = await windows.open(sam, f"/c/{reply['conversation_id']}")
    asked = words(page)
    await expect(asked.locator("strong")).to_have_text("this")
    await expect(asked.locator("p code")).to_have_text("max_retry_count")
    await expect(asked.locator("pre")).to_contain_text(
        "def retry(max_retry_count):\n    return max_retry_count"
    )
    await expect(asked.get_by_role("button", name="Copy")).to_be_visible()
    await expect(asked.locator("li")).to_have_text(["one", "two"])
    assert "first line\nsecond line" in await asked.inner_text()


async def test_a_question_is_edited_as_it_was_typed(
    windows: Windows, sam: Person, upstream: Upstream
) -> None:
    [reply] = await sam.hear(QUESTION, "alpha")
    page = await windows.open(sam, f"/c/{reply['conversation_id']}")
    await page.get_by_role("feed").get_by_role("heading", level=2).hover()
    await page.get_by_role("feed").get_by_role("button", name="Edit").click()
    await expect(page.get_by_role("textbox", name="The question")).to_have_value(QUESTION)


async def test_a_question_is_set_before_the_server_has_it(page: Page, upstream: Upstream) -> None:
    room = Room(page)
    await room.seat("Alpha")
    await room.field.fill(QUESTION)
    await room.field.press("Enter")
    await expect(words(page).locator("pre")).to_contain_text("def retry")
    await expect(room.reply("Alpha", "finished")).to_be_visible()
    await expect(words(page).locator("strong")).to_have_text("this")


@pytest.mark.parametrize("is_phone", [False, True], ids=["desk", "phone"])
async def test_a_long_question_shows_its_beginning_and_all_of_it_when_asked(
    windows: Windows, sam: Person, upstream: Upstream, is_phone: bool
) -> None:
    [reply] = await sam.hear(LONG, "alpha")
    page = await windows.open(sam, f"/c/{reply['conversation_id']}", *([PHONE] if is_phone else []))
    first, last = (words(page).get_by_text(f"Paragraph {number} ") for number in (0, 29))
    more = page.get_by_role("button", name="Show all")
    await expect(more).to_be_visible()
    await expect(first).to_be_in_viewport()
    await expect(last).not_to_be_in_viewport()
    height = await words(page).evaluate(
        "(box) => box.clientHeight / parseFloat(getComputedStyle(box).lineHeight)"
    )
    assert height == pytest.approx(8, abs=0.1)
    await more.click()
    await expect(page.get_by_role("button", name="Show less")).to_have_attribute("aria-expanded", "true")
    assert await words(page).evaluate("(box) => box.scrollHeight <= box.clientHeight + 2")


async def test_a_short_question_has_nothing_to_unfold(
    windows: Windows, sam: Person, upstream: Upstream
) -> None:
    [reply] = await sam.hear("Is *this* all?", "alpha")
    page = await windows.open(sam, f"/c/{reply['conversation_id']}")
    await expect(words(page)).to_have_text("Is this all?")
    await expect(page.get_by_role("button", name="Show all")).to_have_count(0)


@pytest.mark.parametrize("corpus", CORPORA)
async def test_harmful_text_in_a_question_stays_text(
    windows: Windows, sam: Person, upstream: Upstream, corpus: str
) -> None:
    upstream.says("I see.")
    [reply] = await sam.hear(CORPORA[corpus], "alpha")
    page = await windows.open(sam, f"/c/{reply['conversation_id']}")
    await expect(Room(page).reply("Alpha", "finished")).to_be_visible()
    await expect(words(page)).not_to_be_empty()
    if await (more := page.get_by_role("button", name="Show all")).is_visible():
        await more.click()
    assert await page.locator(".ask").evaluate(INERT.replace(".words", ".text")) == []
