"""A provider that does not answer: tried again while that can help, then told in a sentence (PF 1, PF 2)."""

import pytest

from tertulia.providers.seam import Wait
from tests.providers.conftest import EVERY_DIALECT, Listener
from tests.upstream.scripted import Bare, Fail, Head, Raw, Say, Script, Upstream, refuses, says

every_dialect = pytest.mark.parametrize("key", EVERY_DIALECT)


@every_dialect
async def test_a_provider_that_asks_for_patience_gets_it(
    upstream: Upstream, listener: Listener, key: str
) -> None:
    upstream.plays(refuses(429, retry_after="7"), says("Now."))
    heard = await listener.ask(key)
    assert heard.text == "Now."
    (wait,) = heard.waits
    assert (wait.attempt, wait.attempts) == (1, 2)
    assert 7 <= wait.seconds < 8
    assert "asked us to slow down" in wait.reason
    assert listener.slept == [wait.seconds]


@every_dialect
async def test_patience_ends_after_two_retries(upstream: Upstream, listener: Listener, key: str) -> None:
    upstream.plays(refuses(429, {"error": {"message": "Slow down"}}))
    heard = await listener.ask(key)
    assert heard.code == "rate_limited"
    assert heard.fault is not None
    assert heard.fault.message.endswith("asked us to slow down. Too many requests this minute.")
    assert heard.fault.detail == "Slow down"
    assert [piece for piece in heard.pieces if not isinstance(piece, Wait)] == []
    assert len(upstream.requests) == 3


LONG_AGO = "Wed, 21 Oct 2015 07:28:00 GMT"


@pytest.mark.parametrize("asked", ["0", "-5", "1e9", "nan", "inf", "soon", "", LONG_AGO])
async def test_a_wait_that_makes_no_sense_is_replaced_by_a_short_one(
    upstream: Upstream, listener: Listener, asked: str
) -> None:
    upstream.plays(refuses(429, retry_after=asked))
    heard = await listener.ask()
    assert heard.code == "rate_limited"
    assert len(heard.waits) == 2
    assert all(0 < wait.seconds <= 60 for wait in heard.waits)


async def test_a_wait_of_a_minute_is_sat_through(upstream: Upstream, listener: Listener) -> None:
    upstream.plays(refuses(429, retry_after="60"), says("Now."))
    heard = await listener.ask()
    assert (heard.text, [wait.seconds for wait in heard.waits]) == ("Now.", [60])


PAGE = b"<html><head><title>502 Bad Gateway</title></head></html>"
IN_DISGUISE: list[Script] = [
    (Head(200, {"Content-Type": "application/json"}), Raw(b'{"error": {"message": "overloaded"}}'), Bare()),
    (Head(200, {"Content-Type": "text/html"}), Raw(PAGE), Bare()),
    (Fail(),),
    (Bare(),),
    (Head(204, {"Connection": "close"}, is_chunked=False),),
    (Raw(b": only a comment\n\n"), Bare()),
]


@pytest.mark.parametrize("status", [408, 500, 502, 503, 504, 529])
@every_dialect
async def test_trouble_that_may_pass_is_tried_again(
    upstream: Upstream, listener: Listener, key: str, status: int
) -> None:
    upstream.plays(refuses(status, PAGE), says("Back."))
    heard = await listener.ask(key)
    assert (heard.text, heard.code, len(heard.waits)) == ("Back.", None, 1)


@every_dialect
async def test_trouble_that_does_not_pass_is_told(upstream: Upstream, listener: Listener, key: str) -> None:
    upstream.plays(refuses(503, PAGE))
    heard = await listener.ask(key)
    assert heard.code == "unavailable"
    assert heard.fault is not None
    assert heard.fault.message.endswith("is having trouble and did not answer. Nothing was charged.")
    assert heard.fault.detail == "HTTP 503"
    assert len(upstream.requests) == 3


@pytest.mark.parametrize("disguise", IN_DISGUISE)
@every_dialect
async def test_an_error_dressed_as_success_is_still_an_error(
    upstream: Upstream, listener: Listener, key: str, disguise: Script
) -> None:
    upstream.plays(disguise)
    heard = await listener.ask(key)
    assert (heard.code, heard.text, heard.end) == ("unavailable", "", None)
    assert len(upstream.requests) == 3


@pytest.mark.parametrize(
    ("status", "said", "code", "sentence"),
    [
        (401, "bad key", "auth", "refused the key. It may have been revoked."),
        (403, "not yours", "auth", "does not allow this request with this key."),
        (400, "API key not valid. Please pass a valid API key.", "auth", "refused the key."),
        (402, "Insufficient Balance", "rate_limited", "says the credit of this key is used up."),
        (
            429,
            "insufficient_quota: check your plan",
            "rate_limited",
            "says the credit of this key is used up.",
        ),
        (404, "no such model", "unavailable", "does not offer"),
        (400, "unsupported field", "unavailable", "did not accept the request."),
        (400, "content_filter: the prompt", "filtered", "This model declined."),
        (413, "request_too_large", "context_length", "does not take a request this large."),
        (301, "", "unavailable", "redirected to another address, which is not followed."),
        (307, "", "unavailable", "redirected to another address, which is not followed."),
    ],
)
@every_dialect
async def test_what_trying_again_cannot_help_is_told_at_once(
    upstream: Upstream, listener: Listener, key: str, status: int, said: str, code: str, sentence: str
) -> None:
    upstream.plays(refuses(status, {"error": {"message": said}}, location=f"{upstream.url}/elsewhere"))
    heard = await listener.ask(key)
    assert heard.fault is not None
    assert (heard.code, heard.waits, len(upstream.requests)) == (code, [], 1)
    assert sentence in heard.fault.message


async def test_a_prompt_too_long_is_told_in_numbers(upstream: Upstream, listener: Listener) -> None:
    said = "This model's maximum context length is 128000 tokens, your messages resulted in 131,200 tokens."
    upstream.plays(refuses(400, {"error": {"message": said, "code": "context_length_exceeded"}}))
    heard = await listener.ask()
    assert heard.fault is not None
    assert heard.fault.message == "GPT-4o holds 128,000 tokens and this needs 131,200."


async def test_a_prompt_beyond_the_limit_for_input_is_told_with_that_limit(
    upstream: Upstream, listener: Listener
) -> None:
    said = (
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300001 tokens."
    )
    upstream.plays(refuses(400, {"error": {"message": said, "code": "context_length_exceeded"}}))
    heard = await listener.ask("openai:gpt-5")
    assert heard.fault is not None
    assert heard.fault.message == "GPT-5 holds 272,000 tokens and this needs 300,001."


async def test_what_the_provider_said_is_quoted_without_the_key(
    upstream: Upstream, listener: Listener
) -> None:
    said = "Incorrect key: key-of-openai.\x00\x1b[31m\u202eSee sk-proj-abcdefghijklmnop123 " + "x" * 5000
    upstream.plays(refuses(401, {"error": {"message": said}}))
    heard = await listener.ask()
    assert heard.fault is not None
    assert heard.fault.detail is not None
    assert heard.fault.detail.startswith("Incorrect key: •••. [31m See ••• xxx")
    assert len(heard.fault.detail) == 500


async def test_an_endless_error_page_is_read_no_further_than_needed(
    upstream: Upstream, listener: Listener
) -> None:
    upstream.plays((Head(400), Raw(b"no " * (1 << 20)), Bare()))
    heard = await listener.ask()
    assert heard.code == "unavailable"
    assert heard.fault is not None
    assert heard.fault.detail is not None
    assert len(heard.fault.detail) == 500


@every_dialect
async def test_nothing_is_tried_again_once_a_word_was_said(
    upstream: Upstream, listener: Listener, key: str
) -> None:
    upstream.plays((Say("Half a"), Fail()), says("A whole other answer."))
    heard = await listener.ask(key)
    assert (heard.text, heard.code, heard.waits) == ("Half a", "unavailable", [])
    assert heard.fault is not None
    assert heard.fault.message.endswith(" had an error in the middle of the reply.")
    assert len(upstream.requests) == 1
