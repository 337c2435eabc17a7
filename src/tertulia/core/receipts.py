"""Receipts: the segments of a prompt, the reason for each, and the parts left out. The request can be
rebuilt from a receipt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from typing import Literal

from tertulia.core.chunks import Match
from tertulia.core.messages import Step
from tertulia.core.prompts import Picture
from tertulia.core.thinking import Effort


class Layer(StrEnum):
    SYSTEM = "system"
    ALWAYS = "always"
    ROUNDS = "rounds"
    RETRIEVED = "retrieved"
    TOOLS = "tools"
    QUESTION = "question"


class SegmentReason(StrEnum):
    """Why a segment is in the prompt. The web writes the words: web/src/lib/format/reasons.ts."""

    INTRODUCTION = "introduction"
    """The voice's name, and how the conversation works."""
    PROJECT = "project"
    PROJECT_INSTRUCTIONS = "project_instructions"
    PROVIDER_ADVICE = "provider_advice"
    """Advice on the abilities of the models of this provider."""
    FILE_LIST = "file_list"
    PARTIAL_FILE_LIST = "partial_file_list"
    """The list of the project's files, as many as fit."""
    HOW_TO_CITE = "how_to_cite"
    PERSONA_INSTRUCTIONS = "persona_instructions"
    ALWAYS_INCLUDED = "always_included"
    RECENT = "recent"
    """A message of an earlier round in the window."""
    ATTACHED = "attached"
    ATTACHED_NOT_SHOWN = "attached_not_shown"
    """A note in place of an attachment that the model cannot be shown."""
    REPLIED_TO = "replied_to"
    QUOTED = "quoted"
    SEARCH_INTRODUCTION = "search_introduction"
    """The line above the search results."""
    RETRIEVED = "retrieved"
    ROUND_NOTE = "round_note"
    """The round's number and the conversation's title."""
    ASKED_NOW = "asked_now"
    SAME_ROUND = "same_round"
    """A reply of the round that is being answered."""
    TASK = "task"
    """The instructions of the segment's step."""
    STYLE = "style"
    """The request for a shorter or longer reply."""
    REPLY_SO_FAR = "reply_so_far"
    CONTINUE = "continue"
    """The request to continue the reply so far."""
    BRANCH_ROUND = "branch_round"
    """A message of the branch that the reply summarises."""
    BRANCH_GAP = "branch_gap"
    """A note in place of the branch's rounds that did not fit."""
    OTHER = "other"
    """A reason of an earlier version, in words: see the segment's note."""


class LeftOutReason(StrEnum):
    """Why something is not in the prompt. The web writes the words: web/src/lib/format/reasons.ts."""

    REMOVED_BY_USER = "removed_by_user"
    """A person removed it and asked again."""
    OVER_BUDGET = "over_budget"
    WITH_OLDER_ROUNDS = "with_older_rounds"
    """Left out with the rounds before it, so that the provider's cache stays valid for longer."""
    OUTSIDE_WINDOW = "outside_window"
    """The rounds up to this one are outside the window."""
    HIDDEN_BY_OWN_LANE = "hidden_by_own_lane"
    """By the visibility "own lane": it is a reply of another voice."""
    HIDDEN_BY_CHOSEN = "hidden_by_chosen"
    """By the visibility "chosen": another reply of this round was marked best."""
    NO_VISION = "no_vision"
    """The model cannot see images."""
    IMAGE_BYTES = "image_bytes"
    """The image has more bytes than the limit."""
    IMAGE_SIDE = "image_side"
    """The image has more pixels a side than the limit."""
    NO_TEXT = "no_text"
    UNREADABLE = "unreadable"
    """The text could not be extracted; the note says why."""
    NOT_AMONG_BEST = "not_among_best"
    """The prompt holds as many search results as the limit allows."""
    OVER_SEARCH_SHARE = "over_search_share"
    """The search results take as many tokens as they may."""
    SEARCH_OFF = "search_off"
    SEARCH_FAILED = "search_failed"
    FILES_NOT_SEARCHED = "files_not_searched"
    CONVERSATIONS_NOT_SEARCHED = "conversations_not_searched"
    OTHER = "other"
    """A reason of an earlier version, in words: see the note."""


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """The place a text is from, in names that people know. A round of the same conversation is not in here:
    it is the segment's round number."""

    path: str | None = None
    """A project file, with the lines if only some of them are meant."""
    start_line: int | None = None
    end_line: int | None = None
    file_name: str | None = None
    """An attachment."""
    conversation_title: str | None = None
    """Another conversation; empty if it has no title."""
    round_number: int | None = None
    """The round of the other conversation."""
    speaker: str | None = None
    """The person or voice that wrote the text, or whose persona has the instructions."""


@dataclass(frozen=True, slots=True)
class MatchQuality:
    """How well a search result fits the question."""

    strength: Match | None
    """None in receipts of earlier versions that recorded the score only."""
    score: float | None
    why: str
    """The search's own explanation, such as "3 of 4 words, close in meaning"; may be empty."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of the prompt; the segments keep the order of the prompt."""

    layer: Layer
    role: Literal["system", "user", "assistant"]
    text: str
    reason: SegmentReason
    tokens: int
    source_id: str | None = None
    """The message, file, attachment or chunk it came from."""
    round_number: int | None = None
    """The round of this conversation that it belongs to."""
    ends_cacheable: bool = False
    starts_message: bool = True
    """False if it joins the message of the segment before it."""
    picture: Picture | None = None
    """An image that is shown with the text."""
    location: SourceLocation | None = None
    match: MatchQuality | None = None
    """For search results."""
    step: Step | None = None
    """For the instructions of a step."""
    note: str = ""
    """The reason in words, if it is `other`."""

    def joined(self) -> Segment:
        """This segment as a part of the message before it. Written out instead of `replace`, because every
        prompt calls it for most segments."""
        return Segment(
            self.layer,
            self.role,
            self.text,
            self.reason,
            self.tokens,
            self.source_id,
            self.round_number,
            self.ends_cacheable,
            False,
            self.picture,
            self.location,
            self.match,
            self.step,
            self.note,
        )


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A part that is missing from the prompt."""

    layer: Layer
    reason: LeftOutReason
    tokens: int
    source_id: str | None = None
    round_number: int | None = None
    """The round of this conversation that it belongs to; for rounds outside the window the last of them."""
    location: SourceLocation | None = None
    reference: SegmentReason | None = None
    """`replied_to` or `quoted`, if it is the text that the question of its round refers to."""
    limit: int | None = None
    """The limit that the reason names: bytes, pixels a side, or search results."""
    note: str = ""
    """Why a file is unreadable, or the reason in words if it is `other`."""


@dataclass(frozen=True, slots=True)
class Receipt:
    model: str
    budget_tokens: int
    segments: tuple[Segment, ...]
    left_out: tuple[LeftOut, ...] = ()
    effort: Effort | None = None
    """The thinking effort of the request; None: the request named none."""
    cached_segments: int = 0
    """How many of the first segments came from the provider's cache, estimated from its token count."""

    @property
    def tokens(self) -> int:
        return sum(segment.tokens for segment in self.segments)


def cached_segments(segments: Sequence[Segment], cached_share: float) -> int:
    """How many leading segments the provider served from its cache, given the cached share of tokens."""
    sizes = accumulate(segment.tokens for segment in segments)
    reach = cached_share * sum(segment.tokens for segment in segments) * (1 + CACHE_TOLERANCE)
    return sum(end <= reach for end in sizes) if cached_share else 0


CACHE_TOLERANCE = 0.02
"""Allows for providers' own token counts, and for caches that store whole blocks only."""
