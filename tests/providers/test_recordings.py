"""Stream decoders: each recorded response is decoded as documented, however its bytes are split."""

import json
import random
from contextlib import aclosing

import pytest

from tertulia.core.models import TokenCount
from tertulia.core.prompts import Prompt, PromptMessage
from tertulia.providers import catalogue
from tertulia.providers.client_pool import ClientPool
from tertulia.providers.egress import LOOPBACK_ONLY
from tertulia.providers.endpoints import Endpoint
from tertulia.providers.interface import ModelRequest, ProviderError
from tertulia.providers.limits import Limits
from tests.providers.conftest import Reply
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
async def test_each_recorded_response_is_decoded_as_its_provider_documents(recording: Recording) -> None:
    for form in recording.forms():
        reply = await listen(recording, form)
        if recording.has_succeeded:
            check_answer(recording, reply)
        else:
            check_refusal(recording, reply)


def test_all_531_recordings_are_present() -> None:
    assert len(RECORDINGS) == 531
    assert len({(recording.dialect, recording.id) for recording in RECORDINGS}) == 531


def test_splitting_a_recording_loses_no_bytes() -> None:
    body = "data: über\r\n\r\n".encode() * 20
    parts = pieces(body, random.Random(1))
    assert len(parts) > 40
    assert b"".join(parts) == body


def check_answer(recording: Recording, reply: Reply) -> None:
    expected = recording.expected
    assert reply.text == expected["text"] + expected["refusal"]
    assert reply.thinking == expected["thought"]
    if expected["error"]:
        assert reply.error is not None
        assert reply.error.detail is not None
        assert expected["error"]["message"][:100] in reply.error.detail
        return
    assert reply.error is None
    assert reply.end is not None
    # A server that sends no finish reason sends an end marker.
    assert reply.end.finish == (expected["finish_class"] or "stop")
    check_count(recording, reply.end.count)
    if expected["tools"] and not reply.text:
        assert reply.end.reason is not None, "an answer without words says what it was instead"


def check_count(recording: Recording, count: TokenCount) -> None:
    expected = recording.expected
    if expected["sent"] is None:
        assert count.is_estimated
        return
    figures = (count.input_tokens, count.cached_tokens, count.written_tokens)
    assert figures == (expected["sent"], expected["cached"], expected["written"])
    assert (count.output_tokens, count.reasoning_tokens) == (expected["said"], expected["reasoned"])
    assert not count.is_estimated


def check_refusal(recording: Recording, reply: Reply) -> None:
    assert reply.error is not None
    assert (reply.text, reply.thinking, reply.end) == ("", "", None)
    assert reply.error.detail
    assert sentence(recording)[:40] in reply.error.detail
    assert reply.code == CODES.get(recording.status) or reply.code == meaning(recording.body)
    assert not reply.error.is_outage, "a provider that refuses a request is not in trouble"


def sentence(recording: Recording) -> str:
    """The provider's error message, from whichever field holds it."""
    body = json.loads(recording.body)
    body = body[0] if isinstance(body, list) else body
    error = body.get("error") or body
    return str(error if isinstance(error, str) else error.get("message") or error.get("detail"))


def meaning(body: str) -> str:
    """The expected error code for status 400, from the words of the provider's documents."""
    return next((code for words, code in MEANINGS.items() if words in body), "unavailable")


async def listen(recording: Recording, form: tuple[bytes, ...]) -> Reply:
    clients = ClientPool(Limits(), LOOPBACK_ONLY)
    reply = Reply()
    async with played(recording, form) as address:
        endpoint = Endpoint("recorded", "Recorded", address, dialect=recording.dialect)
        model = catalogue.unknown("recorded", str(recording.request.get("model") or "model"))
        call = ModelRequest(model, Prompt("", (PromptMessage("user", "Hello?"),)), 500)
        client = await clients.client_for(endpoint, recording.dialect)
        try:
            async with aclosing(client.stream(call)) as stream:
                async for item in stream:
                    reply.items.append(item)
        except ProviderError as error:
            reply.error = error
        finally:
            await clients.close()
    return reply
