"""Think tags: thinking in tags before the reply is separated from it, wherever the text is split."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.providers.think_tags import ThinkTags
from tests.providers.conftest import CHAT, Caller
from tests.upstream.scripted import Bare, Cut, Finish, Raw, Say, Script, Think, Upstream


def separate(*pieces: str) -> tuple[str, str]:
    tags = ThinkTags()
    parts = [part for piece in pieces for part in tags.feed(piece)] + tags.flush()
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
def test_only_a_tag_before_the_first_text_starts_thinking(text: str, thought: str, reply: str) -> None:
    assert separate(text) == (thought, reply)


@pytest.mark.parametrize(("text", "thought", "reply"), EXAMPLES)
def test_tags_are_found_letter_by_letter(text: str, thought: str, reply: str) -> None:
    in_letters = separate(*text)
    assert in_letters[1] == reply
    assert (
        in_letters[0].rstrip() == thought.rstrip()
    )  # The empty line before a closing tag was already passed on.


@given(st.lists(st.sampled_from(["<think>", "</think>", "<", "th", "ink>", "</", "x", " ", "\n", "é"])))
def test_every_split_gives_the_same_reply_and_loses_no_text(pieces: list[str]) -> None:
    whole, cut = separate("".join(pieces)), separate(*pieces)
    assert cut[1] == whole[1]
    assert cut[0].rstrip() == whole[0].rstrip()
    for letter in "xé":
        assert (cut[0] + cut[1]).count(letter) == "".join(pieces).count(letter)


def script_of(*pieces: str) -> Script:
    return (*map(Say, pieces), Finish())


async def test_text_in_think_tags_is_streamed_as_thinking(upstream: Upstream, caller: Caller) -> None:
    upstream.plays(script_of("<th", "ink>\nSix times", " seven.</", "think>", "\n\nForty", "-two."))
    reply = await caller.ask(CHAT)
    assert (reply.thinking, reply.text) == ("Six times seven.", "Forty-two.")


async def test_tags_are_plain_text_if_thinking_has_its_own_field(upstream: Upstream, caller: Caller) -> None:
    upstream.plays((Think("Hm."), Say("<think>"), Say(" is a tag."), Finish()))
    reply = await caller.ask(CHAT)
    assert (reply.thinking, reply.text) == ("Hm.", "<think> is a tag.")


@pytest.mark.parametrize("end", [Bare(), Cut(), Raw(b"data: {broken\n\n")])
async def test_a_partial_tag_is_kept_as_text_when_the_connection_drops(
    upstream: Upstream, caller: Caller, end: Bare | Cut | Raw
) -> None:
    upstream.plays((Say("<thi"), end))
    reply = await caller.ask(CHAT)
    assert (reply.text, reply.error is not None) == ("<thi", True)
