"""Text of models, providers and files is shown as text: nothing runs, nothing is fetched (XS, EX)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser.conversation_page import ConversationPage, stored_replies
from tests.browser.dns_log import browser_with_dns_log, hosts_looked_up
from tests.browser.hostile_texts import CORPORA, EVENTS
from tests.browser.windows import PageMonitor, Windows, sign_in
from tests.patience import soon
from tests.upstream.scripted import Finish, Raw, Say, Script, Upstream
from tests.world import Person, World

FIND_ACTIVE_CONTENT = """
    (card) => [...card.querySelectorAll('.words *')].flatMap((element) => {
        const FORBIDDEN = /^(script|style|link|meta|base|iframe|object|embed|form|input|img|video|audio)$/;
        const { localName, attributes } = element;
        const faults = FORBIDDEN.test(localName) ? [localName] : [];
        for (const { name, value } of attributes) {
            if (/^(on|src|srcset|action|formaction|poster|data$|background)/i.test(name)) faults.push(name);
            if (/href$/i.test(name) && !/^(https?:|mailto:)/.test(value)) faults.push(value);
        }
        if (getComputedStyle(element).position === 'fixed') faults.push('fixed');
        return faults;
    })
"""


HOSTILE_NAME = "<img src=x onerror=canary()>.md"
"""A hostile file name."""


def letter_by_letter(text: str) -> Script:
    return (*(Say(letter) for letter in text), Finish())


@pytest.mark.parametrize("corpus", CORPORA)
async def test_hostile_replies_stay_inert_while_streaming_and_afterwards(
    page: Page, sam: Person, upstream: Upstream, corpus: str
) -> None:
    text = CORPORA[corpus]
    conversation = ConversationPage(page)
    upstream.plays(letter_by_letter(text), model="alpha")
    upstream.plays((Say(text), Finish()), model="beta")
    await conversation.seat("Alpha", "Beta")
    await conversation.ask(text)
    await _must_be_inert(conversation.reply("Alpha", "finished"), conversation.reply("Beta", "finished"))
    stored = await stored_replies(sam, conversation.id)
    assert stored["Alpha"]["content"] == stored["Beta"]["content"] == text

    await page.reload()
    await _must_be_inert(conversation.reply("Alpha", "finished"), conversation.reply("Beta", "finished"))
    text_elements = [await conversation.reply_text(name).element_handle() for name in ("Alpha", "Beta")]
    await page.wait_for_function(SAME_TEXT, arg=text_elements)


SAME_TEXT = "([one, other]) => one.innerText === other.innerText"
"""Long texts are shown unformatted first and formatted when the browser is idle."""


async def _must_be_inert(*cards: Locator) -> None:
    for card in cards:
        await expect(card).to_be_visible()
        assert await card.evaluate(FIND_ACTIVE_CONTENT) == []


async def test_a_refused_link_keeps_its_text(page: Page, upstream: Upstream) -> None:
    conversation = ConversationPage(page)
    upstream.says("[the words](javascript:canary()) and <b>bold</b>")
    await conversation.seat("Alpha")
    await conversation.ask("Go on.")
    await expect(conversation.reply_text("Alpha")).to_contain_text("the words")
    await expect(conversation.reply_text("Alpha")).to_contain_text("<b>bold</b>")
    await expect(conversation.reply_text("Alpha").get_by_role("link")).to_have_count(0)


async def test_events_injected_by_a_provider_do_not_reach_the_browser(page: Page, upstream: Upstream) -> None:
    kinds: set[str] = set()
    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: kinds.update(_kinds(frame))))
    await page.reload()
    conversation = ConversationPage(page)
    upstream.plays((Raw(EVENTS), Finish()), model="alpha")
    await conversation.seat("Alpha")
    await conversation.ask("Good day.")
    await expect(conversation.reply("Alpha", "finished")).to_contain_text("Good day.")
    assert await conversation.reply_text("Alpha").inner_text() == "Good day."
    assert await page.evaluate("({}).polluted") is None
    assert "event" in kinds
    assert kinds <= {"event", "draft", "delta", "waiting", "following", "pong"}


def _kinds(frame: str | bytes) -> list[str]:
    return [item["type"] for item in json.loads(frame)]


async def test_the_content_security_policy_blocks_and_reports_injected_handlers(
    page: Page, windows: Windows
) -> None:
    windows.allow("the policy stopped", "inline event handler", "TrustedHTML", "TrustedScript")
    assert (
        await page.evaluate("""() => {
        const tries = [
            (element) => element.setAttribute('onclick', 'canary()'),
            (element) => (element.innerHTML = '<img src=x onerror=canary()>'),
            () => document.head.append(Object.assign(document.createElement('script'), { text: 'canary()' })),
        ];
        let refused = 0;
        for (const attempt of tries) {
            const element = document.body.appendChild(document.createElement('button'));
            try { attempt(element); } catch { refused++; }
            element.click();
        }
        return refused;
    }""")
        >= 2
    )
    await expect(page.locator("img")).to_have_count(0)
    assert any("the policy stopped" in problem for problem in windows.problems)


async def test_the_dns_log_records_a_prefetched_name(tmp_path: Path, world: World) -> None:
    careless = '<link rel="dns-prefetch" href="//canary.test">'
    async with browser_with_dns_log(tmp_path, world.url) as context:
        page = await context.new_page()
        await page.route("**/careless", lambda route: route.fulfill(content_type="text/html", body=careless))
        await page.goto("/careless")
        await page.wait_for_load_state("networkidle")
    assert hosts_looked_up(tmp_path) >= {"localhost"}


async def test_no_page_and_no_text_causes_a_dns_lookup(
    tmp_path: Path, world: World, sam: Person, upstream: Upstream
) -> None:
    everything = "\n\n".join(CORPORA.values())
    upstream.says(everything)
    [reply] = await sam.ask_and_wait("Show me everything.", "alpha")
    uploaded = await sam.upload(HOSTILE_NAME, f"{everything}\n\nkanarienvogel".encode())
    await _wait_until_indexed(sam, uploaded["id"])
    monitor = PageMonitor(world.url)
    monitor.allow("Not found: /nowhere")
    async with browser_with_dns_log(tmp_path, world.url) as context:
        await monitor.attach(context)
        page = await context.new_page()
        await _visit(page, "sign-in")
        await sign_in(context, sam, world.url)
        await _visit(page, "new", f"c/{reply['conversation_id']}", "nowhere")
        await _visit(page, f"p/{sam.home}?file={uploaded['id']}")
        await expect(page.get_by_role("complementary", name="File")).to_contain_text("kanarienvogel")
        await _visit(page, f"search?q=kanarienvogel&in={sam.home}")
        await expect(page.get_by_role("main").get_by_text(HOSTILE_NAME).first).to_be_visible()
        await _visit(
            page, *(f"settings/{panel}" for panel in ("models", "appearance", "keyboard", "sessions"))
        )
    monitor.must_have_no_problems()
    assert hosts_looked_up(tmp_path) == {"127.0.0.1"}


async def _wait_until_indexed(person: Person, file_id: str) -> None:
    async with soon():
        while (await person.get(f"/api/projects/{person.home}/files/{file_id}/info"))["index"][
            "state"
        ] != "indexed":
            pass


async def _visit(page: Page, *paths: str) -> None:
    for path in paths:
        await page.goto(f"/{path}")
        await expect(page.get_by_role("main")).to_be_visible()
        await page.wait_for_load_state("networkidle")
