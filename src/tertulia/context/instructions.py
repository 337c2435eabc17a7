"""The system prompt: what stays the same from turn to turn.

Nothing that changes with the round belongs here (no clock, no counter): it would cost the provider's cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, takewhile

from tertulia.context import marks
from tertulia.context.fences import fenced
from tertulia.context.material import CountTokens, FileText, Material
from tertulia.core.files import FileEntry, Shelf
from tertulia.core.receipts import Layer
from tertulia.core.text import visible

_TABLE = (
    "You are {name}, one of several voices in a conversation with one person. All answer the person's "
    "messages at the same time. What the others said in earlier rounds appears as [Name]: text; what you "
    "said appears as your own replies. Answer the person directly and take up the others where it helps. "
    "Nobody speaks first, so do not mention any order, do not speak for the others, and do not begin with "
    "your own name."
)
_PROJECT = 'The conversation belongs to the project "{project}".'
_INSTRUCTIONS = "The people of this project ask of every voice:\n{instructions}"
_CHARACTER = "Your character in this conversation:\n{instructions}"
_PROVIDERS = {
    "openai": "Take the time to reason before you answer when a question needs several steps.",
    "anthropic": "Use extended thinking where it is hard: large material, a stubborn fault, a long plan.",
}

LIST_SHARE = 0.2
"""The part of the budget that the list of the project's files may take."""


@dataclass(frozen=True, slots=True)
class Part:
    text: str
    reason: str
    layer: Layer = Layer.SYSTEM
    source_id: str | None = None
    name: str = ""


def parts(material: Material, budget: int, count: CountTokens) -> Iterator[Part]:
    """In an order that never changes, so that what comes first stays cached."""
    yield Part(_TABLE.format(name=material.voice.name), "who answers, and how the conversation works")
    yield Part(_PROJECT.format(project=material.project_name), "the project")
    if material.instructions.strip():
        yield Part(
            _INSTRUCTIONS.format(instructions=material.instructions.strip()), "the project's instructions"
        )
    if material.model.abilities.thinking and material.model.provider in _PROVIDERS:
        yield Part(_PROVIDERS[material.model.provider], "what this provider's models can do")
    for file in material.always:
        if file.text and file.id not in material.without:
            yield Part(_whole(file), "always included", Layer.ALWAYS, file.id, file.path)
    if material.shelf.count:
        yield _listing(material.shelf, int(budget * LIST_SHARE), count)
        yield Part(marks.HOW_TO_CITE, "how to cite")
    if material.persona_instructions:
        yield Part(
            _CHARACTER.format(instructions=material.persona_instructions),
            "the persona's instructions",
            source_id=material.voice.persona_id,
            name=material.voice.name,
        )


def _whole(file: FileText) -> str:
    lines = file.text.count("\n") + (not file.text.endswith("\n"))
    how_much = file.reason.rstrip(".") if file.reason else "whole"
    return f"The file {file.path}, {how_much} {marks.of_lines(file.path, 1, lines)}:\n{fenced(file.text)}"


def _listing(shelf: Shelf, most: int, count: CountTokens) -> Part:
    """All of it, or so much of its beginning as its share of the budget holds."""
    head = f"The project has {shelf.count} files:" if shelf.count > 1 else "The project has one file:"
    tops = (f"- {folder.name or '(top)'} {folder.count} files" for folder in shelf.folders)
    lines = [*map(_line, shelf.entries), *tops]
    whole = "\n".join([head, *lines])
    if count(whole) <= most:
        return Part(whole, "the project's files")
    sizes = accumulate(count(f"{line}\n") for line in lines)
    kept = sum(1 for _ in takewhile(lambda size: size <= most, sizes))
    more = f"- and {len(lines) - kept} more {'files' if shelf.entries else 'folders'}"
    return Part("\n".join([head, *lines[:kept], more]), "the project's files, as many as fit")


def _line(file: FileEntry) -> str:
    return f"- {file.path} ({_size(file.size_bytes)})" + (
        f": {visible(file.summary)}" if file.summary else ""
    )


def _size(size_bytes: int) -> str:
    for unit, size in (("MB", 1 << 20), ("kB", 1 << 10)):
        if size_bytes >= size:
            return f"{size_bytes / size:.1f} {unit}"
    return f"{size_bytes} bytes"
