"""What real providers answered is read as it was meant: every recording, however the bytes are cut."""

import json
import random
from contextlib import aclosing

import pytest

from tertulia.core.models import TokenCount
from tertulia.core.prompts import Prompt, PromptMessage
from tertulia.providers import catalogue
from tertulia.providers.endpoints import Endpoint
from tertulia.providers.limits import Limits
from tertulia.providers.seam import Call, ProviderFault
from tertulia.providers.speakers import Speakers
from tests.providers.conftest import Heard
from tests.providers.recorded import Recording, pieces, played, recordings

RECORDINGS = recordings()
CODES = {401: "auth", 404: "unavailable", 429: "rate_limited"}
MEANINGS = {
    "credit balance is too low": "rate_limited",
    "insufficient_quota": "rate_limited",
    "RESOURCE_EXHAUSTED": "rate_limited",
    "API_KEY_INVALID": "auth",
    "input token count": "context_length",
    "exceed_context_size_error": "context_length",
    "maximum context length": "context_length",
    "max context length": "context_length",
}


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: f"{recording.dialect}-{recording.id}")
async def test_a_recorded_answer_is_read_as_its_maker_describes_it(recording: Recording) -> None:
    for form in recording.forms():
        heard = await listen(recording, form)
        if recording.has_succeeded:
            check_answer(recording, heard)
        else:
            check_refusal(recording, heard)


def test_the_recordings_are_all_here() -> None:
    assert len(RECORDINGS) == 531
    assert len({(recording.dialect, recording.id) for recording in RECORDINGS}) == 531


def test_a_recording_is_cut_in_many_places_and_loses_nothing() -> None:
    body = "data: über\r\n\r\n".encode() * 20
    cut = pieces(body, random.Random(1))
    assert len(cut) > 40
    assert b"".join(cut) == body


def check_answer(recording: Recording, heard: Heard) -> None:
    expected = recording.expected
    assert heard.text == expected["text"] + expected["refusal"]
    assert heard.thinking == expected["thought"]
    if expected["error"]:
        assert heard.fault is not None
        assert heard.fault.detail is not None
        assert expected["error"]["message"][:100] in heard.fault.detail
        return
    assert heard.fault is None
    assert heard.end is not None
    # A server that gives no reason has an end marker.
    assert heard.end.finish == (expected["finish_class"] or "stop")
    check_count(recording, heard.end.count)
    if expected["tools"] and not heard.text:
        assert heard.end.reason is not None, "an answer without words says what it was instead"


def check_count(recording: Recording, count: TokenCount) -> None:
    expected = recording.expected
    if expected["sent"] is None:
        assert count.is_estimated
        return
    figures = (count.input_tokens, count.cached_tokens, count.written_tokens)
    assert figures == (expected["sent"], expected["cached"], expected["written"])
    assert (count.output_tokens, count.reasoning_tokens) == (expected["said"], expected["reasoned"])
    assert not count.is_estimated


def check_refusal(recording: Recording, heard: Heard) -> None:
    assert heard.fault is not None
    assert (heard.text, heard.thinking, heard.end) == ("", "", None)
    assert heard.fault.detail
    assert sentence(recording)[:40] in heard.fault.detail
    assert heard.code == CODES.get(recording.status) or heard.code == meaning(recording.body)
    assert not heard.fault.is_outage, "a provider that refuses a request is not in trouble"


def sentence(recording: Recording) -> str:
    """What the provider says of its refusal, in whichever field it says it."""
    body = json.loads(recording.body)
    body = body[0] if isinstance(body, list) else body
    error = body.get("error") or body
    return str(error if isinstance(error, str) else error.get("message") or error.get("detail"))


def meaning(body: str) -> str:
    """Of a status of 400, by what its maker's documents call it."""
    return next((code for words, code in MEANINGS.items() if words in body), "unavailable")


async def listen(recording: Recording, form: tuple[bytes, ...]) -> Heard:
    speakers = Speakers(Limits(), stays_inside=True)
    heard = Heard()
    async with played(recording, form) as address:
        endpoint = Endpoint("recorded", "Recorded", address, dialect=recording.dialect)
        model = catalogue.unknown("recorded", str(recording.request.get("model") or "model"))
        call = Call(model, Prompt("", (PromptMessage("user", "Hello?"),)), 500)
        speaker = await speakers.speaker(endpoint, recording.dialect)
        try:
            async with aclosing(speaker.stream(call)) as stream:
                async for piece in stream:
                    heard.pieces.append(piece)
        except ProviderFault as fault:
            heard.fault = fault
        finally:
            await speakers.close()
    return heard
