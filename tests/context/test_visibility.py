"""What each voice sees of the others: all, itself alone, or what was chosen."""

from __future__ import annotations

from tertulia.context.assemble import assemble
from tertulia.core.conversations import Visibility
from tertulia.core.messages import speaker_of
from tertulia.core.receipts import Layer
from tests.context.materials import ANNA, BERT, TABLE, count, hit, material, message, round_, rounds


def test_in_its_own_lane_a_voice_sees_nothing_of_the_others_and_the_receipt_names_it():
    assembled = assemble(material(rounds(3), visibility=Visibility.OWN_LANE), count)
    prompt = assembled.prompt
    everything = prompt.system + "".join(m.content for m in prompt.messages)
    assert "Bert" not in everything
    assert "Anna says 3" in everything
    assert "round 3, Bert" in [left.name for left in assembled.receipt.left_out]


def test_in_its_own_lane_a_voice_finds_nothing_that_the_others_said_elsewhere():
    said = ("user", speaker_of(ANNA.model), speaker_of(BERT.model))
    found = tuple(
        hit(f"k{n}", f"said {n}", conversation_id="elsewhere", speaker=one) for n, one in enumerate(said)
    )
    assembled = assemble(material(hits=found, visibility=Visibility.OWN_LANE), count)
    kept = [s.source_id for s in assembled.receipt.segments if s.layer is Layer.RETRIEVED and s.source_id]
    assert kept == ["k0", "k1"]
    [left] = assembled.receipt.left_out
    assert (left.source_id, left.reason) == (
        "k2",
        "visibility “Each sees only you”: a reply of another voice",
    )


def test_only_the_reply_marked_best_is_seen_where_that_was_chosen():
    best = message(1, BERT, "Bert says 1")
    given_material = material(
        (round_(1), round_(2)), visibility=Visibility.CHOSEN, chosen=frozenset([best.id])
    )
    text = "\n".join(m.content for m in assemble(given_material, count).prompt.messages)
    assert ("Bert says 1" in text, "Anna says 1" in text, "Cara says 1" in text) == (True, False, False)
    assert all(f"{voice.name} says 2" in text for voice in TABLE)


def test_taking_out_the_reply_marked_best_does_not_bring_the_others_to_light():
    best = frozenset([message(1, BERT).id])
    given_material = material((round_(1),), visibility=Visibility.CHOSEN, chosen=best, without=best)
    text = "\n".join(m.content for m in assemble(given_material, count).prompt.messages)
    assert "says 1" not in text
