"""Error patterns: regular expressions that classify the error messages of all providers."""

from __future__ import annotations

import re

TOO_LONG = re.compile(
    r"context[ _-]?(?:length|size|window|limit)|max(?:imum)? (?:context|prompt)|exceed_context_size"
    r"|prompt (?:is )?too long|too many tokens|input token count|input (?:is )?too (?:long|large)"
    r"|reduce the length|string_above_max_length|tokens? > \d+ maximum|range of input length"
    r"|too large for model|max_new_tokens. must be <=",
    re.IGNORECASE,
)
FILTERED = re.compile(
    r"content[ _]?filter|content_policy|content management policy|moderation|safety system|bio_policy"
    r"|misalignment_policy|violat\w+ (?:our |the )?usage (?:polic|guideline)|SAFETY_CHECK|ResponsibleAIPolicy"
    r"|data_?inspection_?failed|content exists risk|unsafe or sensitive content"
    r"|(?:prompt|input|request|content) (?:was |is |has been )?(?:flagged|blocked)",
    re.IGNORECASE,
)
BAD_KEY = re.compile(
    r"api[ _-]key(?: provided)?(?: is)? (?:not valid|invalid|expired|revoked|disabled|missing|not found)"
    r"|api[ _-]key[^.]{0,40}? is (?:currently )?(?:not valid|invalid|expired|disabled|blocked)"
    r"|(?:invalid|incorrect|expired|revoked|missing|no)[ _](?:x-)?api[ _-]key|API_KEY_INVALID"
    r"|api key was reported as leaked|authentication_error|didn.t provide an api key",
    re.IGNORECASE,
)
TOO_MANY_BYTES = re.compile(
    r"payload size exceeds|request_too_large|request (?:body )?(?:is )?too large(?! for model)"
    r"|exceeds the maximum (?:request )?size|maximum allowed number of bytes",
    re.IGNORECASE,
)
NO_SUCH_MODEL = re.compile(
    r"model_not_(?:found|supported)|invalid_model|model_decommissioned|unknown[ _]model|no such model"
    r"|not a valid model|invalid model\b|supported (?:api )?model names are"
    r"|\bmodel\b[^.\n]{0,120}?\b(?:does not exist|not found|not exist|is not available"
    r"|has been (?:decommissioned|deprecated|retired|removed|shut down)|is deprecated"
    r"|is no longer (?:available|supported))"
    r"|requested model[^.\n]{0,100}? is not supported"
    r"|(?:does not|doesn.t|not) have access to (?:the )?(?:requested )?model",
    re.IGNORECASE,
)
NO_PICTURES = re.compile(
    r"image(?:_url| input|s)? (?:is|are) not supported|image_url.{1,3}is only supported"
    r"|(?:does not|doesn.t|do not|not) support (?:\w+ )?(?:image|vision|multimodal|picture)"
    r"|that support image input|not a multimodal model|unknown variant .{0,2}image_url"
    r"|at most 0 image|missing data required for image input|\bmmproj\b",
    re.IGNORECASE,
)
NO_MEMORY = re.compile(r"more system memory|out of memory|not enough memory", re.IGNORECASE)
"""Local servers send status 500 if a model does not fit into the machine. Smaller ones still do."""
NO_REGION = re.compile(
    r"unsupported_country|country, region|location is not supported"
    r"|not (?:available|supported) in your (?:country|region|location)",
    re.IGNORECASE,
)
NO_SCOPE = re.compile(
    r"insufficient permissions|missing scopes?|not allowed to access|can only access models", re.IGNORECASE
)
NO_ADDRESS = re.compile(r"\A(?:resource |page |404 page )?not found\b", re.IGNORECASE)

_FIGURE = r"(\d{1,3}(?:,\d{3})+|\d{3,9})"
_WINDOW = re.compile(
    r"(?:context (?:length|size|window)|maximum (?:context|prompt) length|maximum number of tokens allowed"
    r"|n_ctx|context_length|must be <=|configured limit of|while limit is|input length should be \[1,)"
    rf"\D{{0,24}}?{_FIGURE}(?![\w-])|> {_FIGURE} maximum"
    rf"|context limit: [\d,+ ]+> {_FIGURE}"
    rf"|{_FIGURE} maximum context",
    re.IGNORECASE,
)
_OVER_BY = re.compile(rf"\bby {_FIGURE} tokens", re.IGNORECASE)
_TOKENS = re.compile(rf"(?<![\w.-]){_FIGURE}(?![\w-]|\.\d)")
_OUTPUT_LIMIT = re.compile(
    r"max_(?:completion_|output_|new_)?tokens\W{0,4}"
    r"(?:(?:must|should) be (?:less than or equal to|at most)|\d[\d,]* >"
    r"|is too large: \d[\d,]*\. This model supports at most"
    rf"|value, the valid range of max_tokens is \[1,)\W{{0,4}}{_FIGURE}",
    re.IGNORECASE,
)


def output_limit(text: str) -> int | None:
    """The largest output limit that the model takes, if the request named a larger one."""
    match = _OUTPUT_LIMIT.search(text)
    return _figure(match[1]) if match else None


def sizes(text: str, known_window: int) -> tuple[int, int]:
    """The model's window, and the largest token figure in the message, which is the size of the whole
    request."""
    match = _WINDOW.search(text)
    window = _figure(next(group for group in match.groups() if group)) if match else known_window
    without_excess = _OVER_BY.sub("", text)
    return window, max((_figure(figure) for figure in _TOKENS.findall(without_excess)), default=0)


def over_by(text: str) -> int | None:
    """How many tokens too long the request is, for messages that name only the excess."""
    match = _OVER_BY.search(text)
    return _figure(match[1]) if match else None


def _figure(text: str) -> int:
    return int(text.replace(",", ""))
