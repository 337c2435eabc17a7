"""Projects: their settings, their members, and what each member may do."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from tertulia.core.errors import Forbidden, Invalid
from tertulia.core.passages import SearchScope
from tertulia.core.voices import SEATS

NAME_LIMIT = 200
TEXT_LIMIT = 100_000


class ProjectRole(StrEnum):
    OWNER = "owner"
    EDITOR = "editor"
    VIEWER = "viewer"

    def must_write(self) -> None:
        if self is ProjectRole.VIEWER:
            raise Forbidden(
                "You can read this project but not write in it. Ask its owner to make you an editor."
            )

    def must_own(self) -> None:
        if self is not ProjectRole.OWNER:
            raise Forbidden("Only an owner of this project can do this.")


class ContextStrategy(StrEnum):
    SMART = "smart"
    BALANCED = "balanced"
    MINIMAL = "minimal"


@dataclass(frozen=True, slots=True)
class RetrievalConfig:
    enabled: bool = True
    chunk_size: int = 50
    max_results: int = 10
    scope: SearchScope = SearchScope()
    """The search scope for conversations that do not set their own."""


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    default_models: tuple[str, ...] = ()
    default_mode: str = "parallel"
    context_strategy: ContextStrategy = ContextStrategy.SMART
    max_context_tokens: int = 128_000
    retrieval_config: RetrievalConfig = field(default_factory=RetrievalConfig)
    default_table_id: str | None = None
    """The saved table for new conversations."""


@dataclass(frozen=True, slots=True)
class Project:
    id: str
    name: str
    description: str
    instructions: str
    settings: ProjectSettings
    role: ProjectRole
    """The role of the actor who reads the project."""
    created_at: int
    updated_at: int


@dataclass(frozen=True, slots=True)
class Member:
    user_id: str
    name: str
    role: ProjectRole


@dataclass(frozen=True, slots=True)
class Person:
    """The name of someone who wrote in a project, kept even after they left it."""

    id: str
    """The user's id."""
    name: str


def clean_name(text: str) -> str:
    name = " ".join(text.split())
    if not name or len(name) > NAME_LIMIT:
        raise Invalid(f"A project's name has 1 to {NAME_LIMIT} characters.")
    return name


def clean_text(text: str) -> str:
    """Checks the length of a project's description or instructions."""
    if len(text) > TEXT_LIMIT:
        raise Invalid(f"A project's description and instructions have at most {TEXT_LIMIT:,} characters.")
    return text


def checked(settings: ProjectSettings) -> ProjectSettings:
    if not 1_000 <= settings.max_context_tokens <= 10_000_000:
        raise Invalid("max_context_tokens must be between 1,000 and 10,000,000.")
    if not 5 <= settings.retrieval_config.chunk_size <= 1_000:
        raise Invalid("chunk_size must be 5 to 1,000 lines.")
    if not 0 <= settings.retrieval_config.max_results <= 100:
        raise Invalid("max_results must be 0 to 100.")
    if len(settings.default_models) > SEATS:
        raise Invalid(f"At most {SEATS} models can answer by default.")
    return settings
