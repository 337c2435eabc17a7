"""Rate limits: short waits are sat out, a used up balance fails at once, long waits name their end."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tertulia.providers import rate_limits
from tests.providers.conftest import CHAT, EVERY_DIALECT, GOOGLE, RESPONSES, Caller, NewCaller, Reply
from tests.upstream.scripted import Bare, Head, Raw, Upstream, refuses, says

GROQ = "groq:openai/gpt-oss-120b"
OPENROUTER = "openrouter:openai/gpt-6.1-sol"
OUT_OF_CREDIT = "says the credit of this key is used up."
NOW = 1_790_000_000.0


def message(reply: Reply) -> str:
    assert reply.error is not None
    return reply.error.message


def gemini_429(*quotas: str, delay: Any = "34.4s", more: str = "") -> dict[str, Any]:
    text = f"You exceeded your current quota, please check your plan and billing details.{more}"
    quota_failure = {
        "@type": "type.googleapis.com/google.rpc.QuotaFailure",
        "violations": [{"quotaId": quota} for quota in quotas],
    }
    retry_info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}
    details = [quota_failure, *([retry_info] if delay else [])]
    return {"error": {"code": 429, "message": text, "status": "RESOURCE_EXHAUSTED", "details": details}}


def groq_429(limit_text: str, kind: str = "tokens") -> dict[str, Any]:
    text = (
        "Rate limit reached for model `openai/gpt-oss-120b` in organization `org_01` service tier "
        f"`on_demand` on {limit_text} Need more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing"
    )
    return {"error": {"message": text, "type": kind, "code": "rate_limit_exceeded"}}


PER_MINUTE = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"
PER_DAY = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
OPENAI_TPM = (
    "Rate limit reached for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Used 29000, "
    "Requested 2000. Please try again in 1.2s. Visit https://platform.openai.com/account/rate-limits to "
    "learn more. You can increase your rate limit by adding a payment method to your account at "
    "https://platform.openai.com/account/billing."
)
TOKENS_PER_MINUTE = "tokens per minute (TPM): Limit 8000, Used 7900, Requested 820."
REQUESTS_PER_MINUTE = "requests per minute (RPM): Limit 30, Used 30, Requested 1."
TOKENS_PER_DAY = "tokens per day (TPD): Limit 100000, Used 99000, Requested 2000."
WAITS: list[tuple[str, dict[str, Any], dict[str, str], float]] = [
    (GOOGLE, gemini_429(PER_MINUTE), {}, 34.4),
    (GOOGLE, gemini_429(PER_MINUTE, delay={"seconds": "12"}), {}, 12),
    (GOOGLE, gemini_429(PER_MINUTE, delay="48s", more="\nPlease retry in 48.939935699s."), {}, 48.939935699),
    (GROQ, groq_429(f"{TOKENS_PER_MINUTE} Please try again in 5.4s."), {}, 5.4),
    (GROQ, groq_429(f"{REQUESTS_PER_MINUTE} Please try again in 120ms."), {}, 0.12),
    (GROQ, groq_429(TOKENS_PER_MINUTE), {"retry_after": "3"}, 3),
    (GROQ, groq_429("tokens per day (TPD): Limit 2000, Used 1950, Requested 150. Please try again in 43s."),
     {}, 43),
    (CHAT, {"error": {"message": "Rate limit reached. To raise your spending limit, add more credits to your "
                                 "account balance."}}, {"retry_after": "9"}, 9),
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
async def test_a_rate_limited_call_is_retried_after_the_wait_the_provider_names(
    upstream: Upstream,
    caller: Caller,
    key: str,
    body: dict[str, Any],
    headers: dict[str, str],
    seconds: float,
) -> None:
    upstream.plays(refuses(429, body, **headers), says("Now."))
    reply = await caller.ask(key)
    assert reply.text == "Now."
    (retry,) = reply.retries
    assert seconds <= retry.seconds <= min(60, seconds * 1.1)
    assert "asked us to slow down" in retry.reason


async def test_groqs_status_498_for_missing_capacity_is_retried(upstream: Upstream, caller: Caller) -> None:
    """Groq sends status 498 for its flexible tier."""
    full = {
        "message": "Flex tier capacity exceeded.",
        "type": "capacity_exceeded",
        "code": "capacity_exceeded",
    }
    upstream.plays(refuses(498, {"error": full}), says("Now."))
    assert (await caller.ask(GROQ)).text == "Now."


async def test_an_absurdly_long_wait_is_ignored(upstream: Upstream, caller: Caller) -> None:
    upstream.plays(refuses(429, retry_after="9" * 18), says("Now."))
    assert (await caller.ask()).text == "Now."


@pytest.mark.parametrize("key", EVERY_DIALECT)
async def test_a_rate_limit_that_mentions_billing_is_still_retried(
    upstream: Upstream, caller: Caller, key: str
) -> None:
    text = "You exceeded your current quota, please check your plan and billing details."
    upstream.plays(refuses(429, {"error": {"message": text, "status": "RESOURCE_EXHAUSTED"}}), says("Now."))
    assert (await caller.ask(key)).text == "Now."


BILLING_TEXT = "You exceeded your current quota, please check your plan and billing details."
USED_UP_BALANCES: list[tuple[int, dict[str, Any] | str]] = [
    (429, {"error": {"message": BILLING_TEXT, "type": "insufficient_quota", "code": "insufficient_quota"}}),
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
    (403, {"error": {"message": "The free tier of the model has been exhausted. To go on, use the paid tier.",
                     "code": "AllocationQuota.FreeTierOnly"}}),
    (429, {"error": {"message": "Your project has exceeded its monthly spending cap.",
                     "status": "RESOURCE_EXHAUSTED"}}),
    (429, {"error": {"message": "Your account balance is too low."}}),
    (412, {"error": {"message": "Account a is suspended, possibly due to reaching the monthly spending limit "
                                "or failure to pay past invoices."}}),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body"), USED_UP_BALANCES)
async def test_a_used_up_balance_fails_at_once(
    upstream: Upstream, caller: Caller, status: int, body: dict[str, Any] | str
) -> None:
    upstream.plays(refuses(status, body))
    reply = await caller.ask()
    assert (reply.code, reply.retries, len(upstream.requests)) == ("rate_limited", [], 1)
    assert OUT_OF_CREDIT in message(reply)


DAILY_QUOTAS: list[tuple[str, dict[str, Any]]] = [
    (GOOGLE, gemini_429(PER_MINUTE, PER_DAY, delay="21s")),
    (GOOGLE, gemini_429(PER_DAY, delay=None)),
    (CHAT, {"error": {"message": "Tokens per day limit exceeded - too many tokens processed.",
                      "code": "token_quota_exceeded", "type": "too_many_tokens_error"}}),
    (CHAT, {"error": "you have reached your hourly usage limit, please upgrade to continue"}),
    (CHAT, {"message": "You are using a Trial key, which is limited to 1000 API calls / month."}),
    (CHAT, {"error": {"code": "1308", "message": "Usage limit reached for 5 hour."}}),
    (CHAT, gemini_429("GenerateRequestsPerDay", delay="9s")),
    (OPENROUTER, {"error": {"message": "Rate limit exceeded: free-models-per-day. Add 10 credits.",
                            "code": 429}}),
]  # fmt: skip


@pytest.mark.parametrize(("key", "body"), DAILY_QUOTAS)
async def test_a_used_up_daily_quota_is_not_retried(
    upstream: Upstream, caller: Caller, key: str, body: dict[str, Any]
) -> None:
    upstream.plays(refuses(429, body))
    reply = await caller.ask(key)
    assert (reply.code, reply.retries, len(upstream.requests)) == ("rate_limited", [], 1)
    assert (
        "says the quota of this key is used up for now. Add credit there, or use another model."
        in message(reply)
    )


async def test_a_model_without_any_quota_is_named_in_the_message(upstream: Upstream, caller: Caller) -> None:
    more = (
        "\n* Quota exceeded for metric: generate_content_free_tier_requests, limit: 0, model: gemini-2.5-pro"
    )
    upstream.plays(refuses(429, gemini_429(PER_DAY, PER_MINUTE, more=more)))
    reply = await caller.ask(GOOGLE)
    assert message(reply) == "Google gives this key no quota for gemini-2.5-pro. Use another model."
    assert reply.retries == []


# --- waits that are too long -------------------------------------------------------------------------------


TOO_LONG: list[tuple[int, dict[str, Any], dict[str, str], float]] = [
    (429, {}, {"retry_after": "61"}, 61),
    (429, {}, {"x_ratelimit_reset_tokens": "6m0s", "x_ratelimit_remaining_tokens": "0"}, 360),
    (429, {}, {"retry_after_ms": "90000"}, 90),
    (429, gemini_429(PER_MINUTE, delay="120s"), {}, 120),
    (429, groq_429(f"{TOKENS_PER_DAY} Please try again in 7m12.5s."), {}, 432.5),
    (429, groq_429(f"{REQUESTS_PER_MINUTE} Please try again in 1h2m3s."), {}, 3723),
    (429, {"error": {"type": "usage_limit_reached", "message": "The usage limit has been reached",
                     "resets_in_seconds": 9000}}, {}, 9000),
    (503, {}, {"retry_after": "600"}, 600),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "headers", "seconds"), TOO_LONG)
async def test_a_wait_longer_than_a_minute_fails_at_once_and_names_its_end(
    upstream: Upstream,
    caller: Caller,
    status: int,
    body: dict[str, Any],
    headers: dict[str, str],
    seconds: float,
) -> None:
    upstream.plays(refuses(status, body, **headers))
    reply = await caller.ask()
    assert reply.error is not None
    assert (reply.retries, len(upstream.requests), reply.error.retry_after_s) == ([], 1, seconds)
    assert reply.error.retry_at is not None
    assert f" It can be asked again at {clock(reply.error.retry_at)}" in reply.error.message


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
async def test_a_reset_time_appears_in_the_message(
    upstream: Upstream, caller: Caller, headers: dict[str, str]
) -> None:
    upstream.plays(refuses(429, **headers))
    reply = await caller.ask()
    assert reply.error is not None
    assert reply.error.retry_at is not None
    assert abs(reply.error.retry_at - IN_2096 * 1000) <= 1
    assert message(reply) == "OpenAI asked us to slow down. It can be asked again at 07:06 UTC on 2 October."


async def test_openrouters_reset_time_inside_the_body_appears_in_the_message(
    upstream: Upstream, caller: Caller
) -> None:
    headers = {"X-RateLimit-Limit": "50", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": f"{IN_2096}000"}
    text = (
        "Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day"
    )
    upstream.plays(refuses(429, {"error": {"message": text, "code": 429, "metadata": {"headers": headers}}}))
    reply = await caller.ask(OPENROUTER)
    assert message(reply) == (
        "OpenRouter says the quota of this key is used up for now. "
        "It can be asked again at 07:06 UTC on 2 October."
    )


async def test_a_reset_time_inside_the_stream_appears_in_the_message(
    upstream: Upstream, caller: Caller
) -> None:
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": f"{IN_2096}000"}
    limited = {"error": {"message": "Rate limited.", "code": 429, "metadata": {"headers": headers}}}
    upstream.plays((Head(), Raw(b"data: " + json.dumps(limited).encode() + b"\n\n"), Bare()))
    reply = await caller.ask(OPENROUTER)
    assert (reply.retries, message(reply)) == (
        [],
        "OpenRouter asked us to slow down. It can be asked again at 07:06 UTC on 2 October.",
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
def test_waits_are_parsed_in_every_format(value: object, seconds: float | None) -> None:
    parsed = rate_limits.seconds(value, NOW)
    assert parsed == (None if seconds is None else pytest.approx(seconds))


# --- requests above a limit --------------------------------------------------------------------------------


def groq_413(allowed: int, needed: int) -> dict[str, Any]:
    text = (
        "Request too large for model `openai/gpt-oss-120b` in organization `org_01` service tier `on_demand` "
        f"on tokens per minute (TPM): Limit {allowed}, Requested {needed}, please reduce your message size "
        "and try again. Need more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing"
    )
    return {"error": {"message": text, "type": "tokens", "code": "rate_limit_exceeded"}}


def with_whole_output_limit(caller: Caller) -> Caller:
    caller.max_output_tokens = 32_768
    return caller


async def test_a_request_above_groqs_minute_limit_is_repeated_with_a_smaller_limit(
    upstream: Upstream, caller: Caller
) -> None:
    upstream.plays(refuses(413, groq_413(8_000, 8_320)), says("Here."))
    reply = await with_whole_output_limit(caller).ask(GROQ)
    assert (reply.text, reply.retries) == ("Here.", [])
    assert [request.body["max_completion_tokens"] for request in upstream.requests] == [8_192, 8_192 - 320]


async def test_a_second_call_in_the_same_minute_is_repeated_with_the_tokens_that_remain(
    upstream: Upstream, caller: Caller
) -> None:
    """The limit of a whole minute comes first, then the smaller rest, both without a wait."""
    minute_almost_used = groq_429(
        "tokens per minute (TPM): Limit 8000, Used 2000, Requested 8000. Please try again in 18s."
    )
    upstream.plays(refuses(413, groq_413(8_000, 8_400)), refuses(429, minute_almost_used), says("Here."))
    reply = await with_whole_output_limit(caller).ask(GROQ)
    assert (reply.text, reply.retries) == ("Here.", [])
    assert [request.body["max_completion_tokens"] for request in upstream.requests] == [8_192, 7_792, 5_792]


@pytest.mark.parametrize("limit_text", [
    "tokens per minute (TPM): Limit 8000, Used 7000, Requested 8000. Please try again in 18s.",
    "requests per minute (RPM): Limit 30, Used 30, Requested 1. Please try again in 18s.",
])  # fmt: skip
async def test_a_call_waits_for_the_next_minute_if_too_few_tokens_remain(
    upstream: Upstream, caller: Caller, limit_text: str
) -> None:
    upstream.plays(refuses(429, groq_429(limit_text)), says("Here."))
    reply = await with_whole_output_limit(caller).ask(GROQ)
    assert (reply.text, len(reply.retries)) == ("Here.", 1)
    assert [request.body["max_completion_tokens"] for request in upstream.requests] == [8_192, 8_192]


async def test_a_prompt_above_the_minute_limit_is_reported_with_both_figures(
    upstream: Upstream, caller: Caller
) -> None:
    upstream.plays(refuses(413, groq_413(8_000, 24_192)))
    reply = await with_whole_output_limit(caller).ask(GROQ)
    assert (reply.code, reply.retries, len(upstream.requests)) == ("rate_limited", [], 1)
    assert message(reply) == (
        "Groq lets this key use 8,000 tokens a minute, and this needs 24,192. "
        "Ask with less, or use another model."
    )


async def test_groqs_413_without_figures_is_repeated_with_a_small_limit(
    upstream: Upstream, caller: Caller
) -> None:
    refusal = {"error": {"message": "Request too large.", "type": "tokens", "code": "rate_limit_exceeded"}}
    upstream.plays(refuses(413, refusal), says("Here."))
    assert (await with_whole_output_limit(caller).ask(GROQ)).text == "Here."
    assert upstream.last.body["max_completion_tokens"] == 2_048


async def test_a_failed_response_above_the_minute_limit_is_reported_with_both_figures(
    upstream: Upstream, caller: Caller
) -> None:
    text = "Request too large for gpt-4o on tokens per min (TPM): Limit 1, Requested 30."
    event = {
        "type": "response.failed",
        "response": {"error": {"code": "rate_limit_exceeded", "message": text}},
    }
    upstream.plays((Raw(b"data: " + json.dumps(event).encode() + b"\n\n"), Bare()))
    reply = await caller.ask(RESPONSES)
    assert (reply.code, reply.retries) == ("rate_limited", [])
    assert "lets this key use 1 tokens a minute, and this needs 30" in message(reply)


def openrouter_402(tokens: int) -> dict[str, Any]:
    text = (
        "This request requires more credits, or fewer max_tokens. You requested up to 16384 tokens, but can "
        f"only afford {tokens}. To increase, visit https://openrouter.ai/settings/credits and upgrade to a "
        "paid account"
    )
    return {"error": {"message": text, "code": 402, "metadata": {"provider_name": None}}}


async def test_a_call_above_the_balance_is_repeated_with_the_affordable_limit(
    upstream: Upstream, caller: Caller
) -> None:
    upstream.plays(refuses(402, openrouter_402(3_919)), says("Here."))
    reply = await with_whole_output_limit(caller).ask(OPENROUTER)
    assert (reply.text, reply.retries) == ("Here.", [])
    assert [request.body["max_tokens"] for request in upstream.requests] == [16_384, 3_919]


async def test_a_reply_cut_by_the_balance_gives_the_reason(upstream: Upstream, caller: Caller) -> None:
    upstream.plays(refuses(402, openrouter_402(40)), says("Half a thou", finish="length"))
    reply = await with_whole_output_limit(caller).ask(OPENROUTER)
    assert reply.end is not None
    assert (reply.text, reply.end.finish) == ("Half a thou", "length")
    assert "can only afford 40" in (reply.end.reason or "")


async def test_a_call_above_the_balance_is_repeated_only_once(upstream: Upstream, caller: Caller) -> None:
    upstream.plays(refuses(402, openrouter_402(3_919)), refuses(402, openrouter_402(3_000)), says("Never."))
    reply = await with_whole_output_limit(caller).ask(OPENROUTER)
    assert (reply.code, reply.text, reply.retries, len(upstream.requests)) == ("rate_limited", "", [], 2)
    assert OUT_OF_CREDIT in message(reply)


async def test_a_balance_of_zero_is_not_retried(upstream: Upstream, caller: Caller) -> None:
    upstream.plays(refuses(402, openrouter_402(0)), says("Never."))
    reply = await with_whole_output_limit(caller).ask(OPENROUTER)
    assert (len(upstream.requests), OUT_OF_CREDIT in message(reply)) == (1, True)


async def test_a_custom_gateway_receives_the_affordable_limit(
    upstream: Upstream, new_caller: NewCaller
) -> None:
    row = {"name": "Mine", "base_url": f"{upstream.url}/v1", "key": "k", "models": ["blend"]}
    upstream.plays(refuses(402, openrouter_402(700)), says("Here."))
    reply = await with_whole_output_limit(new_caller(TERTULIA_ENDPOINTS=json.dumps([row]))).ask("mine:blend")
    assert (reply.text, upstream.last.body["max_tokens"]) == ("Here.", 700)


async def test_an_outage_during_the_repeat_with_a_smaller_limit_is_retried(
    upstream: Upstream, caller: Caller
) -> None:
    upstream.plays(
        refuses(402, openrouter_402(900)), refuses(503), refuses(402, openrouter_402(900)), says("Here.")
    )
    reply = await with_whole_output_limit(caller).ask(OPENROUTER)
    assert (reply.text, len(reply.retries)) == ("Here.", 1)


async def test_a_rate_limit_error_inside_a_success_response_is_retried(
    upstream: Upstream, caller: Caller
) -> None:
    body = json.dumps(groq_429("tokens per minute (TPM): Please try again in 5.4s.")).encode()
    upstream.plays((Head(200, {"Content-Type": "application/json"}), Raw(body), Bare()), says("Now."))
    reply = await caller.ask(GROQ)
    assert reply.text == "Now."
    assert 5.4 <= reply.retries[0].seconds < 6
