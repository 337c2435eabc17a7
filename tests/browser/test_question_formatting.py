"""A question is formatted as Markdown, keeps its line breaks, and nothing in it runs."""

from __future__ import annotations

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser.conversation_page import ConversationPage
from tests.browser.hostile_texts import CORPORA
from tests.browser.test_hostile_text import FIND_ACTIVE_CONTENT
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


def question_text(page: Page) -> Locator:
    """The text element of the first question."""
    return page.get_by_role("feed").locator(".ask .text").first


async def test_a_question_is_formatted_like_a_reply(
    windows: Windows, sam: Person, upstream: Upstream
) -> None:
    [reply] = await sam.ask_and_wait(QUESTION, "alpha")
    page = await windows.open(sam, f"/c/{reply['conversation_id']}")
    question = question_text(page)
    await expect(question.locator("strong")).to_have_text("this")
    await expect(question.locator("p code")).to_have_text("max_retry_count")
    await expect(question.locator("pre")).to_contain_text(
        "def retry(max_retry_count):\n    return max_retry_count"
    )
    await expect(question.get_by_role("button", name="Copy")).to_be_visible()
    await expect(question.locator("li")).to_have_text(["one", "two"])
    assert "first line\nsecond line" in await question.inner_text()


async def test_editing_a_question_shows_the_typed_text(
    windows: Windows, sam: Person, upstream: Upstream
) -> None:
    [reply] = await sam.ask_and_wait(QUESTION, "alpha")
    page = await windows.open(sam, f"/c/{reply['conversation_id']}")
    await page.get_by_role("feed").get_by_role("heading", level=2).hover()
    await page.get_by_role("feed").get_by_role("button", name="Edit").click()
    await expect(page.get_by_role("textbox", name="The question")).to_have_value(QUESTION)


async def test_a_question_is_formatted_before_the_server_has_it(page: Page, upstream: Upstream) -> None:
    conversation = ConversationPage(page)
    await conversation.seat("Alpha")
    await conversation.field.fill(QUESTION)
    await conversation.field.press("Enter")
    await expect(question_text(page).locator("pre")).to_contain_text("def retry")
    await expect(conversation.reply("Alpha", "finished")).to_be_visible()
    await expect(question_text(page).locator("strong")).to_have_text("this")


@pytest.mark.parametrize("is_phone", [False, True], ids=["desk", "phone"])
async def test_a_long_question_is_collapsed_and_can_be_expanded(
    windows: Windows, sam: Person, upstream: Upstream, is_phone: bool
) -> None:
    [reply] = await sam.ask_and_wait(LONG, "alpha")
    page = await windows.open(sam, f"/c/{reply['conversation_id']}", *([PHONE] if is_phone else []))
    first, last = (question_text(page).get_by_text(f"Paragraph {number} ") for number in (0, 29))
    more = page.get_by_role("button", name="Show all")
    await expect(more).to_be_visible()
    await expect(first).to_be_in_viewport()
    await expect(last).not_to_be_in_viewport()
    height = await question_text(page).evaluate(
        "(box) => box.clientHeight / parseFloat(getComputedStyle(box).lineHeight)"
    )
    assert height == pytest.approx(8, abs=0.1)
    await more.click()
    await expect(page.get_by_role("button", name="Show less")).to_have_attribute("aria-expanded", "true")
    assert await question_text(page).evaluate("(box) => box.scrollHeight <= box.clientHeight + 2")


async def test_a_short_question_has_no_expand_button(
    windows: Windows, sam: Person, upstream: Upstream
) -> None:
    [reply] = await sam.ask_and_wait("Is *this* all?", "alpha")
    page = await windows.open(sam, f"/c/{reply['conversation_id']}")
    await expect(question_text(page)).to_have_text("Is this all?")
    await expect(page.get_by_role("button", name="Show all")).to_have_count(0)


@pytest.mark.parametrize("corpus", CORPORA)
async def test_hostile_questions_stay_inert(
    windows: Windows, sam: Person, upstream: Upstream, corpus: str
) -> None:
    upstream.says("I see.")
    [reply] = await sam.ask_and_wait(CORPORA[corpus], "alpha")
    page = await windows.open(sam, f"/c/{reply['conversation_id']}")
    await expect(ConversationPage(page).reply("Alpha", "finished")).to_be_visible()
    await expect(question_text(page)).not_to_be_empty()
    if await (more := page.get_by_role("button", name="Show all")).is_visible():
        await more.click()
    assert await page.locator(".ask").evaluate(FIND_ACTIVE_CONTENT.replace(".words", ".text")) == []
