"""Takes the pictures of the README: a table of three in light and dark theme and on a phone; a receipt.

python -m tests.browser.readme_pictures

The product renders everything; only the three replies are scripted here.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from playwright.async_api import Page, expect

from tertulia.store.sql import sql
from tests.browser.conversation_page import ConversationPage
from tests.browser.windows import PATIENCE_MS, PHONE, Windows, chromium
from tests.server.test_search import settled
from tests.upstream.dialects import Usage
from tests.upstream.scripted import Finish, Hold, Pause, Say, Script, Step, Think, Upstream, scripted, words
from tests.world import Person, World, running

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
DAY_MS = 86_400_000
PACE_S = 0.03

QUESTION = (
    "On weekdays we throw away a fifth of our sourdough, on Saturdays we sell out by eleven. "
    "How many loaves should we bake each day?"
)

THOUGHT = "A newsvendor question: the cost of one loaf too many against the cost of one too few. " * 2

SONNET = """\
Bake for the **cost of being wrong**, not for the average. A loaf left over costs you flour and an \
early morning; a customer turned away costs the margin, and *perhaps the customer*.

```python loaves.py
def loaves(sold, price=6.0, cost=1.8):
    share = (price - cost) / price
    days = sorted(sold)
    return days[int(share * len(days))]
```

Give it the sales of twelve Tuesdays and it answers for the thirteenth. At your prices the share is 0.7: \
bake what would have been enough on seven days of ten.
"""

GPT = """\
One caution before any formula: *sold* is not *wanted*. On Saturdays your records stop where the queue began.

| Day       | Baked | Left | Bake |
|-----------|------:|-----:|-----:|
| Tuesday   |    80 |   19 |   66 |
| Wednesday |    80 |   14 |   70 |
| Friday    |    90 |    8 |   88 |
| Saturday  |   110 |    0 | 140? |

Saturday stays a guess until you write down **when the last loaf goes**. Two Saturdays of that are worth \
more than a year of totals.

1. Start with the weekday figures tomorrow.
2. Add ten on Saturday until some are left.
"""

GEMINI = r"""With price $p$, cost $c$ and $F(q)$ the share of days on which $q$ loaves are enough, profit is \
greatest where

$$F(q^*) = \frac{p - c}{p} = \frac{6.00 - 1.80}{6.00} = 0.7$$

So an empty shelf on **three days of ten** is not a failure, it is the plan. If day-old bread still sells \
for $s$, be bolder:

$$F(q^*) = \frac{p - c}{p - s}$$

Mind the weather, too: a wet Tuesday sells""".replace("\\\n", "")

RECIPE = """\
# Sourdough

## The starter

Feed the starter at nine in the evening, one part starter to five of flour and five of water.
It is ready when it has doubled, at twenty-four degrees after about eight hours.
Below twenty degrees allow twelve.

## Baking

Forty minutes at two hundred and forty degrees, the first fifteen with steam.
"""
COLD = "The bakehouse was at eighteen degrees this morning. When is the starter ready?"
READY = """\
Not before **nine in the morning**. At eighteen degrees your own notes allow twelve hours from the evening \
feed [recipes/sourdough.md:5-7], not eight.

If you cannot wait, stand it in the proofer: the warmth of the *starter* counts, not that of the room.
"""

EARLIER = (
    ("A name for the second shop", 3, True),
    ("Reading the oven's log", 0, False),
    ("Which mill should we buy from?", 1, False),
    ("A letter to the landlord", 1, False),
    ("Rye, spelt, or both?", 4, False),
    ("Opening on Sundays", 5, False),
    ("The summer rota", 6, False),
)


async def main() -> None:
    expect.set_options(timeout=PATIENCE_MS)
    with tempfile.TemporaryDirectory() as home:
        async with (
            scripted() as upstream,
            running(Path(home), _keys(upstream)) as world,
            chromium() as browser,
        ):
            windows = Windows(browser, world.url)
            sam = await _person_with_history(world, upstream)
            page = await _conversation(windows, sam, upstream)
            await _screenshot(page, "conversation.png")
            await page.emulate_media(color_scheme="dark")
            await _screenshot(page, "conversation-dark.png")
            phone = await windows.open(
                sam, page.url, PHONE, is_mobile=True, has_touch=True, device_scale_factor=2
            )
            await expect(
                phone.get_by_role("tabpanel", name="Claude").locator(".hljs-keyword").first
            ).to_be_visible()
            await ConversationPage(phone).feed.evaluate("feed => feed.parentElement.scrollTo(0, 0)")
            await _screenshot(phone, "phone.png")
            await _screenshot(await _receipt(world, windows, sam, upstream), "receipt.png")
            await windows.close()
            windows.must_have_no_problems()


def _keys(upstream: Upstream) -> dict[str, str]:
    names = ("ANTHROPIC_", "OPENAI_", "GOOGLE_")
    return {name: value for name, value in upstream.environ().items() if name.startswith(names)}


async def _person_with_history(world: World, upstream: Upstream) -> Person:
    """Sam, with some earlier conversations."""
    sam = await world.set_up("Sam")
    await sam.put(f"/api/projects/{sam.home}", {"name": "Bakery"})
    upstream.says("So be it.")
    for title, days, pinned in EARLIER:
        [reply] = await sam.ask_and_wait(title, "openai:gpt-4o")
        path = f"/api/conversations/{reply['conversation_id']}"
        await sam.put(f"{path}/title", {"title": title})
        await sam.put(f"{path}/pinned", {"pinned": pinned})
        await _make_older(world, reply["conversation_id"], days)
    return sam


async def _make_older(world: World, conversation_id: str, days: int) -> None:
    change = sql("UPDATE conversations SET updated_at = updated_at - :ms WHERE id = :id")
    await world.tertulia.db.write(lambda tx: tx.execute(change, ms=days * DAY_MS, id=conversation_id))


async def _conversation(windows: Windows, sam: Person, upstream: Upstream) -> Page:
    """A conversation in which two voices have answered and the third is writing."""
    upstream.plays(
        _paced_reply(SONNET, Usage(sent=2148, said=412, thought=160), THOUGHT), model="claude-sonnet-4-5"
    )
    upstream.plays(_paced_reply(GPT, Usage(sent=2103, said=264)), model="gpt-4o")
    upstream.plays((*_paced_reply(GEMINI, None)[:-1], Hold(asyncio.Event())), model="gemini-2.5-pro")
    page = await windows.open(sam, "/new", color_scheme="light")
    conversation = ConversationPage(page)
    await conversation.seat("Claude Sonnet 4.5", "GPT-4o", "Gemini 2.5 Pro")
    await conversation.ask(QUESTION)
    await expect(conversation.reply("Claude Sonnet 4.5", "finished")).to_be_visible()
    await expect(conversation.reply("GPT-4o", "finished")).to_be_visible()
    await sam.put(f"/api/conversations/{conversation.id}/title", {"title": "How many loaves?"})
    await expect(conversation.sidebar_link("How many loaves?")).to_be_visible()
    await expect(conversation.reply_text("Gemini 2.5 Pro")).to_contain_text("a wet Tuesday sells")
    await expect(conversation.reply_text("Gemini 2.5 Pro").locator(".katex-html .mfrac")).to_have_count(3)
    await expect(conversation.reply_text("Claude Sonnet 4.5").locator(".hljs-keyword").first).to_be_visible()
    await conversation.reply("Claude Sonnet 4.5").hover()
    return page


async def _receipt(world: World, windows: Windows, sam: Person, upstream: Upstream) -> Page:
    """A reply with its receipt beside it."""
    await sam.upload("recipes/sourdough.md", RECIPE.encode())
    await sam.upload("orders/cafes.csv", b"cafe,loaves\nThe Mill,12\nHarbour,8\n")
    await settled(world)
    for model in ("claude-sonnet-4-5", "gpt-4o"):
        upstream.plays(_paced_reply(READY, Usage(sent=426, cached=245, said=96)), model=model)
    page = await windows.open(sam, "/new", color_scheme="light")
    conversation = ConversationPage(page)
    await conversation.seat("Claude Sonnet 4.5", "GPT-4o")
    await conversation.ask(COLD)
    reply = conversation.reply("Claude Sonnet 4.5", "finished")
    await expect(reply).to_be_visible()
    await expect(conversation.reply("GPT-4o", "finished")).to_be_visible()
    await sam.put(f"/api/conversations/{conversation.id}/title", {"title": "A cold morning"})
    await expect(conversation.sidebar_link("A cold morning")).to_be_visible()
    await reply.focus()
    await page.keyboard.press("r")
    await expect(page.get_by_role("complementary").get_by_text("recipes/sourdough.md").first).to_be_visible()
    return page


def _paced_reply(text: str, usage: Usage | None, thinking: str = "") -> Script:
    steps: list[Step] = []
    for word in words(thinking):
        steps += [Think(word), Pause(PACE_S)]
    for word in words(text):
        steps += [Say(word), Pause(PACE_S)]
    return *steps, Finish("stop", usage)


async def _screenshot(page: Page, name: str) -> None:
    await page.evaluate("document.fonts.ready")
    options: dict[str, Any] = {"animations": "disabled", "caret": "hide"}
    await page.screenshot(path=PICTURES / name, **options)
    print(f"{name}: {(PICTURES / name).stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    asyncio.run(main())
