"""The sources of a reply are links that can be followed safely, whatever a provider calls a source."""

import pytest

from tertulia.engine.sources import source_list
from tertulia.providers.seam import Source


def test_sources_are_numbered_as_the_reply_refers_to_them() -> None:
    sources = (Source("https://one.example/a", "One"), Source("https://www.two.example/b/"))
    assert source_list(sources) == (
        "\n\nSources:\n\n1. [One](<https://one.example/a>)\n2. [two.example/b](<https://www.two.example/b/>)"
    )


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (Source("javascript:alert(1)", "Click"), "Click"),
        (Source("data:text/html,x"), "Source"),
        (Source("//host.example/x", "No scheme"), "No scheme"),
        (Source("https://", "No host"), "No host"),
        (Source("http://[broken", "Broken"), "Broken"),
        (Source("https://a.example/" + "x" * 3_000, "Too long"), "Too long"),
        (Source("https://a.example/x y>z\n", "Odd"), "[Odd](<https://a.example/x%20y%3Ez>)"),
        (
            Source("https://a.example/", "[x](y)\n# <b>`T`"),
            "[\\[x\\](y) # \\<b\\>\\`T\\`](<https://a.example/>)",
        ),
    ],
)
def test_what_cannot_be_followed_is_no_link_and_a_title_is_no_markup(source: Source, line: str) -> None:
    assert source_list((source,)) == f"\n\nSources:\n\n1. {line}"
