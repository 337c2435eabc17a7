"""The system prompt: what stays the same from turn to turn.

Nothing that changes with the round belongs here (no clock, no counter): it would cost the provider's cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tertulia.context.material import Material

_TABLE = (
    "You are {name}, one of several minds at a table with one person. Everyone answers the person's messages "
    "at the same time. What the others said in earlier rounds appears as [Name]: text; what you said appears "
    "as your own replies. Answer the person directly and take up the others where it helps. Nobody speaks "
    "first, so do not mention any order, do not speak for the others, and do not begin with your own name."
)
_PROJECT = 'The conversation belongs to the project "{project}".'
_INSTRUCTIONS = "The people of this project ask of everyone at the table:\n{instructions}"
_PROVIDERS = {
    "openai": "Take the time to reason before you answer when a question needs several steps.",
    "anthropic": "Use extended thinking where it is hard: large material, a stubborn fault, a long plan.",
}


@dataclass(frozen=True, slots=True)
class Part:
    text: str
    reason: str


def parts(material: Material) -> Iterator[Part]:
    yield Part(_TABLE.format(name=material.voice.name), "who it is and how the table talks")
    yield Part(_PROJECT.format(project=material.project_name), "the project")
    if material.instructions.strip():
        yield Part(
            _INSTRUCTIONS.format(instructions=material.instructions.strip()), "the project's instructions"
        )
    if material.model.abilities.thinking and material.model.provider in _PROVIDERS:
        yield Part(_PROVIDERS[material.model.provider], "what this provider's models can do")
