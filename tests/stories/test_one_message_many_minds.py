"""One message is answered by several minds at once, and nobody's failure is anyone else's."""

from __future__ import annotations

from tests.upstream.scripted import Cut, Finish, Hold, Say, refuses, says
from tests.world import turn


async def test_two_voices_answer_one_message(ada, upstream):
    upstream.says("Tea, of course.", model="alpha")
    upstream.says("Coffee.", model="beta")
    replies = await ada.hear("Tea or coffee?", "alpha", "beta")
    assert [(r["voice"]["name"], r["content"], r["status"]) for r in replies] == [
        ("Alpha", "Tea, of course.", "complete"),
        ("Beta", "Coffee.", "complete"),
    ]


async def test_the_same_model_can_sit_twice(ada, upstream):
    replies = await ada.hear("Hello", "alpha", "alpha")
    assert [r["voice"]["name"] for r in replies] == ["Alpha", "Alpha 2"]
    assert len(upstream.requests) == 2
