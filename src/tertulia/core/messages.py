"""Messages: the text, its author, and how the reply ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tertulia.core.attachments import Attachment
from tertulia.core.findings import ParsedReply
from tertulia.core.voices import Voice

QUOTES_LIMIT = 10
TEXT_LIMIT_BYTES = 1 << 20


class Role(StrEnum):
    USER = "user"
    ADVISOR = "advisor"
    CRITIC = "critic"
    SYNTHESIS = "synthesis"


class Step(StrEnum):
    """The step of a mode that a reply belongs to."""

    ANSWER = "answer"
    REBUTTAL = "rebuttal"
    CRITIQUE = "critique"
    REVIEW = "review"
    SYNTHESIS = "synthesis"
    OUTLINE = "outline"
    """The synthesis again, as data that can be drawn."""
    SUMMARY = "summary"
    """The summary of a branch, in the conversation that the branch left."""


class Status(StrEnum):
    COMPLETE = "complete"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens, money (None: price unknown) and time of a reply."""

    input_tokens: int
    cached_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost_micros: int | None
    latency_ms: int
    first_token_ms: int | None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a reply did not complete."""

    code: str
    """Any of rate_limited, unavailable, auth, timeout_first_byte, timeout_idle, timeout_total, cut,
    malformed, too_large, context_length, filtered, length, empty, restarted or internal."""
    message: str
    detail: str | None = None
    """The provider's own message, cleaned."""
    retry_at: int | None = None
    """When the provider accepts requests again, if that is too long to wait for."""


@dataclass(frozen=True, slots=True)
class Thinking:
    text: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Quote:
    """A passage of an earlier message that a question quotes."""

    message_id: str
    text: str


@dataclass(frozen=True, slots=True)
class ReadReply:
    """A reply of the same round that was in a model's prompt, in the version that the model read."""

    message_id: str
    seat: int
    name: str
    """The name of the voice that wrote it."""
    label: str = ""
    """The label that replaced the name in the prompt, such as "Answer B"; empty if the name was shown."""


@dataclass(frozen=True, slots=True)
class Message:
    id: str
    conversation_id: str
    round_number: int
    turn_id: str
    speaker: str
    """Either "user" or "agent:<model-id>"."""
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
    """The earlier version of this reply, if it was retried or continued."""
    step: Step = Step.ANSWER
    findings: ParsedReply | None = None
    quotes: tuple[Quote, ...] = ()
    brings_id: str | None = None
    """The branch that this round summarises."""
    attachments: tuple[Attachment, ...] = ()
    """Files that the person attached to it."""
    read_replies: tuple[ReadReply, ...] = ()
    """The replies of its round that its prompt contained, in that order. Later versions of those replies do
    not change this."""

    @property
    def refers_to(self) -> tuple[str, ...]:
        """The ids of the messages that it replies to and quotes."""
        quoted = tuple(quote.message_id for quote in self.quotes)
        return quoted if self.reply_to_id is None else (self.reply_to_id, *quoted)


@dataclass(frozen=True, slots=True)
class Round:
    number: int
    messages: tuple[Message, ...]

    @property
    def question(self) -> Message:
        return next(message for message in self.messages if message.role is Role.USER)

    @property
    def replies(self) -> tuple[Message, ...]:
        """The latest version of each reply: the answers in the order of their seats, then the later steps."""
        replaced = {message.replaces_id for message in self.messages if message.replaces_id}
        latest = [
            message
            for message in self.messages
            if message.role is not Role.USER and message.id not in replaced
        ]
        return tuple(sorted(latest, key=_reply_order))


def _reply_order(reply: Message) -> tuple[bool, bool, int, str]:
    """The sort key of a reply: answers first, then the later steps, the synthesis last."""
    seat = reply.voice.seat if reply.voice else 0
    return (reply.role is Role.SYNTHESIS, reply.step is not Step.ANSWER, seat, reply.id)


def name_of(message: Message) -> str:
    """The author's name, as the other voices of the table know it."""
    return message.voice.name if message.voice else "User"


def speaker_of(model_key: str) -> str:
    """The speaker for a model key: "agent:gpt-4o" for "openai:gpt-4o"."""
    return "agent:" + model_key.partition(":")[2]
