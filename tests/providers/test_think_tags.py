"""A thought in tags before the reply is told apart from it, however the text is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.providers.think_tags import ThinkTags
from tests.providers.conftest import CHAT, Listener
from tests.upstream.scripted import Bare, Cut, Finish, Raw, Say, Script, Think, Upstream


def told_apart(*pieces: str) -> tuple[str, str]:
    tags = ThinkTags()
    parts = [part for piece in pieces for part in tags.take(piece)] + tags.rest()
    assert all(text for text, _ in parts)
    thought = "".join(text for text, is_thought in parts if is_thought)
    return thought, "".join(text for text, is_thought in parts if not is_thought)


EXAMPLES = [
    ("<think>Two and two.</think>Four.", "Two and two.", "Four."),
    ("<think>\nTwo and two.\n</think>\n\nFour.", "Two and two.", "Four."),
    ("\n <think>Two</think> Four.", "Two", "Four."),
    ("<think>\n\n</think>\n\nFour.", "", "Four."),
    ("<think>never closed", "never closed", ""),
    ("<think>nearly </thin", "nearly </thin", ""),
    ("<think>a < b </b></think>Yes.", "a < b </b>", "Yes."),
    ("Write <think> to think.</think>", "", "Write <think> to think.</think>"),
    ("<thinking>is another tag", "", "<thinking>is another tag"),
    ("<thin", "", "<thin"),
    ("\n\n  Indented.", "", "\n\n  Indented."),
    ("<think>one</think>Two <think>three</think>", "one", "Two <think>three</think>"),
    ("", "", ""),
]


@pytest.mark.parametrize(("text", "thought", "reply"), EXAMPLES)
def test_only_a_tag_before_the_first_word_begins_a_thought(text: str, thought: str, reply: str) -> None:
    assert told_apart(text) == (thought, reply)


@pytest.mark.parametrize(("text", "thought", "reply"), EXAMPLES)
def test_the_tags_are_found_letter_by_letter(text: str, thought: str, reply: str) -> None:
    in_letters = told_apart(*text)
    assert in_letters[1] == reply
    assert (
        in_letters[0].rstrip() == thought.rstrip()
    )  # the empty line before a closing tag was passed on before


@given(st.lists(st.sampled_from(["<think>", "</think>", "<", "th", "ink>", "</", "x", " ", "\n", "é"])))
def test_every_cut_gives_the_same_reply_and_loses_no_word(pieces: list[str]) -> None:
    whole, cut = told_apart("".join(pieces)), told_apart(*pieces)
    assert cut[1] == whole[1]
    assert cut[0].rstrip() == whole[0].rstrip()
    for letter in "xé":
        assert (cut[0] + cut[1]).count(letter) == "".join(pieces).count(letter)


def said(*pieces: str) -> Script:
    return (*map(Say, pieces), Finish())


async def test_a_thought_in_tags_is_shown_as_thinking(upstream: Upstream, listener: Listener) -> None:
    upstream.plays(said("<th", "ink>\nSix times", " seven.</", "think>", "\n\nForty", "-two."))
    heard = await listener.ask(CHAT)
    assert (heard.thinking, heard.text) == ("Six times seven.", "Forty-two.")


async def test_tags_are_text_where_the_thought_came_in_its_own_field(
    upstream: Upstream, listener: Listener
) -> None:
    upstream.plays((Think("Hm."), Say("<think>"), Say(" is a tag."), Finish()))
    heard = await listener.ask(CHAT)
    assert (heard.thinking, heard.text) == ("Hm.", "<think> is a tag.")


@pytest.mark.parametrize("end", [Bare(), Cut(), Raw(b"data: {broken\n\n")])
async def test_what_may_have_been_a_tag_is_not_lost_when_the_line_drops(
    upstream: Upstream, listener: Listener, end: Bare | Cut | Raw
) -> None:
    upstream.plays((Say("<thi"), end))
    heard = await listener.ask(CHAT)
    assert (heard.text, heard.fault is not None) == ("<thi", True)
