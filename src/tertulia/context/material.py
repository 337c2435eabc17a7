"""Material: everything a prompt can be made of, gathered beforehand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tertulia.core.briefs import ANSWER, Brief
from tertulia.core.chunks import Hit
from tertulia.core.conversations import Visibility
from tertulia.core.files import Shelf
from tertulia.core.messages import Message, Round
from tertulia.core.models import Model
from tertulia.core.passages import SearchScope
from tertulia.core.projects import ContextStrategy
from tertulia.core.turns import Style
from tertulia.core.voices import Voice

CountTokens = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class FileText:
    """A file that is shown whole."""

    id: str
    path: str
    text: str
    reason: str | None = None
    """Why there is none, or not all of it."""


@dataclass(frozen=True, slots=True)
class AttachedText:
    """What was read from an attachment that is no picture."""

    id: str
    text: str
    reason: str | None = None
    """Why there is none, or not all of it."""


TAKEN_OUT = "taken out before it was asked again"
OVER_BUDGET = "over the budget"


@dataclass(frozen=True, slots=True)
class Material:
    voice: Voice
    model: Model
    project_name: str
    instructions: str
    """The project's own."""
    conversation_title: str
    rounds: tuple[Round, ...]
    """What was said before the question, oldest first; may begin before the window."""
    question: Message
    visibility: Visibility
    context_strategy: ContextStrategy
    max_context_tokens: int
    max_output_tokens: int
    cited: tuple[Message, ...] = ()
    """What the question and those before it reply to and quote, as far as it is still there."""
    brought: tuple[Round, ...] = ()
    """What was said in the branch that this round brings back, oldest first."""
    partial: str = ""
    """The reply's own beginning, when it is to be continued."""
    always: tuple[FileText, ...] = ()
    """Files of the project that are shown every time, in the order of their paths."""
    shelf: Shelf = Shelf()
    """All files of the project, for the list."""
    attached: tuple[AttachedText, ...] = ()
    """The text of what the question and the rounds brought along."""
    hits: tuple[Hit, ...] = ()
    """What was looked up for the question, best first."""
    recalled: tuple[Round, ...] = ()
    """Rounds from before the window that a hit lies in, whole."""
    search_failed: bool = False
    is_searching: bool = True
    """The project's set-up has passages looked for at all."""
    scope: SearchScope = SearchScope()
    """What was searched for them."""
    max_results: int = 10
    """How many pieces of what was looked up the project allows."""
    without: frozenset[str] = frozenset()
    """Ids of files, attachments, chunks and messages a person took out before asking again."""
    chosen: frozenset[str] = frozenset()
    """Ids of the replies that were marked best."""
    persona_instructions: str = ""
    """The voice's own, when it is a persona."""
    brief: Brief = ANSWER
    """What its mode asks of it in this step, and whom it has read."""
    style: Style = Style.AGAIN
