"""Indexing: files and messages become chunks, each with its place and the columns it is found by.

           body        heading            place            around
code       the text    function           path             identifiers taken apart
prose      the text    heading            path             what stands before and after
message    the text    who said it        date, in words   what was said before and after
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
from tertulia.library import charges
from tertulia.library.chunk import CHARACTERS, Piece, chunk, ending_of, is_code, pieces
from tertulia.library.embed import Bill, Embedder, EmbeddingFailed
from tertulia.library.query import identifiers
from tertulia.library.search import Library
from tertulia.store import blind, chunks, conversations, messages, usage, users, vectors
from tertulia.store.chunks import NewChunk
from tertulia.store.database import Tx
from tertulia.store.vectors import NONE_KEPT, Due, Kept

MESSAGE_CHARACTERS = 1500
"""A message up to this long stays in one piece."""
AROUND_CHARACTERS = 400
SUMMARY_CHARACTERS = 160
_MEANINGFUL = re.compile(r"(?<![\w'’-])\w[\w'’-]*+\W+\w")  # from a word's beginning only: one look at each
_LEAD, _TRAIL = re.compile(r"[\s#>*\-=/`|]*"), re.compile(r"[\s#*=`|]*")


def of_file(file: ProjectFile, text: str, lines: int) -> Iterator[NewChunk]:
    """One after the other: of a large file never all at once. Only brackets and lines cannot be asked for."""
    for before, piece, after in _beside(pieces(text, ending_of(file.path), lines)):
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
            token_count=tokens(piece.content),
            place=file.path,
            around=around,
        )


def _beside(found: Iterable[Piece]) -> Iterator[tuple[str, Piece, str]]:
    """Each piece between the texts before and after it."""
    before, piece = "", None
    for after in found:
        if piece is not None:
            yield before, piece, after.content
            before = piece.content
        piece = after
    if piece is not None:
        yield before, piece, ""


def _around(before: str, after: str) -> str:
    """Of what stands on either side, only what is near."""
    return f"{before[-AROUND_CHARACTERS:]}\n{after[:AROUND_CHARACTERS]}"


# ── what was said


@dataclass(frozen=True, slots=True)
class Said:
    """A message, and who is known to have said it."""

    message: Message
    name: str


@dataclass(frozen=True, slots=True)
class Spoken:
    """Some rounds of a conversation as they were read: all that is needed to cut them."""

    project_id: str
    conversation_id: str
    first: int
    last: int
    rounds: tuple[Round, ...]
    said: tuple[Said, ...]

    @property
    def characters(self) -> int:
        return sum(len(one.message.content) for one in self.said)

    @property
    def near(self) -> tuple[Message, ...]:
        """What is indexed: these rounds, and what stands right beside them, since that has new surroundings.

        An inherited message is found where it was said.
        """
        said = [one.message for one in self.said if can_be_found(one.message)]
        before = [message for message in said if message.round_number < self.first][-1:]
        after = [message for message in said if message.round_number > self.last][:1]
        between = [m for r in self.rounds if self.first <= r.number <= self.last for m in r.messages]
        return tuple(m for m in (*before, *between, *after) if m.conversation_id == self.conversation_id)


def read_rounds(tx: Tx, conversation_id: str, first: int, last: int) -> Spoken | None:
    """Rounds that are new or changed, and the ones beside them, whose surroundings have changed with them."""
    project_id = conversations.find_project(tx, conversation_id)
    if project_id is None:
        return None
    rounds = blind.as_told(
        tx, messages.history(tx, conversation_id, before_round=last + 3, rounds=last - first + 5)
    )
    names = _names(tx, rounds)
    said = tuple(said for round_ in rounds for said in _said(round_, names))
    return Spoken(project_id, conversation_id, first, last, rounds, said)


def write_rounds(
    tx: Tx, spoken: Spoken, chunked: Mapping[str, tuple[NewChunk, ...]], *, anew: bool = False
) -> bool:
    """False: something was said or changed since it was read, so that it must be read again."""
    if read_rounds(tx, spoken.conversation_id, spoken.first, spoken.last) != spoken:
        return False
    _write(tx, spoken, chunked, anew)
    return True


def write_at_once(tx: Tx, spoken: Spoken, *, anew: bool = False) -> None:
    """For what was read in the same transaction."""
    _write(tx, spoken, of_messages(spoken.said), anew)


def _write(tx: Tx, spoken: Spoken, chunked: Mapping[str, tuple[NewChunk, ...]], anew: bool) -> None:
    for message in spoken.near:
        kept = _taken_out(tx, message.id) if anew else NONE_KEPT
        new = chunked.get(message.id, ())
        numbers = chunks.replace_message(
            tx, message.id, spoken.conversation_id, spoken.project_id, message.created_at, new
        )
        vectors.save(tx, kept.config, kept.again(numbers, new))


def _taken_out(tx: Tx, message_id: str) -> Kept:
    """All of it is written anew; the vectors are kept for what says the same again."""
    kept = vectors.of_message(tx, message_id)
    chunks.remove_message(tx, message_id)
    return kept


def _names(tx: Tx, rounds: Sequence[Round]) -> dict[str, str]:
    """Of the people who asked, by their id."""
    asked = {m.created_by for round_ in rounds for m in round_.messages if m.role is Role.USER}
    return {user_id: _user_name(tx, user_id) for user_id in asked}


def _user_name(tx: Tx, user_id: str) -> str:
    try:
        return users.get(tx, user_id).name
    except NotFound:
        return "User"


def _said(round_: Round, names: Mapping[str, str]) -> list[Said]:
    """The question, then the replies as they are now; what they replaced is not found any more."""
    asked = [message for message in round_.messages if message.role is Role.USER]
    return [
        *(Said(message, names[message.created_by]) for message in asked),
        *(
            Said(message, message.voice.name if message.voice else message.speaker)
            for message in round_.replies
        ),
    ]


def of_messages(said: Sequence[Said]) -> dict[str, tuple[NewChunk, ...]]:
    """By message; what stands before and after each piece is looked for in the order given."""
    cuts = [(one, *cut) for one in said if can_be_found(one.message) for cut in _cuts(one.message.content)]
    found: dict[str, list[NewChunk]] = {one.message.id: [] for one in said}
    texts = ["", *(content for _, _, content in cuts), ""]
    for (one, start, content), before, after in zip(cuts, texts, texts[2:], strict=False):
        found[one.message.id].append(_of_message(one, start, content, _around(before, after)))
    return {id: tuple(chunks) for id, chunks in found.items()}


def can_be_found(message: Message) -> bool:
    return bool(message.content.strip()) and message.status is not Status.FAILED


def _cuts(content: str) -> list[tuple[int, str]]:
    """Where each piece begins, and the piece."""
    if len(content) <= MESSAGE_CHARACTERS:
        return [(0, content)]
    return [(piece.start_char, piece.content) for piece in chunk(content, "md", characters=CHARACTERS)]


def _of_message(said: Said, start: int, content: str, around: str) -> NewChunk:
    message = said.message
    return NewChunk(
        content=content,
        heading=f"{said.name}, {date(message.created_at)}",
        location=Location(
            start_char=start,
            end_char=start + len(content),
            conversation_id=message.conversation_id,
            round_number=message.round_number,
            speaker=message.speaker,
        ),
        summary=summary(content),
        token_count=tokens(content),
        place=date_in_words(message.created_at),
        around=around,
        called=said.name,
    )


def date(ms: int) -> str:
    when = datetime.fromtimestamp(ms / 1000, UTC)
    return f"{when.day} {when:%B} {when.year}"


def date_in_words(ms: int) -> str:
    when = datetime.fromtimestamp(ms / 1000, UTC)
    return f"{when:%A} {when.day} {when:%B} {when.year}"


def summary(content: str) -> str:
    """The first line that says something."""
    lines = [line for line in content[:4000].split("\n") if line.strip()]
    line = next((line for line in lines if _MEANINGFUL.search(line)), lines[0] if lines else "")
    cleaned = _bare(line)
    return cleaned if len(cleaned) <= SUMMARY_CHARACTERS else cleaned[: SUMMARY_CHARACTERS - 1] + "…"


def _bare(line: str) -> str:
    """Without the marks around it; its end is looked at once, from behind, however many blanks there are."""
    lead, trail = _LEAD.match(line), _TRAIL.match(line[::-1])
    return line[lead.end() if lead else 0 : len(line) - (trail.end() if trail else 0)]


def tokens(content: str) -> int:
    """About how many a model will count."""
    return max(1, len(content.encode("utf-8", "replace")) // 4)


# ── vectors


async def embed_due(
    library: Library, limit: int, also: Callable[[Tx, tuple[Due, ...]], None] | None = None
) -> tuple[Due, ...]:
    """Gives the newest chunks that wait for a vector theirs, from the next project on; says which.

    `also` is done in the transaction that saves them. Raises EmbeddingFailed.
    """

    def save(tx: Tx) -> None:
        vectors.save(tx, config, made)
        _charge(tx, due, bills)
        if also is not None:
            also(tx, due)

    embedder = library.embedder
    config, due = await library.db.write(lambda tx: _due(tx, embedder, limit, library.served))
    library.served = due[-1].project_id if due else ""
    bills: list[Bill] = []
    if due:
        try:
            new = await embedder.embed([embedded(one) for one in due], billed=bills.append)
        except EmbeddingFailed:
            if bills:
                await library.db.write(lambda tx: _charge(tx, due, bills))
            raise
        made = [(one.number, vector) for one, vector in zip(due, new, strict=True)]
        await library.db.write(save)
    return due


def _charge(tx: Tx, due: Sequence[Due], bills: Sequence[Bill]) -> None:
    for row in charges.of_texts(due, bills):
        usage.add(tx, row)


def _due(tx: Tx, embedder: Embedder, limit: int, served: str) -> tuple[int, tuple[Due, ...]]:
    """Who comes with another way of embedding finds everything due."""
    config = vectors.set_config(tx, embedder.model, embedder.dimensions)
    return config, vectors.due(tx, limit, after=served)


def embedded(due: Due) -> str:
    """What the embedder reads: the chunk under what it belongs to."""
    if due.source is Source.FILE:
        return "\n".join(part for part in (due.title, due.heading, due.content) if part)
    name, _, day = due.heading.rpartition(", ")
    return f"({day}) {name}: {due.content}"
