"""Markdown of replies is rendered: code, tables, formulas and links, under the content security policy."""

from __future__ import annotations

import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from tests.browser.conversation_page import ConversationPage
from tests.browser.windows import Windows
from tests.upstream.scripted import Upstream
from tests.world import Person

TEXT = r"""
## How it is done

A *short* answer with **weight**, `code` and a [link](https://example.org/page).

```python
def greet(name: str) -> str:
    return f"Hello, {name}"
```

| Mind  | Words |
|-------|------:|
| Alpha |   120 |
| Beta  |    98 |

The area is $\pi r^2$, and the sum is

$$\sum_{k=1}^{n} k = \frac{n(n+1)}{2}$$

It costs $5 here and $10 there.

- [x] one
- [ ] two

> Said by someone.

![a chart](https://pictures.example/chart.png)
"""


@pytest_asyncio.fixture(loop_scope="session")
async def page(windows: Windows, sam: Person, upstream: Upstream) -> Page:
    upstream.says(TEXT)
    [reply] = await sam.ask_and_wait("Show me everything.", "alpha")
    path = f"/c/{reply['conversation_id']}"
    return await windows.open(sam, path, permissions=["clipboard-read", "clipboard-write"])


def reply_text(page: Page) -> Locator:
    return ConversationPage(page).reply_text("Alpha")


async def test_a_code_block_is_highlighted_and_can_be_copied(page: Page) -> None:
    program = reply_text(page).get_by_role("figure")
    await expect(program.locator(".hljs-keyword").first).to_have_text("def")
    colours = {
        await program.locator(f".hljs-{kind}").first.evaluate("element => getComputedStyle(element).color")
        for kind in ("keyword", "string")
    }
    assert len(colours) == 2
    await program.get_by_role("button", name="Copy code").click()
    await expect(program.get_by_role("button", name="Copied")).to_be_visible()
    copied = await page.evaluate("navigator.clipboard.readText()")
    assert copied == 'def greet(name: str) -> str:\n    return f"Hello, {name}"'


async def test_a_markdown_table_becomes_a_table(page: Page) -> None:
    table = reply_text(page).get_by_role("table")
    await expect(table.get_by_role("columnheader")).to_have_text(["Mind", "Words"])
    figure = table.get_by_role("cell", name="120")
    assert await figure.evaluate("element => getComputedStyle(element).textAlign") == "right"


async def test_formulas_are_rendered_and_dollar_amounts_are_not(page: Page) -> None:
    formulas = reply_text(page).locator(".math .katex")
    await expect(formulas).to_have_count(2)
    fraction = reply_text(page).locator(".math.display .mfrac .vlist-t").first
    box = await fraction.bounding_box()
    assert box
    assert box["height"] > 30  # one above the other: the formulas' style sheet is in force
    await expect(reply_text(page).get_by_text("It costs $5 here and $10 there.")).to_be_visible()


async def test_a_formula_is_readable_by_screen_readers(page: Page) -> None:
    await expect(reply_text(page).locator(".math .katex").first).to_be_visible()
    assert "π" in await reply_text(page).locator(".math").first.aria_snapshot()


async def test_a_link_opens_in_a_new_tab_without_opener(page: Page) -> None:
    link = reply_text(page).get_by_role("link", name="link")
    await expect(link).to_have_attribute("href", "https://example.org/page")
    await expect(link).to_have_attribute("target", "_blank")
    await expect(link).to_have_attribute("rel", "noopener noreferrer")


async def test_an_image_becomes_a_link_and_is_not_fetched(page: Page) -> None:
    await expect(
        reply_text(page).get_by_role("link", name="Image from pictures.example: a chart")
    ).to_be_visible()
    await expect(reply_text(page).get_by_role("img")).to_have_count(0)


async def test_headings_of_a_reply_are_below_the_heading_of_its_voice(page: Page) -> None:
    card = ConversationPage(page).reply("Alpha")
    await expect(card.get_by_role("heading", name="Alpha", level=3)).to_be_visible()
    await expect(card.get_by_role("heading", name="How it is done", level=5)).to_be_visible()


async def test_each_paragraph_has_the_direction_of_its_text(
    windows: Windows, sam: Person, upstream: Upstream
) -> None:
    upstream.says("שלום עולם, `print()`.\n\nAnd so in English.\n\n1. ראשון\n")
    [reply] = await sam.ask_and_wait("Both ways?", "alpha")
    page = await windows.open(sam, f"/c/{reply['conversation_id']}")
    blocks = reply_text(page).locator("p, ol")
    await expect(blocks).to_have_count(3)
    directions = "blocks => blocks.map(block => getComputedStyle(block).direction)"
    assert await blocks.evaluate_all(directions) == ["rtl", "ltr", "rtl"]
    assert await reply_text(page).locator("p code").evaluate_all(directions) == ["ltr"]
