"""What a person can ask of the engine, checked before anything is written."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from tertulia import council
from tertulia.core.attachments import ATTACHMENTS_LIMIT
from tertulia.core.conversations import Visibility
from tertulia.core.errors import Invalid, TooLarge, UnknownModel
from tertulia.core.ids import is_ulid
from tertulia.core.messages import TEXT_LIMIT_BYTES
from tertulia.core.models import Model
from tertulia.core.plain import to_json
from tertulia.providers.houses import Providers


@dataclass(frozen=True, slots=True)
class WantedVoice:
    """A model, a persona, or a persona that is to speak through a certain model."""

    model: str | None = None
    """The key of a model, "openai:gpt-4o"."""
    persona_id: str | None = None


@dataclass(frozen=True, slots=True)
class NewTurn:
    """One thing a person says, and who is to answer."""

    id: str
    text: str
    voices: tuple[WantedVoice, ...]
    mode: str = "parallel"
    conversation_id: str | None = None
    """An own conversation; one that does not exist yet is made in the project named."""
    project_id: str | None = None
    visibility: Visibility = Visibility.OPEN
    reply_to_id: str | None = None
    attachments: tuple[str, ...] = ()
    """Ids of own attachments that no message has taken yet."""


@dataclass(frozen=True, slots=True)
class NewTry:
    """Asking one voice again, as it was or with another model."""

    id: str
    model: str | None = None
    without: tuple[str, ...] = ()
    """Sources of the receipt's segments that are not to be shown this time."""


def check(request: NewTurn) -> None:
    check_id(request.id)
    if request.conversation_id is not None and not is_ulid(request.conversation_id):
        raise Invalid("A conversation's id is a ULID.")
    if not request.text.strip():
        raise Invalid("Write something first.")
    if len(request.text.encode("utf-8", "surrogatepass")) > TEXT_LIMIT_BYTES:
        raise TooLarge("A message holds at most 1 MiB of text. Attach it as a file instead.")
    check_attachments(request.attachments)
    council.get(request.mode).must_seat(len(request.voices))


def check_attachments(ids: Sequence[str]) -> None:
    if len(ids) > ATTACHMENTS_LIMIT:
        raise Invalid(
            f"A message brings at most {ATTACHMENTS_LIMIT} files along. Put the others in the project."
        )


def check_id(turn_id: str) -> None:
    if not is_ulid(turn_id):
        raise Invalid("A turn's id is a ULID made by the client.")


def available(key: str, providers: Providers) -> Model:
    """The model, or a sentence that says why it cannot answer."""
    model = providers.find(key)
    if model is None:
        raise UnknownModel(f"There is no model {key[:200]!r} here. GET /api/models lists them.")
    if reason := providers.unavailable_reason(model):
        raise UnknownModel(f"{model.display_name} cannot answer. {reason}")
    return model


def fingerprint(request: object, target: str = "") -> str:
    """Tells a request sent twice from another one under the same id."""
    return hashlib.sha256((target + to_json(request)).encode("utf-8", "surrogatepass")).hexdigest()
