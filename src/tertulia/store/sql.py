"""SQL statements with named parameters, which each backend renders in the style of its driver."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """A statement whose parameters are written `:name`, as SQLite's driver takes them.

    It is compared by identity, so that a backend finds its rendering of a long statement at once.
    """

    text: str

    def with_percent_parameters(self) -> str:
        """The statement as psycopg takes it: `%(name)s` for a parameter, `%%` for a percent sign."""
        return _PARAMETER.sub(r"%(\1)s", self.text.replace("%", "%%"))


_PARAMETER = re.compile(r"(?<![:\w]):([A-Za-z_]\w*)")
"""A parameter; neither the cast in `id::text` nor the time in `12:30` is one."""


def sql(text: str) -> Statement:
    return Statement(text)
