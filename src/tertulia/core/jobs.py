"""Job payloads: one type for each kind of background job, with the data that the job works on.

The store keeps a payload as JSON beside its kind; the engine's worker decodes it and runs the job.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeVar

from tertulia.core.serialization import from_json, to_json


class JobPayload(Protocol):
    kind: ClassVar[str]


P = TypeVar("P", bound=JobPayload)


@dataclass(frozen=True, slots=True)
class IndexFile:
    kind: ClassVar[str] = "index_file"
    file_id: str


@dataclass(frozen=True, slots=True)
class IndexRounds:
    kind: ClassVar[str] = "index_round"
    conversation_id: str
    first: int
    last: int
    anew: bool = False
    """Whether chunks that are still valid are made again too."""

    @classmethod
    def single(cls, conversation_id: str, number: int) -> IndexRounds:
        return cls(conversation_id, number, number)


@dataclass(frozen=True, slots=True)
class EmbedChunks:
    kind: ClassVar[str] = "embed"


@dataclass(frozen=True, slots=True)
class NameConversation:
    kind: ClassVar[str] = "title"
    conversation_id: str


@dataclass(frozen=True, slots=True)
class RedactReceipts:
    """Messages were deleted while their conversation was being answered."""

    kind: ClassVar[str] = "redact_receipts"
    conversation_id: str
    number: int | None
    """The round of the messages; None to look in the receipts of all rounds."""
    ids: tuple[str, ...]
    """Ids of the messages and their attachments."""


@dataclass(frozen=True, slots=True)
class RedactSearchReceipts:
    """Something was deleted that searches in the project may have found.

    Receipts with smaller ids than `since` are older than what was deleted and cannot show it.
    """

    kind: ClassVar[str] = "redact_search_receipts"
    project_id: str
    since: str


@dataclass(frozen=True, slots=True)
class SweepAttachments:
    kind: ClassVar[str] = "sweep_attachments"


@dataclass(frozen=True, slots=True)
class SweepBlobs:
    kind: ClassVar[str] = "sweep_blobs"


@dataclass(frozen=True, slots=True)
class SweepDaily:
    kind: ClassVar[str] = "sweep_daily"


def encode(payload: JobPayload) -> str:
    return to_json(payload)


def decode(kind: type[P], text: str) -> P:
    """The payload of a job of this kind; an empty text stands for one without fields."""
    return from_json(kind, text or "{}")
