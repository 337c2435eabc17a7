"""Messages: what was said, by whom, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tertulia.core.attachments import Attachment
from tertulia.core.findings import Findings
from tertulia.core.voices import Voice

QUOTES_LIMIT = 10
TEXT_LIMIT_BYTES = 1 << 20


class Role(StrEnum):
    USER = "user"
    ADVISOR = "advisor"
    CRITIC = "critic"
    SYNTHESIS = "synthesis"


class Step(StrEnum):
    """Where a reply stands in its round."""

    ANSWER = "answer"
    REBUTTAL = "rebuttal"
    CRITIQUE = "critique"
    REVIEW = "review"
    SYNTHESIS = "synthesis"
    OUTLINE = "outline"
    """The synthesis once more, in a form that can be drawn."""
    SUMMARY = "summary"
    """What a branch came to, told in the line it left."""


class Status(StrEnum):
    COMPLETE = "complete"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Usage:
    """What a reply took: tokens, money (None: price unknown) and time."""

    input_tokens: int
    cached_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost_micros: int | None
    latency_ms: int
    first_token_ms: int | None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a reply did not end well."""

    code: str
    """rate_limited, unavailable, auth, timeout_first_byte, timeout_idle, timeout_total, cut, malformed,
    too_large, context_length, filtered, length, empty, restarted or internal."""
    message: str
    detail: str | None = None
    """What the provider itself said, cleaned."""
    retry_at: int | None = None
    """When the provider can be asked again, where that is too long to wait for."""


@dataclass(frozen=True, slots=True)
class Thinking:
    text: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Quote:
    """Words of an earlier message that a question is about."""

    message_id: str
    text: str


@dataclass(frozen=True, slots=True)
class ReadReply:
    """A reply of the same round that a model was shown before it wrote its own, as that version was."""

    message_id: str
    seat: int
    name: str
    """Who wrote it."""
    label: str = ""
    """What it was shown under instead of the name, "Answer B"; empty where it was shown under the name."""


@dataclass(frozen=True, slots=True)
class Message:
    id: str
    conversation_id: str
    round_number: int
    turn_id: str
    speaker: str
    """"user" or "agent:<model-id>"."""
    role: Role
    content: str
    status: Status
    created_by: str
    created_at: int
    voice: Voice | None = None
    thinking: Thinking | None = None
    usage: Usage | None = None
    failure: Failure | None = None
    reply_to_id: str | None = None
    critique_of_id: str | None = None
    replaces_id: str | None = None
    """The earlier version of this reply, when it was retried or continued."""
    step: Step = Step.ANSWER
    findings: Findings | None = None
    quotes: tuple[Quote, ...] = ()
    brings_id: str | None = None
    """The branch that this round brings back."""
    attachments: tuple[Attachment, ...] = ()
    """Files the person brought along with it."""
    read_replies: tuple[ReadReply, ...] = ()
    """What it was written from, in that order; later versions of those replies change nothing of it."""

    @property
    def refers_to(self) -> tuple[str, ...]:
        """Ids of what it replies to and quotes."""
        quoted = tuple(quote.message_id for quote in self.quotes)
        return quoted if self.reply_to_id is None else (self.reply_to_id, *quoted)


@dataclass(frozen=True, slots=True)
class Round:
    number: int
    messages: tuple[Message, ...]

    @property
    def question(self) -> Message:
        return next(m for m in self.messages if m.role is Role.USER)

    @property
    def replies(self) -> tuple[Message, ...]:
        """The latest version of each reply: answers in the order of their seats, then what followed them."""
        replaced = {m.replaces_id for m in self.messages if m.replaces_id}
        latest = [m for m in self.messages if m.role is not Role.USER and m.id not in replaced]
        return tuple(sorted(latest, key=_place))


def _place(reply: Message) -> tuple[bool, bool, int, str]:
    """A synthesis stands last, and before it what followed the answers."""
    seat = reply.voice.seat if reply.voice else 0
    return (reply.role is Role.SYNTHESIS, reply.step is not Step.ANSWER, seat, reply.id)


def name_of(message: Message) -> str:
    """Whoever said it, as the others at the table know them."""
    return message.voice.name if message.voice else "User"


def speaker_of(model_key: str) -> str:
    """ "openai:gpt-4o" speaks as "agent:gpt-4o"."""
    return "agent:" + model_key.partition(":")[2]
