"""Provider errors: turns HTTP errors, timeouts and broken streams into messages that a person can act on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tertulia.core.models import Model
from tertulia.providers import error_bodies, rate_limits
from tertulia.providers import error_patterns as patterns
from tertulia.providers.error_bodies import ErrorBody
from tertulia.providers.interface import ErrorCode, ProviderError
from tertulia.providers.limits import Limits
from tertulia.providers.sanitize import quotable

TEMPORARY_STATUSES = frozenset({408, 425, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
TIMEOUT_STATUSES = frozenset({408, 504, 522, 524})
"""Too slow this time, which says nothing about the next call."""
NOT_CHARGED_STATUSES = frozenset({503, 529})
"""Refused before it ran, so nothing is charged."""
MIN_OUTPUT_TOKENS = 256
"""Tokens: a reply with a smaller limit is not worth requesting."""
SMALL_OUTPUT_TOKENS = 2_048
"""Tokens to request if a provider reserves the output limit and does not say how many are left."""


@dataclass(frozen=True, slots=True)
class ErrorFactory:
    """Creates the errors of one call. Knows the provider, the model, and the key that must not appear in a
    message."""

    name: str
    model: Model
    limits: Limits
    key: str | None = field(default=None, repr=False)
    is_free: bool = False
    """The provider never charges, so no message says that nothing was charged."""
    requested_tokens: int | None = None
    """The output limit that the request carried; None if it carried none."""
    now: Callable[[], float] = field(default=time.time, repr=False)
    """The time for errors inside a stream, in seconds since 1970."""

    # --- before the reply ----------------------------------------------------------------------------------

    def unreachable(self, detail: str) -> ProviderError:
        sentence = f"{self.name} could not be reached."
        return self._error("unavailable", sentence, detail, is_retryable=True, is_outage=True)

    def connect_timeout(self) -> ProviderError:
        sentence = f"{self.name} could not be reached in {_duration_text(self.limits.connect_s)}."
        return self._error("unavailable", sentence, is_outage=True)

    def bad_certificate(self, detail: str) -> ProviderError:
        sentence = f"The certificate of {self.name} could not be verified, so nothing was sent."
        return self._error("unavailable", sentence, detail)

    def first_byte_timeout(self) -> ProviderError:
        """No first byte in time. The model may be thinking or reading a long prompt: no outage, and it may be
        charged."""
        sentence = f"{self.name} did not answer in {_duration_text(self.limits.silence_s)}."
        return self._error("timeout_first_byte", sentence)

    def http_error(self, status: int, headers: Mapping[str, str], body: bytes, now: float) -> ProviderError:
        """The error for a response with an HTTP error status."""
        error = error_bodies.parse(body)
        if status == 400 and error.status:
            # Some gateways send 400 for every error and put the real status into the body.
            status = error.status
        return self._classify(status, error, rate_limits.wait_s(headers, error, now), now)

    def empty(self) -> ProviderError:
        sentence = f"{self.name} sent an empty answer."
        return self._error("unavailable", sentence, is_retryable=True, is_outage=True)

    def not_a_stream(self, body: bytes) -> ProviderError:
        """A success status, but an HTML page or an error object instead of a stream."""
        error = error_bodies.parse(body)
        if error.message is None:
            return self._outage(0, "It sent a web page instead of an answer.")
        return self._from_body(error)

    # --- inside the reply ----------------------------------------------------------------------------------

    def stream_error(self, error: object, *, has_begun: bool = False) -> ProviderError:
        """An error object inside a successful stream. Once output has begun, only a filter gets its own error
        code."""
        body = error_bodies.from_fields(error)
        if not has_begun:
            return self._from_body(body)
        if patterns.FILTERED.search(body.text):
            return self.filtered(body.message)
        sentence = f"{self.name} had an error in the middle of the reply."
        return self._error("unavailable", sentence, body.message, is_retryable=True)

    def idle_timeout(self, seconds: float) -> ProviderError:
        """No event for this many seconds, or only keep-alive signals."""
        sentence = f"{self.name} stopped sending for {_duration_text(seconds)}, so the reply ends here."
        return self._error("timeout_idle", sentence)

    def total_timeout(self) -> ProviderError:
        sentence = f"The reply took longer than {_duration_text(self.limits.total_s)} and was stopped."
        return self._error("timeout_total", sentence)

    def connection_lost(self, detail: str | None = None) -> ProviderError:
        sentence = f"The connection to {self.name} was lost before the reply was finished."
        return self._error("cut", sentence, detail, is_retryable=True, is_outage=True)

    def malformed(self, detail: str | None = None) -> ProviderError:
        return self._error(
            "malformed", f"{self.name} sent something that could not be read. The reply ends here.", detail
        )

    def too_large(self) -> ProviderError:
        return self._error("too_large", f"{self.name} sent more than a reply can hold. The reply ends here.")

    def filtered(self, detail: str | None = None) -> ProviderError:
        sentence = "This model declined. Its safety filter stopped the reply."
        return self._error("filtered", sentence, detail)

    # --- classify an error response ------------------------------------------------------------------------

    def _from_body(self, error: ErrorBody) -> ProviderError:
        detail = error.message or "The provider reported an error without saying which."
        error = ErrorBody(detail, error.status, error.fields)
        now = self.now()
        return self._classify(error.status, error, rate_limits.wait_s({}, error, now), now)

    def _classify(
        self, status: int, error: ErrorBody, wait_s: float | None, now: float | None
    ) -> ProviderError:
        detail = error.message or f"HTTP {status}"
        if _is_rate_limit(status, error.text):
            return self._rate_limited(status, error.text, detail, wait_s, now)
        return (
            self._request_error(status, error.text, detail)
            or self._key_error(status, error.text, detail)
            or self._model_error(status, error, detail)
            or self._provider_error(status, detail, wait_s, now)
        )

    def _request_error(self, status: int, text: str, detail: str) -> ProviderError | None:
        if patterns.NO_PICTURES.search(text) and status in (0, 400, 404, 415, 422, 500, 501):
            sentence = (
                f"{self.model.display_name} cannot be shown pictures. Ask without them, or use another model."
            )
            return self._error("unavailable", sentence, detail)
        if (limit := patterns.output_limit(text)) and status in (0, 400, 422):
            sentence = f"{self.name} did not accept the request."
            return self._error("unavailable", sentence, detail, affordable_tokens=limit)
        if patterns.TOO_LONG.search(text) and status in (0, 400, 413, 422, 500):
            return self._context_too_long(text, detail)
        if status == 413 or (status in (0, 400) and patterns.TOO_MANY_BYTES.search(text)):
            sentence = (
                f"{self.name} does not take a request this large. Ask with less, or with smaller files."
            )
            return self._error("context_length", sentence, detail)
        if patterns.FILTERED.search(text) and status in (0, 400, 403, 422, 451):
            return self.filtered(detail)
        return None

    def _key_error(self, status: int, text: str, detail: str) -> ProviderError | None:
        if status == 402 or (rate_limits.SPENT_CREDIT.search(text) and status in (0, 400, 401, 403, 412)):
            return self._out_of_credit(text, detail)
        if patterns.NO_REGION.search(text) and status in (0, 400, 403, 451):
            sentence = f"{self.name} does not answer from the country this server is in. Use another model."
            return self._error("unavailable", sentence, detail)
        if patterns.NO_SUCH_MODEL.search(text) and status == 403:
            return self._not_offered(detail)
        if status == 403 and not patterns.BAD_KEY.search(text):
            return self._error("auth", f"{self.name} does not allow this request with this key.", detail)
        if status == 401 and patterns.NO_SCOPE.search(text):
            return self._error("auth", f"This key may not use {self.model.model_id} at {self.name}.", detail)
        if status in (401, 403) or (patterns.BAD_KEY.search(text) and status in (0, 400)):
            return self._error("auth", f"{self.name} refused the key. It may have been revoked.", detail)
        return None

    def _model_error(self, status: int, error: ErrorBody, detail: str) -> ProviderError | None:
        if patterns.NO_SUCH_MODEL.search(error.text) and status in (0, 400, 404, 410, 422):
            return self._not_offered(detail)
        if status == 404 and (error.message is None or patterns.NO_ADDRESS.search(error.message)):
            sentence = (
                f"{self.name} knows neither this address nor {self.model.model_id}. Check its base URL."
            )
            return self._error("unavailable", sentence, detail)
        return self._not_offered(detail) if status in (404, 410) else None

    def _provider_error(
        self, status: int, detail: str, wait_s: float | None, now: float | None
    ) -> ProviderError:
        if status == 500 and patterns.NO_MEMORY.search(detail):
            sentence = f"{self.name} has too little memory for {self.model.model_id}. Use another model."
            return self._error("unavailable", sentence, detail)
        if 300 <= status < 400:
            sentence = (
                f"{self.name} redirected to another address, which is not followed. Check its base URL."
            )
            return self._error("unavailable", sentence, f"HTTP {status}")
        if status == 0 or status in TEMPORARY_STATUSES or status >= 500:
            return self._outage(status, detail, wait_s, now)
        return self._error("unavailable", f"{self.name} did not accept the request.", detail)

    # --- rate limits and quotas ----------------------------------------------------------------------------

    def _rate_limited(
        self, status: int, text: str, detail: str, wait_s: float | None, now: float | None
    ) -> ProviderError:
        if rate_limits.SPENT_CREDIT.search(text):
            return self._out_of_credit(text, detail)
        if rate_limits.NO_QUOTA.search(text):
            sentence = f"{self.name} gives this key no quota for {self.model.model_id}. Use another model."
            return self._error("rate_limited", sentence, detail)
        if rate_limits.SPENT_QUOTA.search(text) and not (wait_s and rate_limits.ROLLING.search(text)):
            return self._out_of_quota(detail, wait_s, now)
        if excess := rate_limits.excess(text):
            return self._over_minute_limit(excess, detail)
        if wait_s is None and rate_limits.CREDIT.search(text) and not rate_limits.SIGNAL.search(text):
            return self._out_of_credit(text, detail)
        return self._too_fast(self._tokens_left_this_minute(status, text), detail, wait_s, now)

    def _too_fast(
        self, tokens_left: int | None, detail: str, wait_s: float | None, now: float | None
    ) -> ProviderError:
        if tokens_left is None and self._is_too_long_to_wait(wait_s):
            return self._retry_later(
                "rate_limited", f"{self.name} asked us to slow down.", detail, wait_s, now
            )
        return self._error(
            "rate_limited",
            f"{self.name} asked us to slow down. Too many requests this minute.",
            detail,
            retry_after_s=wait_s,
            affordable_tokens=tokens_left,
            is_retryable=True,
        )

    def _tokens_left_this_minute(self, status: int, text: str) -> int | None:
        """An output limit that fits into this minute, if it is enough for most replies: then nobody has to
        wait."""
        if self.requested_tokens is None:
            return None
        excess = rate_limits.missing_tokens(text)
        allowance = self.requested_tokens - excess if excess else SMALL_OUTPUT_TOKENS if status == 413 else 0
        return allowance if SMALL_OUTPUT_TOKENS <= allowance < self.requested_tokens else None

    def _out_of_quota(self, detail: str, wait_s: float | None, now: float | None) -> ProviderError:
        """Google names a wait of seconds for a daily quota; such a wait is ignored."""
        sentence = f"{self.name} says the quota of this key is used up for now."
        if self._is_too_long_to_wait(wait_s):
            return self._retry_later("rate_limited", sentence, detail, wait_s, now)
        return self._error("rate_limited", f"{sentence} Add credit there, or use another model.", detail)

    def _retry_later(
        self,
        code: ErrorCode,
        sentence: str,
        detail: str,
        wait_s: float | None,
        now: float | None,
        *,
        is_outage: bool = False,
    ) -> ProviderError:
        """The error for a wait that is too long to sit out. The message names the time when it ends."""
        if now is None or wait_s is None:
            return self._error(code, f"{sentence} Use another model meanwhile.", detail, is_outage=is_outage)
        again_at = now + wait_s
        return self._error(
            code,
            f"{sentence} It can be asked again at {_time_text(again_at, now)}.",
            detail,
            retry_after_s=wait_s,
            retry_at=round(again_at * 1000),
            is_outage=is_outage,
        )

    def _is_too_long_to_wait(self, wait_s: float | None) -> bool:
        return wait_s is not None and wait_s > self.limits.longest_retry_wait_s

    def _over_minute_limit(self, excess: rate_limits.Excess, detail: str) -> ProviderError:
        sentence = (
            f"{self.name} lets this key use {excess.allowed:,} tokens a minute, and this needs "
            f"{excess.needed:,}. Ask with less, or use another model."
        )
        allowance = (
            None
            if self.requested_tokens is None
            else self.requested_tokens - (excess.needed - excess.allowed)
        )
        affordable = allowance if allowance is not None and allowance >= MIN_OUTPUT_TOKENS else None
        return self._error("rate_limited", sentence, detail, affordable_tokens=affordable)

    def _out_of_credit(self, text: str, detail: str) -> ProviderError:
        sentence = (
            f"{self.name} says the credit of this key is used up. Add credit there, or use another model."
        )
        return self._error(
            "rate_limited", sentence, detail, affordable_tokens=rate_limits.affordable_tokens(text)
        )

    # --- build the error -----------------------------------------------------------------------------------

    def _not_offered(self, detail: str) -> ProviderError:
        sentence = f"{self.name} does not offer {self.model.model_id} to this key. Use another model."
        return self._error("unavailable", sentence, detail)

    def _outage(
        self, status: int, detail: str, wait_s: float | None = None, now: float | None = None
    ) -> ProviderError:
        charge_note = " Nothing was charged." if status in NOT_CHARGED_STATUSES else ""
        if self._is_too_long_to_wait(wait_s):
            sentence = f"{self.name} is having trouble and did not answer."
            return self._retry_later("unavailable", sentence, detail, wait_s, now, is_outage=True)
        return self._error(
            "unavailable",
            f"{self.name} is having trouble and did not answer.{charge_note}",
            detail,
            retry_after_s=wait_s,
            is_retryable=True,
            is_outage=status not in TIMEOUT_STATUSES,
        )

    def _context_too_long(self, text: str, detail: str) -> ProviderError:
        """Uses the provider's own window if it names one: a local server may hold less than the catalogue
        says."""
        window, needed = patterns.sizes(text, self.model.input_limit)
        name = self.model.display_name
        if needed > window:
            sentence = f"{name} holds {window:,} tokens and this needs {needed:,}."
        elif excess_tokens := patterns.over_by(text):
            sentence = f"This is {excess_tokens:,} tokens too long for {name}."
        else:
            sentence = f"This is too long for {name}, which holds {window:,} tokens."
        return self._error("context_length", sentence, detail)

    def _error(
        self,
        code: ErrorCode,
        sentence: str,
        provider_message: str | None = None,
        *,
        retry_after_s: float | None = None,
        retry_at: int | None = None,
        affordable_tokens: int | None = None,
        is_retryable: bool = False,
        is_outage: bool = False,
    ) -> ProviderError:
        if self.is_free:
            sentence = sentence.removesuffix(" Nothing was charged.")
        detail = quotable(provider_message, (self.key,) if self.key else ()) if provider_message else None
        return ProviderError(
            code,
            sentence,
            detail=detail,
            retry_after_s=retry_after_s,
            retry_at=retry_at,
            affordable_tokens=affordable_tokens,
            is_retryable=is_retryable,
            is_outage=is_outage,
        )


def _is_rate_limit(status: int, text: str) -> bool:
    """429, and other statuses with a rate limit message: Groq sends 413 if a request exceeds what the key has
    left this minute, and AWS 400."""
    if status in (400, 403):
        return rate_limits.EXCEEDED.search(text) is not None
    return status == 429 or (status in (0, 413, 498) and rate_limits.SIGNAL.search(text) is not None)


# --- write durations and times -----------------------------------------------------------------------------


def _duration_text(seconds: float) -> str:
    return f"{seconds / 60:g} minutes" if seconds >= 120 and seconds % 60 == 0 else f"{seconds:g} s"


def _time_text(at: float, now: float) -> str:
    """The time in UTC, with the date if it is not today."""
    moment, today = datetime.fromtimestamp(at, UTC), datetime.fromtimestamp(now, UTC)
    time = f"{moment:%H:%M} UTC"
    return time if moment.date() == today.date() else f"{time} on {moment.day} {moment:%B}"
