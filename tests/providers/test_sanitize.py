"""Sanitize: text from providers can be stored and shown, and their messages can be quoted."""

from hypothesis import given
from hypothesis import strategies as st

from tertulia.providers.sanitize import SurrogateJoiner, quotable

any_text = st.text(st.characters(codec=None), max_size=20)


@given(st.text(max_size=30), st.lists(st.integers(0, 60), max_size=6))
def test_text_split_between_surrogates_is_joined_again(text: str, cuts: list[int]) -> None:
    utf16 = text.replace("\x00", "").encode("utf-16-le", "surrogatepass")
    units = [
        utf16[start : start + 2].decode("utf-16-le", "surrogatepass") for start in range(0, len(utf16), 2)
    ]
    bounds = [0, *sorted(min(cut, len(units)) for cut in cuts), len(units)]
    pieces = ["".join(units[a:b]) for a, b in zip(bounds, bounds[1:], strict=False)]
    joiner = SurrogateJoiner()
    assert "".join(joiner.feed(piece) for piece in pieces) + joiner.flush() == text.replace("\x00", "")


@given(st.lists(st.text(st.sampled_from("a\x00é\ud83d\ude00😀"), max_size=4), max_size=5))
def test_joined_text_is_always_valid_utf8_without_nul(pieces: list[str]) -> None:
    joiner = SurrogateJoiner()
    text = "".join(joiner.feed(piece) for piece in pieces) + joiner.flush()
    text.encode("utf-8")
    assert "\x00" not in text


def test_a_quoted_message_has_no_keys_no_control_characters_and_at_most_500_characters() -> None:
    message = (
        "Bad key my-very-own-key\r\n\x07 for Bearer abc.def and sk-ant-0123456789abcdef\u202e. "
        + "long " * 500
    )
    quoted = quotable(message, ("my-very-own-key",))
    assert quoted is not None
    assert quoted.startswith("Bad key ••• for ••• and ••• . long long")
    assert len(quoted) == 500


def test_a_blank_message_is_quoted_as_none() -> None:
    assert quotable(" \n\x00 ") is None
