"""The system prompt: the part of the prompt that stays the same from turn to turn.

It must not contain anything that changes with the round, such as a clock or a counter, because the
provider's cache would no longer match.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, takewhile

from tertulia.context import citations
from tertulia.context.fences import fenced
from tertulia.context.prompt_inputs import CountTokens, IncludedFile, PromptInputs
from tertulia.core.files import FileEntry, FileListing
from tertulia.core.receipts import Layer, SegmentReason, SourceLocation
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
"""The part of the budget that the list of the project's files may use."""


@dataclass(frozen=True, slots=True)
class PromptPart:
    text: str
    reason: SegmentReason
    layer: Layer = Layer.SYSTEM
    source_id: str | None = None
    location: SourceLocation | None = None


def parts(inputs: PromptInputs, budget: int, count: CountTokens) -> Iterator[PromptPart]:
    """The parts in an order that never changes, so that the beginning stays cached."""
    yield PromptPart(_TABLE.format(name=inputs.voice.name), SegmentReason.INTRODUCTION)
    yield PromptPart(_PROJECT.format(project=inputs.project.name), SegmentReason.PROJECT)
    if inputs.project.instructions.strip():
        yield PromptPart(
            _INSTRUCTIONS.format(instructions=inputs.project.instructions.strip()),
            SegmentReason.PROJECT_INSTRUCTIONS,
        )
    if inputs.model.abilities.thinking and inputs.model.provider in _PROVIDERS:
        yield PromptPart(_PROVIDERS[inputs.model.provider], SegmentReason.PROVIDER_ADVICE)
    for file in inputs.files.always_included:
        if file.text and file.id not in inputs.excluded_ids:
            yield PromptPart(
                _file_text(file),
                SegmentReason.ALWAYS_INCLUDED,
                Layer.ALWAYS,
                file.id,
                SourceLocation(path=file.path),
            )
    if inputs.files.listing.count:
        yield _listing(inputs.files.listing, int(budget * LIST_SHARE), count)
        yield PromptPart(citations.HOW_TO_CITE, SegmentReason.HOW_TO_CITE)
    if inputs.persona_instructions:
        yield PromptPart(
            _CHARACTER.format(instructions=inputs.persona_instructions),
            SegmentReason.PERSONA_INSTRUCTIONS,
            source_id=inputs.voice.persona_id,
            location=SourceLocation(speaker=inputs.voice.name),
        )


def _file_text(file: IncludedFile) -> str:
    lines = file.text.count("\n") + (not file.text.endswith("\n"))
    extent = file.reason.rstrip(".") if file.reason else "whole"
    return f"The file {file.path}, {extent} {citations.of_lines(file.path, 1, lines)}:\n{fenced(file.text)}"


def _listing(shelf: FileListing, limit: int, count: CountTokens) -> PromptPart:
    """The file list, or as many of its first lines as its share of the budget allows."""
    head = f"The project has {shelf.count} files:" if shelf.count > 1 else "The project has one file:"
    tops = (f"- {folder.name or '(top)'} {folder.count} files" for folder in shelf.folders)
    lines = [*map(_file_line, shelf.entries), *tops]
    complete = "\n".join([head, *lines])
    if count(complete) <= limit:
        return PromptPart(complete, SegmentReason.FILE_LIST)
    sizes = accumulate(count(f"{line}\n") for line in lines)
    fitting = sum(1 for _ in takewhile(lambda size: size <= limit, sizes))
    more = f"- and {len(lines) - fitting} more {'files' if shelf.entries else 'folders'}"
    return PromptPart("\n".join([head, *lines[:fitting], more]), SegmentReason.PARTIAL_FILE_LIST)


def _file_line(file: FileEntry) -> str:
    return f"- {file.path} ({_size(file.size_bytes)})" + (
        f": {visible(file.summary)}" if file.summary else ""
    )


def _size(size_bytes: int) -> str:
    for unit, size in (("MB", 1 << 20), ("kB", 1 << 10)):
        if size_bytes >= size:
            return f"{size_bytes / size:.1f} {unit}"
    return f"{size_bytes} bytes"
