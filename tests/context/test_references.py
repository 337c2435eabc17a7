"""What a question replies to and quotes stands before it, when it is asked and ever after."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tertulia.context.assemble import assemble
from tertulia.context.material import TAKEN_OUT
from tertulia.core.attachments import Attachment
from tertulia.core.messages import Message, Quote, Round
from tertulia.core.models import Tier
from tertulia.core.receipts import Layer
from tests.context.materials import BERT, TEXT, WIDE, count, hit, material, message, round_, rounds

SAID = message(1, BERT, "Bert says 1")
QUOTES = (Quote(SAID.id, "half a truth"), Quote("gone", "from what is gone"))


def about(number: int, text: str = "And now?", **more) -> Message:
    """A question that replies to Bert, and quotes him and someone whose message is gone."""
    return message(number, None, text, reply_to_id=SAID.id, quotes=QUOTES, **more)


MARKS = (
    '[Replying to Bert: "Bert says 1"]\n\n[Quoting Bert: "half a truth"]\n\n[Quoting: "from what is gone"]'
)


def test_a_reply_is_quoted_for_the_model_in_at_most_three_hundred_characters():
    said = message(1, BERT, "b" * 500)
    asked = message(2, None, "And now?", reply_to_id=said.id)
    last = assemble(material(rounds(1), asked, cited=(said,)), count).prompt.messages[-1].content
    assert f'[Replying to Bert: "{"b" * 300}…"]' in last
    assert "b" * 301 not in last


@pytest.mark.parametrize("length", [0, 1, 299, 300])
def test_a_reply_of_at_most_three_hundred_characters_is_quoted_whole_and_has_no_ellipsis(length):
    said = message(1, BERT, "b" * length)
    asked = message(2, None, "And now?", reply_to_id=said.id)
    last = assemble(material(rounds(1), asked, cited=(said,)), count).prompt.messages[-1].content
    assert f'[Replying to Bert: "{"b" * length}"]' in last


def test_what_is_replied_to_and_quoted_stands_before_the_question_in_that_order():
    assembled = assemble(material(rounds(1), about(2), cited=(SAID,)), count)
    assert assembled.prompt.messages[-1].content.endswith(f"{MARKS}\n\nAnd now?")
    named = [(s.reason, s.source_id, s.round_number) for s in assembled.receipt.segments if s.source_id]
    assert named[-4:-1] == [("replied to", SAID.id, 2), ("quoted", SAID.id, 2), ("quoted", "gone", 2)]


def test_once_it_is_history_a_question_still_says_what_it_was_about_in_the_same_bytes():
    brought = Attachment("a", "plan.md", TEXT, 8, "hash")
    asked = about(2, attachments=(brought,))
    now = assemble(material(rounds(1), asked, cited=(SAID,)), count)
    [_, end] = now.prompt.messages[-1].content.split('(Round 2 of "Tea".)\n\n')
    history = (round_(1), Round(2, (asked, *round_(2).messages[1:])))
    later = assemble(material(history, cited=(SAID,)), count)
    assert end.endswith(f"{MARKS}\n\nAnd now?")
    assert later.prompt.messages[2].content.endswith(end)
    then = [s for s in later.receipt.segments if s.reason in ("replied to", "quoted")]
    assert [(s.layer, s.round_number) for s in then] == [(Layer.ROUNDS, 2)] * 3


def test_of_a_message_that_a_person_took_out_nothing_is_shown_where_it_is_referred_to_either():
    history = (round_(1), Round(2, (about(2), *round_(2).messages[1:])))
    taken = frozenset([SAID.id])
    assembled = assemble(material(history, about(3, "Then?"), cited=(SAID,), without=taken), count)
    everything = "".join(one.content for one in assembled.prompt.messages)
    assert "Bert says 1" not in everything
    assert "half a truth" not in everything
    assert everything.count("from what is gone") == 2
    names = [one.name for one in assembled.receipt.left_out if one.reason == TAKEN_OUT]
    assert names == [
        "round 1, Bert",
        "what round 2 replies to",
        "what round 2 quotes",
        "what round 3 replies to",
        "what round 3 quotes",
    ]


def test_a_round_from_long_ago_names_whom_it_was_about_without_their_words():
    """They may be deleted, and this piece is known by another message."""
    talk = rounds(40)
    recalled = Round(2, (about(2, "question 2"), *talk[1].messages[1:]))
    found = (hit("k", "Bert says 2", source_id="m2Bert", conversation_id="c", round_number=2),)
    fast = replace(WIDE, tier=Tier.FAST)
    given = material(talk, hits=found, recalled=(recalled,), cited=(SAID,), model=fast)
    last = assemble(given, count).prompt.messages[-1].content
    assert "[round 2]:\n(Replies to Bert, round 1.)\n(Quotes Bert, round 1.)\n[User]: question 2\n" in last
    assert "half a truth" not in last


def test_a_round_of_a_branch_that_is_brought_back_says_what_it_was_about():
    branch = (Round(2, (about(2, "what if?"), *round_(2).messages[1:])),)
    last = assemble(material(rounds(1), brought=branch, cited=(SAID,)), count).prompt.messages[-1].content
    assert f"{MARKS}\n\n[User, round 2 of the branch]: what if?" in last
