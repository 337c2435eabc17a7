"""Rate limits: how long a provider asks to wait, whether a quota is spent, and what a minute has room for.

Each says the wait in another place: Retry-After, retry-after-ms, Google's RetryInfo, "try again in 7m12s",
x-ratelimit-reset (seconds, "6m0s" or a moment).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime

from tertulia.providers.error_bodies import ErrorBody

SIGNAL = re.compile(
    r"rate[ _-]?limit|too[ _]many[ _](?:requests|tokens)|tokens per min|requests per (?:min|sec)"
    r"|\b[TR]PM\b|RESOURCE_EXHAUSTED|PerMinute|quota_exceeded|capacity[ _]exceeded|slow down|throttl",
    re.IGNORECASE,
)
"""Words of a limit on how much a key may use in a short time."""
SPENT_QUOTA = re.compile(
    r"per[\s_-]?(?:day|week|month)|\b(?:hourly|daily|weekly|monthly)\b|\b[TR]PD\b|requests?-day|tokens?-day",
    re.IGNORECASE,
)
"""Words of a quota that does not come back within minutes."""
SPENT_CREDIT = re.compile(
    r"insufficient[ _](?:quota|balance|credits?|funds)|billing_(?:hard_limit|not_active)|credit balance"
    r"|(?:out of|no|any|not enough|insufficient|all available|requires? more|add more) credits?\b"
    r"|credits? (?:are |is |have been |has been )?(?:depleted|exhausted|used up|required)"
    r"|exceeded your (?:account|monthly) (?:balance|budget)|spend(?:ing)? (?:limit|cap)|key limit exceeded"
    r"|reached your (?:specified|configured) (?:workspace )?(?:API )?usage limits?"
    r"|payment required|account is not active|account balance|arrears|\bArrearage\b",
    re.IGNORECASE,
)
"""Words of a balance that is used up: waiting does not help."""
CREDIT = re.compile(r"\bcredits?\b", re.IGNORECASE)
NO_QUOTA = re.compile(r"\blimit: 0\b(?!.*\blimit: [1-9])", re.DOTALL)
"""Gemini's free tier has none for some models."""
EARLIEST_EPOCH_S = 1e9
"""A larger figure is a moment and no number of seconds."""
EARLIEST_EPOCH_MS = 1e11
LONGEST_S = 100 * 365 * 86_400.0
"""A longer wait is nonsense; moments beyond the year 9999 cannot even be written."""

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_UNIT = r"(?:milliseconds?|ms|s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:(?:ou)?rs?)?|d(?:ays?)?)"
_PART = rf"\d+(?:\.\d+)?\s*{_UNIT}(?![a-z])"
_PARTS = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)", re.IGNORECASE)
_DURATION = re.compile(rf"(?:{_PART}[\s,]*(?:and\s+)?)+", re.IGNORECASE)
_ASKED_FOR = re.compile(
    r"(?:\b(?:re-?try|try|again|available|resets?)\b[^\n]{0,60}?\b(?:in|after)|\bwait(?:\s+for)?):?\s+"
    rf"(?:about\s+|at least\s+)?((?:{_PART}[\s,]*(?:and\s+)?)+)",
    re.IGNORECASE,
)
_MINUTE = re.compile(r"\bLimit:?\s*~?([\d,]+)\b.{0,60}?\bRequested:?\s*~?([\d,]+)", re.IGNORECASE | re.DOTALL)
_TOKENS_LEFT = re.compile(
    r"(?:tokens per min(?:ute)?|\bTPM\b).{0,20}?\bLimit:?\s*~?([\d,]+)\s+Used:?\s*~?([\d,]+)"
    r"\s+Requested:?\s*~?([\d,]+)",
    re.IGNORECASE | re.DOTALL,
)
_AFFORDABLE = re.compile(r"can only afford (\d[\d,]*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Excess:
    """A request that no waiting helps: it is larger than all that may be used in a minute."""

    allowed: int
    needed: int


def excess(text: str) -> Excess | None:
    match = _MINUTE.search(text)
    found = Excess(_number(match[1]), _number(match[2])) if match else None
    return found if found and found.needed > found.allowed else None


def missing_tokens(text: str) -> int | None:
    """How many fewer tokens would still fit into this minute, where the provider says what is used of it."""
    match = _TOKENS_LEFT.search(text)
    if match is None:
        return None
    allowed, used, needed = map(_number, match.groups())
    return used + needed - allowed


def affordable_tokens(text: str) -> int | None:
    """The longest answer that the key's balance pays for, where the provider names it."""
    match = _AFFORDABLE.search(text)
    return (_number(match[1]) or None) if match else None


def _number(text: str) -> int:
    return int(text.replace(",", "") or "0")


# --- how long to wait --------------------------------------------------------------------------------------


def wait_s(headers: Mapping[str, str], body: ErrorBody, now: float = math.inf) -> float | None:
    """Seconds to wait, None where the provider does not say; what it says of this request goes first.

    Without a clock only durations count, and no moments.
    """
    names = {name.lower(): value for name, value in headers.items()}
    for told in body.values("headers"):
        if isinstance(told, dict):
            names |= {str(name).lower(): str(value) for name, value in told.items()}
    return next((wait for wait in _waits(names, body, now) if wait is not None), None)


def _waits(names: Mapping[str, str], body: ErrorBody, now: float) -> Iterator[float | None]:
    yield _of_milliseconds(names.get("retry-after-ms"))
    yield seconds(names.get("retry-after"), now)
    yield max((wait for wait in _of_body(body, now) if wait is not None), default=None)
    yield _of_resets(names, now)


_DELAYS = ("retryDelay", "retry_delay", "retry_after", "retryAfter", "retry-after", "retry_after_seconds")


def _of_body(body: ErrorBody, now: float) -> Iterator[float | None]:
    """Google rounds in one place and not in the other: the longer one is safe."""
    yield from (_of_milliseconds(value) for value in body.values("retry_after_ms"))
    yield from (seconds(value, now) for value in body.values(*_DELAYS))
    yield _in_words(body.text)


def seconds(value: object, now: float) -> float | None:
    """From a number of seconds, a duration such as "6m0s", or a moment; None when past or nonsense."""
    match value:
        case bool() | None:
            return None
        case int() | float():
            return _positive(_from_now(float(value), now))
        case {"seconds": int() | str() as whole}:
            return seconds(str(whole), now)
        case str() if value.strip():
            return _of_text(value.strip(), now)
    return None


def _of_text(text: str, now: float) -> float | None:
    try:
        return _positive(_from_now(float(text), now))
    except ValueError:
        pass
    if _DURATION.fullmatch(text):
        return _positive(_duration_s(text))
    moment = _moment(text)
    return None if moment is None else _positive(moment - now)


def _from_now(figure: float, now: float) -> float:
    if figure >= EARLIEST_EPOCH_MS:
        return figure / 1000 - now
    return figure - now if figure >= EARLIEST_EPOCH_S else figure


def _duration_s(text: str) -> float:
    return sum(float(figure) * _unit_s(unit.lower()) for figure, unit in _PARTS.findall(text))


def _unit_s(unit: str) -> float:
    return 0.001 if unit.startswith(("ms", "milli")) else _UNITS[unit[0]]


def _moment(text: str) -> float | None:
    for parsed in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = parsed(text)
            return moment.timestamp() if moment.tzinfo else None
        except (ValueError, TypeError, OverflowError):
            continue
    return None


def _of_milliseconds(value: object) -> float | None:
    try:
        return _positive(float(str(value)) / 1000)
    except ValueError:
        return None


def _in_words(text: str) -> float | None:
    match = _ASKED_FOR.search(text)
    return _positive(_duration_s(match[1])) if match else None


def _of_resets(names: Mapping[str, str], now: float) -> float | None:
    """Of several limits the last one to be lifted of those that are spent, else the first one of all."""
    resets = [
        (names.get(name.replace("reset", "remaining")), wait)
        for name, value in names.items()
        if "ratelimit" in name and "reset" in name and (wait := seconds(value, now)) is not None
    ]
    spent = [wait for remaining, wait in resets if _is_nothing(remaining)]
    return max(spent) if spent else min((wait for _, wait in resets), default=None)


def _is_nothing(remaining: str | None) -> bool:
    try:
        return remaining is not None and float(remaining) <= 0
    except ValueError:
        return False


def _positive(figure: float) -> float | None:
    return figure if 0 < figure <= LONGEST_S else None
