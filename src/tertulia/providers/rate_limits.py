"""Rate limits: how long a provider asks to wait, whether a quota is used up, and how many tokens are left.

Providers state the wait in different places: Retry-After, retry-after-ms, Google's RetryInfo, "try again in
7m12s", x-ratelimit-reset (seconds, "6m0s" or a time).
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
"""Matches messages about a limit on use within a short time."""
EXCEEDED = re.compile(
    r"rate[ _-]?limit[\w-]* (?:was |is |has been )?(?:exceeded|reached)|rate_?limit_?exceeded|throttl"
    r"|too[ _]many[ _]requests",
    re.IGNORECASE,
)
"""Matches messages that can only be about a rate limit, whatever the HTTP status."""
SPENT_QUOTA = re.compile(
    r"per[\s_-]?(?:day|week|month)|/ ?(?:day|week|month)\b|\b(?:hourly|daily|weekly|monthly)\b"
    r"|\b[TR]PD\b|requests?-day|tokens?-day|\busage[ _]limit",
    re.IGNORECASE,
)
"""Matches messages about a quota that does not renew within minutes."""
SPENT_CREDIT = re.compile(
    r"insufficient[ _](?:quota|balance|credits?|funds)|billing_(?:hard_limit|not_active)|credit balance"
    r"|(?:out of|no|any|not enough|insufficient|all available|requires? more) credits?\b"
    r"|credits? (?:are |is |have been |has been )?(?:depleted|exhausted|used up|required)"
    r"|free (?:tier|quota)[^.]{0,40} (?:exhausted|used up)"
    r"|(?:reach|exceed|hit)\w*[^.]{0,40} (?:balance|budget|spend(?:ing)? (?:limit|cap))|key limit exceeded"
    r"|spend(?:ing)? (?:limit|cap) (?:is |was |has been )?(?:reached|exceeded|hit)"
    r"|reached your (?:specified|configured) (?:workspace )?(?:API )?usage limits?"
    r"|payment required|account is not active|account balance (?:is|was)|insufficient account"
    r"|arrears|\bArrearage\b",
    re.IGNORECASE,
)
"""Matches messages about a used up balance: waiting does not help. Advice about credit ("add more credits")
stands in rate limits too, so it does not match."""
CREDIT = re.compile(r"\bcredits?\b", re.IGNORECASE)
ROLLING = re.compile(r"\bLimit:?\s*~?[\d,]+,?\s+Used:?\s*~?[\d,]+,?\s+Requested", re.IGNORECASE)
"""Matches messages about a quota that renews bit by bit, so that even a short wait helps."""
NO_QUOTA = re.compile(r"\blimit: 0\b(?!.*\blimit: [1-9])", re.DOTALL)
"""Gemini's free tier has no quota for some models."""
EARLIEST_EPOCH_S = 1e9
"""A larger figure is a Unix time, not a number of seconds."""
EARLIEST_EPOCH_MS = 1e11
LONGEST_S = 100 * 365 * 86_400.0
"""A longer wait is implausible. Times beyond the year 9999 cannot even be formatted."""

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_UNIT = r"(?:milliseconds?|ms|s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:(?:ou)?rs?)?|d(?:ays?)?)"
_PART = rf"\d+(?:\.\d+)?\s*{_UNIT}(?![a-z])"
_PARTS = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)", re.IGNORECASE)
_DURATION = re.compile(rf"(?:{_PART}[\s,]*(?:and\s+)?)+", re.IGNORECASE)
_REQUESTED_WAIT = re.compile(
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
    """A request larger than the limit of a whole minute, so that waiting does not help."""

    allowed: int
    needed: int


def excess(text: str) -> Excess | None:
    match = _MINUTE.search(text)
    figures = Excess(_number(match[1]), _number(match[2])) if match else None
    return figures if figures and figures.needed > figures.allowed else None


def missing_tokens(text: str) -> int | None:
    """How many tokens too large the request is for this minute, if the provider says how much of
    it is used."""
    match = _TOKENS_LEFT.search(text)
    if match is None:
        return None
    allowed, used, needed = map(_number, match.groups())
    return used + needed - allowed


def affordable_tokens(text: str) -> int | None:
    """The longest reply that the key's balance covers, if the provider names it."""
    match = _AFFORDABLE.search(text)
    return (_number(match[1]) or None) if match else None


def _number(text: str) -> int:
    return int(text.replace(",", "") or "0")


# --- how long to wait --------------------------------------------------------------------------------------


def wait_s(headers: Mapping[str, str], body: ErrorBody, now: float = math.inf) -> float | None:
    """Seconds to wait, or None if the provider does not say. Figures about this request take precedence.

    Without the current time only durations are read, and no times.
    """
    all_headers = {name.lower(): value for name, value in headers.items()}
    for nested_headers in body.values("headers"):
        if isinstance(nested_headers, dict):
            all_headers |= {str(name).lower(): str(value) for name, value in nested_headers.items()}
    return next((wait for wait in _candidates(all_headers, body, now) if wait is not None), None)


def _candidates(headers: Mapping[str, str], body: ErrorBody, now: float) -> Iterator[float | None]:
    yield _from_milliseconds(headers.get("retry-after-ms"))
    yield seconds(headers.get("retry-after"), now)
    yield max((wait for wait in _from_body(body, now) if wait is not None), default=None)
    yield _from_resets(headers, now)


_DELAYS = (
    "retryDelay",
    "retry_delay",
    "retry_after",
    "retryAfter",
    "retry-after",
    "retry_after_seconds",
    "resets_in_seconds",
)


def _from_body(body: ErrorBody, now: float) -> Iterator[float | None]:
    """Google rounds one of its figures and not the other, so the caller takes the longest."""
    yield from (_from_milliseconds(value) for value in body.values("retry_after_ms"))
    yield from (seconds(value, now) for value in body.values(*_DELAYS))
    yield _from_message(body.text)


def seconds(value: object, now: float) -> float | None:
    """Parses a number of seconds, a duration such as "6m0s", or a time. None if it is past or implausible."""
    match value:
        case bool() | None:
            return None
        case int() | float():
            return _plausible(_from_now(float(value), now))
        case {"seconds": int() | str() as whole}:
            return seconds(str(whole), now)
        case str() if value.strip():
            return _from_text(value.strip(), now)
    return None


def _from_text(text: str, now: float) -> float | None:
    try:
        return _plausible(_from_now(float(text), now))
    except ValueError:
        pass
    if _DURATION.fullmatch(text):
        return _plausible(_duration_s(text))
    time = _parse_time(text)
    return None if time is None else _plausible(time - now)


def _from_now(figure: float, now: float) -> float:
    if figure >= EARLIEST_EPOCH_MS:
        return figure / 1000 - now
    return figure - now if figure >= EARLIEST_EPOCH_S else figure


def _duration_s(text: str) -> float:
    return sum(float(figure) * _unit_s(unit.lower()) for figure, unit in _PARTS.findall(text))


def _unit_s(unit: str) -> float:
    return 0.001 if unit.startswith(("ms", "milli")) else _UNITS[unit[0]]


def _parse_time(text: str) -> float | None:
    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            time = parse(text)
            return time.timestamp() if time.tzinfo else None
        except (ValueError, TypeError, OverflowError):
            continue
    return None


def _from_milliseconds(value: object) -> float | None:
    try:
        return _plausible(float(str(value)) / 1000)
    except ValueError:
        return None


def _from_message(text: str) -> float | None:
    match = _REQUESTED_WAIT.search(text)
    return _plausible(_duration_s(match[1])) if match else None


def _from_resets(headers: Mapping[str, str], now: float) -> float | None:
    """If limits are used up, the last of them to reset; else the first reset of all."""
    resets = [
        (headers.get(name.replace("reset", "remaining")), wait)
        for name, value in headers.items()
        if "ratelimit" in name and "reset" in name and (wait := seconds(value, now)) is not None
    ]
    used_up = [wait for remaining, wait in resets if _is_used_up(remaining)]
    return max(used_up) if used_up else min((wait for _, wait in resets), default=None)


def _is_used_up(remaining: str | None) -> bool:
    try:
        return remaining is not None and float(remaining) <= 0
    except ValueError:
        return False


def _plausible(figure: float) -> float | None:
    return figure if 0 < figure <= LONGEST_S else None
