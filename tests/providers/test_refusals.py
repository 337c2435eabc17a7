"""Provider errors: temporary ones are retried, others are reported at once and clearly (PF 1, PF 2)."""

import pytest

from tertulia.providers.interface import RetryPending
from tests.providers.conftest import EVERY_DIALECT, Caller
from tests.upstream.scripted import Bare, Fail, Head, Raw, Say, Script, Upstream, refuses, says

every_dialect = pytest.mark.parametrize("key", EVERY_DIALECT)


@every_dialect
async def test_a_call_waits_as_long_as_retry_after_says(upstream: Upstream, caller: Caller, key: str) -> None:
    upstream.plays(refuses(429, retry_after="7"), says("Now."))
    reply = await caller.ask(key)
    assert reply.text == "Now."
    (retry,) = reply.retries
    assert (retry.attempt, retry.attempts) == (1, 2)
    assert 7 <= retry.seconds < 8
    assert "asked us to slow down" in retry.reason
    assert caller.sleeps == [retry.seconds]


@every_dialect
async def test_a_call_fails_after_two_retries(upstream: Upstream, caller: Caller, key: str) -> None:
    upstream.plays(refuses(429, {"error": {"message": "Slow down"}}))
    reply = await caller.ask(key)
    assert reply.code == "rate_limited"
    assert reply.error is not None
    assert reply.error.message.endswith("asked us to slow down. Too many requests this minute.")
    assert reply.error.detail == "Slow down"
    assert [item for item in reply.items if not isinstance(item, RetryPending)] == []
    assert len(upstream.requests) == 3


PAST_DATE = "Wed, 21 Oct 2015 07:28:00 GMT"


@pytest.mark.parametrize("retry_after", ["0", "-5", "1e9", "nan", "inf", "soon", "", PAST_DATE])
async def test_an_invalid_retry_after_is_replaced_by_a_short_wait(
    upstream: Upstream, caller: Caller, retry_after: str
) -> None:
    upstream.plays(refuses(429, retry_after=retry_after))
    reply = await caller.ask()
    assert reply.code == "rate_limited"
    assert len(reply.retries) == 2
    assert all(0 < retry.seconds <= 60 for retry in reply.retries)


async def test_a_wait_of_one_minute_is_accepted(upstream: Upstream, caller: Caller) -> None:
    upstream.plays(refuses(429, retry_after="60"), says("Now."))
    reply = await caller.ask()
    assert (reply.text, [retry.seconds for retry in reply.retries]) == ("Now.", [60])


ERROR_PAGE = b"<html><head><title>502 Bad Gateway</title></head></html>"
ERRORS_WITH_STATUS_200: list[Script] = [
    (Head(200, {"Content-Type": "application/json"}), Raw(b'{"error": {"message": "overloaded"}}'), Bare()),
    (Head(200, {"Content-Type": "text/html"}), Raw(ERROR_PAGE), Bare()),
    (Fail(),),
    (Bare(),),
    (Head(204, {"Connection": "close"}, is_chunked=False),),
    (Raw(b": only a comment\n\n"), Bare()),
]


@pytest.mark.parametrize("status", [408, 500, 502, 503, 504, 529])
@every_dialect
async def test_a_temporary_error_is_retried(
    upstream: Upstream, caller: Caller, key: str, status: int
) -> None:
    upstream.plays(refuses(status, ERROR_PAGE), says("Back."))
    reply = await caller.ask(key)
    assert (reply.text, reply.code, len(reply.retries)) == ("Back.", None, 1)


@every_dialect
async def test_a_lasting_outage_is_reported_after_the_retries(
    upstream: Upstream, caller: Caller, key: str
) -> None:
    upstream.plays(refuses(503, ERROR_PAGE))
    reply = await caller.ask(key)
    assert reply.code == "unavailable"
    assert reply.error is not None
    assert reply.error.message.endswith("is having trouble and did not answer. Nothing was charged.")
    assert reply.error.detail == "HTTP 503"
    assert len(upstream.requests) == 3


@pytest.mark.parametrize("script", ERRORS_WITH_STATUS_200)
@every_dialect
async def test_an_error_with_a_success_status_is_still_an_error(
    upstream: Upstream, caller: Caller, key: str, script: Script
) -> None:
    upstream.plays(script)
    reply = await caller.ask(key)
    assert (reply.code, reply.text, reply.end) == ("unavailable", "", None)
    assert len(upstream.requests) == 3


@pytest.mark.parametrize(
    ("status", "message", "code", "sentence"),
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
async def test_a_permanent_error_is_reported_without_a_retry(
    upstream: Upstream, caller: Caller, key: str, status: int, message: str, code: str, sentence: str
) -> None:
    upstream.plays(refuses(status, {"error": {"message": message}}, location=f"{upstream.url}/elsewhere"))
    reply = await caller.ask(key)
    assert reply.error is not None
    assert (reply.code, reply.retries, len(upstream.requests)) == (code, [], 1)
    assert sentence in reply.error.message


async def test_a_too_long_prompt_is_reported_with_both_figures(upstream: Upstream, caller: Caller) -> None:
    message = (
        "This model's maximum context length is 128000 tokens, your messages resulted in 131,200 tokens."
    )
    upstream.plays(refuses(400, {"error": {"message": message, "code": "context_length_exceeded"}}))
    reply = await caller.ask()
    assert reply.error is not None
    assert reply.error.message == "GPT-4o holds 128,000 tokens and this needs 131,200."


async def test_a_prompt_above_the_input_limit_is_reported_with_that_limit(
    upstream: Upstream, caller: Caller
) -> None:
    message = (
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300001 tokens."
    )
    upstream.plays(refuses(400, {"error": {"message": message, "code": "context_length_exceeded"}}))
    reply = await caller.ask("openai:gpt-5")
    assert reply.error is not None
    assert reply.error.message == "GPT-5 holds 272,000 tokens and this needs 300,001."


async def test_the_providers_message_is_quoted_without_the_key(upstream: Upstream, caller: Caller) -> None:
    message = "Incorrect key: key-of-openai.\x00\x1b[31m\u202eSee sk-proj-abcdefghijklmnop123 " + "x" * 5000
    upstream.plays(refuses(401, {"error": {"message": message}}))
    reply = await caller.ask()
    assert reply.error is not None
    assert reply.error.detail is not None
    assert reply.error.detail.startswith("Incorrect key: •••. [31m See ••• xxx")
    assert len(reply.error.detail) == 500


async def test_only_the_start_of_a_huge_error_page_is_read(upstream: Upstream, caller: Caller) -> None:
    upstream.plays((Head(400), Raw(b"no " * (1 << 20)), Bare()))
    reply = await caller.ask()
    assert reply.code == "unavailable"
    assert reply.error is not None
    assert reply.error.detail is not None
    assert len(reply.error.detail) == 500


@every_dialect
async def test_an_error_after_the_first_text_is_not_retried(
    upstream: Upstream, caller: Caller, key: str
) -> None:
    upstream.plays((Say("Half a"), Fail()), says("A whole other answer."))
    reply = await caller.ask(key)
    assert (reply.text, reply.code, reply.retries) == ("Half a", "unavailable", [])
    assert reply.error is not None
    assert reply.error.message.endswith(" had an error in the middle of the reply.")
    assert len(upstream.requests) == 1
