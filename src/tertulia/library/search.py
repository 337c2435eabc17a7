"""Search: one question, over files and everything said, by words and by meaning.

    words ─▶ 200 each ─┐
                       ├─▶ one order per kind ─▶ boosts ─▶ both kinds together ─▶ those that fit
    meaning ─▶ 200 each┘

The order says which hit is the best, and `relevance` whether it is any good. Who may not see a project
searches nothing in it: that is settled before anything is ranked. When meaning fails, words go on alone and
the answer says why.
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
from tertulia.library import charges, fuse, relevance
from tertulia.library.chunk import is_code
from tertulia.library.embed import Bill, Embedder, EmbeddingFailed
from tertulia.library.everyday import Everyday
from tertulia.library.query import shaped, terms
from tertulia.library.relevance import Nearness
from tertulia.library.snippets import Snippet, found_in, snippet, words_found
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
FIRST = 10
"""One of so many that are ranked first has to fit a question, or nothing enters its prompt."""
AT_ONCE = 50
"""So many more ranked chunks are read at a time while a page of hits is not full."""
RE_EMBEDDING = "The texts have no vectors of this embedding model yet; until they do, search uses words only."


class Mode(StrEnum):
    HYBRID = "hybrid"
    KEYWORD = "keyword"
    MEANING = "meaning"


class Wanted(StrEnum):
    """Which of the ranked hits are given."""

    SEARCH = "search"
    """What a person searches for: all that have a word of its subject, or are near."""
    PROMPT = "prompt"
    """What may be sent to a model unasked: nothing where none of the first fits."""
    ALL = "all"
    """Each that was ranked, for who measures the ranking."""


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
        self._everyday: Everyday | None = None

    @property
    def everyday(self) -> Everyday:
        if self._everyday is None or self._everyday.embedder is not self.embedder:
            self._everyday = Everyday(self.embedder)
        return self._everyday

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
    next: int | None = None
    """At which rank the next page begins; None where there are no more hits."""


@dataclass(frozen=True, slots=True)
class _Question:
    actor: Actor
    project_ids: tuple[str, ...]
    text: str
    filters: Filters
    words: tuple[str, ...]
    sources: tuple[Source, ...]
    with_snippets: bool
    wanted: Wanted
    limit: int
    start: int
    leaving_out: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Legs:
    words: Mapping[Source, Sequence[Scored]]
    meaning: _Meaning


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What meaning found."""

    legs: Mapping[Source, Sequence[Scored]]
    everyday: Mapping[Source, float]
    """How alike the question is to everyday sentences, as it was asked for each kind."""


_NO_MEANING = _Meaning({}, {})


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
    wanted: Wanted = Wanted.SEARCH,
    start: int = 0,
) -> Findings:
    """The best hits from a rank on; `leaving_out` names messages, files and conversations not to be found."""
    question = _Question(
        actor=actor,
        project_ids=tuple(dict.fromkeys(project_ids)),
        text=text,
        filters=filters,
        words=terms(text),
        sources=_sources(filters),
        with_snippets=with_snippets,
        wanted=wanted,
        limit=max(0, limit),
        start=max(0, start),
        leaving_out=leaving_out,
    )
    without_meaning = library.embedder.unavailable_reason() if mode is not Mode.KEYWORD else None
    if mode is Mode.KEYWORD or without_meaning is not None:
        page = await library.db.read(lambda tx: _by_words_alone(tx, question))
        return Findings(page.hits, without_meaning if question.words else None, page.next)
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
    page = await library.db.read(lambda tx: _page(tx, question, legs))
    return Findings(page.hits, reason, page.next)


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


def _by_words_alone(tx: Tx, question: _Question) -> _Page:
    """All of it in one look: nothing has to be waited for in between."""
    _must_see(tx, question)
    if not question.words:
        return _Page((), None)
    return _page(tx, question, _Legs(_by_words(tx, question), _NO_MEANING))


def _by_words(tx: Tx, question: _Question) -> dict[Source, Sequence[Scored]]:
    return {source: _source_by_words(tx, question, source) for source in question.sources}


def _source_by_words(tx: Tx, question: _Question, source: Source) -> Sequence[Scored]:
    words = shaped(question.text) if source is Source.FILE else question.words
    within = retrieval.narrowed(tx, question.project_ids, source, question.filters)
    return retrieval.by_words(
        tx, question.project_ids, source, words, fuse.WEIGHTS[source], fuse.LEG_LIMIT, within
    )


# ── by meaning


async def _tried(library: Library, question: _Question) -> tuple[_Meaning, str | None]:
    """What meaning finds, or why it could not look: the words' answer must not depend on it."""
    try:
        return await _by_meaning(library, question), None
    except TertuliaError as error:
        return _NO_MEANING, error.message
    except Exception:
        log.exception("searching by meaning failed")
        reason = "Searching by meaning failed; the server's log says why. The search used words only."
        return _NO_MEANING, reason


async def _by_meaning(library: Library, question: _Question) -> _Meaning:
    embedder = library.embedder
    if (reason := embedder.unavailable_reason()) is not None:
        raise EmbeddingFailed(reason)
    config = await library.db.read(lambda tx: kept.find_config(tx, embedder.model, embedder.dimensions))
    if config is None:
        raise EmbeddingFailed(RE_EMBEDDING)
    asked = [_asked(question, source) for source in question.sources]
    bills: list[Bill] = []
    try:
        made = await embedder.embed(asked, is_query=True, billed=bills.append)
        everyday = await library.everyday.likeness(made, bills.append)
    finally:
        if bills:
            await library.db.write(lambda tx: _charge(tx, question, bills))
    vectors = dict(zip(question.sources, made, strict=True))
    found = await library.db.read(lambda tx: _in_database(tx, question, config, vectors))
    if found is None:
        found = await _in_memory(library, question, config, vectors)
    return _Meaning(found, dict(zip(question.sources, everyday, strict=True)))


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


@dataclass(frozen=True, slots=True)
class _Page:
    hits: tuple[Hit, ...]
    next: int | None


def _page(tx: Tx, question: _Question, legs: _Legs) -> _Page:
    """Goes on from where the page begins until it is full; a prompt has one page."""
    scores = _scores(tx, question, legs)
    ranked = sorted(scores, key=lambda number: (-scores[number], number))
    judge = _Judge(question, legs, _chunks(tx, question) if ranked else 0, scores)
    if question.wanted is Wanted.PROMPT:
        found = judge.hits(tx, ranked[: question.limit])
        fits = any(one.fit >= relevance.FITS for one in found[:FIRST])
        return _Page(tuple(one.hit for one in found if fits and one.fit >= relevance.BESIDE), None)
    hits: list[Hit] = []
    first, many = question.start, question.limit + 1  # mostly these are enough
    while some := ranked[first : first + many]:
        for rank, one in enumerate(judge.hits(tx, some), start=first):
            if question.wanted is Wanted.ALL or one.is_shown:
                if len(hits) == question.limit:
                    return _Page(tuple(hits), rank)
                hits.append(one.hit)
        first, many = first + many, AT_ONCE
    return _Page(tuple(hits), None)


def _scores(tx: Tx, question: _Question, legs: _Legs) -> dict[int, float]:
    scores: dict[int, float] = {}
    for source in question.sources:
        words, meaning = legs.words.get(source, ()), legs.meaning.legs.get(source, ())
        facts = _facts(tx, question.actor, {one.number for one in (*words, *meaning)}, question.leaving_out)
        fused = fuse.fuse(words, meaning, facts, question.text)
        strength = _strength(legs, source)
        boosted = fuse.boosted(source, fused, facts, question.text)
        scores |= {number: score * strength for number, score in boosted.items()}
    return scores


def _chunks(tx: Tx, question: _Question) -> int:
    return chunks.count(tx, question.project_ids, relevance.LARGEST)


@dataclass(frozen=True, slots=True)
class _Judged:
    hit: Hit
    fit: float
    has_words: bool

    @property
    def is_shown(self) -> bool:
        return self.has_words or self.fit >= relevance.NEAR


class _Judge:
    """Says of ranked chunks how well they fit."""

    def __init__(self, question: _Question, legs: _Legs, chunks: int, scores: Mapping[int, float]) -> None:
        self._question, self._legs, self._chunks, self._scores = question, legs, chunks, scores
        self._asked = relevance.asked(question.words)
        self._by_words = {one.number for leg in legs.words.values() for one in leg}
        meaning = legs.meaning.legs
        self._likeness = {one.number: one.score for leg in meaning.values() for one in leg}
        self._furthest = {
            source: leg[-1].score for source, leg in meaning.items() if len(leg) >= fuse.LEG_LIMIT
        }
        """What meaning did not find is not nearer than this; where it found all, it has no vector yet."""

    def hits(self, tx: Tx, numbers: Sequence[int]) -> list[_Judged]:
        found = chunks.get_many(tx, self._question.actor, numbers)
        return [self._judged(found[number]) for number in numbers if number in found]

    def _judged(self, found: Found) -> _Judged:
        chunk, question = found.chunk, self._question
        in_code = is_code(chunk.location.path or "")
        near = found_in(chunk.content, question.words, is_code=in_code)
        over = found_in(f"{chunk.heading} {chunk.location.path or ''}", question.words, is_code=in_code)
        words = self._asked.count(near | over)
        likeness = self._likeness.get(found.number)
        fit = relevance.fit(words, self._nearness(chunk.source_type, likeness), self._chunks)
        is_by_words = found.number in self._by_words
        hit = _hit(found, self._scores[found.number], fit, len(near), is_by_words, likeness, question)
        return _Judged(hit, fit, self._has_words(words, is_by_words))

    def _has_words(self, words: float, is_by_words: bool) -> bool:
        """Who searches for common words alone means these. Words can stand beside the text, too."""
        if not is_by_words:
            return False
        asked = self._asked
        return words >= relevance.PAIR or not asked.has_subject or not asked.has_common

    def _nearness(self, source: Source, likeness: float | None) -> Nearness | None:
        near = self._furthest.get(source) if likeness is None else likeness
        return None if near is None else Nearness(near, self._legs.meaning.everyday[source])


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
    if legs.meaning.legs.get(source):
        shares.append(_of_best(legs.meaning.legs, source))
    return 0.5 + 0.5 * sum(shares) / len(shares) if shares else 1.0


def _of_best(leg: Mapping[Source, Sequence[Scored]], source: Source) -> float:
    best = max(found[0].score for found in leg.values() if found)
    top = leg[source][0].score if leg.get(source) else 0.0
    return max(0.0, top / best) if best > 0 else 1.0


def _hit(
    found: Found,
    score: float,
    fit: float,
    words: int,
    by_words: bool,
    likeness: float | None,
    question: _Question,
) -> Hit:
    """`words` are those of the question that stand in its text."""
    chunk = found.chunk
    shown = Snippet("", (), words)
    if question.with_snippets:
        shown = snippet(chunk.content, question.words, is_code=is_code(chunk.location.path or ""))
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
        match=relevance.match(fit),
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
    return ", ".join(reasons)


def _where_else(chunk: Chunk, words: Sequence[str]) -> str:
    """Where the words stand that were found and are not in the text itself."""
    if words_found(chunk.location.path or "", words):
        return "words of its path"
    if words_found(chunk.heading, words):
        return "words of its heading" if chunk.location.path else "speaker or date"
    return "nearby words"
