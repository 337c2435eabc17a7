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
from tertulia.core.tables import WantedVoice
from tertulia.core.turns import Style
from tertulia.providers.houses import Providers

BRIEF_LIMIT = 4_000


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
    chair: WantedVoice | None = None
    """Who writes the synthesis, where the mode has one; the first voice when nobody is named."""
    brief: str = ""
    """What the synthesis should do, in the person's own words."""
    is_blind: bool = False
    """The names stay hidden until someone has voted."""
    aside: bool = False
    """Only this once: the conversation goes on with the table it had."""


@dataclass(frozen=True, slots=True)
class NewTry:
    """Asking one voice again, as it was or with another model."""

    id: str
    model: str | None = None
    without: tuple[str, ...] = ()
    """Sources of the receipt's segments that are not to be shown this time."""
    style: Style = Style.AGAIN


@dataclass(frozen=True, slots=True)
class NewSynthesis:
    """A synthesis of a round that was answered before."""

    id: str
    chair: WantedVoice | None = None
    brief: str = ""


def check(request: NewTurn) -> None:
    check_id(request.id)
    if request.conversation_id is not None and not is_ulid(request.conversation_id):
        raise Invalid("A conversation's id is a ULID.")
    if not request.text.strip():
        raise Invalid("Write something first.")
    if len(request.text.encode("utf-8", "surrogatepass")) > TEXT_LIMIT_BYTES:
        raise TooLarge("A message holds at most 1 MiB of text. Attach it as a file instead.")
    check_attachments(request.attachments)
    check_brief(request.brief)
    mode = council.get(request.mode)
    mode.must_seat(len(request.voices))
    if request.chair is not None and not mode.has_chair:
        raise Invalid(f"The mode {mode.name} has no chair. Leave it out, or choose another mode.")


def check_brief(brief: str) -> None:
    if len(brief) > BRIEF_LIMIT:
        raise Invalid(f"What a synthesis should do is said in at most {BRIEF_LIMIT:,} characters.")


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
