"""Visibility: each voice sees all replies, its own alone, or the replies voted best."""

from __future__ import annotations

from tertulia.context.assemble import assemble
from tertulia.core.conversations import Visibility
from tertulia.core.messages import speaker_of
from tertulia.core.receipts import Layer, LeftOutReason, SourceLocation
from tests.context.materials import ANNA, BERT, TABLE, count, hit, make_inputs, message, round_, rounds


def test_a_voice_in_its_own_lane_sees_no_other_replies_and_the_receipt_lists_them():
    assembled = assemble(make_inputs(rounds(3), visibility=Visibility.OWN_LANE), count)
    prompt = assembled.prompt
    everything = prompt.system + "".join(m.content for m in prompt.messages)
    assert "Bert" not in everything
    assert "Anna says 3" in everything
    hidden = [(item.round_number, item.location) for item in assembled.receipt.left_out]
    assert (3, SourceLocation(speaker="Bert")) in hidden


def test_a_voice_in_its_own_lane_gets_no_search_results_from_other_voices():
    speakers = ("user", speaker_of(ANNA.model), speaker_of(BERT.model))
    hits = tuple(
        hit(f"k{n}", f"said {n}", conversation_id="elsewhere", speaker=speaker)
        for n, speaker in enumerate(speakers)
    )
    assembled = assemble(make_inputs(hits=hits, visibility=Visibility.OWN_LANE), count)
    shown = [s.source_id for s in assembled.receipt.segments if s.layer is Layer.RETRIEVED and s.source_id]
    assert shown == ["k0", "k1"]
    [item] = assembled.receipt.left_out
    assert (item.source_id, item.reason) == ("k2", LeftOutReason.HIDDEN_BY_OWN_LANE)


def test_chosen_visibility_shows_only_the_reply_voted_best():
    best = message(1, BERT, "Bert says 1")
    inputs = make_inputs(
        (round_(1), round_(2)), visibility=Visibility.CHOSEN, best_reply_ids=frozenset([best.id])
    )
    text = "\n".join(m.content for m in assemble(inputs, count).prompt.messages)
    assert ("Bert says 1" in text, "Anna says 1" in text, "Cara says 1" in text) == (True, False, False)
    assert all(f"{voice.name} says 2" in text for voice in TABLE)


def test_removing_the_reply_voted_best_does_not_reveal_the_others():
    best = frozenset([message(1, BERT).id])
    inputs = make_inputs((round_(1),), visibility=Visibility.CHOSEN, best_reply_ids=best, excluded_ids=best)
    text = "\n".join(m.content for m in assemble(inputs, count).prompt.messages)
    assert "says 1" not in text
