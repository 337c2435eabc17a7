"""Receipt reasons: replaces the English sentences in stored receipts by enum values and structured locations.

Earlier receipts have no structured location: it is read from the name that people saw, or, if the receipt is
older than these names, from the beginning of the text. A sentence that is not known becomes the note of the
reason `other`. Also drops two columns that nothing read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from alembic import op
from sqlalchemy import Connection, text

revision = "0016"
down_revision = "0015"

Json = dict[str, Any]


def upgrade() -> None:
    connection = op.get_bind()
    for conversation in connection.execute(_CONVERSATIONS).all():
        _convert_conversation(connection, conversation.conversation_id)
    op.execute("ALTER TABLE receipts DROP COLUMN cached_tokens")
    op.execute("ALTER TABLE conversations DROP COLUMN context_state")


def _convert_conversation(connection: Connection, conversation_id: str) -> None:
    texts = {
        row.hash: row.beginning
        for row in connection.execute(_BEGINNINGS, {"conversation_id": conversation_id})
    }
    for receipt in connection.execute(_MESSAGES, {"conversation_id": conversation_id}).all():
        _convert_receipt(connection, receipt.message_id, texts)


def _convert_receipt(connection: Connection, message_id: str, texts: Mapping[str, str]) -> None:
    row = connection.execute(_RECEIPT, {"message_id": message_id}).one()
    segments = converted_segments(json.loads(row.segments), texts)
    left_out = [converted_left_out(item) for item in json.loads(row.left_out)]
    values = {"segments": _as_json(segments), "left_out": _as_json(left_out)}
    connection.execute(_UPDATE, {"message_id": message_id, **values})


_CONVERSATIONS = text("SELECT DISTINCT conversation_id FROM receipts")

_BEGINNINGS = text("""
    SELECT hash, SUBSTR(text, 1, 1000) AS beginning FROM segments WHERE conversation_id = :conversation_id
""")

_MESSAGES = text("SELECT message_id FROM receipts WHERE conversation_id = :conversation_id")

_RECEIPT = text("SELECT segments, left_out FROM receipts WHERE message_id = :message_id")

_UPDATE = text(
    "UPDATE receipts SET segments = :segments, left_out = :left_out WHERE message_id = :message_id"
)


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# ── segments


def converted_segments(segments: Iterable[Json], texts: Mapping[str, str]) -> list[Json]:
    """The segments of one receipt in the new form. `texts` has the beginning of each text by its hash."""
    converted = []
    rounds_with_question: set[int | None] = set()
    for segment in segments:
        is_message = segment["layer"] == "rounds" and segment["reason"] == "recent"
        is_question = is_message and segment.get("round_number") not in rounds_with_question
        if is_question:
            rounds_with_question.add(segment.get("round_number"))
        name, beginning = segment.get("name") or "", texts.get(segment["text"], "")
        location = _place(segment, name or ("" if is_question else _name_in(segment, beginning)))
        kept = {key: value for key, value in segment.items() if key not in ("name", "reason")}
        converted.append({**kept, **_reason_fields(segment), "location": location})
    return converted


def _reason_fields(segment: Json) -> Json:
    reason, layer = segment["reason"], segment["layer"]
    if layer == "retrieved" and segment.get("source_id") is not None:
        return {"reason": "retrieved", "match": _match(reason)}
    if reason.startswith(_TASK) and (step := reason.removeprefix(_TASK)) in _STEPS:
        return {"reason": "task", "step": step}
    if known := _SEGMENT_REASONS.get(reason):
        return {"reason": known}
    return {"reason": "other", "note": reason}


_TASK = "what to do: "
_STEPS = ("answer", "rebuttal", "critique", "review", "synthesis", "outline", "summary")

_SEGMENT_REASONS = {
    "who answers, and how the conversation works": "introduction",
    "who it is and how the table talks": "introduction",
    "the project": "project",
    "the project's instructions": "project_instructions",
    "what this provider's models can do": "provider_advice",
    "the project's files": "file_list",
    "the project's files, as many as fit": "partial_file_list",
    "how to cite": "how_to_cite",
    "the persona's instructions": "persona_instructions",
    "always included": "always_included",
    "recent": "recent",
    "attached": "attached",
    "attached, not shown": "attached_not_shown",
    "replied to": "replied_to",
    "quoted": "quoted",
    "what follows": "search_introduction",
    "where we are": "round_note",
    "asked now": "asked_now",
    "said in this round": "same_round",
    "how to differ": "style",
    "to be continued": "reply_so_far",
    "how to go on": "continue",
    "brought back": "branch_round",
    "what is missing": "branch_gap",
}


def _match(reason: str) -> Json:
    """The match quality: "strong match · 3 of 4 words", or in older receipts "hit 0.83: 3 of 4 words"."""
    if match := re.fullmatch(r"(strong match|match|weak match)(?: · (.*))?", reason, re.DOTALL):
        return {"strength": match[1].removesuffix(" match"), "score": None, "why": match[2] or ""}
    if match := re.fullmatch(r"hit (\d+(?:\.\d+)?)(?:: (.*))?", reason, re.DOTALL):
        return {"strength": None, "score": float(match[1]), "why": match[2] or ""}
    return {"strength": None, "score": None, "why": reason}


def _name_in(segment: Json, beginning: str) -> str:
    """The name that a receipt of today would have, read from the text."""
    layer = segment["layer"]
    if layer == "always":
        return _first_group(r"The file (.+), whole", beginning)
    if layer == "retrieved" and segment.get("round_number") is None:
        if found := re.match(r'From the conversation "(.*)", round (\d+)', beginning):
            return f"{found[1]}, round {found[2]}" if found[1] else f"round {found[2]}"
        if found := re.match(r"From (.+), lines (\d+) to (\d+):", beginning):
            return f"{found[1]}:{found[2]}-{found[3]}"
        return _first_group(r"[^\n]*\[([^\[\]\n]+:\d+(?:-\d+)?)\]", beginning)
    if layer == "rounds" and segment["reason"] == "recent" and segment["role"] == "user":
        return _first_group(r"\[([^\]]{1,80})\]: ", beginning)
    return ""


def _first_group(pattern: str, beginning: str) -> str:
    found = re.match(pattern, beginning)
    return found[1] if found else ""


# ── what was left out


def converted_left_out(item: Json) -> Json:
    kept = {key: value for key, value in item.items() if key not in ("name", "reason")}
    name = item.get("name") or ""
    return {**kept, **_left_out_fields(item), **_reference(name), "location": _place(item, name)}


def _left_out_fields(item: Json) -> Json:
    reason = item["reason"]
    if found := re.fullmatch(r"the first (\d+) rounds are outside the window", reason):
        return {"reason": "outside_window", "round_number": int(found[1])}
    if found := re.fullmatch(r"not among the (\d+) best", reason):
        return {"reason": "not_among_best", "limit": int(found[1])}
    for beginning, visibility in _VISIBILITIES.items():
        if reason.startswith(beginning):
            return {"reason": visibility}
    if known := _LEFT_OUT_REASONS.get(reason):
        return {"reason": known}
    return {"reason": "other", "note": reason}


_VISIBILITIES = {
    "visibility own lane": "hidden_by_own_lane",
    "visibility “Each sees only you”": "hidden_by_own_lane",
    "visibility chosen": "hidden_by_chosen",
    "visibility “Only best replies”": "hidden_by_chosen",
}

_LEFT_OUT_REASONS = {
    "taken out before it was asked again": "removed_by_user",
    "over the budget": "over_budget",
    "left out with the rounds before it, so that the provider's cache stays valid for longer": (
        "with_older_rounds"
    ),
    "let go with the rounds before it, so that the prompt begins alike for longer": "with_older_rounds",
    "this model cannot see images": "no_vision",
    "it holds no text": "no_text",
    "it could not be read": "unreadable",
    "over the limit for search results": "over_search_share",
    "over the share of search results": "over_search_share",
    "over the share of what is looked up": "over_search_share",
    "it failed, so nothing was searched": "search_failed",
    "it failed, so nothing was looked up": "search_failed",
    "the search failed, so nothing was looked up": "search_failed",
    "not searched: search is off for this project": "search_off",
    "not searched: the project's set-up has search off": "search_off",
    "not searched: files are off for this question": "files_not_searched",
    "not searched: other conversations are off for this question": "conversations_not_searched",
}


def _reference(name: str) -> Json:
    """The kind of a reference, from a name such as "what round 2 replies to"."""
    found = re.fullmatch(r"what round \d+ (replies to|quotes)", name)
    return {"reference": _REFERENCES[found[1]]} if found else {}


_REFERENCES = {"replies to": "replied_to", "quotes": "quoted"}


# ── locations


def _place(item: Json, name: str) -> Json | None:
    """The structured location, from the name that people saw."""
    if not name:
        return None
    if item["layer"] == "always":
        return {"path": name}
    if item["layer"] == "system":
        return {"speaker": name}
    if item["layer"] == "retrieved":
        return _place_of_result(item, name)
    if item["reason"] in ("recent", "brought back"):
        return {"speaker": name}
    return _place_in_round(item, name)


def _place_of_result(item: Json, name: str) -> Json | None:
    """None for a round of the same conversation, and for a search that was left out altogether."""
    if item.get("round_number") is not None or item.get("source_id") is None:
        return None
    if found := re.fullmatch(r"(.+):(\d+)(?:-(\d+))?", name, re.DOTALL):
        return {"path": found[1], "start_line": int(found[2]), "end_line": int(found[3] or found[2])}
    if found := re.fullmatch(r"(?:(.*), )?round (\d+)", name, re.DOTALL):
        return {"conversation_title": found[1] or "", "round_number": int(found[2])}
    return {"path": name}


def _place_in_round(item: Json, name: str) -> Json | None:
    """A reply's speaker or an attachment's name; None for a whole round and for a reference."""
    if item.get("source_id") is None or _reference(name):
        return None
    if reply := re.fullmatch(rf"round {item.get('round_number')}, (.+)", name, re.DOTALL):
        return {"speaker": reply[1]}
    return {"file_name": name}
