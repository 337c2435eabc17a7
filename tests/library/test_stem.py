"""Stemming: the same stems as in the full-text index, so that the words it found can be highlighted."""

from __future__ import annotations

import sqlite3

import pytest

from tertulia.library.query import terms
from tertulia.library.snippets import snippet
from tertulia.library.stem import stem_of

WORDS = """
    abilities agreed arguable bed being bled bus business by caresses cats cautiously classes conditional
    configuration configure configured conflated controlled dependency digitizer dying electricity everyday
    failing falling fizzed filing flies fly formalize generalization goodness happier happily happy hissing
    homology hopeful hopefulness hoping hopping indices irritant mobility motoring of oscillators plastered
    policies policy ponies possibility possibly probate rate rating rational relational replacement rolling
    rotate rotation run running say says sensibilities sensitivity singing size sizing skies sky syzygy tanned
    the ties tries triplicate trouble troubled try universal vietnamization violent yes yellow yoyos
""".split()  # noqa: SIM905 - a paragraph reads better than a hundred quoted words


def test_the_stemmer_gives_the_same_stems_as_sqlite() -> None:
    index = sqlite3.connect(":memory:")
    index.execute("CREATE VIRTUAL TABLE words USING fts5(word, tokenize = 'porter unicode61')")
    index.execute("CREATE VIRTUAL TABLE stems USING fts5vocab(words, 'instance')")
    index.executemany("INSERT INTO words (rowid, word) VALUES (?, ?)", enumerate(WORDS))
    sqlite_stems = dict(index.execute("SELECT doc, term FROM stems"))
    index.close()
    assert {word: stem_of(word) for word in WORDS} == {
        word: sqlite_stems[row] for row, word in enumerate(WORDS)
    }


@pytest.mark.parametrize(
    ("query", "content", "expected"),
    [
        ("rotation", "They rotate it, they rotated it.", ["rotate", "rotated"]),
        ("running", "Run the runner: it runs.", ["Run", "runs"]),
        ("configure", "The configuration is read first.", ["configuration"]),
        ("possibility", "It is possibly so.", ["possibly"]),
        ("sized", "By size, when sizing.", ["size", "sizing"]),
        ("policy", "Policies and a police officer.", ["Policies"]),
        ("x2", "x1, x2 and x20", ["x2"]),
    ],
)
def test_other_forms_of_a_query_word_are_highlighted(query: str, content: str, expected: list[str]) -> None:
    excerpt = snippet(content, terms(query))
    assert [content[span.start : span.end] for span in excerpt.highlights] == expected
