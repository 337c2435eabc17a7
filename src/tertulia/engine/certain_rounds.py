"""Certain rounds: the rounds that every voice's prompt is sure to show, so that the search leaves them out.

The estimate is careful: it counts each character as a token, and takes the model with the smallest budget.
"""

from __future__ import annotations

from collections.abc import Sequence

from tertulia.context.budget import budget_tokens, output_limit, picture_tokens, tier_for, window_start
from tertulia.context.references import QUOTE_LIMIT
from tertulia.core.attachments import Attachment
from tertulia.core.files import ProjectFile
from tertulia.core.messages import Message, Round
from tertulia.core.models import WORKING_ROUNDS, Model
from tertulia.core.personas import PersonaProfile
from tertulia.core.projects import Project

SYSTEM_CHARACTERS = 3_000
"""The most characters of a system prompt, without the texts that people wrote for it."""
LABEL_CHARACTERS = 200
"""The most characters around a quoted message: the name of its speaker, and what it is."""


def certain_rounds(
    project: Project,
    models: Sequence[Model],
    personas: Sequence[PersonaProfile],
    always_included: Sequence[ProjectFile],
    rounds: Sequence[Round],
    question: Message,
) -> tuple[Round, ...]:
    strategy = project.settings.context_strategy
    working = min(WORKING_ROUNDS[tier_for(model, strategy)] for model in models)
    first = window_start(question.round_number - 1, working) + 1
    window = [round_ for round_ in rounds if round_.number >= first]
    fixed = _fixed_characters(project, personas, always_included, question)
    return _sure_to_fit(window, _smallest_budget(project, models) - fixed)


def _smallest_budget(project: Project, models: Sequence[Model]) -> int:
    limit = project.settings.max_context_tokens
    return min(budget_tokens(model, output_limit(model), limit) for model in models)


def _fixed_characters(
    project: Project,
    personas: Sequence[PersonaProfile],
    always_included: Sequence[ProjectFile],
    question: Message,
) -> int:
    """The most characters of everything in a prompt but the rounds."""
    files = sum(file.size_bytes for file in always_included)
    persona = max((len(profile.instructions) for profile in personas), default=0)
    return SYSTEM_CHARACTERS + len(project.instructions) + persona + files + _length(question)


def _sure_to_fit(window: Sequence[Round], characters: int) -> tuple[Round, ...]:
    """All rounds, or the newest ones that remain when the oldest have to be dropped."""
    sizes = [sum(map(_length, round_.messages)) for round_ in window]
    if sum(sizes) <= characters:
        return tuple(window)
    remains = [sum(sizes[index:]) <= characters // 2 for index in range(len(window))]
    return tuple(round_ for round_, is_shown in zip(window, remains, strict=True) if is_shown)


def _length(message: Message) -> int:
    attached = sum(map(_length_of_attachment, message.attachments))
    return len(message.content) + attached + _length_of_references(message)


def _length_of_references(message: Message) -> int:
    replied = QUOTE_LIMIT + LABEL_CHARACTERS if message.reply_to_id else 0
    return replied + sum(len(quote.text) + LABEL_CHARACTERS for quote in message.quotes)


def _length_of_attachment(attachment: Attachment) -> int:
    if attachment.is_picture:
        return picture_tokens(attachment.width, attachment.height)
    return attachment.size_bytes
