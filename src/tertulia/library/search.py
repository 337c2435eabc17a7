"""Search: one question, over files and everything said, by words and by meaning.

    words ─▶ 200 each ─┐
                       ├─▶ one order per kind ─▶ boosts ─▶ both kinds together ─▶ hits
    meaning ─▶ 200 each┘

Who may not see a project searches nothing in it: that is settled before anything is ranked. When meaning
fails, words go on alone and the answer says why.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from tertulia.core.chunks import Chunk, Filters, Hit, Source
from tertulia.core.errors import TertuliaError
from tertulia.core.users import Actor
from tertulia.library import charges, fuse
from tertulia.library.chunk import is_code
from tertulia.library.embed import Bill, Embedder, EmbeddingFailed
from tertulia.library.query import shaped, terms
from tertulia.library.snippets import Snippet, snippet, words_found
from tertulia.store import access, chunks, retrieval, usage
from tertulia.store import vectors as kept
from tertulia.store.chunks import Facts, Found
from tertulia.store.database import Database, Tx
from tertulia.store.retrieval import Scored
from tertulia.store.vectors import LibraryState

if TYPE_CHECKING:
    from tertulia.library.vectors import Block, Blocks

log = logging.getLogger("tertulia")

EMBEDDED_CHARACTERS = 1_000
LIKE = 0.35
"""From this likeness on, a hit is said to be close in meaning."""
RE_EMBEDDING = (
    "The texts have no vectors of this embedding model yet; until they do, only words are looked for."
)


class Mode(StrEnum):
    HYBRID = "hybrid"
    KEYWORD = "keyword"
    MEANING = "meaning"


_Within = Mapping[Source, tuple[int, ...] | None]
"""The chunks that filters leave of each kind; None where there are none to keep to."""


class Library:
    """What searching needs, handed in once."""

    def __init__(self, db: Database, embedder: Embedder) -> None:
        self.db = db
        self.embedder = embedder
        self.served = ""
        """The project whose texts were the last to be embedded: the next comes after it."""
        self._blocks: object | None = None

    @property
    def blocks(self) -> Blocks:
        """Made with the first search: what it stands on is slow to load, and not every server searches."""
        from tertulia.library.vectors import Blocks

        if not isinstance(self._blocks, Blocks):
            self._blocks = Blocks()
        return self._blocks


@dataclass(frozen=True, slots=True)
class Findings:
    hits: tuple[Hit, ...]
    without_meaning: str | None
    """Why only words were looked for; None when meaning was, or was not wanted."""


@dataclass(frozen=True, slots=True)
class _Question:
    actor: Actor
    project_ids: tuple[str, ...]
    text: str
    filters: Filters
    words: tuple[str, ...]
    sources: tuple[Source, ...]
    with_snippets: bool


@dataclass(frozen=True, slots=True)
class _Legs:
    words: Mapping[Source, Sequence[Scored]]
    meaning: Mapping[Source, Sequence[Scored]]


async def find(
    library: Library,
    actor: Actor,
    project_ids: Sequence[str],
    text: str,
    filters: Filters = Filters(),  # noqa: B008 - it never changes
    limit: int = 10,
    mode: Mode = Mode.HYBRID,
    leaving_out: frozenset[str] = frozenset(),
    with_snippets: bool = True,
) -> Findings:
    """The best hits; `leaving_out` names messages, files and conversations that are not to be found."""
    once = tuple(dict.fromkeys(project_ids))
    question = _Question(actor, once, text, filters, terms(text), _sources(filters), with_snippets)
    without_meaning = library.embedder.unavailable_reason() if mode is not Mode.KEYWORD else None
    if mode is Mode.KEYWORD or without_meaning is not None:
        hits = await library.db.read(lambda tx: _by_words_alone(tx, question, limit, leaving_out))
        return Findings(hits, without_meaning if question.words else None)
    await library.db.read(lambda tx: _must_see(tx, question))
    if not question.words:
        return Findings((), None)
    by_words, (by_meaning, reason) = await asyncio.gather(
        library.db.read(lambda tx: _by_words(tx, question) if mode is not Mode.MEANING else {}),
        _tried(library, question),
    )
    if reason is not None and mode is Mode.MEANING:
        by_words = await library.db.read(lambda tx: _by_words(tx, question))
    legs = _Legs(by_words, by_meaning)
    hits = await library.db.read(lambda tx: _hits(tx, question, legs, limit, leaving_out))
    return Findings(hits, reason)


def _sources(filters: Filters) -> tuple[Source, ...]:
    """A filter that only one kind of thing can pass leaves the other kind out."""
    wants_files = not filters.exclude_files and filters.speaker is None
    wants_talk = not (filters.exclude_conversations or filters.file_types or filters.paths or filters.tags)
    kinds = ((Source.FILE, wants_files), (Source.MESSAGE, wants_talk))
    return tuple(source for source, is_wanted in kinds if is_wanted)


def _must_see(tx: Tx, question: _Question) -> None:
    for project_id in question.project_ids:
        access.to_project(tx, question.actor, project_id)


# ── by words


def _by_words_alone(tx: Tx, question: _Question, limit: int, leaving_out: frozenset[str]) -> tuple[Hit, ...]:
    """All of it in one look: nothing has to be waited for in between."""
    _must_see(tx, question)
    if not question.words:
        return ()
    return _hits(tx, question, _Legs(_by_words(tx, question), {}), limit, leaving_out)


def _by_words(tx: Tx, question: _Question) -> dict[Source, Sequence[Scored]]:
    return {source: _source_by_words(tx, question, source) for source in question.sources}


def _source_by_words(tx: Tx, question: _Question, source: Source) -> Sequence[Scored]:
    words = shaped(question.text) if source is Source.FILE else question.words
    within = retrieval.narrowed(tx, question.project_ids, source, question.filters)
    return retrieval.by_words(
        tx, question.project_ids, source, words, fuse.WEIGHTS[source], fuse.LEG_LIMIT, within
    )


# ── by meaning


async def _tried(library: Library, question: _Question) -> tuple[dict[Source, Sequence[Scored]], str | None]:
    """What meaning finds, or why it could not look: the words' answer must not depend on it."""
    try:
        return await _by_meaning(library, question), None
    except TertuliaError as error:
        return {}, error.message
    except Exception:
        log.exception("searching by meaning failed")
        return {}, "Searching by meaning failed; the server's log says why. Only words were looked for."


async def _by_meaning(library: Library, question: _Question) -> dict[Source, Sequence[Scored]]:
    embedder = library.embedder
    if (reason := embedder.unavailable_reason()) is not None:
        raise EmbeddingFailed(reason)
    config = await library.db.read(lambda tx: kept.find_config(tx, embedder.model, embedder.dimensions))
    if config is None:
        raise EmbeddingFailed(RE_EMBEDDING)
    asked = [_asked(question, source) for source in question.sources]
    bills: list[Bill] = []
    made = await embedder.embed(asked, is_query=True, billed=bills.append)
    if bills:
        await library.db.write(lambda tx: _charge(tx, question, bills))
    vectors = dict(zip(question.sources, made, strict=True))
    found = await library.db.read(lambda tx: _in_database(tx, question, config, vectors))
    return await _in_memory(library, question, config, vectors) if found is None else found


def _charge(tx: Tx, question: _Question, bills: Sequence[Bill]) -> None:
    for row in charges.of_question(question.actor.user_id, question.project_ids, bills):
        usage.add(tx, row)


def _in_database(
    tx: Tx, question: _Question, config: int, vectors: Mapping[Source, bytes]
) -> dict[Source, Sequence[Scored]] | None:
    """None where it compares no vectors, or not all of them yet."""
    found: dict[Source, Sequence[Scored]] = {}
    for source, vector in vectors.items():
        within = retrieval.narrowed(tx, question.project_ids, source, question.filters)
        scored = retrieval.by_meaning(
            tx, config, question.project_ids, source, vector, fuse.LEG_LIMIT, within
        )
        if scored is None:
            return None
        found[source] = scored
    return found


async def _in_memory(
    library: Library, question: _Question, config: int, vectors: Mapping[Source, bytes]
) -> dict[Source, Sequence[Scored]]:
    """Whoever looks everywhere has a hundred blocks: those at hand are looked through in one go."""
    places = await library.db.read(lambda tx: [_place(tx, question, id) for id in question.project_ids])
    at_hand = [(library.blocks.known(place.project_id, config, place.state), place) for place in places]
    ready = [(block, place.within) for block, place in at_hand if block is not None]
    found = await asyncio.to_thread(_nearest, ready, vectors)
    for place in (place for block, place in at_hand if block is None):
        block = await library.blocks.block(library.db, place.project_id, config, library.embedder.dimensions)
        found += await asyncio.to_thread(_nearest, [(block, place.within)], vectors)
    return {
        source: sorted(
            (scored for by_source in found for scored in by_source[source]),
            key=lambda one: (-one.score, one.number),
        )[: fuse.LEG_LIMIT]
        for source in question.sources
    }


@dataclass(frozen=True, slots=True)
class _Place:
    """A project to look in."""

    project_id: str
    state: LibraryState
    within: _Within


def _place(tx: Tx, question: _Question, project_id: str) -> _Place:
    return _Place(project_id, kept.state(tx, project_id), _within(tx, question, project_id))


def _within(tx: Tx, question: _Question, project_id: str) -> _Within:
    narrowed = {
        source: retrieval.narrowed(tx, (project_id,), source, question.filters) for source in question.sources
    }
    return {
        source: None if limits.is_open else retrieval.within(tx, project_id, source, limits)
        for source, limits in narrowed.items()
    }


def _nearest(
    blocks: Sequence[tuple[Block, _Within]], vectors: Mapping[Source, bytes]
) -> list[dict[Source, tuple[Scored, ...]]]:
    return [
        {
            source: block.nearest(vector, source, fuse.LEG_LIMIT, within[source])
            for source, vector in vectors.items()
        }
        for block, within in blocks
    ]


def _asked(question: _Question, source: Source) -> str:
    """What was said is asked for with the content words alone; files with the question as it stands."""
    asked = " ".join(question.words) if source is Source.MESSAGE else question.text.strip()
    return asked[:EMBEDDED_CHARACTERS]


# ── together


def _hits(
    tx: Tx, question: _Question, legs: _Legs, limit: int, leaving_out: frozenset[str]
) -> tuple[Hit, ...]:
    scores: dict[int, float] = {}
    for source in question.sources:
        words, meaning = legs.words.get(source, ()), legs.meaning.get(source, ())
        facts = _facts(tx, question.actor, {one.number for one in (*words, *meaning)}, leaving_out)
        fused = fuse.fuse(words, meaning, facts, question.text)
        strength = _strength(legs, source)
        boosted = fuse.boosted(source, fused, facts, question.text)
        scores |= {number: score * strength for number, score in boosted.items()}
    best = sorted(scores, key=lambda number: (-scores[number], number))[: max(0, limit)]
    found = chunks.get_many(tx, question.actor, best)
    by_words = {one.number for leg in legs.words.values() for one in leg}
    likeness = {one.number: one.score for leg in legs.meaning.values() for one in leg}
    return tuple(
        _hit(found[number], scores[number], number in by_words, likeness.get(number), question)
        for number in best
        if number in found
    )


def _facts(tx: Tx, actor: Actor, numbers: set[int], leaving_out: frozenset[str]) -> dict[int, Facts]:
    facts = chunks.facts(tx, actor, sorted(numbers)) if numbers else {}
    return {
        number: fact
        for number, fact in facts.items()
        if fact.source_id not in leaving_out and fact.group not in leaving_out
    }


def _strength(legs: _Legs, source: Source) -> float:
    """Scaled scores say which is best of its kind; this says how good that is beside the other kind."""
    shares = [] if not any(legs.words.values()) else [_of_best(legs.words, source)]
    # By meaning something is always found; where nothing is, the vectors are still to be made.
    if legs.meaning.get(source):
        shares.append(_of_best(legs.meaning, source))
    return 0.5 + 0.5 * sum(shares) / len(shares) if shares else 1.0


def _of_best(leg: Mapping[Source, Sequence[Scored]], source: Source) -> float:
    best = max(found[0].score for found in leg.values() if found)
    top = leg[source][0].score if leg.get(source) else 0.0
    return max(0.0, top / best) if best > 0 else 1.0


def _hit(found: Found, score: float, by_words: bool, likeness: float | None, question: _Question) -> Hit:
    chunk = found.chunk
    has_names = is_code(chunk.location.path or "")
    if question.with_snippets:
        shown = snippet(chunk.content, question.words, is_code=has_names)
    else:
        shown = Snippet("", (), words_found(chunk.content, question.words, is_code=has_names))
    found_by = tuple(
        name for name, is_so in (("keyword", by_words), ("meaning", likeness is not None)) if is_so
    )
    return Hit(
        chunk_id=chunk.id,
        source_type=chunk.source_type,
        source_id=chunk.source_id,
        project_id=chunk.project_id,
        title=found.title,
        location=chunk.location,
        content=chunk.content,
        snippet=shown.text,
        highlights=shown.highlights,
        score=round(score, 4),
        found_by=found_by,
        why=_why(shown.words_found, chunk, question.words, by_words, likeness),
        summary=chunk.summary,
        token_count=chunk.token_count,
        created_at=chunk.created_at,
        heading=chunk.heading,
    )


def _why(found: int, chunk: Chunk, words: Sequence[str], by_words: bool, likeness: float | None) -> str:
    reasons = []
    if found:
        asked = len(words)
        reasons.append(f"{min(found, asked)} of {asked} words" if asked > 1 else "the word itself")
    elif by_words:
        reasons.append(_where_else(chunk, words))
    if likeness is not None and likeness >= LIKE:
        reasons.append("close in meaning")
    return ", ".join(reasons) or "weak match"


def _where_else(chunk: Chunk, words: Sequence[str]) -> str:
    """Where the words stand that were found and are not in the text itself."""
    if words_found(chunk.location.path or "", words):
        return "words of its path"
    if words_found(chunk.heading, words):
        return "words of its heading" if chunk.location.path else "who said it, or when"
    return "nearby words"
