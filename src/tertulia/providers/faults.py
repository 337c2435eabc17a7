"""Faults: what went wrong between us and a provider, told in a sentence a person can act on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tertulia.core.models import Model
from tertulia.providers import error_bodies, rate_limits
from tertulia.providers import error_patterns as patterns
from tertulia.providers.cleaning import quotable
from tertulia.providers.error_bodies import ErrorBody
from tertulia.providers.limits import Limits
from tertulia.providers.seam import FaultCode, ProviderFault

PASSES_BY_ITSELF = frozenset({408, 425, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
TIMEOUTS = frozenset({408, 504, 522, 524})
"""It was too slow this time, which says nothing of the next call."""
NOT_RUN = frozenset({503, 529})
"""Turned away before it was run, so nothing is charged."""
LEAST_ANSWER = 256
"""Tokens: an answer with less room is not worth asking for."""
LITTLE_ANSWER = 2_048
"""Tokens to ask for, where a provider reserves them and does not say for how many there is room."""


@dataclass(frozen=True, slots=True)
class Faults:
    """The faults of one call: knows who was asked, for what, and which key must not be repeated."""

    name: str
    model: Model
    limits: Limits
    key: str | None = field(default=None, repr=False)
    is_free: bool = False
    """Nothing is ever charged, so nobody is told that nothing was."""
    asked_tokens: int | None = None
    """The limit of the answer that was sent; None when none was."""

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
        """It may be thinking, or reading a long prompt: no outage, and it may well be charged."""
        sentence = f"{self.name} did not answer in {_seconds(self.limits.silence_s)}."
        return self._fault("timeout_first_byte", sentence)

    def refused(self, status: int, headers: Mapping[str, str], body: bytes, now: float) -> ProviderFault:
        """A status other than success."""
        error = error_bodies.read(body)
        if status == 400 and error.status:
            status = error.status  # Some gateways answer 400 whatever happened, and say inside what it was.
        return self._judge(status, error, rate_limits.wait_s(headers, error, now), now)

    def empty(self) -> ProviderFault:
        sentence = f"{self.name} sent an empty answer."
        return self._fault("unavailable", sentence, is_retryable=True, is_outage=True)

    def not_an_answer(self, body: bytes) -> ProviderFault:
        """Success by its status, but a page or an error object instead of a stream."""
        error = error_bodies.read(body)
        if error.said is None:
            return self._in_trouble(0, "It sent a web page instead of an answer.")
        return self._told_inside(error)

    # --- inside an answer ----------------------------------------------------------------------------------

    def error_object(self, error: object, *, has_begun: bool = False) -> ProviderFault:
        """An error told inside a success; once the reply has begun, only a filter is told apart."""
        body = error_bodies.of(error)
        if not has_begun:
            return self._told_inside(body)
        if patterns.FILTERED.search(body.text):
            return self.filtered(body.said)
        sentence = f"{self.name} had an error in the middle of the reply."
        return self._fault("unavailable", sentence, body.said, is_retryable=True)

    def idle(self, seconds: float) -> ProviderFault:
        """Silence, or only signs that the connection is open, for so many seconds."""
        sentence = f"{self.name} stopped sending for {_seconds(seconds)}, so the reply ends here."
        return self._fault("timeout_idle", sentence)

    def overtime(self) -> ProviderFault:
        sentence = f"The reply took longer than {_seconds(self.limits.total_s)} and was stopped."
        return self._fault("timeout_total", sentence)

    def cut(self, said: str | None = None) -> ProviderFault:
        sentence = f"The connection to {self.name} was lost before the reply was finished."
        return self._fault("cut", sentence, said, is_retryable=True, is_outage=True)

    def malformed(self, said: str | None = None) -> ProviderFault:
        return self._fault(
            "malformed", f"{self.name} sent something that could not be read. The reply ends here.", said
        )

    def too_large(self) -> ProviderFault:
        return self._fault("too_large", f"{self.name} sent more than a reply can hold. The reply ends here.")

    def filtered(self, said: str | None = None) -> ProviderFault:
        sentence = "This model declined. Its safety filter stopped the reply."
        return self._fault("filtered", sentence, said)

    # --- what a refusal means ------------------------------------------------------------------------------

    def _told_inside(self, error: ErrorBody) -> ProviderFault:
        said = error.said or "The provider reported an error without saying which."
        error = ErrorBody(said, error.status, error.fields)
        return self._judge(error.status, error, rate_limits.wait_s({}, error), None)

    def _judge(self, status: int, error: ErrorBody, wait_s: float | None, now: float | None) -> ProviderFault:
        said = error.said or f"HTTP {status}"
        if _is_rate_limit(status, error.text):
            return self._limited(status, error.text, said, wait_s, now)
        return (
            self._about_the_question(status, error.text, said)
            or self._about_the_key(status, error.text, said)
            or self._about_the_model(status, error, said)
            or self._about_the_provider(status, said, wait_s, now)
        )

    def _about_the_question(self, status: int, text: str, said: str) -> ProviderFault | None:
        if patterns.NO_PICTURES.search(text) and status in (0, 400, 404, 415, 422, 500, 501):
            sentence = (
                f"{self.model.display_name} cannot be shown pictures. Ask without them, or use another model."
            )
            return self._fault("unavailable", sentence, said)
        if patterns.TOO_LONG.search(text) and status in (0, 400, 413, 422, 500):
            return self._too_long(text, said)
        if status == 413:
            sentence = (
                f"{self.name} does not take a request this large. Ask with less, or with smaller files."
            )
            return self._fault("context_length", sentence, said)
        if patterns.FILTERED.search(text) and status in (0, 400, 403, 422, 451):
            return self.filtered(said)
        return None

    def _about_the_key(self, status: int, text: str, said: str) -> ProviderFault | None:
        if status == 402 or (rate_limits.SPENT_CREDIT.search(text) and status in (0, 400, 401, 403, 412)):
            return self._out_of_credit(text, said)
        if patterns.NO_REGION.search(text) and status in (0, 400, 403, 451):
            sentence = f"{self.name} does not answer from the country this server is in. Use another model."
            return self._fault("unavailable", sentence, said)
        if patterns.NO_SUCH_MODEL.search(text) and status == 403:
            return self._not_offered(said)
        if status == 403 and not patterns.BAD_KEY.search(text):
            return self._fault("auth", f"{self.name} does not allow this request with this key.", said)
        if status == 401 and patterns.NO_SCOPE.search(text):
            return self._fault("auth", f"This key may not use {self.model.model_id} at {self.name}.", said)
        if status in (401, 403) or (patterns.BAD_KEY.search(text) and status in (0, 400)):
            return self._fault("auth", f"{self.name} refused the key. It may have been revoked.", said)
        return None

    def _about_the_model(self, status: int, error: ErrorBody, said: str) -> ProviderFault | None:
        if patterns.NO_SUCH_MODEL.search(error.text) and status in (0, 400, 404, 410, 422):
            return self._not_offered(said)
        if status == 404 and (error.said is None or patterns.NO_ADDRESS.search(error.said)):
            sentence = (
                f"{self.name} knows neither this address nor {self.model.model_id}. Check its base URL."
            )
            return self._fault("unavailable", sentence, said)
        return self._not_offered(said) if status in (404, 410) else None

    def _about_the_provider(
        self, status: int, said: str, wait_s: float | None, now: float | None
    ) -> ProviderFault:
        if 300 <= status < 400:
            sentence = (
                f"{self.name} redirected to another address, which is not followed. Check its base URL."
            )
            return self._fault("unavailable", sentence, f"HTTP {status}")
        if status == 0 or status in PASSES_BY_ITSELF or status >= 500:
            return self._in_trouble(status, said, wait_s, now)
        return self._fault("unavailable", f"{self.name} did not accept the request.", said)

    # --- too much, too fast --------------------------------------------------------------------------------

    def _limited(
        self, status: int, text: str, said: str, wait_s: float | None, now: float | None
    ) -> ProviderFault:
        if rate_limits.SPENT_CREDIT.search(text):
            return self._out_of_credit(text, said)
        if rate_limits.NO_QUOTA.search(text):
            sentence = f"{self.name} gives this key no quota for {self.model.model_id}. Use another model."
            return self._fault("rate_limited", sentence, said)
        if rate_limits.SPENT_QUOTA.search(text):
            return self._out_of_quota(said, wait_s, now)
        if excess := rate_limits.excess(text):
            return self._too_much_for_a_minute(excess, said)
        if wait_s is None and rate_limits.CREDIT.search(text) and not rate_limits.SIGNAL.search(text):
            return self._out_of_credit(text, said)
        return self._too_fast(self._room_this_minute(status, text), said, wait_s, now)

    def _too_fast(
        self, room: int | None, said: str, wait_s: float | None, now: float | None
    ) -> ProviderFault:
        if room is None and self._is_too_long_to_wait(wait_s):
            return self._later("rate_limited", f"{self.name} asked us to slow down.", said, wait_s, now)
        return self._fault(
            "rate_limited",
            f"{self.name} asked us to slow down. Too many requests this minute.",
            said,
            retry_after_s=wait_s,
            affordable_tokens=room,
            is_retryable=True,
        )

    def _room_this_minute(self, status: int, text: str) -> int | None:
        """For an answer, where what is left of the minute is enough for most: nobody has to wait then."""
        if self.asked_tokens is None:
            return None
        missing = rate_limits.missing_tokens(text)
        room = self.asked_tokens - missing if missing else LITTLE_ANSWER if status == 413 else 0
        return room if LITTLE_ANSWER <= room < self.asked_tokens else None

    def _out_of_quota(self, said: str, wait_s: float | None, now: float | None) -> ProviderFault:
        """Google names a wait of seconds with a quota of the day; it is not believed."""
        sentence = f"{self.name} says the quota of this key is used up for now."
        if self._is_too_long_to_wait(wait_s):
            return self._later("rate_limited", sentence, said, wait_s, now)
        return self._fault("rate_limited", f"{sentence} Add credit there, or use another model.", said)

    def _later(
        self,
        code: FaultCode,
        sentence: str,
        said: str,
        wait_s: float | None,
        now: float | None,
        *,
        is_outage: bool = False,
    ) -> ProviderFault:
        """A wait that nobody sits through is told at once, with its end."""
        if now is None or wait_s is None:
            return self._fault(code, f"{sentence} Use another model meanwhile.", said, is_outage=is_outage)
        again_at = now + wait_s
        return self._fault(
            code,
            f"{sentence} It can be asked again at {_moment(again_at, now)}.",
            said,
            retry_after_s=wait_s,
            retry_at=round(again_at * 1000),
            is_outage=is_outage,
        )

    def _is_too_long_to_wait(self, wait_s: float | None) -> bool:
        return wait_s is not None and wait_s > self.limits.retry_after_s

    def _too_much_for_a_minute(self, excess: rate_limits.Excess, said: str) -> ProviderFault:
        sentence = (
            f"{self.name} lets this key use {excess.allowed:,} tokens a minute, and this needs "
            f"{excess.needed:,}. Ask with less, or use another model."
        )
        room = None if self.asked_tokens is None else self.asked_tokens - (excess.needed - excess.allowed)
        affordable = room if room is not None and room >= LEAST_ANSWER else None
        return self._fault("rate_limited", sentence, said, affordable_tokens=affordable)

    def _out_of_credit(self, text: str, said: str) -> ProviderFault:
        sentence = (
            f"{self.name} says the credit of this key is used up. Add credit there, or use another model."
        )
        return self._fault(
            "rate_limited", sentence, said, affordable_tokens=rate_limits.affordable_tokens(text)
        )

    # --- sentences -----------------------------------------------------------------------------------------

    def _not_offered(self, said: str) -> ProviderFault:
        sentence = f"{self.name} does not offer {self.model.model_id} to this key. Use another model."
        return self._fault("unavailable", sentence, said)

    def _in_trouble(
        self, status: int, said: str, wait_s: float | None = None, now: float | None = None
    ) -> ProviderFault:
        charged = " Nothing was charged." if status in NOT_RUN else ""
        if self._is_too_long_to_wait(wait_s):
            sentence = f"{self.name} is having trouble and did not answer."
            return self._later("unavailable", sentence, said, wait_s, now, is_outage=True)
        return self._fault(
            "unavailable",
            f"{self.name} is having trouble and did not answer.{charged}",
            said,
            retry_after_s=wait_s,
            is_retryable=True,
            is_outage=status not in TIMEOUTS,
        )

    def _too_long(self, text: str, said: str) -> ProviderFault:
        """The window is the provider's own where it names one: a local server may hold less than we know."""
        window, needed = patterns.sizes(text, self.model.input_limit)
        name = self.model.display_name
        if needed > window:
            sentence = f"{name} holds {window:,} tokens and this needs {needed:,}."
        elif over := patterns.over_by(text):
            sentence = f"This is {over:,} tokens too long for {name}."
        else:
            sentence = f"This is too long for {name}, which holds {window:,} tokens."
        return self._fault("context_length", sentence, said)

    def _fault(
        self,
        code: FaultCode,
        sentence: str,
        said: str | None = None,
        *,
        retry_after_s: float | None = None,
        retry_at: int | None = None,
        affordable_tokens: int | None = None,
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
            retry_at=retry_at,
            affordable_tokens=affordable_tokens,
            is_retryable=is_retryable,
            is_outage=is_outage,
        )


def _is_rate_limit(status: int, text: str) -> bool:
    """413 too: Groq answers so when a request would use more than the key has left this minute."""
    return status == 429 or (status in (0, 413, 498) and rate_limits.SIGNAL.search(text) is not None)


# --- how it is written -------------------------------------------------------------------------------------


def _seconds(seconds: float) -> str:
    return f"{seconds / 60:g} minutes" if seconds >= 120 and seconds % 60 == 0 else f"{seconds:g} s"


def _moment(at: float, now: float) -> str:
    """As people write it: with its day only where that is another one."""
    moment, today = datetime.fromtimestamp(at, UTC), datetime.fromtimestamp(now, UTC)
    time = f"{moment:%H:%M} UTC"
    return time if moment.date() == today.date() else f"{time} on {moment.day} {moment:%B}"
