"""Small domain rules: ids, names, titles, seats, prices and reply lengths."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.core.errors import Invalid, TooManyAttempts, WeakPassword
from tertulia.core.ids import is_ulid, ulid
from tertulia.core.lengths import ENOUGH, RecentReplies, ReplyLength, median
from tertulia.core.models import (
    FREE,
    Model,
    ModelOverrides,
    Prices,
    Tier,
    TokenCount,
    cost_micros,
    with_overrides,
)
from tertulia.core.projects import ProjectSettings, RetrievalConfig, checked
from tertulia.core.titles import LONGEST, cleaned, title_of
from tertulia.core.users import check_password, clean_email, clean_name
from tertulia.core.voices import SeatRequest, assign_seats, assign_seats_once

moments = st.integers(0, (1 << 48) - 1)


@given(moments, st.binary(min_size=10, max_size=10))
def test_a_generated_ulid_is_valid(at, randomness):
    assert is_ulid(ulid(at, randomness))


@given(moments, moments, st.binary(min_size=10, max_size=10))
def test_ulids_sort_by_time(a, b, randomness):
    assert (ulid(a, randomness) < ulid(b, randomness)) == (a < b)


@pytest.mark.parametrize("text", ["", "x", "8" + "0" * 25, "0" * 25 + "U", "0" * 27, "0" * 25 + "\n"])
def test_other_text_is_not_a_valid_ulid(text):
    assert not is_ulid(text)


def test_the_same_model_twice_gets_two_lanes_two_seats_and_two_names():
    voices = assign_seats([SeatRequest("a:x", "X"), SeatRequest("a:y", "Y"), SeatRequest("a:x", "X")])
    assert [(v.id, v.seat, v.name) for v in voices] == [
        ("a:x:0", 1, "X"),
        ("a:y:0", 2, "Y"),
        ("a:x:1", 3, "X 2"),
    ]


def test_voices_with_the_same_name_are_numbered():
    table = assign_seats(
        [
            SeatRequest("a:x", "Sage", "one", 1),
            SeatRequest("a:x", "Sage", "two", 1),
            SeatRequest("a:x", "Sage 2"),
        ]
    )
    assert [v.name for v in table] == ["Sage", "Sage 2", "Sage 2 2"]
    [chair] = assign_seats([SeatRequest("a:y", "Sage")], table)
    assert chair.name == "Sage 3"


def test_the_cost_is_unknown_without_prices_and_zero_for_a_free_model():
    assert cost_micros(TokenCount(10, 0, 10), Prices()) is None
    assert cost_micros(TokenCount(10, 0, 10), FREE) == 0


def test_cached_tokens_cost_their_own_price_and_fractions_round_up():
    prices = Prices(input_micros=3_000_000, cached_micros=300_000, output_micros=15_000_000)
    assert cost_micros(TokenCount(10_000, 4_000, 2_000), prices) == 18_000 + 1_200 + 30_000
    assert cost_micros(TokenCount(1, 0, 0), Prices(150_000, None, 600_000)) == 1


def test_cache_writes_cost_the_providers_surcharge():
    prices = Prices(3_000_000, 300_000, 15_000_000, written_micros=3_750_000)
    plain = cost_micros(TokenCount(10_000, 2_000, 0), prices)
    written = TokenCount(10_000, 2_000, 0, written_tokens=4_000)
    assert cost_micros(written, prices) == plain + 3_000
    assert cost_micros(written, replace(prices, written_micros=None)) == plain, "not everyone charges for it"


MODEL = Model("x", "m", "M", 128_000, 8_000, Tier.SMART, prices=Prices(4, 1, 20, written_micros=5))


def test_an_administrators_corrections_replace_the_catalogue_and_the_rest_stays():
    corrected = with_overrides(MODEL, ModelOverrides(context_window=32_000, input_micros=8))
    assert corrected == replace(MODEL, context_window=32_000, prices=Prices(8, 1, 20, written_micros=10))
    assert with_overrides(MODEL, ModelOverrides()) == MODEL


@pytest.mark.parametrize(
    "facts",
    [
        ModelOverrides(display_name=" "),
        ModelOverrides(display_name="x" * 101),
        ModelOverrides(context_window=10),
        ModelOverrides(max_output_tokens=0),
        ModelOverrides(context_window=4_000),  # less than its max_output_tokens
        ModelOverrides(output_micros=-1),
    ],
)
def test_an_impossible_correction_of_a_model_is_refused(facts):
    with pytest.raises(Invalid):
        with_overrides(MODEL, facts)


@given(st.text(max_size=10_000))
def test_the_title_of_any_question_is_one_short_line(question):
    title = title_of(question)
    assert 0 < len(title) <= LONGEST + 1
    assert "\n" not in title


def test_a_title_is_the_first_sentence_without_markup():
    assert title_of("# Should we *ship*?\n\n```py\nx = 1\n```") == "Should we ship?"
    assert title_of("Keep sessions. Or not?") == "Keep sessions"


def test_a_title_from_a_model_loses_its_quotes_and_label():
    assert cleaned('Title: "Tea or coffee."\nBecause…') == "Tea or coffee"


@pytest.mark.parametrize("email", ["", "a", "a@", "@b", "a b@c", "a@b" + "c" * 300])
def test_an_invalid_email_address_is_refused(email):
    with pytest.raises(Invalid):
        clean_email(email)


def test_names_and_email_addresses_are_normalised():
    assert clean_email("  Me@Example.ORG ") == "me@example.org"
    assert clean_name("  A \n B ") == "A B"
    with pytest.raises(Invalid):
        clean_name(" ")


@pytest.mark.parametrize("password", ["short", "x" * 2_000])
def test_a_password_that_is_too_short_or_too_long_is_refused(password):
    with pytest.raises(WeakPassword):
        check_password(password)


def test_an_errors_code_is_its_name_in_snake_case():
    assert TooManyAttempts("Wait.").code == "too_many_attempts"


def test_an_aside_leaves_every_voice_of_the_table_in_its_seat() -> None:
    alpha, beta = SeatRequest("house:alpha", "Alpha"), SeatRequest("house:beta", "Beta")
    sage = SeatRequest("house:alpha", "The Sage", "sage", 1, hue=2)
    table = assign_seats([alpha, beta])
    [seated] = assign_seats_once(assign_seats([beta]), table)
    assert (seated.id, seated.seat) == ("house:beta:0", 2)
    [newcomer] = assign_seats_once(assign_seats([sage]), table)
    assert newcomer.seat == 1 + len(table)  # the seat of its colour is taken
    assert [voice.seat for voice in assign_seats_once(assign_seats([sage, beta]), table)] == [3, 2]
    assert assign_seats_once(assign_seats([sage]), ())[0].seat == sage.hue


def test_an_aside_reaches_the_named_lane_when_a_model_sits_twice():
    x = SeatRequest("a:x", "X 1")
    table = assign_seats([x, x])
    assert assign_seats_once(assign_seats([x]), table, ["a:x:1"]) == (table[1],)
    assert assign_seats_once(assign_seats([x]), table, ["a:x:0"]) == (table[0],)
    assert assign_seats_once(assign_seats([x, x]), table, ["a:x:1", "a:x:0"]) == (table[1], table[0])
    [absent] = assign_seats_once(assign_seats([x]), (), ["a:x:1"])
    assert (absent.id, absent.name) == ("a:x:1", "X 1 2")
    for unknown_lane in ("a:y:0", "a:x:8", "a:x:-1", "a:x:x", "a:x"):
        with pytest.raises(Invalid):
            assign_seats_once(assign_seats([x]), table, [unknown_lane])


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        (ProjectSettings(max_context_tokens=999), "max_context_tokens"),
        (ProjectSettings(max_context_tokens=10_000_001), "max_context_tokens"),
        (ProjectSettings(retrieval_config=RetrievalConfig(chunk_size=4)), "chunk_size"),
        (ProjectSettings(retrieval_config=RetrievalConfig(chunk_size=1_001)), "chunk_size"),
        (ProjectSettings(retrieval_config=RetrievalConfig(max_results=-1)), "max_results"),
        (ProjectSettings(retrieval_config=RetrievalConfig(max_results=101)), "max_results"),
        (ProjectSettings(default_models=("a:x",) * 9), "8 models"),
    ],
)
def test_an_invalid_project_setting_is_named_in_the_error(settings, name):
    with pytest.raises(Invalid, match=name):
        checked(settings)


@pytest.mark.parametrize(
    ("values", "middle"),
    [([7], 7), ([9, 1, 5], 5), ([1, 2], 2), ([4, 2], 3), ([10_000, 3, 1, 2, 4], 3), ([0, 0], 0)],
)
def test_a_median_is_the_middle_value_rounded_up(values, middle):
    assert median(values) == middle


@given(st.lists(st.integers(0, 10**6), min_size=1))
def test_a_median_splits_its_values_in_halves(values):
    middle = median(values)
    assert min(values) <= middle <= max(values)
    assert 2 * sum(value < middle for value in values) <= len(values) + 1
    assert 2 * sum(value > middle for value in values) <= len(values)


def test_the_usual_length_comes_from_the_project_else_from_all_projects_else_is_unknown():
    too_few, in_project = (ReplyLength(100, 80),) * (ENOUGH - 1), (ReplyLength(100, 80),) * ENOUGH
    everywhere = (ReplyLength(30, 30),) * ENOUGH
    assert RecentReplies(in_project, everywhere).usual() == ReplyLength(100, 80)
    assert RecentReplies(too_few, everywhere).usual() == ReplyLength(30, 30)
    assert RecentReplies((), everywhere).usual() == ReplyLength(30, 30)
    assert RecentReplies(too_few, too_few).usual() is None
    assert RecentReplies().usual() is None
