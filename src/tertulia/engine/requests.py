"""Requests: what a person can ask of the engine, validated before anything is written."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from tertulia import council
from tertulia.core.attachments import ATTACHMENTS_LIMIT
from tertulia.core.conversations import Visibility
from tertulia.core.errors import Invalid, TooLarge, UnknownModel
from tertulia.core.ids import is_ulid
from tertulia.core.messages import QUOTES_LIMIT, TEXT_LIMIT_BYTES, Quote
from tertulia.core.models import Model
from tertulia.core.passages import SearchScope
from tertulia.core.serialization import to_json
from tertulia.core.tables import BRIEF_LIMIT, VoiceRef
from tertulia.core.turns import Style
from tertulia.providers.registry import ProviderRegistry

QUOTE_LIMIT = 2_000


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A new question, and the voices that answer it."""

    id: str
    text: str
    voices: tuple[VoiceRef, ...]
    mode: str = "parallel"
    conversation_id: str | None = None
    """The conversation; if it does not exist, it is added to the project with this id."""
    project_id: str | None = None
    visibility: Visibility = Visibility.OPEN
    reply_to_id: str | None = None
    attachments: tuple[str, ...] = ()
    """Ids of the person's attachments that have not been sent yet."""
    quotes: tuple[Quote, ...] = ()
    """Passages of messages that this conversation shows."""
    chair: VoiceRef | None = None
    """The voice that writes the synthesis, if the mode has one; None for the first voice that answers."""
    brief: str = ""
    """The person's instructions for the synthesis."""
    is_blind: bool = False
    """Whether the names stay hidden until someone has voted."""
    aside: bool = False
    """Whether these voices answer this once; the conversation keeps its table."""
    lanes: tuple[str, ...] = ()
    """For an aside: the lane of each voice, needed if the same model sits at the table twice."""
    scope: SearchScope | None = None
    """The sources to search; None for the conversation's own setting."""


@dataclass(frozen=True, slots=True)
class NewEdit:
    """An edited question: it is asked in a new branch that starts at the round before."""

    id: str
    text: str
    voices: tuple[VoiceRef, ...]
    mode: str = "parallel"
    visibility: Visibility = Visibility.OPEN
    reply_to_id: str | None = None
    attachments: tuple[str, ...] = ()
    """Ids of unsent attachments, and of those of the original question to send again."""
    quotes: tuple[Quote, ...] = ()
    chair: VoiceRef | None = None
    brief: str = ""
    is_blind: bool = False
    branch_id: str | None = None
    """The id for the new branch, if the client has made one."""
    scope: SearchScope | None = None

    def turn_in(self, conversation_id: str) -> NewTurn:
        return NewTurn(
            id=self.id,
            text=self.text,
            voices=self.voices,
            mode=self.mode,
            conversation_id=conversation_id,
            visibility=self.visibility,
            reply_to_id=self.reply_to_id,
            attachments=self.attachments,
            quotes=self.quotes,
            chair=self.chair,
            brief=self.brief,
            is_blind=self.is_blind,
            scope=self.scope,
        )


@dataclass(frozen=True, slots=True)
class RetryRequest:
    """Asks one voice again, as it was or with another model."""

    id: str
    model: str | None = None
    without: tuple[str, ...] = ()
    """Ids of the sources in the receipt that are not to be shown this time."""
    style: Style = Style.AGAIN
    conversation_id: str | None = None
    """The conversation that shows the reply, if that is a branch which inherits it."""
    branch_id: str | None = None
    """The id for a branch that may be needed, if the client has made one."""


@dataclass(frozen=True, slots=True)
class NewSynthesis:
    """Adds a synthesis to a round that was answered before."""

    id: str
    chair: VoiceRef | None = None
    brief: str = ""


@dataclass(frozen=True, slots=True)
class BringBackRequest:
    """Summarises a branch in the conversation that it left."""

    id: str
    voice: VoiceRef


def check(request: NewTurn) -> None:
    check_id(request.id)
    if request.conversation_id is not None and not is_ulid(request.conversation_id):
        raise Invalid("A conversation's id is a ULID.")
    if not request.text.strip():
        raise Invalid("Write something first.")
    if len(request.text.encode("utf-8", "surrogatepass")) > TEXT_LIMIT_BYTES:
        raise TooLarge("A message holds at most 1 MiB of text. Attach it as a file instead.")
    check_attachments(request.attachments)
    check_quotes(request.quotes)
    check_brief(request.brief)
    check_lanes(request.lanes, len(request.voices), is_aside=request.aside)
    mode = council.get(request.mode)
    mode.must_seat(len(request.voices))
    if request.chair is not None:
        mode.must_have_chair()
    if request.is_blind and not mode.can_be_blind:
        raise Invalid("A blind test needs the mode Parallel: in other modes voices name each other.")


def check_lanes(lanes: Sequence[str], voices: int, *, is_aside: bool) -> None:
    if lanes and (not is_aside or len(set(lanes)) != voices):
        raise Invalid("`lanes` needs `aside` and names a different lane for each of its voices.")


def check_brief(brief: str) -> None:
    if len(brief) > BRIEF_LIMIT:
        raise Invalid(f"The instructions for a summary have at most {BRIEF_LIMIT:,} characters.")


def check_attachments(ids: Sequence[str]) -> None:
    if len(ids) > ATTACHMENTS_LIMIT:
        raise Invalid(f"A message has at most {ATTACHMENTS_LIMIT} files. Add the others to the project.")


def check_quotes(quotes: Sequence[Quote]) -> None:
    if len(quotes) > QUOTES_LIMIT:
        raise Invalid(f"A message quotes at most {QUOTES_LIMIT} passages.")
    if any(not quote.text.strip() or len(quote.text) > QUOTE_LIMIT for quote in quotes):
        raise Invalid(f"A quotation has 1 to {QUOTE_LIMIT:,} characters.")


def check_branch_id(branch_id: str | None) -> None:
    if branch_id is not None and not is_ulid(branch_id):
        raise Invalid("A branch's id is a ULID.")


def check_id(turn_id: str) -> None:
    if not is_ulid(turn_id):
        raise Invalid("A turn's id is a ULID made by the client.")


def available(key: str, providers: ProviderRegistry) -> Model:
    """The model; raises UnknownModel with the reason if it cannot answer."""
    model = providers.find(key)
    if model is None:
        raise UnknownModel(
            f"There is no model {key[:200]!r} here. Choose one of those under Models and keys."
        )
    if reason := providers.unavailable_reason(model):
        raise UnknownModel(f"{model.display_name} cannot answer. {reason}")
    return model


def fingerprint(request: object, target: str = "") -> str:
    """A hash that differs when another request is sent with the same id."""
    return hashlib.sha256((target + to_json(request)).encode("utf-8", "surrogatepass")).hexdigest()
