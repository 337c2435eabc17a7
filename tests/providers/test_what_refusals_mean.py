"""Error classification: each error response gives the right code and message, and is not taken
for an outage."""

import json
from typing import Any

import pytest

from tests.providers.conftest import CHAT, Caller, Reply
from tests.upstream.scripted import Bare, Head, Raw, Upstream, refuses, says


def error(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


def code_and_message(reply: Reply) -> tuple[str | None, str]:
    assert reply.error is not None
    return reply.code, reply.error.message


UNKNOWN = ("unavailable", "OpenAI does not offer gpt-4o to this key. Use another model.")
BAD_KEY = ("auth", "OpenAI refused the key. It may have been revoked.")
NOT_ALLOWED = ("auth", "OpenAI does not allow this request with this key.")
NO_PICTURES = ("unavailable", "GPT-4o cannot be shown pictures. Ask without them, or use another model.")
NO_REGION = ("unavailable", "OpenAI does not answer from the country this server is in. Use another model.")
DECLINED = ("filtered", "This model declined. Its safety filter stopped the reply.")
TOO_LARGE = (
    "context_length",
    "OpenAI does not take a request this large. Ask with less, or with smaller files.",
)
NOT_ACCEPTED = ("unavailable", "OpenAI did not accept the request.")

MEANINGS: list[tuple[int, Any, tuple[str, str]]] = [
    # An unknown model, with any status.
    (400, error("The requested model 'gpt-x' does not exist.", code="model_not_found"), UNKNOWN),
    (400, {"code": "invalid-argument", "error": "Model not found: grok-x"}, UNKNOWN),
    (400, {"object": "error", "message": "Invalid model: mistral-x", "type": "invalid_model"}, UNKNOWN),
    (400, error("openai/gpt-x is not a valid model ID", code=400), UNKNOWN),
    (400, error("The model `llama3-8b` has been decommissioned and is no longer supported.",
                code="model_decommissioned"), UNKNOWN),
    (400, error("The supported API model names are deepseek-v4-pro or …, but you passed x."), UNKNOWN),
    (404, error("The model `x` does not exist or you do not have access to it."), UNKNOWN),
    (404, error("model 'llama9' not found, try pulling it first"), UNKNOWN),
    (403, error("Project `proj_1` does not have access to model `gpt-x`", code="model_not_found"), UNKNOWN),
    (422, error("Unknown model: x"), UNKNOWN),
    (404, error("Resource not found", code="404"),
     ("unavailable", "OpenAI knows neither this address nor gpt-4o. Check its base URL.")),
    (404, "404 page not found",
     ("unavailable", "OpenAI knows neither this address nor gpt-4o. Check its base URL.")),
    # An invalid key.
    (400, {"code": "Client specified an invalid argument",
           "error": "Incorrect API key provided: xa***zz. You can obtain an API key from https://console.x.ai."},
     BAD_KEY),
    (400, error("API key not valid. Please pass a valid API key.", status="INVALID_ARGUMENT"), BAD_KEY),
    (401, error("Missing Authentication header", code=401), BAD_KEY),
    (403, {"code": "permission-denied", "error": "API key is currently disabled"}, BAD_KEY),
    (403, error("Your API key was reported as leaked. Please use another API key."), BAD_KEY),
    # Forbidden for other reasons.
    (403, error("The caller does not have permission", status="PERMISSION_DENIED"), NOT_ALLOWED),
    (403, error("Request not allowed", type="forbidden"), NOT_ALLOWED),
    (403, "<html><title>Forbidden</title></html>", NOT_ALLOWED),
    (401, error("You have insufficient permissions for this operation. Missing scopes: model.request."),
     ("auth", "This key may not use gpt-4o at OpenAI.")),
    (401, error("key not allowed to access model. This key can only access models=['a']."),
     ("auth", "This key may not use gpt-4o at OpenAI.")),
    (403, error("Country, region, or territory not supported"), NO_REGION),
    (403, error("Not here", code="unsupported_country_region_territory"), NO_REGION),
    (400, error("User location is not supported for the API use.", status="FAILED_PRECONDITION"), NO_REGION),
    (403, error("Your chosen model requires moderation and your input was flagged.", code=403), DECLINED),
    (403, {"code": "forbidden", "error": "Content violates usage guidelines. Failed check: SAFETY_CHECK_BIO"},
     DECLINED),
    (400, error("Content Exists Risk"), DECLINED),
    (400, error("Input data may contain inappropriate content.", code="data_inspection_failed"), DECLINED),
    (400, error("Output blocked by content filtering policy", type="invalid_request_error"), DECLINED),
    (400, error("System detected potentially unsafe or sensitive content in input or generation.",
                code="1301"), DECLINED),
    (400, error("Your prompt was flagged. Please try another one."), DECLINED),
    # Pictures.
    (500, error("image input is not supported - hint: you may need to provide the mmproj",
                code=500, type="server_error"), NO_PICTURES),
    (404, error("No endpoints found that support image input", code=404), NO_PICTURES),
    (400, error("unknown variant `image_url`, expected `text` at line 1 column 391"), NO_PICTURES),
    (400, error("This model does not support image input."), NO_PICTURES),
    (500, {"error": "model requires more system memory (5.5 GiB) than is available (3.0 GiB)"},
     ("unavailable", "OpenAI has too little memory for gpt-4o. Use another model.")),
    # Too many bytes; the server names no number of tokens.
    (413, error("Request exceeds the maximum allowed number of bytes.", type="request_too_large"), TOO_LARGE),
    (413, "<html><center><h1>413 Request Entity Too Large</h1></center></html>", TOO_LARGE),
    (400, error("Request payload size exceeds the limit: 20971520 bytes."), TOO_LARGE),
    # Similar words, but none of the errors above.
    (400, error("Unsupported parameter: 'stop' is not supported with this model."), NOT_ACCEPTED),
    (400, error("Previous response with id 'resp_1' not found.", param="previous_response_id"), NOT_ACCEPTED),
    (400, error("This model does not support effort level 'xhigh'."), NOT_ACCEPTED),
    (400, error("Error while downloading an image.", code="invalid_image_url"), NOT_ACCEPTED),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "meaning"), MEANINGS)
async def test_an_error_response_gives_the_right_code_and_message(
    upstream: Upstream, caller: Caller, status: int, body: Any, meaning: tuple[str, str]
) -> None:
    upstream.plays(refuses(status, body))
    reply = await caller.ask()
    assert code_and_message(reply) == meaning
    assert (reply.retries, len(upstream.requests)) == ([], 1)
    assert reply.error is not None
    assert not reply.error.is_outage


HELD = "GPT-4o holds {} tokens and this needs {}."
SIZES: list[tuple[str, str]] = [
    ("This model's maximum context length is 128000 tokens. However, you requested 131072 tokens (130048 in "
     "the messages, 1024 in the completion).", HELD.format("128,000", "131,072")),
    ("prompt is too long: 204411 tokens > 200000 maximum", HELD.format("200,000", "204,411")),
    ("request (2009 tokens) exceeds the available context size (512 tokens), try increasing it",
     HELD.format("512", "2,009")),
    ("The input token count (1250074) exceeds the maximum number of tokens allowed (1048576).",
     HELD.format("1,048,576", "1,250,074")),
    ("This model's maximum prompt length is 131072 but the request contains 200,123 tokens.",
     HELD.format("131,072", "200,123")),
    ("input length and `max_tokens` exceed context limit: 189152 + 21333 > 200000, decrease input length or "
     "`max_tokens` and try again", "This is too long for GPT-4o, which holds 200,000 tokens."),
    ("prompt too long; exceeded max context length by 1119046 tokens (ref: 96164522-08b2-4cbf-886e)",
     "This is 1,119,046 tokens too long for GPT-4o."),
    ("Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300001 tokens. "
     "Please reduce the length of the messages.", HELD.format("272,000", "300,001")),
    ("Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
     HELD.format("8,192", "9,000")),
    ("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]",
     "This is too long for GPT-4o, which holds 98,304 tokens."),
    ("Please reduce the length of the messages.", "This is too long for GPT-4o, which holds 128,000 tokens."),
]  # fmt: skip


@pytest.mark.parametrize(("provider_message", "sentence"), SIZES)
async def test_a_too_long_prompt_is_reported_with_the_providers_figures(
    upstream: Upstream, caller: Caller, provider_message: str, sentence: str
) -> None:
    upstream.plays(refuses(400, error(provider_message)))
    assert code_and_message(await caller.ask()) == ("context_length", sentence)


@pytest.mark.parametrize(
    ("raw", "detail"),
    [
        (
            "glm-5 is temporarily rate-limited upstream.",
            "BaseTen: glm-5 is temporarily rate-limited upstream. (429)",
        ),
        (json.dumps(error("Overloaded, sorry.")), "BaseTen: Overloaded, sorry. (429)"),
        (error("Overloaded, sorry."), "BaseTen: Overloaded, sorry. (429)"),
        ("", "Provider returned error (429)"),
        (None, "Provider returned error (429)"),
    ],
)
async def test_the_message_of_the_provider_behind_a_gateway_is_quoted(
    upstream: Upstream, caller: Caller, raw: Any, detail: str
) -> None:
    metadata = {"raw": raw, "provider_name": "BaseTen"}
    upstream.plays(refuses(429, error("Provider returned error", code=429, metadata=metadata)))
    reply = await caller.ask()
    assert reply.error is not None
    assert (reply.code, reply.error.detail) == ("rate_limited", detail)


async def test_the_message_of_the_provider_behind_a_gateway_decides_the_code(
    upstream: Upstream, caller: Caller
) -> None:
    raw = json.dumps(error("prompt is too long: 204411 tokens > 200000 maximum"))
    upstream.plays(refuses(400, error("Provider returned error", code=400, metadata={"raw": raw})))
    assert code_and_message(await caller.ask())[0] == "context_length"


@pytest.mark.parametrize("status", [429, 503])
async def test_the_status_inside_a_gateways_400_response_is_used(
    upstream: Upstream, caller: Caller, status: int
) -> None:
    upstream.plays(refuses(400, error("Later, please.", code=status)), says("Now."))
    assert (await caller.ask()).text == "Now."


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (
            400,
            {"__type": "ThrottlingException", "message": "Too many tokens, please wait before trying again."},
        ),
        (403, error("Rate Limit Exceeded", errors=[{"reason": "rateLimitExceeded"}])),
        (403, error("API rate limit exceeded for installation.")),
    ],
)
async def test_a_rate_limit_with_another_status_is_retried(
    upstream: Upstream, caller: Caller, status: int, body: Any
) -> None:
    upstream.plays(refuses(status, body), says("Now."))
    assert (await caller.ask()).text == "Now."


@pytest.mark.parametrize("status", [500, 502, 520])
async def test_a_server_error_is_reported_as_the_providers_trouble(
    upstream: Upstream, caller: Caller, status: int
) -> None:
    """The message does not mention charges, because they are unknown."""
    upstream.plays(refuses(status, error("Internal error")))
    assert code_and_message(await caller.ask()) == (
        "unavailable",
        "OpenAI is having trouble and did not answer.",
    )


@pytest.mark.parametrize("status", [503, 529])
async def test_an_overloaded_provider_is_reported_with_nothing_charged(
    upstream: Upstream, caller: Caller, status: int
) -> None:
    upstream.plays(refuses(status, error("Overloaded")))
    assert (
        code_and_message(await caller.ask())[1]
        == "OpenAI is having trouble and did not answer. Nothing was charged."
    )


@pytest.mark.parametrize(
    "invalid",
    [
        error("Unsupported value.", type="invalid_request_error", code="unsupported_value"),
        error("Use a valid role.", code=400, status="INVALID_ARGUMENT"),
    ],
)
async def test_an_invalid_request_reported_inside_the_stream_is_no_outage(
    upstream: Upstream, caller: Caller, invalid: dict[str, Any]
) -> None:
    upstream.plays((Head(), Raw(b"data: " + json.dumps(invalid).encode() + b"\n\n"), Bare()))
    reply = await caller.ask(CHAT)
    assert code_and_message(reply) == NOT_ACCEPTED
    assert (reply.retries, reply.error is not None and reply.error.is_outage) == ([], False)


@pytest.mark.parametrize(
    "body",
    [
        {"success": False, "errors": [{"code": 5006, "message": "Bad input."}]},
        {"Message": "Bad input."},
        {"error_message": "Bad input."},
    ],
)
async def test_the_providers_message_is_found_under_its_other_names(
    upstream: Upstream, caller: Caller, body: dict[str, Any]
) -> None:
    upstream.plays(refuses(400, body))
    reply = await caller.ask()
    assert reply.error is not None
    assert (reply.error.detail or "").startswith("Bad input.")


async def test_a_filter_error_in_the_middle_of_a_reply_has_code_filtered(
    upstream: Upstream, caller: Caller
) -> None:
    word = b'data: {"choices":[{"index":0,"delta":{"content":"Well,"}}]}\n\n'
    stop = b'data: {"error":{"code":"content_filter","message":"The response was filtered."}}\n\n'
    upstream.plays((Head(), Raw(word), Raw(stop), Bare()))
    reply = await caller.ask(CHAT)
    assert (reply.text, reply.code) == ("Well,", "filtered")
