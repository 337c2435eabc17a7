"""SQL statements: their parameters in the style of psycopg."""

import pytest

from tertulia.store.sql import sql


@pytest.mark.parametrize(
    ("written", "rendered"),
    [
        ("SELECT 1 FROM users WHERE id = :id", "SELECT 1 FROM users WHERE id = %(id)s"),
        ("VALUES (:a, :b_2,:a)", "VALUES (%(a)s, %(b_2)s,%(a)s)"),
        ("path LIKE '%' || :word", "path LIKE '%%' || %(word)s"),
        ("SELECT :id::text", "SELECT %(id)s::text"),
        ("SELECT '12:30', id::text", "SELECT '12:30', id::text"),
    ],
)
def test_psycopg_gets_percent_parameters(written: str, rendered: str) -> None:
    assert sql(written).with_percent_parameters() == rendered


def test_each_statement_equals_only_itself() -> None:
    statement = sql("SELECT 1")

    assert statement == statement
    assert statement != sql("SELECT 1")
