"""Whatever a mind, a provider or a file says is shown as text: nothing runs, nothing is fetched (XS, EX)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser.hostile import CORPORA, EVENTS
from tests.browser.record import hosts_looked_up, recorded
from tests.browser.room import Room, stored
from tests.browser.windows import Watch, Windows, sign_in
from tests.patience import soon
from tests.upstream.scripted import Finish, Raw, Say, Script, Upstream
from tests.world import Person, World

INERT = """
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


NAME = "<img src=x onerror=canary()>.md"
"""A file may be called so."""


def by_letters(text: str) -> Script:
    return (*(Say(letter) for letter in text), Finish())


@pytest.mark.parametrize("corpus", CORPORA)
async def test_harmful_text_stays_text_while_it_comes_and_afterwards(
    page: Page, sam: Person, upstream: Upstream, corpus: str
) -> None:
    text = CORPORA[corpus]
    room = Room(page)
    upstream.plays(by_letters(text), model="alpha")
    upstream.plays((Say(text), Finish()), model="beta")
    await room.seat("Alpha", "Beta")
    await room.ask(text)
    await _must_be_inert(room.reply("Alpha", "finished"), room.reply("Beta", "finished"))
    kept = await stored(sam, room.id)
    assert kept["Alpha"]["content"] == kept["Beta"]["content"] == text

    await page.reload()
    await _must_be_inert(room.reply("Alpha", "finished"), room.reply("Beta", "finished"))
    both = [await room.words(name).element_handle() for name in ("Alpha", "Beta")]
    await page.wait_for_function(SAME_WORDS, arg=both)


SAME_WORDS = "([one, other]) => one.innerText === other.innerText"
"""At last: what is long is shown as typed until there is time to set it."""


async def _must_be_inert(*cards: Locator) -> None:
    for card in cards:
        await expect(card).to_be_visible()
        assert await card.evaluate(INERT) == []


async def test_a_refused_address_leaves_its_words(page: Page, upstream: Upstream) -> None:
    room = Room(page)
    upstream.says("[the words](javascript:canary()) and <b>bold</b>")
    await room.seat("Alpha")
    await room.ask("Go on.")
    await expect(room.words("Alpha")).to_contain_text("the words")
    await expect(room.words("Alpha")).to_contain_text("<b>bold</b>")
    await expect(room.words("Alpha").get_by_role("link")).to_have_count(0)


async def test_a_providers_own_events_end_at_the_server(page: Page, upstream: Upstream) -> None:
    kinds: set[str] = set()
    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: kinds.update(_kinds(frame))))
    await page.reload()
    room = Room(page)
    upstream.plays((Raw(EVENTS), Finish()), model="alpha")
    await room.seat("Alpha")
    await room.ask("Good day.")
    await expect(room.reply("Alpha", "finished")).to_contain_text("Good day.")
    assert await room.words("Alpha").inner_text() == "Good day."
    assert await page.evaluate("({}).polluted") is None
    assert "event" in kinds
    assert kinds <= {"event", "draft", "delta", "waiting", "following", "pong"}


def _kinds(frame: str | bytes) -> list[str]:
    return [item["type"] for item in json.loads(frame)]


async def test_a_handler_put_into_the_page_is_stopped_and_told(page: Page, windows: Windows) -> None:
    windows.expect("the policy stopped", "inline event handler", "TrustedHTML", "TrustedScript")
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
    assert any("the policy stopped" in trouble for trouble in windows.troubles)


async def test_a_look_up_would_stand_in_the_browsers_record(tmp_path: Path, world: World) -> None:
    careless = '<link rel="dns-prefetch" href="//canary.test">'
    async with recorded(tmp_path, world.url) as context:
        page = await context.new_page()
        await page.route("**/careless", lambda route: route.fulfill(content_type="text/html", body=careless))
        await page.goto("/careless")
        await page.wait_for_load_state("networkidle")
    assert hosts_looked_up(tmp_path) >= {"localhost"}


async def test_no_screen_and_no_text_looks_up_a_name(
    tmp_path: Path, world: World, sam: Person, upstream: Upstream
) -> None:
    everything = "\n\n".join(CORPORA.values())
    upstream.says(everything)
    [reply] = await sam.hear("Show me everything.", "alpha")
    made = await sam.upload(NAME, f"{everything}\n\nkanarienvogel".encode())
    await _indexed(sam, made["id"])
    watch = Watch(world.url)
    watch.expect("Not found: /nowhere")
    async with recorded(tmp_path, world.url) as context:
        await watch.over(context)
        page = await context.new_page()
        await _look_at(page, "sign-in")
        await sign_in(context, sam, world.url)
        await _look_at(page, "new", f"c/{reply['conversation_id']}", "nowhere")
        await _look_at(page, f"p/{sam.home}?file={made['id']}")
        await expect(page.get_by_role("complementary", name="File")).to_contain_text("kanarienvogel")
        await _look_at(page, f"search?q=kanarienvogel&in={sam.home}")
        await expect(page.get_by_role("main").get_by_text(NAME).first).to_be_visible()
        await _look_at(
            page, *(f"settings/{panel}" for panel in ("models", "appearance", "keyboard", "sessions"))
        )
    watch.must_be_untroubled()
    assert hosts_looked_up(tmp_path) == {"127.0.0.1"}


async def _indexed(person: Person, file_id: str) -> None:
    async with soon():
        while (await person.get(f"/api/projects/{person.home}/files/{file_id}/info"))["index"][
            "state"
        ] != "indexed":
            pass


async def _look_at(page: Page, *paths: str) -> None:
    for path in paths:
        await page.goto(f"/{path}")
        await expect(page.get_by_role("main")).to_be_visible()
        await page.wait_for_load_state("networkidle")
