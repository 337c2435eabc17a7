"""Source lists: the sources of a reply are safe links, whatever the provider sends."""

import pytest

from tertulia.engine.sources import source_list
from tertulia.providers.interface import WebSource


def test_sources_are_numbered_as_the_reply_refers_to_them() -> None:
    sources = (WebSource("https://one.example/a", "One"), WebSource("https://www.two.example/b/"))
    assert source_list(sources) == (
        "\n\nSources:\n\n1. [One](<https://one.example/a>)\n2. [two.example/b](<https://www.two.example/b/>)"
    )


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (WebSource("javascript:alert(1)", "Click"), "Click"),
        (WebSource("data:text/html,x"), "Source"),
        (WebSource("//host.example/x", "No scheme"), "No scheme"),
        (WebSource("https://", "No host"), "No host"),
        (WebSource("http://[broken", "Broken"), "Broken"),
        (WebSource("https://a.example/" + "x" * 3_000, "Too long"), "Too long"),
        (WebSource("https://a.example/x y>z\n", "Odd"), "[Odd](<https://a.example/x%20y%3Ez>)"),
        (
            WebSource("https://a.example/", "[x](y)\n# <b>`T`"),
            "[\\[x\\](y) # \\<b\\>\\`T\\`](<https://a.example/>)",
        ),
    ],
)
def test_an_unsafe_address_is_no_link_and_markdown_in_a_title_is_escaped(
    source: WebSource, line: str
) -> None:
    assert source_list((source,)) == f"\n\nSources:\n\n1. {line}"
