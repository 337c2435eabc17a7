"""Full-text index over chunks: SQLite FTS5 or PostgreSQL tsvector.

Text is split into words by the same rule before either database sees it, so that both find the same. A word
is made of letters and digits without diacritics; in a script without spaces each character is a word.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Protocol

from tertulia.core.chunks import Source, Weights
from tertulia.store.sql import Statement, sql

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff"
)
"""Character ranges of scripts without spaces between words, for a regular expression.

Korean is included, because it writes particles without a space after the word.
"""
MARKS = (
    "\u00ad\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0711\u0730-\u074a"
    "\u0900-\u0963\u0971-\u0dff\u0e31-\u0e4e\u0eb1-\u0ece\u0f18-\u0fbc\u102b-\u103e\u17b4-\u17d3\u1ab0-\u1aff"
    "\u1dc0-\u1dff\u20d0-\u20f0\u3099\u309a\ufe20-\ufe2f"
)
"""Character ranges of vowel signs, accents and soft hyphens, which occur inside words and are no letters."""
_UNSPACED = re.compile(f"([{UNSPACED}])")
_WORD = re.compile(r"[^\W_]+")
_REPLACEMENTS = str.maketrans("øØłŁđĐðÐħĦı", "oollddddhhi") | str.maketrans(
    {"ß": "ss", "ẞ": "ss", "æ": "ae", "Æ": "ae", "œ": "oe", "Œ": "oe", "þ": "th", "Þ": "th", "\u00ad": ""}
)
"""Letters that Unicode does not decompose, with what people type for them on other keyboards."""
ENOUGH = 1_000
"""How many rows the rarer words of a question must match: five times as many as are ranked further."""


def plain(content: str) -> str:
    """The normalised words of a text, separated by spaces."""
    if not content.isascii():
        decomposed = unicodedata.normalize("NFKD", content.translate(_REPLACEMENTS))
        letters = "".join(c for c in decomposed if not unicodedata.category(c).startswith("M"))
        content = unicodedata.normalize("NFC", letters)
        content = _UNSPACED.sub(r" \1 ", content)
    return " ".join(_WORD.findall(content.lower()))


def phrases(word: str) -> tuple[str, ...]:
    """The search phrases for a word: itself, or each pair of adjacent characters in unspaced scripts."""
    pieces = plain(word).split()
    if len(pieces) < 2 or not is_unspaced(word):
        return (" ".join(pieces),) if pieces else ()
    return tuple(" ".join(pair) for pair in zip(pieces, pieces[1:], strict=False))


def scope(project_id: str, source: Source) -> str:
    """The filter phrase for a project and a source inside MATCH: two artificial words.

    They end in 0, so that the stemmer leaves them unchanged.
    """
    return f"p{project_id.lower()}0 {'kfile0' if source is Source.FILE else 'ktalk0'}"


def is_unspaced(word: str) -> bool:
    """Whether the word contains characters of a script without spaces."""
    return _UNSPACED.search(word) is not None


class TextIndex(Protocol):
    add: Statement
    """Indexes a chunk. Takes number, scope, body, heading, place and around."""
    in_list: str
    """A condition template: the column's value is in the list parameter, which `list_param` creates."""
    prefers_global_query: bool
    """Whether a search by `global_query` can be faster in this database."""
    count: Statement
    """Counts matching rows, up to a limit. Takes query and limit; returns rows."""

    def find(self, weights: Weights, conditions: str) -> Statement:
        """The search statement. Takes query, project_ids, source_type and limit; returns number and score.

        A higher score is better.
        """

    def query(self, scope: Sequence[str], phrases: Sequence[str]) -> object:
        """The query, in the database's language, for rows with any of the phrases in any of the scopes."""

    def global_query(self, phrases: Sequence[str], rows: Mapping[str, int]) -> tuple[object, int]:
        """The query without the project filter, and the factor by which its scores are too high.

        It skips rows that match only very common words. `rows` holds how many rows match each phrase, counted
        up to RARE_WORD_ROWS.
        """

    def list_param(self, values: Sequence[str] | Sequence[int]) -> object: ...


class Fts5:
    """SQLite FTS5. The scope is part of MATCH, because FTS5 scores every matching row before WHERE applies.

    A scope is one phrase of two words, for the project and the source. To score, FTS5 reads all rows of each
    phrase, even of one with weight 0, and the source alone would match half of all rows.
    """

    in_list = "{column} IN (SELECT value FROM json_each(:{name}))"
    prefers_global_query = True
    count = sql("""
        SELECT COUNT(*) AS rows
        FROM (SELECT 1 FROM retrieval_index WHERE retrieval_index MATCH :query LIMIT :limit) AS some
    """)
    add = sql("""
        REPLACE INTO retrieval_index (rowid, scope, body, heading, place, around)
        VALUES (:number, :scope, :body, :heading, :place, :around)
    """)

    def find(self, weights: Weights, conditions: str) -> Statement:
        return _fts5(weights, conditions)

    def query(self, scope: Sequence[str], phrases: Sequence[str]) -> str:
        scope_filter = f"scope : ({_any(scope)}) AND " if scope else ""
        return f"{scope_filter}{_COLUMNS} : ({_any(phrases)})"

    def global_query(self, phrases: Sequence[str], rows: Mapping[str, int]) -> tuple[str, int]:
        rare: list[str] = []
        common: list[str] = []
        row_count = 0
        for phrase in sorted(phrases, key=lambda phrase: (rows[phrase], phrase)):
            (rare if row_count < ENOUGH else common).append(phrase)
            row_count += rows[phrase]
        if not common:
            return self.query((), phrases), 1
        # FTS5 has no term that adds to the score without being required. The second half of the AND makes the
        # common phrases such terms. They occur twice there, as each rare phrase occurs in both halves and all
        # phrases must keep the same weight.
        return f"{_COLUMNS} : ({_any(rare)}) AND {_COLUMNS} : ({_any([*rare, *common, *common])})", 2

    def list_param(self, values: Sequence[str] | Sequence[int]) -> str:
        return json.dumps(list(values))


_COLUMNS = "{body heading place around}"


def _any(phrases: Sequence[str]) -> str:
    return " OR ".join(f'"{phrase}"' for phrase in phrases)


@cache
def _fts5(weights: Weights, conditions: str) -> Statement:
    w = weights
    score = f"-bm25(retrieval_index, 0.0, {w.body}, {w.heading}, {w.place}, {w.around}) AS score"
    if not conditions:
        return sql(f"""
            SELECT rowid AS number, {score} FROM retrieval_index WHERE retrieval_index MATCH :query
            ORDER BY score DESC, number LIMIT :limit
        """)  # with the column `rank`, FTS5 would compute each score twice
    return sql(f"""
        SELECT c.number, {score} FROM retrieval_index CROSS JOIN content_chunks AS c
        WHERE retrieval_index MATCH :query AND c.number = retrieval_index.rowid {conditions}
        ORDER BY score DESC, number LIMIT :limit
    """)


class Tsvector:
    """PostgreSQL tsvector. Its rank ignores how rare a word is, so the query computes that itself."""

    in_list = "{column} = ANY(:{name})"
    prefers_global_query = False
    count = sql("SELECT 0 AS rows WHERE CAST(:query AS TEXT[]) IS NOT NULL LIMIT :limit")
    add = sql("""
        UPDATE content_chunks SET words =
            setweight(to_tsvector('tertulia', :heading), 'A')
            || setweight(to_tsvector('tertulia', :place), 'B')
            || setweight(to_tsvector('tertulia', :around), 'C') || to_tsvector('tertulia', :body)
        WHERE number = :number AND CAST(:scope AS TEXT) IS NOT NULL
    """)

    def find(self, weights: Weights, conditions: str) -> Statement:
        return _tsvector(weights, conditions)

    def query(self, scope: Sequence[str], phrases: Sequence[str]) -> list[str]:
        return list(phrases)

    def global_query(self, phrases: Sequence[str], rows: Mapping[str, int]) -> tuple[list[str], int]:
        return list(phrases), 1

    def list_param(self, values: Sequence[str] | Sequence[int]) -> list[str] | list[int]:
        return [*values]


@cache
def _tsvector(weights: Weights, conditions: str) -> Statement:
    all_weights = (weights.body, weights.around, weights.place, weights.heading)
    highest = max(all_weights)  # becomes 1, the most that ts_rank allows
    letters = ", ".join(f"{weight / highest:.4f}" for weight in all_weights)
    return sql(f"""
        WITH asked AS (
            SELECT phraseto_tsquery('tertulia', one) AS q, COUNT(*) AS times
            FROM unnest(CAST(:query AS TEXT[])) AS one GROUP BY phraseto_tsquery('tertulia', one)
        ), matched AS (
            SELECT c.number, a.times * ts_rank(CAST('{{{letters}}}' AS real[]), c.words, a.q, 1) AS rank,
                COUNT(*) OVER (PARTITION BY a.q) AS rows
            FROM asked AS a JOIN content_chunks AS c ON c.words @@ a.q
            WHERE c.project_id = ANY(:project_ids) AND c.source_type = :source_type {conditions}
        ), all_of_it AS MATERIALIZED (
            SELECT COUNT(*) AS rows FROM content_chunks AS c
            WHERE c.project_id = ANY(:project_ids) AND c.source_type = :source_type
        )
        SELECT m.number,
            SUM(m.rank * ln(1 + ((SELECT rows FROM all_of_it) - m.rows + 0.5) / (m.rows + 0.5))) AS score
        FROM matched AS m GROUP BY m.number ORDER BY score DESC, m.number LIMIT :limit
    """)  # MATERIALIZED, as a join would count once per row while statistics are missing
