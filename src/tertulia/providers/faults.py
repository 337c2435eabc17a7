"""Faults: what went wrong between us and a provider, told in a sentence a person can act on."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

from tertulia.core.models import Model
from tertulia.providers.cleaning import quotable
from tertulia.providers.limits import Limits
from tertulia.providers.seam import FaultCode, ProviderFault

TOO_LONG = re.compile(
    r"context[ _-]?(?:length|size|window)|maximum context|exceed_context_size|prompt is too long"
    r"|too many tokens|input token count|input (?:is )?too long|request_too_large|reduce the length",
    re.IGNORECASE,
)
FILTERED = re.compile(
    r"content_filter|content_policy|content management policy|moderation|safety system|bio_policy"
    r"|misalignment_policy|violating our usage policy",
    re.IGNORECASE,
)
OUT_OF_CREDIT = re.compile(
    r"insufficient_quota|insufficient[ _]balance|billing|credit balance|out of credit|your current quota",
    re.IGNORECASE,
)
BAD_KEY = re.compile(
    r"api[ _]key (?:not valid|expired)|API_KEY_INVALID|invalid[ _]api[ _]key|authentication_error", re.I
)
SLOW_DOWN = re.compile(r"rate[ _]limit|too many requests|RESOURCE_EXHAUSTED", re.IGNORECASE)
PASSES_BY_ITSELF = frozenset({408, 425, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})


@dataclass(frozen=True, slots=True)
class Faults:
    """The faults of one call: knows who was asked, for what, and which key must not be repeated."""

    name: str
    model: Model
    limits: Limits
    key: str | None = field(default=None, repr=False)
    is_free: bool = False
    """Nothing is ever charged, so nobody is told that nothing was."""

    # --- before an answer ----------------------------------------------------------------------------------

    def unreachable(self, said: str) -> ProviderFault:
        sentence = f"{self.name} could not be reached."
        return self._fault("unavailable", sentence, said, is_retryable=True, is_outage=True)

    def no_connection_in_time(self) -> ProviderFault:
        sentence = f"{self.name} could not be reached in {_seconds(self.limits.connect_s)}."
        return self._fault("unavailable", sentence, is_outage=True)

    def untrusted(self, said: str) -> ProviderFault:
        sentence = f"The certificate of {self.name} could not be verified, so nothing was sent."
        return self._fault("unavailable", sentence, said)

    def silent(self) -> ProviderFault:
        sentence = f"{self.name} did not answer in {_seconds(self.limits.first_byte_s)}. Nothing was charged."
        return self._fault("timeout_first_byte", sentence, is_outage=True)

    def refused(self, status: int, headers: Mapping[str, str], body: bytes, now: float) -> ProviderFault:
        """A status other than success."""
        said = _said(body) or f"HTTP {status}"
        after = retry_after_s(headers.get("retry-after"), now)
        return self._judge(status, said, after)

    def empty(self) -> ProviderFault:
        sentence = f"{self.name} sent an empty answer. Nothing was charged."
        return self._fault("unavailable", sentence, is_retryable=True, is_outage=True)

    def not_an_answer(self, body: bytes) -> ProviderFault:
        """Success by its status, but a page or an error object instead of a stream."""
        said = _said(body)
        return (
            self.error_object(_loads(body))
            if said is not None
            else self._in_trouble("It sent a page, not an answer.")
        )

    # --- inside an answer ----------------------------------------------------------------------------------

    def error_object(self, error: object, *, has_begun: bool = False) -> ProviderFault:
        """An error told inside a success; once the reply has begun, nothing else it could mean matters."""
        said = _message(error) or "The provider reported an error without saying which."
        if has_begun:
            sentence = f"{self.name} ran into trouble in the middle of the reply."
            return self._fault("unavailable", sentence, said, is_retryable=True)
        return self._judge(_status(error), said, None)

    def idle(self) -> ProviderFault:
        sentence = f"{self.name} fell silent for {_seconds(self.limits.idle_s)}, so the reply ends here."
        return self._fault("timeout_idle", sentence)

    def overtime(self) -> ProviderFault:
        sentence = f"The reply took longer than {_seconds(self.limits.total_s)} and was stopped."
        return self._fault("timeout_total", sentence)

    def cut(self, said: str | None = None) -> ProviderFault:
        sentence = f"The line to {self.name} dropped before the reply was finished."
        return self._fault("cut", sentence, said, is_retryable=True, is_outage=True)

    def malformed(self, said: str | None = None) -> ProviderFault:
        return self._fault(
            "malformed", f"{self.name} sent something that could not be read. The reply ends here.", said
        )

    def too_large(self) -> ProviderFault:
        return self._fault("too_large", f"{self.name} sent more than a reply can hold. The reply ends here.")

    def filtered(self, said: str | None = None) -> ProviderFault:
        sentence = "This model declined. Its safety filter stopped the reply. Nothing was charged."
        return self._fault("filtered", sentence, said)

    # --- how each is told ----------------------------------------------------------------------------------

    def _judge(self, status: int, said: str, after: float | None) -> ProviderFault:
        if TOO_LONG.search(said) and status in (0, 400, 413, 422, 500):
            return self._too_long(said)
        if status == 413:
            return self._too_long(said)
        if FILTERED.search(said) and status in (0, 400, 403, 422):
            return self.filtered(said)
        if status == 402 or (OUT_OF_CREDIT.search(said) and status in (0, 400, 403, 429)):
            sentence = (
                f"{self.name} says the credit of this key is used up. Add credit there, or use another model."
            )
            return self._fault("rate_limited", sentence, said)
        if status in (401, 403) or (BAD_KEY.search(said) and status in (0, 400)):
            return self._fault("auth", f"{self.name} refused the key. It may have been revoked.", said)
        if status == 429 or (status == 0 and SLOW_DOWN.search(said)):
            sentence = f"{self.name} asked us to slow down. Too many requests this minute."
            return self._fault("rate_limited", sentence, said, retry_after_s=after, is_retryable=True)
        if status == 404:
            sentence = f"{self.name} does not offer {self.model.model_id} to this key. Use another model."
            return self._fault("unavailable", sentence, said)
        if 300 <= status < 400:
            sentence = f"{self.name} sent us to another address, which is not followed. Check its base URL."
            return self._fault("unavailable", sentence, f"HTTP {status}")
        if status == 0 or status in PASSES_BY_ITSELF or status >= 500:
            return self._in_trouble(said, after)
        return self._fault("unavailable", f"{self.name} did not accept the request.", said)

    def _in_trouble(self, said: str, after: float | None = None) -> ProviderFault:
        sentence = f"{self.name} is having trouble and did not answer. Nothing was charged."
        return self._fault(
            "unavailable", sentence, said, retry_after_s=after, is_retryable=True, is_outage=True
        )

    def _too_long(self, said: str) -> ProviderFault:
        window = self.model.input_limit
        needed = [
            n
            for n in map(int, re.findall(r"\b\d{3,9}\b", re.sub(r"(?<=\d),(?=\d{3})", "", said)))
            if n > window
        ]
        if needed:
            sentence = f"{self.model.display_name} holds {window:,} tokens and this needs {min(needed):,}."
        else:
            sentence = f"This is too long for {self.model.display_name}, which holds {window:,} tokens."
        return self._fault("context_length", sentence, said)

    def _fault(
        self,
        code: FaultCode,
        sentence: str,
        said: str | None = None,
        *,
        retry_after_s: float | None = None,
        is_retryable: bool = False,
        is_outage: bool = False,
    ) -> ProviderFault:
        if self.is_free:
            sentence = sentence.removesuffix(" Nothing was charged.")
        detail = quotable(said, (self.key,) if self.key else ()) if said else None
        return ProviderFault(
            code,
            sentence,
            detail=detail,
            retry_after_s=retry_after_s,
            is_retryable=is_retryable,
            is_outage=is_outage,
        )


def retry_after_s(header: str | None, now: float) -> float | None:
    """Seconds to wait, from seconds or an HTTP date; None when absent, past or nonsense."""
    if not header:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - now
        except (ValueError, TypeError, OverflowError):
            return None
    return seconds if math.isfinite(seconds) and seconds > 0 else None


def _said(body: bytes) -> str | None:
    """The sentence inside an error body; None when it is a page or nothing."""
    error = _loads(body)
    if error is not None:
        return _message(error)
    text = body.decode("utf-8", "replace").strip()
    return None if not text or text.startswith("<") else text


def _loads(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _message(error: object) -> str | None:
    """Every provider nests its sentence a little differently: error.message, error, message, detail."""
    match error:
        case str():
            return error or None
        case [first, *_]:
            return _message(first)
        case dict():
            words = [_message(error[name]) for name in ("error", "message", "detail", "msg") if name in error]
            tags = [
                str(error[name])
                for name in ("type", "code", "status")
                if isinstance(error.get(name), str | int)
            ]
            said = next((word for word in words if word), None)
            return f"{said} ({', '.join(tags)})" if said and tags else said or ", ".join(tags) or None
    return None


def _status(error: object) -> int:
    """The status an error object names for itself, 0 when it names none."""
    if not isinstance(error, dict):
        return 0
    inner = error.get("error")
    if isinstance(inner, dict):
        return _status(inner)
    for name in ("status_code", "status", "code", "http_status"):
        value = error.get(name)
        if isinstance(value, str) and value.isdigit():
            value = int(value)
        if isinstance(value, int) and 400 <= value < 600:
            return value
    return {
        "rate_limit_error": 429,
        "overloaded_error": 529,
        "authentication_error": 401,
        "api_error": 500,
    }.get(str(error.get("type")), 0)


def _seconds(seconds: float) -> str:
    return f"{seconds / 60:g} minutes" if seconds >= 120 and seconds % 60 == 0 else f"{seconds:g} s"
