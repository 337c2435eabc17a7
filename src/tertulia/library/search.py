"""Hybrid search: full-text search and vector search over files and messages, merged into one ranking.

    full-text search ─▶ 200 per source ─┐
                                        ├─▶ rank fusion per source ─▶ boosts ─▶ one list ─▶ relevance filter
    vector search ────▶ 200 per source ─┘

A source is files or messages. The ranking says which hit is the best, and `relevance` whether it is good
enough. Access to every project is checked before anything is searched. If vector search fails, full-text
search answers alone and the result says why.
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
from tertulia.library import billing, rank_fusion, relevance
from tertulia.library.chunk import is_code
from tertulia.library.embedders import Embedder, EmbeddingCharge, EmbeddingFailed
from tertulia.library.query import shaped, terms
from tertulia.library.relevance import Relevance
from tertulia.library.small_talk import SmallTalk
from tertulia.library.snippets import Snippet, found_in, snippet, words_found
from tertulia.store import access, chunks, retrieval, usage
from tertulia.store import vectors as stored_vectors
from tertulia.store.chunks import FoundChunk, RankingFacts
from tertulia.store.database import Database, Tx
from tertulia.store.retrieval import ScoredChunk
from tertulia.store.vectors import VectorGeneration

if TYPE_CHECKING:
    from tertulia.library.vector_cache import ProjectVectors, VectorCache

log = logging.getLogger("tertulia")

EMBEDDED_CHARACTERS = 1_000
CLOSE_SIMILARITY = 0.35
"""From this similarity on, a hit's explanation says "close in meaning"."""
FIRST = 10
"""Unless one of this many top-ranked hits fits the question, no hit enters the prompt."""
READ_SIZE = 50
"""Ranked chunks that are read at a time until a page of hits is full."""
RE_EMBEDDING = "The texts have no vectors of this embedding model yet; until they do, search uses words only."


class SearchMode(StrEnum):
    HYBRID = "hybrid"
    KEYWORD = "keyword"
    MEANING = "meaning"


class SearchQuery(StrEnum):
    """The purpose of a search, which decides which of the ranked hits are returned."""

    SEARCH = "search"
    """For a person: hits that contain a word of the subject, or whose meaning is close."""
    PROMPT = "prompt"
    """For a prompt: hits that fit the question; none if no top-ranked hit fits."""
    ALL = "all"
    """For measuring the ranking: every ranked hit."""


_AllowedNumbers = Mapping[Source, tuple[int, ...] | None]
"""The numbers of the chunks that pass the filters, by source; None if there is no filter."""


class SearchIndex:
    """The database, the embedder and the caches that a search uses."""

    def __init__(self, db: Database, embedder: Embedder) -> None:
        self.db = db
        self.embedder = embedder
        self.served = ""
        """The project whose texts were embedded last; the next batch begins with the project after it."""
        self._vector_cache: object | None = None
        self._small_talk: SmallTalk | None = None

    @property
    def everyday(self) -> SmallTalk:
        if self._small_talk is None or self._small_talk.embedder is not self.embedder:
            self._small_talk = SmallTalk(self.embedder)
        return self._small_talk

    @property
    def blocks(self) -> VectorCache:
        """The cache of vectors, created with the first search because numpy is slow to import."""
        from tertulia.library.vector_cache import VectorCache

        if not isinstance(self._vector_cache, VectorCache):
            self._vector_cache = VectorCache()
        return self._vector_cache


@dataclass(frozen=True, slots=True)
class SearchResult:
    hits: tuple[Hit, ...]
    without_meaning: str | None
    """Why vector search was not used; None if it was used or not requested."""
    next: int | None = None
    """The rank at which the next page begins; None if there are no more hits."""


@dataclass(frozen=True, slots=True)
class _Question:
    actor: Actor
    project_ids: tuple[str, ...]
    text: str
    filters: Filters
    words: tuple[str, ...]
    sources: tuple[Source, ...]
    with_snippets: bool
    purpose: SearchQuery
    limit: int
    start: int
    excluded_ids: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Candidates:
    words: Mapping[Source, Sequence[ScoredChunk]]
    meaning: _Meaning


@dataclass(frozen=True, slots=True)
class _Meaning:
    """The results of vector search."""

    scored: Mapping[Source, Sequence[ScoredChunk]]
    small_talk: Mapping[Source, float]
    """The question's similarity to small talk by source: each source embeds the question differently."""


_NO_MEANING = _Meaning({}, {})


async def find(
    library: SearchIndex,
    actor: Actor,
    project_ids: Sequence[str],
    text: str,
    filters: Filters = Filters(),  # noqa: B008 - it never changes
    limit: int = 10,
    mode: SearchMode = SearchMode.HYBRID,
    excluded_ids: frozenset[str] = frozenset(),
    with_snippets: bool = True,
    purpose: SearchQuery = SearchQuery.SEARCH,
    start: int = 0,
) -> SearchResult:
    """The best hits, from rank `start` on.

    `excluded_ids` holds ids of messages, files and conversations that must not be found. Raises NotFound if
    the user may not see one of the projects.
    """
    question = _Question(
        actor=actor,
        project_ids=tuple(dict.fromkeys(project_ids)),
        text=text,
        filters=filters,
        words=terms(text),
        sources=_sources(filters),
        with_snippets=with_snippets,
        purpose=purpose,
        limit=max(0, limit),
        start=max(0, start),
        excluded_ids=excluded_ids,
    )
    without_meaning = library.embedder.unavailable_reason() if mode is not SearchMode.KEYWORD else None
    if mode is SearchMode.KEYWORD or without_meaning is not None:
        page = await library.db.read(lambda tx: _full_text_page(tx, question))
        return SearchResult(page.hits, without_meaning if question.words else None, page.next)
    return await _find_by_words_and_meaning(library, question, mode)


async def _find_by_words_and_meaning(
    library: SearchIndex, question: _Question, mode: SearchMode
) -> SearchResult:
    await library.db.read(lambda tx: _check_access(tx, question))
    if not question.words:
        return SearchResult((), None)
    by_words, (by_meaning, reason) = await asyncio.gather(
        library.db.read(lambda tx: _by_words(tx, question) if mode is not SearchMode.MEANING else {}),
        _try_by_meaning(library, question),
    )
    if reason is not None and mode is SearchMode.MEANING:
        by_words = await library.db.read(lambda tx: _by_words(tx, question))
    candidates = _Candidates(by_words, by_meaning)
    page = await library.db.read(lambda tx: _page(tx, question, candidates))
    return SearchResult(page.hits, reason, page.next)


def _sources(filters: Filters) -> tuple[Source, ...]:
    """The sources to search. A filter that only files or only messages can pass excludes the other source."""
    with_files = not filters.exclude_files and filters.speaker is None
    with_messages = not (filters.exclude_conversations or filters.file_types or filters.paths or filters.tags)
    sources = ((Source.FILE, with_files), (Source.MESSAGE, with_messages))
    return tuple(source for source, is_searched in sources if is_searched)


def _check_access(tx: Tx, question: _Question) -> None:
    """Raises NotFound if the user may not see one of the projects."""
    for project_id in question.project_ids:
        access.to_project(tx, question.actor, project_id)


# ── full-text search


def _full_text_page(tx: Tx, question: _Question) -> _Page:
    """The answer of full-text search alone, in one transaction, since no embedder has to be awaited."""
    _check_access(tx, question)
    if not question.words:
        return _Page((), None)
    return _page(tx, question, _Candidates(_by_words(tx, question), _NO_MEANING))


def _by_words(tx: Tx, question: _Question) -> dict[Source, Sequence[ScoredChunk]]:
    return {source: _source_by_words(tx, question, source) for source in question.sources}


def _source_by_words(tx: Tx, question: _Question, source: Source) -> Sequence[ScoredChunk]:
    words = shaped(question.text) if source is Source.FILE else question.words
    filters = retrieval.filter_for(tx, question.project_ids, source, question.filters)
    return retrieval.by_words(
        tx, question.project_ids, source, words, rank_fusion.WEIGHTS[source], rank_fusion.LEG_LIMIT, filters
    )


# ── vector search


async def _try_by_meaning(library: SearchIndex, question: _Question) -> tuple[_Meaning, str | None]:
    """The results of vector search, or why it failed: a failure must not break full-text search."""
    try:
        return await _by_meaning(library, question), None
    except TertuliaError as error:
        return _NO_MEANING, error.message
    except Exception:
        log.exception("searching by meaning failed")
        reason = "Searching by meaning failed; the server's log says why. The search used words only."
        return _NO_MEANING, reason


async def _by_meaning(library: SearchIndex, question: _Question) -> _Meaning:
    embedder = library.embedder
    if (reason := embedder.unavailable_reason()) is not None:
        raise EmbeddingFailed(reason)
    config = await library.db.read(
        lambda tx: stored_vectors.find_config(tx, embedder.model, embedder.dimensions)
    )
    if config is None:
        raise EmbeddingFailed(RE_EMBEDDING)
    texts = [_embedding_input(question, source) for source in question.sources]
    bills: list[EmbeddingCharge] = []
    try:
        embedded = await embedder.embed(texts, is_query=True, billed=bills.append)
        small_talk = await library.everyday.likeness(embedded, bills.append)
    finally:
        if bills:
            await library.db.write(lambda tx: _charge(tx, question, bills))
    vectors = dict(zip(question.sources, embedded, strict=True))
    scored = await library.db.read(lambda tx: _in_database(tx, question, config, vectors))
    if scored is None:
        scored = await _in_memory(library, question, config, vectors)
    return _Meaning(scored, dict(zip(question.sources, small_talk, strict=True)))


def _charge(tx: Tx, question: _Question, bills: Sequence[EmbeddingCharge]) -> None:
    for row in billing.of_question(question.actor.user_id, question.project_ids, bills):
        usage.add(tx, row)


def _in_database(
    tx: Tx, question: _Question, config: int, vectors: Mapping[Source, bytes]
) -> dict[Source, Sequence[ScoredChunk]] | None:
    """Compares the vectors with pgvector; None if the database has no vector index or not all vectors yet."""
    by_source: dict[Source, Sequence[ScoredChunk]] = {}
    for source, vector in vectors.items():
        filters = retrieval.filter_for(tx, question.project_ids, source, question.filters)
        scored = retrieval.by_meaning(
            tx, config, question.project_ids, source, vector, rank_fusion.LEG_LIMIT, filters
        )
        if scored is None:
            return None
        by_source[source] = scored
    return by_source


async def _in_memory(
    library: SearchIndex, question: _Question, config: int, vectors: Mapping[Source, bytes]
) -> dict[Source, Sequence[ScoredChunk]]:
    """Compares the vectors with the cached vectors of each project.

    A search over all of a user's projects may need a hundred caches: the current ones are compared in one
    thread call, the others are loaded one by one.
    """
    scopes = await library.db.read(lambda tx: [_scope(tx, question, id) for id in question.project_ids])
    cached = [(library.blocks.known(scope.project_id, config, scope.state), scope) for scope in scopes]
    current = [
        (project_vectors, scope.allowed) for project_vectors, scope in cached if project_vectors is not None
    ]
    results = await asyncio.to_thread(_nearest, current, vectors)
    for scope in (scope for project_vectors, scope in cached if project_vectors is None):
        project_vectors = await library.blocks.block(
            library.db, scope.project_id, config, library.embedder.dimensions
        )
        results += await asyncio.to_thread(_nearest, [(project_vectors, scope.allowed)], vectors)
    return {
        source: sorted(
            (scored for by_source in results for scored in by_source[source]),
            key=lambda scored: (-scored.score, scored.number),
        )[: rank_fusion.LEG_LIMIT]
        for source in question.sources
    }


@dataclass(frozen=True, slots=True)
class _ProjectScope:
    """A project to search, the state of its vectors, and the chunks that pass the filters."""

    project_id: str
    state: VectorGeneration
    allowed: _AllowedNumbers


def _scope(tx: Tx, question: _Question, project_id: str) -> _ProjectScope:
    return _ProjectScope(
        project_id, stored_vectors.generation(tx, project_id), _allowed_numbers(tx, question, project_id)
    )


def _allowed_numbers(tx: Tx, question: _Question, project_id: str) -> _AllowedNumbers:
    filters = {
        source: retrieval.filter_for(tx, (project_id,), source, question.filters)
        for source in question.sources
    }
    return {
        source: None if resolved.is_open else retrieval.within(tx, project_id, source, resolved)
        for source, resolved in filters.items()
    }


def _nearest(
    projects: Sequence[tuple[ProjectVectors, _AllowedNumbers]], vectors: Mapping[Source, bytes]
) -> list[dict[Source, tuple[ScoredChunk, ...]]]:
    return [
        {
            source: project_vectors.nearest(vector, source, rank_fusion.LEG_LIMIT, allowed[source])
            for source, vector in vectors.items()
        }
        for project_vectors, allowed in projects
    ]


def _embedding_input(question: _Question, source: Source) -> str:
    """The text to embed: for messages only the words without stop words, for files the question unchanged."""
    text = " ".join(question.words) if source is Source.MESSAGE else question.text.strip()
    return text[:EMBEDDED_CHARACTERS]


# ── ranking


@dataclass(frozen=True, slots=True)
class _Page:
    hits: tuple[Hit, ...]
    next: int | None


def _page(tx: Tx, question: _Question, candidates: _Candidates) -> _Page:
    """Reads ranked chunks from the page's start until the page is full. A prompt has only one page."""
    scores = _scores(tx, question, candidates)
    ranked = sorted(scores, key=lambda number: (-scores[number], number))
    judge = _Judge(question, candidates, _count_chunks(tx, question) if ranked else 0, scores)
    if question.purpose is SearchQuery.PROMPT:
        judged_hits = judge.hits(tx, ranked[: question.limit])
        has_fitting = any(judged.fit >= relevance.FITS for judged in judged_hits[:FIRST])
        kept_hits = (judged.hit for judged in judged_hits if has_fitting and judged.fit >= relevance.BESIDE)
        return _Page(tuple(kept_hits), None)
    hits: list[Hit] = []
    first, count = question.start, question.limit + 1  # usually these are enough
    while numbers := ranked[first : first + count]:
        for rank, judged in enumerate(judge.hits(tx, numbers), start=first):
            if question.purpose is SearchQuery.ALL or judged.is_shown:
                if len(hits) == question.limit:
                    return _Page(tuple(hits), rank)
                hits.append(judged.hit)
        first, count = first + count, READ_SIZE
    return _Page(tuple(hits), None)


def _scores(tx: Tx, question: _Question, candidates: _Candidates) -> dict[int, float]:
    scores: dict[int, float] = {}
    for source in question.sources:
        words = candidates.words.get(source, ())
        meaning = candidates.meaning.scored.get(source, ())
        numbers = {scored.number for scored in (*words, *meaning)}
        facts = _facts(tx, question.actor, numbers, question.excluded_ids)
        fused = rank_fusion.fuse(words, meaning, facts, question.text)
        weight = _source_weight(candidates, source)
        boosted = rank_fusion.boosted(source, fused, facts, question.text)
        scores |= {number: score * weight for number, score in boosted.items()}
    return scores


def _count_chunks(tx: Tx, question: _Question) -> int:
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
    """Turns ranked chunks into hits and computes how well each fits the question."""

    def __init__(
        self, question: _Question, candidates: _Candidates, chunk_count: int, scores: Mapping[int, float]
    ) -> None:
        self._question, self._scores = question, scores
        self._candidates, self._chunk_count = candidates, chunk_count
        self._traits = relevance.question_terms(question.words)
        self._by_words = {scored.number for results in candidates.words.values() for scored in results}
        meaning = candidates.meaning.scored
        self._similarity = {scored.number: scored.score for results in meaning.values() for scored in results}
        self._lowest_similarity = {
            source: results[-1].score
            for source, results in meaning.items()
            if len(results) >= rank_fusion.LEG_LIMIT
        }
        """An upper bound for chunks that vector search did not return, if its result limit was reached.

        If it was not, a chunk that is missing has no vector yet.
        """

    def hits(self, tx: Tx, numbers: Sequence[int]) -> list[_Judged]:
        by_number = chunks.get_many(tx, self._question.actor, numbers)
        return [self._judge(by_number[number]) for number in numbers if number in by_number]

    def _judge(self, found_chunk: FoundChunk) -> _Judged:
        chunk, question = found_chunk.chunk, self._question
        in_code = is_code(chunk.location.path or "")
        in_text = found_in(chunk.content, question.words, is_code=in_code)
        in_heading = found_in(f"{chunk.heading} {chunk.location.path or ''}", question.words, is_code=in_code)
        words = self._traits.count(in_text | in_heading)
        similarity = self._similarity.get(found_chunk.number)
        fit = relevance.fit(words, self._meaning_scores(chunk.source_type, similarity), self._chunk_count)
        is_by_words = found_chunk.number in self._by_words
        hit = _hit(
            found_chunk,
            self._scores[found_chunk.number],
            fit,
            len(in_text),
            is_by_words,
            similarity,
            question,
        )
        return _Judged(hit, fit, self._has_words(words, is_by_words))

    def _has_words(self, words: float, is_by_words: bool) -> bool:
        """True if full-text search found the chunk by more than common words of the query.

        Common words are enough if the query has no others. A query without common words always counts, even
        if its words are only in the neighbouring text.
        """
        if not is_by_words:
            return False
        traits = self._traits
        return words >= relevance.PAIR or not traits.has_subject or not traits.has_common

    def _meaning_scores(self, source: Source, similarity: float | None) -> Relevance | None:
        bound = self._lowest_similarity.get(source) if similarity is None else similarity
        return None if bound is None else Relevance(bound, self._candidates.meaning.small_talk[source])


def _facts(tx: Tx, actor: Actor, numbers: set[int], excluded_ids: frozenset[str]) -> dict[int, RankingFacts]:
    facts = chunks.facts(tx, actor, sorted(numbers)) if numbers else {}
    return {
        number: fact
        for number, fact in facts.items()
        if fact.source_id not in excluded_ids and fact.group not in excluded_ids
    }


def _source_weight(candidates: _Candidates, source: Source) -> float:
    """The factor that makes scores of files and messages comparable.

    Scaled scores only compare hits of one source; this factor compares the sources by their best raw scores.
    """
    shares = [] if not any(candidates.words.values()) else [_share_of_best(candidates.words, source)]
    # Vector search always finds something; an empty result means that the vectors are not made yet.
    if candidates.meaning.scored.get(source):
        shares.append(_share_of_best(candidates.meaning.scored, source))
    return 0.5 + 0.5 * sum(shares) / len(shares) if shares else 1.0


def _share_of_best(scored: Mapping[Source, Sequence[ScoredChunk]], source: Source) -> float:
    """The best score of one source, as a share of the best score of all sources."""
    best = max(results[0].score for results in scored.values() if results)
    top = scored[source][0].score if scored.get(source) else 0.0
    return max(0.0, top / best) if best > 0 else 1.0


def _hit(
    found_chunk: FoundChunk,
    score: float,
    fit: float,
    words: int,
    by_words: bool,
    similarity: float | None,
    question: _Question,
) -> Hit:
    """Builds the search hit of a chunk, with its snippet if the question asks for one.

    `words` counts the words of the question that the chunk contains.
    """
    chunk = found_chunk.chunk
    excerpt = Snippet("", (), words)
    if question.with_snippets:
        excerpt = snippet(chunk.content, question.words, is_code=is_code(chunk.location.path or ""))
    found_by = tuple(
        name for name, is_found in (("keyword", by_words), ("meaning", similarity is not None)) if is_found
    )
    return Hit(
        chunk_id=chunk.id,
        source_type=chunk.source_type,
        source_id=chunk.source_id,
        project_id=chunk.project_id,
        title=found_chunk.title,
        location=chunk.location,
        content=chunk.content,
        snippet=excerpt.text,
        highlights=excerpt.highlights,
        score=round(score, 4),
        found_by=found_by,
        why=_why(excerpt.words_found, chunk, question.words, by_words, similarity),
        summary=chunk.summary,
        token_count=chunk.token_count,
        created_at=chunk.created_at,
        heading=chunk.heading,
        match=relevance.match(fit),
    )


def _why(matched: int, chunk: Chunk, words: Sequence[str], by_words: bool, similarity: float | None) -> str:
    """The explanation of a hit that the person sees."""
    reasons = []
    if matched:
        total = len(words)
        reasons.append(f"{min(matched, total)} of {total} words" if total > 1 else "the word itself")
    elif by_words:
        reasons.append(_matched_column(chunk, words))
    if similarity is not None and similarity >= CLOSE_SIMILARITY:
        reasons.append("close in meaning")
    return ", ".join(reasons)


def _matched_column(chunk: Chunk, words: Sequence[str]) -> str:
    """The place of the words, if they are not in the chunk's text itself."""
    if words_found(chunk.location.path or "", words):
        return "words of its path"
    if words_found(chunk.heading, words):
        return "words of its heading" if chunk.location.path else "speaker or date"
    return "nearby words"
