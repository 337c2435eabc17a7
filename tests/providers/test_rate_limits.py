"""A rate limit is waited out, a spent balance is told, and a long wait is told with its end."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tertulia.providers import rate_limits
from tests.providers.conftest import CHAT, EVERY_DIALECT, GOOGLE, RESPONSES, Heard, Listener, NewListener
from tests.upstream.scripted import Bare, Head, Raw, Upstream, refuses, says

GROQ = "groq:openai/gpt-oss-120b"
OPENROUTER = "openrouter:openai/gpt-6.1-sol"
CREDIT = "says the credit of this key is used up."
NOW = 1_790_000_000.0


def message(heard: Heard) -> str:
    assert heard.fault is not None
    return heard.fault.message


def gemini_429(*quotas: str, delay: Any = "34.4s", more: str = "") -> dict[str, Any]:
    said = f"You exceeded your current quota, please check your plan and billing details.{more}"
    failure = {
        "@type": "type.googleapis.com/google.rpc.QuotaFailure",
        "violations": [{"quotaId": quota} for quota in quotas],
    }
    retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}
    details = [failure, *([retry] if delay else [])]
    return {"error": {"code": 429, "message": said, "status": "RESOURCE_EXHAUSTED", "details": details}}


def groq_429(words: str, kind: str = "tokens") -> dict[str, Any]:
    said = (
        "Rate limit reached for model `openai/gpt-oss-120b` in organization `org_01` service tier "
        f"`on_demand` on {words} Need more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing"
    )
    return {"error": {"message": said, "type": kind, "code": "rate_limit_exceeded"}}


MINUTE = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"
DAY = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
OPENAI_TPM = (
    "Rate limit reached for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Used 29000, "
    "Requested 2000. Please try again in 1.2s. Visit https://platform.openai.com/account/rate-limits to "
    "learn more. You can increase your rate limit by adding a payment method to your account at "
    "https://platform.openai.com/account/billing."
)
TPM = "tokens per minute (TPM): Limit 8000, Used 7900, Requested 820."
RPM = "requests per minute (RPM): Limit 30, Used 30, Requested 1."
TPD = "tokens per day (TPD): Limit 100000, Used 99000, Requested 2000."
WAITS: list[tuple[str, dict[str, Any], dict[str, str], float]] = [
    (GOOGLE, gemini_429(MINUTE), {}, 34.4),
    (GOOGLE, gemini_429(MINUTE, delay={"seconds": "12"}), {}, 12),
    (GOOGLE, gemini_429(MINUTE, delay="48s", more="\nPlease retry in 48.939935699s."), {}, 48.939935699),
    (GROQ, groq_429(f"{TPM} Please try again in 5.4s."), {}, 5.4),
    (GROQ, groq_429(f"{RPM} Please try again in 120ms."), {}, 0.12),
    (GROQ, groq_429(TPM), {"retry_after": "3"}, 3),
    (CHAT, {"error": {"message": OPENAI_TPM, "type": "tokens", "code": "rate_limit_exceeded"}}, {}, 1.2),
    (CHAT, {"error": {"message": "Please wait 20 seconds."}}, {}, 20),
    (CHAT, {"error": {"message": "Retry after about 1 minute."}}, {}, 60),
    (CHAT, {"error": {"message": "Slow down", "retry_after": 9}}, {}, 9),
    (CHAT, {"error": {"message": "Slow down", "retry_after_ms": 1500}}, {}, 1.5),
    (CHAT, {}, {"retry_after": "7"}, 7),
    (CHAT, {}, {"retry_after": "1", "retry_after_ms": "250"}, 0.25),
    (CHAT, {}, {"retry_after": "1", "retry_after_ms": "0"}, 1),
    (CHAT, {}, {"x_ratelimit_reset": "11"}, 11),
    (CHAT, {}, {"x_ratelimit_reset_requests": "120ms", "x_ratelimit_reset_tokens": "59s",
                "x_ratelimit_remaining_requests": "12", "x_ratelimit_remaining_tokens": "0"}, 59),
    (CHAT, {}, {"x_ratelimit_reset_requests": "8.64s", "x_ratelimit_reset_tokens": "1m3s",
                "x_ratelimit_remaining_requests": "0", "x_ratelimit_remaining_tokens": "900"}, 8.64),
    (CHAT, {}, {"x_ratelimit_reset_requests_day": "33011", "x_ratelimit_reset_tokens_minute": "11.5"}, 11.5),
]  # fmt: skip


@pytest.mark.parametrize(("key", "body", "headers", "seconds"), WAITS)
async def test_a_provider_that_is_asked_too_fast_is_waited_for_as_long_as_it_says(
    upstream: Upstream,
    listener: Listener,
    key: str,
    body: dict[str, Any],
    headers: dict[str, str],
    seconds: float,
) -> None:
    upstream.plays(refuses(429, body, **headers), says("Now."))
    heard = await listener.ask(key)
    assert heard.text == "Now."
    (wait,) = heard.waits
    assert seconds <= wait.seconds <= min(60, seconds * 1.1)
    assert "asked us to slow down" in wait.reason


async def test_a_provider_without_room_for_the_moment_is_asked_again(
    upstream: Upstream, listener: Listener
) -> None:
    """Groq's status for its flexible tier."""
    full = {
        "message": "Flex tier capacity exceeded.",
        "type": "capacity_exceeded",
        "code": "capacity_exceeded",
    }
    upstream.plays(refuses(498, {"error": full}), says("Now."))
    assert (await listener.ask(GROQ)).text == "Now."


async def test_a_wait_beyond_the_calendar_is_not_believed(upstream: Upstream, listener: Listener) -> None:
    upstream.plays(refuses(429, retry_after="9" * 18), says("Now."))
    assert (await listener.ask()).text == "Now."


@pytest.mark.parametrize("key", EVERY_DIALECT)
async def test_words_about_billing_do_not_make_a_rate_limit_a_spent_balance(
    upstream: Upstream, listener: Listener, key: str
) -> None:
    said = "You exceeded your current quota, please check your plan and billing details."
    upstream.plays(refuses(429, {"error": {"message": said, "status": "RESOURCE_EXHAUSTED"}}), says("Now."))
    assert (await listener.ask(key)).text == "Now."


BILLING = "You exceeded your current quota, please check your plan and billing details."
SPENT: list[tuple[int, dict[str, Any] | str]] = [
    (429, {"error": {"message": BILLING, "type": "insufficient_quota", "code": "insufficient_quota"}}),
    (400, {"error": {"message": "You exceeded your current quota.", "code": "insufficient_quota"}}),
    (400, {"error": {"message": "Your credit balance is too low to access the Anthropic API."}}),
    (402, {"error": {"message": "Insufficient Balance"}}),
    (403, {"code": "permission-denied", "error": "Your team has used all available credits."}),
    (403, {"code": "permission-denied", "error": "Your team has reached its monthly spending limit."}),
    (403, {"error": {"message": "Key limit exceeded (total limit).", "code": 403}}),
    (429, {"error": {"message": "Your prepayment credits are depleted."}}),
    (429, "Not enough credit"),
    (400, {"error": {"message": "You have reached your specified API usage limits. You will regain access on "
                                "2026-10-01 at 00:00 UTC.", "type": "invalid_request_error"}}),
    (412, {"error": {"message": "Account a is suspended, possibly due to reaching the monthly spending limit "
                                "or failure to pay past invoices."}}),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body"), SPENT)
async def test_a_spent_balance_is_told_at_once(
    upstream: Upstream, listener: Listener, status: int, body: dict[str, Any] | str
) -> None:
    upstream.plays(refuses(status, body))
    heard = await listener.ask()
    assert (heard.code, heard.waits, len(upstream.requests)) == ("rate_limited", [], 1)
    assert CREDIT in message(heard)


DAILY: list[tuple[str, dict[str, Any]]] = [
    (GOOGLE, gemini_429(MINUTE, DAY, delay="21s")),
    (GOOGLE, gemini_429(DAY, delay=None)),
    (CHAT, {"error": {"message": "Tokens per day limit exceeded - too many tokens processed.",
                      "code": "token_quota_exceeded", "type": "too_many_tokens_error"}}),
    (CHAT, {"error": "you have reached your hourly usage limit, please upgrade to continue"}),
    (OPENROUTER, {"error": {"message": "Rate limit exceeded: free-models-per-day. Add 10 credits.",
                            "code": 429}}),
]  # fmt: skip


@pytest.mark.parametrize(("key", "body"), DAILY)
async def test_a_quota_of_the_day_is_not_waited_for(
    upstream: Upstream, listener: Listener, key: str, body: dict[str, Any]
) -> None:
    upstream.plays(refuses(429, body))
    heard = await listener.ask(key)
    assert (heard.code, heard.waits, len(upstream.requests)) == ("rate_limited", [], 1)
    assert (
        "says the quota of this key is used up for now. Add credit there, or use another model."
        in message(heard)
    )


async def test_a_model_without_any_quota_is_told_so(upstream: Upstream, listener: Listener) -> None:
    more = (
        "\n* Quota exceeded for metric: generate_content_free_tier_requests, limit: 0, model: gemini-2.5-pro"
    )
    upstream.plays(refuses(429, gemini_429(DAY, MINUTE, more=more)))
    heard = await listener.ask(GOOGLE)
    assert message(heard) == "Google gives this key no quota for gemini-2.5-pro. Use another model."
    assert heard.waits == []


# --- a wait that is too long -------------------------------------------------------------------------------


TOO_LONG: list[tuple[int, dict[str, Any], dict[str, str], float]] = [
    (429, {}, {"retry_after": "61"}, 61),
    (429, {}, {"x_ratelimit_reset_tokens": "6m0s", "x_ratelimit_remaining_tokens": "0"}, 360),
    (429, {}, {"retry_after_ms": "90000"}, 90),
    (429, gemini_429(MINUTE, delay="120s"), {}, 120),
    (429, groq_429(f"{TPD} Please try again in 7m12.5s."), {}, 432.5),
    (429, groq_429(f"{RPM} Please try again in 1h2m3s."), {}, 3723),
    (503, {}, {"retry_after": "600"}, 600),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "headers", "seconds"), TOO_LONG)
async def test_a_wait_longer_than_a_minute_is_told_at_once_with_its_end(
    upstream: Upstream,
    listener: Listener,
    status: int,
    body: dict[str, Any],
    headers: dict[str, str],
    seconds: float,
) -> None:
    upstream.plays(refuses(status, body, **headers))
    heard = await listener.ask()
    assert heard.fault is not None
    assert (heard.waits, len(upstream.requests), heard.fault.retry_after_s) == ([], 1, seconds)
    assert heard.fault.retry_at is not None
    assert f" It can be asked again at {clock(heard.fault.retry_at)}" in heard.fault.message


def clock(milliseconds: int) -> str:
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%H:%M} UTC"


IN_2096 = 4_000_000_000


@pytest.mark.parametrize(
    "headers",
    [
        {"x_ratelimit_reset": str(IN_2096)},
        {"x_ratelimit_reset": str(IN_2096 * 1000)},
        {"x_ratelimit_reset": "2096-10-02T07:06:40Z"},
        {"anthropic_ratelimit_requests_reset": "2096-10-02T07:06:40Z"},
        {"retry_after": "Tue, 02 Oct 2096 07:06:40 GMT"},
    ],
)
async def test_a_moment_is_told_as_it_was_named(
    upstream: Upstream, listener: Listener, headers: dict[str, str]
) -> None:
    upstream.plays(refuses(429, **headers))
    heard = await listener.ask()
    assert heard.fault is not None
    assert heard.fault.retry_at is not None
    assert abs(heard.fault.retry_at - IN_2096 * 1000) <= 1
    assert message(heard) == "OpenAI asked us to slow down. It can be asked again at 07:06 UTC on 2 October."


async def test_openrouter_says_inside_when_it_can_be_asked_again(
    upstream: Upstream, listener: Listener
) -> None:
    headers = {"X-RateLimit-Limit": "50", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": f"{IN_2096}000"}
    said = (
        "Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day"
    )
    upstream.plays(refuses(429, {"error": {"message": said, "code": 429, "metadata": {"headers": headers}}}))
    heard = await listener.ask(OPENROUTER)
    assert message(heard) == (
        "OpenRouter says the quota of this key is used up for now. "
        "It can be asked again at 07:06 UTC on 2 October."
    )


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("6m0s", 360), ("1.2s", 1.2), ("120ms", 0.12), ("1h2m3.5s", 3723.5), ("2m", 120), ("1d", 86_400),
        ("59.977s", 59.977), ("12", 12), (7, 7), (0.5, 0.5), ("1 minute and 5 seconds", 65),
        (str(NOW + 90), 90), (str((NOW + 90) * 1000), 90), 
        (f"{datetime.fromtimestamp(NOW + 60, UTC):%FT%TZ}", 60),
        ("0s", None), ("0", None), ("-3", None), ("", None), ("soon", None), ("nan", None), ("inf", None),
        (None, None), (True, None), ([], None), (str(NOW - 90), None), ("6 parsecs", None), ("9" * 400, None),
        ("9" * 18, None), (1e15, None), ("9" * 12 + "d", None),
    ],
)  # fmt: skip
def test_a_wait_is_read_however_it_is_written(value: object, seconds: float | None) -> None:
    read = rate_limits.seconds(value, NOW)
    assert read == (None if seconds is None else pytest.approx(seconds))


# --- more than a key has room for --------------------------------------------------------------------------


def groq_413(allowed: int, needed: int) -> dict[str, Any]:
    said = (
        "Request too large for model `openai/gpt-oss-120b` in organization `org_01` service tier `on_demand` "
        f"on tokens per minute (TPM): Limit {allowed}, Requested {needed}, please reduce your message size "
        "and try again. Need more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing"
    )
    return {"error": {"message": said, "type": "tokens", "code": "rate_limit_exceeded"}}


def whole(listener: Listener) -> Listener:
    listener.max_output_tokens = 32_768
    return listener


async def test_a_free_groq_key_is_asked_once_more_for_what_the_minute_has_room_for(
    upstream: Upstream, listener: Listener
) -> None:
    upstream.plays(refuses(413, groq_413(8_000, 8_320)), says("Here."))
    heard = await whole(listener).ask(GROQ)
    assert (heard.text, heard.waits) == ("Here.", [])
    assert [seen.body["max_completion_tokens"] for seen in upstream.requests] == [8_192, 8_192 - 320]


async def test_a_second_question_in_a_minute_takes_what_is_left_of_it(
    upstream: Upstream, listener: Listener
) -> None:
    """Less than its limit for a whole minute, and then less than that, without a wait."""
    left = groq_429(
        "tokens per minute (TPM): Limit 8000, Used 2000, Requested 8000. Please try again in 18s."
    )
    upstream.plays(refuses(413, groq_413(8_000, 8_400)), refuses(429, left), says("Here."))
    heard = await whole(listener).ask(GROQ)
    assert (heard.text, heard.waits) == ("Here.", [])
    assert [seen.body["max_completion_tokens"] for seen in upstream.requests] == [8_192, 7_792, 5_792]


@pytest.mark.parametrize("words", [
    "tokens per minute (TPM): Limit 8000, Used 7000, Requested 8000. Please try again in 18s.",
    "requests per minute (RPM): Limit 30, Used 30, Requested 1. Please try again in 18s.",
])  # fmt: skip
async def test_where_too_little_is_left_of_a_minute_its_end_is_waited_for(
    upstream: Upstream, listener: Listener, words: str
) -> None:
    upstream.plays(refuses(429, groq_429(words)), says("Here."))
    heard = await whole(listener).ask(GROQ)
    assert (heard.text, len(heard.waits)) == ("Here.", 1)
    assert [seen.body["max_completion_tokens"] for seen in upstream.requests] == [8_192, 8_192]


async def test_a_question_larger_than_a_minute_allows_is_a_rate_limit_in_numbers(
    upstream: Upstream, listener: Listener
) -> None:
    upstream.plays(refuses(413, groq_413(8_000, 24_192)))
    heard = await whole(listener).ask(GROQ)
    assert (heard.code, heard.waits, len(upstream.requests)) == ("rate_limited", [], 1)
    assert message(heard) == (
        "Groq lets this key use 8,000 tokens a minute, and this needs 24,192. "
        "Ask with less, or use another model."
    )


async def test_a_413_that_counts_against_the_minute_is_a_rate_limit_even_without_numbers(
    upstream: Upstream, listener: Listener
) -> None:
    refusal = {"error": {"message": "Request too large.", "type": "tokens", "code": "rate_limit_exceeded"}}
    upstream.plays(refuses(413, refusal), says("Here."))
    assert (await whole(listener).ask(GROQ)).text == "Here."
    assert upstream.last.body["max_completion_tokens"] == 2_048


async def test_a_response_that_failed_because_of_the_minute_is_a_rate_limit_in_numbers(
    upstream: Upstream, listener: Listener
) -> None:
    said = "Request too large for gpt-4o on tokens per min (TPM): Limit 1, Requested 30."
    failed = {
        "type": "response.failed",
        "response": {"error": {"code": "rate_limit_exceeded", "message": said}},
    }
    upstream.plays((Raw(b"data: " + json.dumps(failed).encode() + b"\n\n"), Bare()))
    heard = await listener.ask(RESPONSES)
    assert (heard.code, heard.waits) == ("rate_limited", [])
    assert "lets this key use 1 tokens a minute, and this needs 30" in message(heard)


def openrouter_402(afforded: int) -> dict[str, Any]:
    said = (
        "This request requires more credits, or fewer max_tokens. You requested up to 16384 tokens, but can "
        f"only afford {afforded}. To increase, visit https://openrouter.ai/settings/credits and upgrade to a "
        "paid account"
    )
    return {"error": {"message": said, "code": 402, "metadata": {"provider_name": None}}}


async def test_a_small_balance_is_asked_once_more_for_what_it_pays_for(
    upstream: Upstream, listener: Listener
) -> None:
    upstream.plays(refuses(402, openrouter_402(3_919)), says("Here."))
    heard = await whole(listener).ask(OPENROUTER)
    assert (heard.text, heard.waits) == ("Here.", [])
    assert [seen.body["max_tokens"] for seen in upstream.requests] == [16_384, 3_919]


async def test_an_answer_cut_by_the_balance_says_so(upstream: Upstream, listener: Listener) -> None:
    upstream.plays(refuses(402, openrouter_402(40)), says("Half a thou", finish="length"))
    heard = await whole(listener).ask(OPENROUTER)
    assert heard.end is not None
    assert (heard.text, heard.end.finish) == ("Half a thou", "length")
    assert "can only afford 40" in (heard.end.reason or "")


async def test_a_balance_that_pays_for_less_and_less_is_asked_only_once_more(
    upstream: Upstream, listener: Listener
) -> None:
    upstream.plays(refuses(402, openrouter_402(3_919)), refuses(402, openrouter_402(3_000)), says("Never."))
    heard = await whole(listener).ask(OPENROUTER)
    assert (heard.code, heard.text, heard.waits, len(upstream.requests)) == ("rate_limited", "", [], 2)
    assert CREDIT in message(heard)


async def test_a_balance_of_nothing_is_not_asked_again(upstream: Upstream, listener: Listener) -> None:
    upstream.plays(refuses(402, openrouter_402(0)), says("Never."))
    heard = await whole(listener).ask(OPENROUTER)
    assert (len(upstream.requests), CREDIT in message(heard)) == (1, True)


async def test_a_gateway_of_ones_own_is_told_what_the_balance_pays_for(
    upstream: Upstream, new_listener: NewListener
) -> None:
    row = {"name": "Mine", "base_url": f"{upstream.url}/v1", "key": "k", "models": ["blend"]}
    upstream.plays(refuses(402, openrouter_402(700)), says("Here."))
    heard = await whole(new_listener(TERTULIA_ENDPOINTS=json.dumps([row]))).ask("mine:blend")
    assert (heard.text, upstream.last.body["max_tokens"]) == ("Here.", 700)


async def test_trouble_of_the_smaller_request_is_waited_out_like_any_other(
    upstream: Upstream, listener: Listener
) -> None:
    upstream.plays(
        refuses(402, openrouter_402(900)), refuses(503), refuses(402, openrouter_402(900)), says("Here.")
    )
    heard = await whole(listener).ask(OPENROUTER)
    assert (heard.text, len(heard.waits)) == ("Here.", 1)


async def test_a_rate_limit_told_inside_a_success_is_a_rate_limit(
    upstream: Upstream, listener: Listener
) -> None:
    body = json.dumps(groq_429("tokens per minute (TPM): Please try again in 5.4s.")).encode()
    upstream.plays((Head(200, {"Content-Type": "application/json"}), Raw(body), Bare()), says("Now."))
    heard = await listener.ask(GROQ)
    assert heard.text == "Now."
    assert 5.4 <= heard.waits[0].seconds < 6
