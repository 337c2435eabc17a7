"""The index of words, once for each database: how a chunk is added to it and how it is asked.

Both cut text into words by the same rule before the database sees it, so that both find the same: letters and
digits, without marks, and each character of a script without spaces a word of its own.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Protocol

from sqlalchemy import TextClause, text

from tertulia.core.chunks import Source, Weights

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff"
)
"""The characters of scripts that put no spaces between words, as ranges of a pattern; and those of Korean,
which puts none between a word and what it is to the sentence."""
MARKS = (
    "\u00ad\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0711\u0730-\u074a"
    "\u0900-\u0963\u0971-\u0dff\u0e31-\u0e4e\u0eb1-\u0ece\u0f18-\u0fbc\u102b-\u103e\u17b4-\u17d3\u1ab0-\u1aff"
    "\u1dc0-\u1dff\u20d0-\u20f0\u3099\u309a\ufe20-\ufe2f"
)
"""Where vowel signs, accents and hyphens for the end of a line are: they stand inside a word and are no
letters."""
_UNSPACED = re.compile(f"([{UNSPACED}])")
_WORD = re.compile(r"[^\W_]+")
_SAME = str.maketrans("øØłŁđĐðÐħĦı", "oollddddhhi") | str.maketrans(
    {"ß": "ss", "ẞ": "ss", "æ": "ae", "Æ": "ae", "œ": "oe", "Œ": "oe", "þ": "th", "Þ": "th", "\u00ad": ""}
)
"""Letters that are no other letter with a mark, and are written as others where a keyboard lacks them."""
ENOUGH = 1_000
"""Rows that have one of the rarer words of a question: five times as many as are looked at further."""


def plain(written: str) -> str:
    """The words of a text with spaces between them."""
    if not written.isascii():
        apart = unicodedata.normalize("NFKD", written.translate(_SAME))
        letters = "".join(c for c in apart if not unicodedata.category(c).startswith("M"))
        written = unicodedata.normalize("NFC", letters)
        written = _UNSPACED.sub(r" \1 ", written)
    return " ".join(_WORD.findall(written.lower()))


def phrases(word: str) -> tuple[str, ...]:
    """What to look for when someone writes this word: itself, or each two characters that stand together."""
    pieces = plain(word).split()
    if len(pieces) < 2 or not is_unspaced(word):
        return (" ".join(pieces),) if pieces else ()
    return tuple(" ".join(pair) for pair in zip(pieces, pieces[1:], strict=False))


def scope(project_id: str, source: Source) -> str:
    """Two words nobody writes, to filter by inside MATCH; the 0 at their ends keeps the stemmer away."""
    return f"p{project_id.lower()}0 {'kfile0' if source is Source.FILE else 'ktalk0'}"


def is_unspaced(word: str) -> bool:
    """Whether any of it is of a script without spaces."""
    return _UNSPACED.search(word) is not None


class Words(Protocol):
    add: TextClause
    """Takes number, scope, body, heading, place and around."""
    among: str
    """A condition on a column: its value is one of those in a parameter made by `many`."""
    hurries: bool
    """Whether it is ever worth it to search everything by `hurried`."""
    count: TextClause
    """Takes query and limit; gives rows."""

    def find(self, weights: Weights, more: str) -> TextClause:
        """Takes query, project_ids, source_type and limit; gives number and score, the higher the better."""

    def query(self, scope: Sequence[str], phrases: Sequence[str]) -> object:
        """The phrases in the database's own language, any of them, within any of the scopes."""

    def hurried(self, phrases: Sequence[str], rows: Mapping[str, int]) -> tuple[object, int]:
        """The same of everything there is, but rows that have only words which many others have are left out;
        and how many times too high it scores. `rows` says how many have each, no further than ENOUGH."""

    def many(self, values: Sequence[str] | Sequence[int]) -> object: ...


class Fts5:
    """SQLite. The scope stands inside MATCH: FTS5 scores every row that matches before WHERE is looked at.

    A scope is one phrase of two words, a project and a kind. For its score FTS5 walks through all rows of
    every phrase, also of one that weighs nothing, and the kind alone would be half of all rows there are.
    """

    among = "{column} IN (SELECT value FROM json_each(:{name}))"
    hurries = True
    count = text("""
        SELECT COUNT(*) AS rows
        FROM (SELECT 1 FROM retrieval_index WHERE retrieval_index MATCH :query LIMIT :limit) AS some
    """)
    add = text("""
        REPLACE INTO retrieval_index (rowid, scope, body, heading, place, around)
        VALUES (:number, :scope, :body, :heading, :place, :around)
    """)

    def find(self, weights: Weights, more: str) -> TextClause:
        return _fts5(weights, more)

    def query(self, scope: Sequence[str], phrases: Sequence[str]) -> str:
        within = f"scope : ({_any(scope)}) AND " if scope else ""
        return f"{within}{_COLUMNS} : ({_any(phrases)})"

    def hurried(self, phrases: Sequence[str], rows: Mapping[str, int]) -> tuple[str, int]:
        wanted: list[str] = []
        others: list[str] = []
        had = 0
        for phrase in sorted(phrases, key=lambda phrase: (rows[phrase], phrase)):
            (wanted if had < ENOUGH else others).append(phrase)
            had += rows[phrase]
        if not others:
            return self.query((), phrases), 1
        # FTS5 knows no word that only counts. Named once more beside the wanted, it does; and so that all
        # still weigh alike, it is named twice, as the wanted ones are.
        return f"{_COLUMNS} : ({_any(wanted)}) AND {_COLUMNS} : ({_any([*wanted, *others, *others])})", 2

    def many(self, values: Sequence[str] | Sequence[int]) -> str:
        return json.dumps(list(values))


_COLUMNS = "{body heading place around}"


def _any(phrases: Sequence[str]) -> str:
    return " OR ".join(f'"{phrase}"' for phrase in phrases)


@cache
def _fts5(weights: Weights, more: str) -> TextClause:
    w = weights
    score = f"-bm25(retrieval_index, 0.0, {w.body}, {w.heading}, {w.place}, {w.around}) AS score"
    if not more:
        return text(f"""
            SELECT rowid AS number, {score} FROM retrieval_index WHERE retrieval_index MATCH :query
            ORDER BY score DESC, number LIMIT :limit
        """)  # by its own column `rank` FTS5 would work every score out twice
    return text(f"""
        SELECT c.number, {score} FROM retrieval_index CROSS JOIN content_chunks AS c
        WHERE retrieval_index MATCH :query AND c.number = retrieval_index.rowid {more}
        ORDER BY score DESC, number LIMIT :limit
    """)


class Tsvector:
    """PostgreSQL. Its own ranks know nothing of how rare a word is, so that is counted here."""

    among = "{column} = ANY(:{name})"
    hurries = False
    count = text("SELECT 0 AS rows WHERE CAST(:query AS TEXT[]) IS NOT NULL LIMIT :limit")
    add = text("""
        UPDATE content_chunks SET words =
            setweight(to_tsvector('tertulia', :heading), 'A')
            || setweight(to_tsvector('tertulia', :place), 'B')
            || setweight(to_tsvector('tertulia', :around), 'C') || to_tsvector('tertulia', :body)
        WHERE number = :number AND CAST(:scope AS TEXT) IS NOT NULL
    """)

    def find(self, weights: Weights, more: str) -> TextClause:
        return _tsvector(weights, more)

    def query(self, scope: Sequence[str], phrases: Sequence[str]) -> list[str]:
        return list(phrases)

    def hurried(self, phrases: Sequence[str], rows: Mapping[str, int]) -> tuple[list[str], int]:
        return list(phrases), 1

    def many(self, values: Sequence[str] | Sequence[int]) -> list[str] | list[int]:
        return [*values]


@cache
def _tsvector(weights: Weights, more: str) -> TextClause:
    given = (weights.body, weights.around, weights.place, weights.heading)
    letters = ", ".join(f"{one / max(given):.4f}" for one in given)  # none may be above 1
    return text(f"""
        WITH asked AS (
            SELECT phraseto_tsquery('tertulia', one) AS q, COUNT(*) AS times
            FROM unnest(CAST(:query AS TEXT[])) AS one GROUP BY phraseto_tsquery('tertulia', one)
        ), matched AS (
            SELECT c.number, a.times * ts_rank(CAST('{{{letters}}}' AS real[]), c.words, a.q, 1) AS rank,
                COUNT(*) OVER (PARTITION BY a.q) AS rows
            FROM asked AS a JOIN content_chunks AS c ON c.words @@ a.q
            WHERE c.project_id = ANY(:project_ids) AND c.source_type = :source_type {more}
        ), all_of_it AS MATERIALIZED (
            SELECT COUNT(*) AS rows FROM content_chunks AS c
            WHERE c.project_id = ANY(:project_ids) AND c.source_type = :source_type
        )
        SELECT m.number,
            SUM(m.rank * ln(1 + ((SELECT rows FROM all_of_it) - m.rows + 0.5) / (m.rows + 0.5))) AS score
        FROM matched AS m GROUP BY m.number ORDER BY score DESC, m.number LIMIT :limit
    """)  # counted once: joined, it is counted for each row while the planner knows little of a new table
