"""Prompt inputs: everything that a prompt is built from, collected beforehand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tertulia.core.chunks import Hit
from tertulia.core.conversations import Visibility
from tertulia.core.files import FileListing
from tertulia.core.messages import Message, Round
from tertulia.core.models import Model
from tertulia.core.passages import SearchScope
from tertulia.core.projects import ContextStrategy
from tertulia.core.step_instructions import ANSWER, StepInstructions
from tertulia.core.turns import Style
from tertulia.core.voices import Voice

CountTokens = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class IncludedFile:
    """The full text of a project file."""

    id: str
    path: str
    text: str
    reason: str | None = None
    """Why the text is missing or incomplete."""
    is_over_budget: bool = False
    """The text was not read, because no model of the turn has space for it."""


@dataclass(frozen=True, slots=True)
class AttachedText:
    """The text extracted from an attachment that is not an image."""

    id: str
    text: str
    reason: str | None = None
    """Why the text is missing or incomplete."""
    is_over_budget: bool = False
    """The text was not read, because no model of the turn has space for it."""


@dataclass(frozen=True, slots=True)
class ProjectInputs:
    name: str
    instructions: str
    context_strategy: ContextStrategy
    max_context_tokens: int


@dataclass(frozen=True, slots=True)
class FileInputs:
    always_included: tuple[IncludedFile, ...] = ()
    """The project's always-included files, sorted by path."""
    listing: FileListing = FileListing()
    """The list of all files of the project."""
    attachment_texts: tuple[AttachedText, ...] = ()
    """The texts of the attachments of the question and the rounds."""


@dataclass(frozen=True, slots=True)
class ConversationInputs:
    title: str
    rounds: tuple[Round, ...]
    """The rounds before the question, oldest first; may begin before the window."""
    question: Message
    visibility: Visibility
    referenced_messages: tuple[Message, ...] = ()
    """The messages that the question and earlier ones reply to and quote, if they still exist."""
    branch_rounds: tuple[Round, ...] = ()
    """The rounds of the branch that this round summarises, oldest first."""
    best_reply_ids: frozenset[str] = frozenset()
    """Ids of the replies that were voted best."""


@dataclass(frozen=True, slots=True)
class SearchInputs:
    hits: tuple[Hit, ...] = ()
    """The search results for the question, best first."""
    recalled_rounds: tuple[Round, ...] = ()
    """Complete rounds from before the window that contain a hit."""
    has_failed: bool = False
    is_enabled: bool = True
    """Whether the project's settings allow a search at all."""
    scope: SearchScope = SearchScope()
    """The sources that were searched."""
    max_results: int = 10
    """The most search results that the project allows."""


@dataclass(frozen=True, slots=True)
class PromptInputs:
    voice: Voice
    model: Model
    max_output_tokens: int
    project: ProjectInputs
    conversation: ConversationInputs
    files: FileInputs = FileInputs()
    search: SearchInputs = SearchInputs()
    persona_instructions: str = ""
    """The persona's instructions, if the voice is a persona."""
    excluded_ids: frozenset[str] = frozenset()
    """Ids of the files, attachments, chunks and messages that a person removed before asking again."""
    step: StepInstructions = ANSWER
    """The step's task for this voice, and the replies that it reads."""
    partial_reply: str = ""
    """The beginning of the reply, if it is continued."""
    style: Style = Style.AGAIN
