"""Indexing: turns files and messages into chunks for the full-text index and for vector search.

The columns of the full-text index hold:

           body        heading            place            around
code       the text    function           path             parts of its identifiers
prose      the text    heading            path             the text before and after
message    the text    speaker and date   date, in words   the messages before and after
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from tertulia.core.chunks import Location, Source
from tertulia.core.errors import NotFound
from tertulia.core.files import ProjectFile
from tertulia.core.messages import Message, Role, Round, Status
from tertulia.library import billing
from tertulia.library.chunk import CHARACTERS, TextPiece, chunk, ending_of, is_code, pieces
from tertulia.library.embedders import Embedder, EmbeddingCharge, EmbeddingFailed
from tertulia.library.query import identifiers
from tertulia.library.search import SearchIndex
from tertulia.store import blind, chunks, conversations, messages, usage, users, vectors
from tertulia.store.chunks import NewChunk
from tertulia.store.database import Tx
from tertulia.store.vectors import NO_REUSABLE_VECTORS, PendingChunk, ReusableVectors

MESSAGE_CHARACTERS = 1500
"""A message up to this length is one chunk."""
AROUND_CHARACTERS = 400
SUMMARY_CHARACTERS = 160
# Two words. It matches only at the start of a word and never backtracks, so it takes linear time.
_TWO_WORDS = re.compile(r"(?<![\w'’-])\w[\w'’-]*+\W+\w")
_LEADING_MARKS, _TRAILING_MARKS = re.compile(r"[\s#>*\-=/`|]*"), re.compile(r"[\s#*=`|]*")


def of_file(file: ProjectFile, text: str, lines: int) -> Iterator[NewChunk]:
    """Yields the chunks of a file one at a time, so that a large file is never held as chunks as a whole.

    Pieces without a letter or digit are skipped, since no query can match them. The first piece is always
    kept.
    """
    for before, piece, after in _with_neighbours(pieces(text, ending_of(file.path), lines)):
        if piece.start_char > 0 and not any(map(str.isalnum, piece.content)):
            continue
        if is_code(file.path):
            around = identifiers(f"{piece.heading} {piece.content}")
        else:
            around = _around(before, after)
        yield NewChunk(
            content=piece.content,
            heading=piece.heading,
            location=Location(
                path=file.path,
                start_line=piece.start_line,
                end_line=piece.end_line,
                start_char=piece.start_char,
                end_char=piece.end_char,
            ),
            summary=summary(piece.content),
            token_count=estimate_tokens(piece.content),
            place=file.path,
            around=around,
        )


def _with_neighbours(pieces: Iterable[TextPiece]) -> Iterator[tuple[str, TextPiece, str]]:
    """Each piece with the texts of the pieces before and after it."""
    before, piece = "", None
    for after in pieces:
        if piece is not None:
            yield before, piece, after.content
            before = piece.content
        piece = after
    if piece is not None:
        yield before, piece, ""


def _around(before: str, after: str) -> str:
    """The end of the text before and the beginning of the text after."""
    return f"{before[-AROUND_CHARACTERS:]}\n{after[:AROUND_CHARACTERS]}"


# ── messages


@dataclass(frozen=True, slots=True)
class AttributedMessage:
    """A message with the name of its author, which stays hidden during a blind vote."""

    message: Message
    name: str


@dataclass(frozen=True, slots=True)
class RoundsToIndex:
    """Rounds of a conversation as they were read: all that chunking needs, outside of the transaction."""

    project_id: str
    conversation_id: str
    first: int
    last: int
    rounds: tuple[Round, ...]
    messages: tuple[AttributedMessage, ...]

    @property
    def characters(self) -> int:
        return sum(len(entry.message.content) for entry in self.messages)

    @property
    def near(self) -> tuple[Message, ...]:
        """The messages to index: those of these rounds, and one on each side, whose neighbours have changed.

        Messages inherited from another conversation are left out, since they are indexed there.
        """
        searchable = [entry.message for entry in self.messages if is_searchable(entry.message)]
        before = [message for message in searchable if message.round_number < self.first][-1:]
        after = [message for message in searchable if message.round_number > self.last][:1]
        within = [m for r in self.rounds if self.first <= r.number <= self.last for m in r.messages]
        return tuple(m for m in (*before, *within, *after) if m.conversation_id == self.conversation_id)


def read_rounds(tx: Tx, conversation_id: str, first: int, last: int) -> RoundsToIndex | None:
    """Reads the new or changed rounds, with two rounds on each side: the messages beside them change as well.

    None if the conversation does not exist.
    """
    project_id = conversations.find_project(tx, conversation_id)
    if project_id is None:
        return None
    rounds = blind.as_told(
        tx, messages.history(tx, conversation_id, before_round=last + 3, rounds=last - first + 5)
    )
    names = _names(tx, rounds)
    attributed = tuple(message for round_ in rounds for message in _attributed(round_, names))
    return RoundsToIndex(project_id, conversation_id, first, last, rounds, attributed)


def write_rounds(
    tx: Tx, to_index: RoundsToIndex, chunked: Mapping[str, tuple[NewChunk, ...]], *, anew: bool = False
) -> bool:
    """Writes the chunks of these rounds.

    False, and nothing is written, if a message was added or changed since the rounds were read: read them
    again.
    """
    if read_rounds(tx, to_index.conversation_id, to_index.first, to_index.last) != to_index:
        return False
    _write(tx, to_index, chunked, anew)
    return True


def write_at_once(tx: Tx, to_index: RoundsToIndex, *, anew: bool = False) -> None:
    """Chunks and writes rounds that were read in the same transaction."""
    _write(tx, to_index, of_messages(to_index.messages), anew)


def _write(tx: Tx, to_index: RoundsToIndex, chunked: Mapping[str, tuple[NewChunk, ...]], anew: bool) -> None:
    for message in to_index.near:
        reusable = _remove(tx, message.id) if anew else NO_REUSABLE_VECTORS
        new = chunked.get(message.id, ())
        numbers = chunks.replace_message(
            tx, message.id, to_index.conversation_id, to_index.project_id, message.created_at, new
        )
        vectors.save(tx, reusable.config, reusable.again(numbers, new))


def _remove(tx: Tx, message_id: str) -> ReusableVectors:
    """Removes all chunks of a message; returns their vectors, to be reused for chunks with the same text."""
    reusable = vectors.of_message(tx, message_id)
    chunks.remove_message(tx, message_id)
    return reusable


def _names(tx: Tx, rounds: Sequence[Round]) -> dict[str, str]:
    """The names of the users who asked in these rounds, by user id."""
    user_ids = {m.created_by for round_ in rounds for m in round_.messages if m.role is Role.USER}
    return {user_id: _user_name(tx, user_id) for user_id in user_ids}


def _user_name(tx: Tx, user_id: str) -> str:
    try:
        return users.get(tx, user_id).name
    except NotFound:
        return "User"


def _attributed(round_: Round, names: Mapping[str, str]) -> list[AttributedMessage]:
    """The question and then the current replies. Replaced versions of a reply are not indexed."""
    questions = [message for message in round_.messages if message.role is Role.USER]
    return [
        *(AttributedMessage(message, names[message.created_by]) for message in questions),
        *(
            AttributedMessage(message, message.voice.name if message.voice else message.speaker)
            for message in round_.replies
        ),
    ]


def of_messages(attributed_messages: Sequence[AttributedMessage]) -> dict[str, tuple[NewChunk, ...]]:
    """The chunks of each message, by message id.

    The order of the messages decides which text is before and after each chunk.
    """
    cuts = [
        (attributed, *cut)
        for attributed in attributed_messages
        if is_searchable(attributed.message)
        for cut in _cuts(attributed.message.content)
    ]
    by_message: dict[str, list[NewChunk]] = {attributed.message.id: [] for attributed in attributed_messages}
    texts = ["", *(content for _, _, content in cuts), ""]
    for (attributed, start, content), before, after in zip(cuts, texts, texts[2:], strict=False):
        around = _around(before, after)
        by_message[attributed.message.id].append(_message_chunk(attributed, start, content, around))
    return {id: tuple(chunks) for id, chunks in by_message.items()}


def is_searchable(message: Message) -> bool:
    return bool(message.content.strip()) and message.status is not Status.FAILED


def _cuts(content: str) -> list[tuple[int, str]]:
    """The position and the text of each chunk."""
    if len(content) <= MESSAGE_CHARACTERS:
        return [(0, content)]
    return [(piece.start_char, piece.content) for piece in chunk(content, "md", characters=CHARACTERS)]


def _message_chunk(attributed: AttributedMessage, start: int, content: str, around: str) -> NewChunk:
    message = attributed.message
    return NewChunk(
        content=content,
        heading=f"{attributed.name}, {format_date(message.created_at)}",
        location=Location(
            start_char=start,
            end_char=start + len(content),
            conversation_id=message.conversation_id,
            round_number=message.round_number,
            speaker=message.speaker,
        ),
        summary=summary(content),
        token_count=estimate_tokens(content),
        place=format_long_date(message.created_at),
        around=around,
        called=attributed.name,
    )


def format_date(ms: int) -> str:
    time = datetime.fromtimestamp(ms / 1000, UTC)
    return f"{time.day} {time:%B} {time.year}"


def format_long_date(ms: int) -> str:
    time = datetime.fromtimestamp(ms / 1000, UTC)
    return f"{time:%A} {time.day} {time:%B} {time.year}"


def summary(content: str) -> str:
    """The first line with at least two words, without Markdown signs and cut to the limit."""
    lines = [line for line in content[:4000].split("\n") if line.strip()]
    line = next((line for line in lines if _TWO_WORDS.search(line)), lines[0] if lines else "")
    cleaned = _without_marks(line)
    return cleaned if len(cleaned) <= SUMMARY_CHARACTERS else cleaned[: SUMMARY_CHARACTERS - 1] + "…"


def _without_marks(line: str) -> str:
    """The line without leading and trailing Markdown signs.

    The end is matched on the reversed line, in linear time however many blanks the line has.
    """
    leading, trailing = _LEADING_MARKS.match(line), _TRAILING_MARKS.match(line[::-1])
    return line[leading.end() if leading else 0 : len(line) - (trailing.end() if trailing else 0)]


def estimate_tokens(content: str) -> int:
    """An estimate of how many tokens a model counts."""
    return max(1, len(content.encode("utf-8", "replace")) // 4)


# ── vectors


async def embed_due(
    library: SearchIndex, limit: int, also: Callable[[Tx, tuple[PendingChunk, ...]], None] | None = None
) -> tuple[PendingChunk, ...]:
    """Embeds the newest chunks that wait for a vector, starting with the project after the last one served.

    Returns those chunks. `also` runs in the transaction that saves their vectors. Raises EmbeddingFailed.
    """

    def save(tx: Tx) -> None:
        vectors.save(tx, config, numbered)
        _charge(tx, due, bills)
        if also is not None:
            also(tx, due)

    embedder = library.embedder
    config, due = await library.db.write(lambda tx: _due(tx, embedder, limit, library.served))
    library.served = due[-1].project_id if due else ""
    bills: list[EmbeddingCharge] = []
    if due:
        try:
            new = await embedder.embed([embedding_input(chunk) for chunk in due], billed=bills.append)
        except EmbeddingFailed:
            if bills:
                await library.db.write(lambda tx: _charge(tx, due, bills))
            raise
        numbered = [(chunk.number, vector) for chunk, vector in zip(due, new, strict=True)]
        await library.db.write(save)
    return due


def _charge(tx: Tx, due: Sequence[PendingChunk], bills: Sequence[EmbeddingCharge]) -> None:
    for row in billing.of_texts(due, bills):
        usage.add(tx, row)


def _due(tx: Tx, embedder: Embedder, limit: int, served: str) -> tuple[int, tuple[PendingChunk, ...]]:
    """The embedding configuration and its pending chunks. A new embedding model makes all chunks pending."""
    config = vectors.set_config(tx, embedder.model, embedder.dimensions)
    return config, vectors.due(tx, limit, after=served)


def embedding_input(due: PendingChunk) -> str:
    """The text to embed: the chunk under its path and heading, or with its author and date."""
    if due.source is Source.FILE:
        return "\n".join(part for part in (due.title, due.heading, due.content) if part)
    name, _, day = due.heading.rpartition(", ")
    return f"({day}) {name}: {due.content}"
