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
    """One thing a person says, and who is to answer."""

    id: str
    text: str
    voices: tuple[VoiceRef, ...]
    mode: str = "parallel"
    conversation_id: str | None = None
    """An own conversation; one that does not exist yet is made in the project named."""
    project_id: str | None = None
    visibility: Visibility = Visibility.OPEN
    reply_to_id: str | None = None
    attachments: tuple[str, ...] = ()
    """Ids of own attachments that no message has taken yet."""
    quotes: tuple[Quote, ...] = ()
    """Words of messages that this conversation shows."""
    chair: VoiceRef | None = None
    """Who writes the synthesis, where the mode has one; the first voice heard when nobody is named."""
    brief: str = ""
    """What the synthesis should do, in the person's own words."""
    is_blind: bool = False
    """The names stay hidden until someone has voted."""
    aside: bool = False
    """Only this once: the conversation goes on with the table it had."""
    lanes: tuple[str, ...] = ()
    """Of an aside: the ids of the voices that are meant, one for each, where the same sits there twice."""
    scope: SearchScope | None = None
    """What is searched for passages that fit; None: as before in this conversation."""


@dataclass(frozen=True, slots=True)
class NewEdit:
    """A question asked differently: a turn in a branch of its own, from the round before."""

    id: str
    text: str
    voices: tuple[VoiceRef, ...]
    mode: str = "parallel"
    visibility: Visibility = Visibility.OPEN
    reply_to_id: str | None = None
    attachments: tuple[str, ...] = ()
    """Unsent ones, and those of the first question that are to come along again."""
    quotes: tuple[Quote, ...] = ()
    chair: VoiceRef | None = None
    brief: str = ""
    is_blind: bool = False
    branch_id: str | None = None
    """The branch's own id, when the client has made one."""
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
    """Asking one voice again, as it was or with another model."""

    id: str
    model: str | None = None
    without: tuple[str, ...] = ()
    """Sources of the receipt's segments that are not to be shown this time."""
    style: Style = Style.AGAIN
    conversation_id: str | None = None
    """Where the reply is looked at, when that is a branch that inherited it."""
    branch_id: str | None = None
    """The id of the branch it may take, when the client has made one."""


@dataclass(frozen=True, slots=True)
class NewSynthesis:
    """A synthesis of a round that was answered before."""

    id: str
    chair: VoiceRef | None = None
    brief: str = ""


@dataclass(frozen=True, slots=True)
class BringBackRequest:
    """A branch brought back as one message: who tells what it came to."""

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
    """The model, or a sentence that says why it cannot answer."""
    model = providers.find(key)
    if model is None:
        raise UnknownModel(
            f"There is no model {key[:200]!r} here. Choose one of those under Models and keys."
        )
    if reason := providers.unavailable_reason(model):
        raise UnknownModel(f"{model.display_name} cannot answer. {reason}")
    return model


def fingerprint(request: object, target: str = "") -> str:
    """Tells a request sent twice from another one under the same id."""
    return hashlib.sha256((target + to_json(request)).encode("utf-8", "surrogatepass")).hexdigest()
