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
class PromptInputs:
    voice: Voice
    model: Model
    project_name: str
    instructions: str
    """The project's instructions."""
    conversation_title: str
    rounds: tuple[Round, ...]
    """The rounds before the question, oldest first; may begin before the window."""
    question: Message
    visibility: Visibility
    context_strategy: ContextStrategy
    max_context_tokens: int
    max_output_tokens: int
    cited: tuple[Message, ...] = ()
    """The messages that the question and earlier ones reply to and quote, if they still exist."""
    brought: tuple[Round, ...] = ()
    """The rounds of the branch that this round summarises, oldest first."""
    partial: str = ""
    """The beginning of the reply, if it is continued."""
    always: tuple[IncludedFile, ...] = ()
    """The project's always-included files, sorted by path."""
    shelf: FileListing = FileListing()
    """The list of all files of the project."""
    attached: tuple[AttachedText, ...] = ()
    """The texts of the attachments of the question and the rounds."""
    hits: tuple[Hit, ...] = ()
    """The search results for the question, best first."""
    recalled: tuple[Round, ...] = ()
    """Complete rounds from before the window that contain a hit."""
    search_failed: bool = False
    is_searching: bool = True
    """Whether the project's settings allow a search at all."""
    scope: SearchScope = SearchScope()
    """The sources that were searched."""
    max_results: int = 10
    """The most search results that the project allows."""
    without: frozenset[str] = frozenset()
    """Ids of the files, attachments, chunks and messages that a person removed before asking again."""
    chosen: frozenset[str] = frozenset()
    """Ids of the replies that were voted best."""
    persona_instructions: str = ""
    """The persona's instructions, if the voice is a persona."""
    brief: StepInstructions = ANSWER
    """The step's task for this voice, and the replies that it reads."""
    style: Style = Style.AGAIN
