"""Silence: how long a reply may pause before its first text and after it, with and without keep-alives."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tertulia.core.errors import CannotStart
from tertulia.providers import catalogue
from tertulia.providers.anthropic import MessagesDecoder
from tertulia.providers.endpoints import Endpoint
from tertulia.providers.errors import ErrorFactory
from tertulia.providers.interface import ProviderError
from tertulia.providers.limits import Limits
from tertulia.providers.local_models import ENDPOINT as BUILT_IN
from tertulia.providers.openai_chat import ChatDecoder
from tertulia.providers.openai_responses import ResponsesDecoder
from tertulia.providers.stream_decoder import StreamDecoder
from tertulia.providers.transport import EventStream
from tertulia.settings import Settings, read
from tests.timers import HOUR, Timers

LIMITS = Limits()
MINUTE = 60.0
COMMENT = b": OPENROUTER PROCESSING\n\n"
THOUGHT = b'data: {"choices":[{"index":0,"delta":{"reasoning_content":"Hm."}}]}\n\n'
WORD = b'data: {"choices":[{"index":0,"delta":{"content":"Well."}}]}\n\n'
END = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
ROLE = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n'

Arrival = tuple[float, bytes]


@dataclass
class TimedBody:
    """A response body whose chunks arrive after the given seconds; then nothing more."""

    clock: Timers
    arrivals: list[Arrival]
    error: BaseException | None = None

    def set_exception(self, exc: BaseException) -> None:
        self.error = exc

    async def readany(self) -> bytes:
        seconds, chunk = self.arrivals.pop(0) if self.arrivals else (24 * HOUR, b"")
        self.clock.pass_until(self.clock.now + seconds, lambda: self.error is not None)
        if self.error is not None:
            raise self.error
        return chunk


@dataclass
class Outcome:
    text: str
    seconds: float
    error: ProviderError | None = None


async def play(
    *arrivals: Arrival,
    limits: Limits = LIMITS,
    dialect: Callable[[ErrorFactory], StreamDecoder] = ChatDecoder,
) -> Outcome:
    """Decodes the chunks and returns the text, the error, and the time of the end."""
    clock = Timers()
    errors = ErrorFactory("OpenRouter", catalogue.unknown("x", "y"), limits)
    decoder = dialect(errors)
    keep_alive = decoder.is_keep_alive if decoder.keep_alive else None
    outcome = Outcome("", 0)
    try:
        with EventStream(TimedBody(clock, list(arrivals)), limits, errors, keep_alive, clock) as stream:
            while not decoder.is_over and (events := await stream.read()) is not None:
                outcome.text += "".join(item.text for item in decoder.decode(events))
                if decoder.has_text:
                    stream.expect_text()
    except ProviderError as error:
        outcome.error = error
    outcome.seconds = clock.now
    return outcome


def repeat(seconds: float, chunk: bytes, times: int) -> list[Arrival]:
    return [(seconds, chunk)] * times


async def test_silence_of_almost_five_minutes_before_the_first_text_is_allowed() -> None:
    outcome = await play((0, ROLE), (299, WORD), (0, END))
    assert (outcome.text, outcome.error) == ("Well.", None)


async def test_five_minutes_of_silence_give_a_first_byte_timeout() -> None:
    outcome = await play((0, COMMENT))
    assert outcome.error is not None
    assert (outcome.error.code, outcome.seconds, outcome.error.is_outage) == (
        "timeout_first_byte",
        300,
        False,
    )
    assert outcome.error.message == "OpenRouter did not answer in 5 minutes."


@pytest.mark.parametrize("sign", [COMMENT, ROLE, THOUGHT], ids=["comments", "empty events", "thoughts"])
async def test_anything_that_arrives_before_the_first_text_restarts_the_time(sign: bytes) -> None:
    """OpenRouter and DeepSeek send comments for minutes."""
    outcome = await play(*repeat(250, sign, 6), (250, WORD), (0, END))
    assert outcome.text.endswith("Well.")
    assert (outcome.error, outcome.seconds) == (None, 1750)


async def test_a_pause_between_thinking_deltas_may_last_almost_five_minutes() -> None:
    outcome = await play((0, THOUGHT), (299, THOUGHT), (299, WORD), (0, END))
    assert (outcome.text, outcome.error) == ("Hm.Hm.Well.", None)


async def test_comments_before_the_first_text_end_at_the_total_time() -> None:
    outcome = await play(*repeat(10, COMMENT, 1000))
    assert outcome.error is not None
    assert (outcome.error.code, outcome.seconds) == ("timeout_total", 30 * MINUTE)


async def test_silence_in_mid_reply_times_out_after_90_seconds() -> None:
    outcome = await play((0, WORD), (80, WORD))
    assert outcome.error is not None
    assert (outcome.text, outcome.error.code, outcome.seconds) == ("Well.Well.", "timeout_idle", 170)
    assert outcome.error.message == "OpenRouter stopped sending for 90 s, so the reply ends here."


async def test_comments_in_mid_reply_extend_the_wait() -> None:
    outcome = await play((0, WORD), *repeat(60, COMMENT, 10), (60, WORD), (0, END))
    assert (outcome.text, outcome.error) == ("Well.Well.", None)


async def test_comments_in_mid_reply_extend_the_wait_to_15_minutes_at_most() -> None:
    outcome = await play((0, WORD), *repeat(10, COMMENT, 1000))
    assert outcome.error is not None
    assert (outcome.error.code, outcome.seconds) == ("timeout_idle", 15 * MINUTE)
    assert outcome.error.message == "OpenRouter stopped sending for 15 minutes, so the reply ends here."


async def test_text_between_comments_restarts_the_time() -> None:
    outcome = await play((0, WORD), *repeat(50, COMMENT, 17), (0, WORD), *repeat(50, COMMENT, 17), (0, END))
    assert (outcome.text, outcome.error) == ("Well.Well.", None)


PING = b'event: ping\ndata: {"type":"ping"}\n\n'
KEEP_ALIVE = b'event: keepalive\ndata: {"type":"keepalive"}\n\n'
CLAUDE_WORD = (
    b"event: content_block_delta\n"
    b'data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"Well."}}\n\n'
)
RESPONSE_WORD = (
    b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"Well."}\n\n'
)
with_pings = pytest.mark.parametrize(
    ("dialect", "ping", "word"),
    [(MessagesDecoder, PING, CLAUDE_WORD), (ResponsesDecoder, KEEP_ALIVE, RESPONSE_WORD)],
)


@with_pings
async def test_pings_before_the_first_text_restart_the_time(
    dialect: Callable[[ErrorFactory], StreamDecoder], ping: bytes, word: bytes
) -> None:
    outcome = await play(*repeat(250, ping, 4), (250, word), dialect=dialect)
    assert outcome.text == "Well."


@with_pings
async def test_pings_in_mid_reply_extend_the_wait_to_15_minutes_at_most(
    dialect: Callable[[ErrorFactory], StreamDecoder], ping: bytes, word: bytes
) -> None:
    outcome = await play(
        (0, word), *repeat(60, ping, 10), (60, word), *repeat(10, ping, 1000), dialect=dialect
    )
    assert outcome.error is not None
    assert (outcome.text, outcome.error.code) == ("Well.Well.", "timeout_idle")
    assert outcome.seconds == 660 + 15 * MINUTE


async def test_a_server_without_a_first_byte_limit_ends_at_the_total_time() -> None:
    unlimited = Limits(first_byte_s=math.inf)
    outcome = await play((0, COMMENT), (29 * MINUTE, WORD), (0, END), limits=unlimited)
    assert outcome.text == "Well."
    outcome = await play((0, COMMENT), limits=unlimited)
    assert outcome.error is not None
    assert (outcome.error.code, outcome.seconds) == ("timeout_total", 30 * MINUTE)


REMOTE = Endpoint("acme", "Acme", "https://api.acme.example/v1")
LOOPBACK = Endpoint("acme", "Acme", "http://127.0.0.1:11434/v1")
SELF_HOSTED = Endpoint("acme", "Acme", "http://192.168.1.7:11434/v1", is_self_hosted=True)


@pytest.mark.parametrize(
    ("endpoint", "seconds"),
    [(REMOTE, 300), (LOOPBACK, math.inf), (SELF_HOSTED, math.inf), (BUILT_IN, math.inf)],
)
def test_a_self_hosted_server_has_no_first_byte_limit(endpoint: Endpoint, seconds: float) -> None:
    """Such a server reads the whole prompt first, and an old machine reads slowly."""
    assert endpoint.limits(Limits()).silence_s == seconds


def settings(**environ: str) -> Settings:
    return read({f"TERTULIA_{name}": value for name, value in environ.items()})


@pytest.mark.parametrize(
    ("setting", "remote", "loopback"), [("", 300, math.inf), ("120", 120, 120), ("0", math.inf, math.inf)]
)
def test_the_operator_sets_the_first_byte_limit(setting: str, remote: float, loopback: float) -> None:
    limits = Limits(first_byte_s=settings(ANSWER_TIMEOUT_S=setting).answer_timeout_s)
    assert (REMOTE.limits(limits).silence_s, LOOPBACK.limits(limits).silence_s) == (remote, loopback)


@pytest.mark.parametrize("setting", ["-1", "1.5", "soon", "1801"])
def test_an_invalid_answer_timeout_stops_the_start_with_a_message(setting: str) -> None:
    with pytest.raises(CannotStart, match="TERTULIA_ANSWER_TIMEOUT_S is"):
        settings(ANSWER_TIMEOUT_S=setting)
