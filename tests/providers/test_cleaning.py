"""Text from outside can be stored and shown; what a provider said can be quoted."""

from hypothesis import given
from hypothesis import strategies as st

from tertulia.providers.cleaning import Whole, quotable

any_text = st.text(st.characters(codec=None), max_size=20)


@given(st.text(max_size=30), st.lists(st.integers(0, 60), max_size=6))
def test_text_cut_between_the_halves_of_its_characters_comes_out_whole(text: str, cuts: list[int]) -> None:
    halves = text.replace("\x00", "").encode("utf-16-le", "surrogatepass")
    units = [halves[at : at + 2].decode("utf-16-le", "surrogatepass") for at in range(0, len(halves), 2)]
    places = [0, *sorted(min(cut, len(units)) for cut in cuts), len(units)]
    pieces = ["".join(units[a:b]) for a, b in zip(places, places[1:], strict=False)]
    whole = Whole()
    assert "".join(whole.take(piece) for piece in pieces) + whole.rest() == text.replace("\x00", "")


@given(st.lists(st.text(st.sampled_from("a\x00é\ud83d\ude00😀"), max_size=4), max_size=5))
def test_what_comes_out_can_always_be_written(pieces: list[str]) -> None:
    whole = Whole()
    said = "".join(whole.take(piece) for piece in pieces) + whole.rest()
    said.encode("utf-8")
    assert "\x00" not in said


def test_a_quotation_holds_no_key_no_control_character_and_no_novel() -> None:
    said = (
        "Bad key my-very-own-key\r\n\x07 for Bearer abc.def and sk-ant-0123456789abcdef\u202e. "
        + "long " * 500
    )
    quoted = quotable(said, ("my-very-own-key",))
    assert quoted is not None
    assert quoted.startswith("Bad key ••• for ••• and ••• . long long")
    assert len(quoted) == 500


def test_nothing_said_is_nothing_quoted() -> None:
    assert quotable(" \n\x00 ") is None
