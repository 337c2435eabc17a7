"""How long a reply may be silent before its first word and after it, with signs of life and without."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tertulia.core.errors import CannotStart
from tertulia.providers import catalogue
from tertulia.providers.anthropic import MessagesReading
from tertulia.providers.builtin import ENDPOINT as BUILT_IN
from tertulia.providers.endpoints import Endpoint
from tertulia.providers.faults import Faults
from tertulia.providers.limits import Limits
from tertulia.providers.openai_chat import ChatReading
from tertulia.providers.openai_responses import ResponsesReading
from tertulia.providers.reading import Reading
from tertulia.providers.seam import ProviderFault
from tertulia.providers.wire import Answer
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
class Arriving:
    """The bytes of a response, each after so many seconds; then nothing for ever."""

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
class Told:
    text: str
    seconds: float
    fault: ProviderFault | None = None


async def told(
    *arrivals: Arrival, limits: Limits = LIMITS, dialect: Callable[[Faults], Reading] = ChatReading
) -> Told:
    """What is heard of a reply, and when it was over."""
    clock = Timers()
    faults = Faults("OpenRouter", catalogue.unknown("x", "y"), limits)
    reading = dialect(faults)
    keep_alive = reading.is_keep_alive if reading.keep_alive else None
    told = Told("", 0)
    try:
        with Answer(Arriving(clock, list(arrivals)), limits, faults, keep_alive, clock) as answer:
            while not reading.is_over and (events := await answer.read()) is not None:
                told.text += "".join(piece.text for piece in reading.take(events))
                if reading.has_spoken:
                    answer.expect_words()
    except ProviderFault as fault:
        told.fault = fault
    told.seconds = clock.now
    return told


def every(seconds: float, chunk: bytes, times: int) -> list[Arrival]:
    return [(seconds, chunk)] * times


async def test_a_model_may_think_in_silence_for_five_minutes() -> None:
    heard = await told((0, ROLE), (299, WORD), (0, END))
    assert (heard.text, heard.fault) == ("Well.", None)


async def test_a_model_that_is_silent_for_longer_did_not_answer() -> None:
    heard = await told((0, COMMENT))
    assert heard.fault is not None
    assert (heard.fault.code, heard.seconds, heard.fault.is_outage) == ("timeout_first_byte", 300, False)
    assert heard.fault.message == "OpenRouter did not answer in 5 minutes."


@pytest.mark.parametrize("sign", [COMMENT, ROLE, THOUGHT], ids=["comments", "empty events", "thoughts"])
async def test_whatever_arrives_before_the_first_word_keeps_a_thinking_model_alive(sign: bytes) -> None:
    """OpenRouter and DeepSeek send comments for minutes."""
    heard = await told(*every(250, sign, 6), (250, WORD), (0, END))
    assert heard.text.endswith("Well.")
    assert (heard.fault, heard.seconds) == (None, 1750)


async def test_a_pause_between_thoughts_may_be_as_long_as_before_them() -> None:
    heard = await told((0, THOUGHT), (299, THOUGHT), (299, WORD), (0, END))
    assert (heard.text, heard.fault) == ("Hm.Hm.Well.", None)


async def test_comments_before_the_first_word_do_not_outlast_the_whole_time() -> None:
    heard = await told(*every(10, COMMENT, 1000))
    assert heard.fault is not None
    assert (heard.fault.code, heard.seconds) == ("timeout_total", 30 * MINUTE)


async def test_a_model_that_falls_silent_in_mid_sentence_is_left_after_a_minute_and_a_half() -> None:
    heard = await told((0, WORD), (80, WORD))
    assert heard.fault is not None
    assert (heard.text, heard.fault.code, heard.seconds) == ("Well.Well.", "timeout_idle", 170)
    assert heard.fault.message == "OpenRouter stopped sending for 90 s, so the reply ends here."


async def test_comments_in_mid_sentence_keep_a_reply_open() -> None:
    heard = await told((0, WORD), *every(60, COMMENT, 10), (60, WORD), (0, END))
    assert (heard.text, heard.fault) == ("Well.Well.", None)


async def test_comments_in_mid_sentence_do_not_keep_it_open_for_ever() -> None:
    heard = await told((0, WORD), *every(10, COMMENT, 1000))
    assert heard.fault is not None
    assert (heard.fault.code, heard.seconds) == ("timeout_idle", 15 * MINUTE)
    assert heard.fault.message == "OpenRouter stopped sending for 15 minutes, so the reply ends here."


async def test_words_between_comments_start_the_time_anew() -> None:
    heard = await told((0, WORD), *every(50, COMMENT, 17), (0, WORD), *every(50, COMMENT, 17), (0, END))
    assert (heard.text, heard.fault) == ("Well.Well.", None)


PING = b'event: ping\ndata: {"type":"ping"}\n\n'
KEEP_ALIVE = b'event: keepalive\ndata: {"type":"keepalive"}\n\n'
CLAUDE_WORD = (
    b"event: content_block_delta\n"
    b'data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"Well."}}\n\n'
)
RESPONSE_WORD = (
    b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"Well."}\n\n'
)
pinging = pytest.mark.parametrize(
    ("dialect", "ping", "word"),
    [(MessagesReading, PING, CLAUDE_WORD), (ResponsesReading, KEEP_ALIVE, RESPONSE_WORD)],
)


@pinging
async def test_pings_keep_a_thinking_model_alive(
    dialect: Callable[[Faults], Reading], ping: bytes, word: bytes
) -> None:
    heard = await told(*every(250, ping, 4), (250, word), dialect=dialect)
    assert heard.text == "Well."


@pinging
async def test_pings_in_mid_sentence_keep_a_reply_open_but_not_for_ever(
    dialect: Callable[[Faults], Reading], ping: bytes, word: bytes
) -> None:
    heard = await told((0, word), *every(60, ping, 10), (60, word), *every(10, ping, 1000), dialect=dialect)
    assert heard.fault is not None
    assert (heard.text, heard.fault.code) == ("Well.Well.", "timeout_idle")
    assert heard.seconds == 660 + 15 * MINUTE


async def test_a_server_that_may_take_any_time_is_still_bounded_by_the_whole_time() -> None:
    patient = Limits(first_byte_s=math.inf)
    heard = await told((0, COMMENT), (29 * MINUTE, WORD), (0, END), limits=patient)
    assert heard.text == "Well."
    heard = await told((0, COMMENT), limits=patient)
    assert heard.fault is not None
    assert (heard.fault.code, heard.seconds) == ("timeout_total", 30 * MINUTE)


REMOTE = Endpoint("acme", "Acme", "https://api.acme.example/v1")
LOOPBACK = Endpoint("acme", "Acme", "http://127.0.0.1:11434/v1")
NEXT_DOOR = Endpoint("acme", "Acme", "http://192.168.1.7:11434/v1", is_near=True)


@pytest.mark.parametrize(
    ("endpoint", "seconds"),
    [(REMOTE, 300), (LOOPBACK, math.inf), (NEXT_DOOR, math.inf), (BUILT_IN, math.inf)],
)
def test_a_server_of_ones_own_may_take_any_time_before_its_first_word(
    endpoint: Endpoint, seconds: float
) -> None:
    """It reads the whole prompt first, and an old machine reads slowly."""
    assert endpoint.limits(Limits()).silence_s == seconds


def settings(**environ: str) -> Settings:
    return read({f"TERTULIA_{name}": value for name, value in environ.items()})


@pytest.mark.parametrize(
    ("given", "remote", "loopback"), [("", 300, math.inf), ("120", 120, 120), ("0", math.inf, math.inf)]
)
def test_an_operator_says_how_long_a_provider_may_be_silent(
    given: str, remote: float, loopback: float
) -> None:
    limits = Limits(first_byte_s=settings(ANSWER_TIMEOUT_S=given).answer_timeout_s)
    assert (REMOTE.limits(limits).silence_s, LOOPBACK.limits(limits).silence_s) == (remote, loopback)


@pytest.mark.parametrize("given", ["-1", "1.5", "soon", "1801"])
def test_a_time_that_makes_no_sense_stops_the_start_with_a_sentence(given: str) -> None:
    with pytest.raises(CannotStart, match="TERTULIA_ANSWER_TIMEOUT_S is"):
        settings(ANSWER_TIMEOUT_S=given)
