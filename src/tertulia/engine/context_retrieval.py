"""Context retrieval: completes a turn's records with the texts of its files and with search results.

A failure here does not end the turn: what cannot be read or found is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tertulia.context.prompt_inputs import ConversationInputs, FileInputs, IncludedFile, SearchInputs
from tertulia.core.chunks import Filters, Hit
from tertulia.core.errors import TertuliaError
from tertulia.core.files import Extracted, ProjectFile
from tertulia.core.messages import Message, Round
from tertulia.core.models import RETRIEVED
from tertulia.core.users import Actor
from tertulia.engine.attachments import read_all
from tertulia.engine.dependencies import Dependencies
from tertulia.engine.files import NOT_READ, text_of
from tertulia.engine.turn_inputs import TurnInputs
from tertulia.engine.turn_records import (
    FileRecords,
    SearchPlan,
    TurnRecords,
    best_reply_ids,
    referenced_messages,
)
from tertulia.library.search import SearchQuery, find
from tertulia.store import branches, messages
from tertulia.store.database import Tx

SPARE = 3
"""How many times more hits are searched than shown, since some lie in rounds that are shown anyway."""


@dataclass(frozen=True, slots=True)
class _SearchResults:
    hits: tuple[Hit, ...] = ()
    recalled_rounds: tuple[Round, ...] = ()
    """The rounds of this conversation that hold a hit."""
    best_reply_ids: frozenset[str] = frozenset()
    """Ids of the replies voted best in these rounds."""
    referenced_messages: tuple[Message, ...] = ()
    """The messages that the questions of these rounds reply to and quote."""
    has_failed: bool = False


async def retrieve(dependencies: Dependencies, actor: Actor, records: TurnRecords) -> TurnInputs:
    """The complete inputs of a turn: its records, the texts of its files, and the search results."""
    files = await _read_files(dependencies, records)
    results = _SearchResults()
    if records.search is not None:
        results = await _search(dependencies, actor, records, records.search)
    config = records.project.settings.retrieval_config
    return TurnInputs(
        records,
        _conversation_inputs(records, results),
        files,
        SearchInputs(
            results.hits,
            results.recalled_rounds,
            results.has_failed,
            config.enabled,
            records.scope,
            config.max_results,
        ),
    )


def _conversation_inputs(records: TurnRecords, results: _SearchResults) -> ConversationInputs:
    conversation = records.conversation
    return ConversationInputs(
        title=conversation.title,
        rounds=conversation.rounds,
        question=conversation.question,
        visibility=records.turn.visibility,
        referenced_messages=conversation.referenced_messages + results.referenced_messages,
        branch_rounds=conversation.branch_rounds,
        best_reply_ids=conversation.best_reply_ids | results.best_reply_ids,
    )


# ── files


async def _read_files(dependencies: Dependencies, records: TurnRecords) -> FileInputs:
    conversation = records.conversation
    questions = (*(round_.question for round_ in conversation.rounds), conversation.question)
    attachment_texts = await read_all(dependencies, questions, records.text_limit_bytes)
    included = await _read_included(dependencies, records.files)
    return FileInputs(included, records.files.listing, attachment_texts)


async def _read_included(dependencies: Dependencies, files: FileRecords) -> tuple[IncludedFile, ...]:
    pairs = zip(files.always_included, files.texts, strict=True)
    return tuple([await _included_file(dependencies, file, stored) for file, stored in pairs])


async def _included_file(
    dependencies: Dependencies, file: ProjectFile, stored: Extracted | None
) -> IncludedFile:
    if stored is NOT_READ:
        return IncludedFile(file.id, file.path, "", is_over_budget=True)
    try:
        extracted = stored or await text_of(dependencies, file)
    except TertuliaError as error:
        dependencies.report(error)
        return IncludedFile(file.id, file.path, "", error.message)
    return IncludedFile(file.id, file.path, extracted.text, extracted.reason)


# ── search


async def _search(
    dependencies: Dependencies, actor: Actor, records: TurnRecords, plan: SearchPlan
) -> _SearchResults:
    try:
        hits = await _hits(dependencies, actor, records, plan)
        if any(hit.location.conversation_id in plan.tree.lineage for hit in hits):
            return await dependencies.db.read(lambda tx: _recall(tx, actor, records, hits))
        return _SearchResults(hits)
    except Exception as error:  # noqa: BLE001 - the question can be answered without search results
        dependencies.report(error)
        return _SearchResults(has_failed=True)


async def _hits(
    dependencies: Dependencies, actor: Actor, records: TurnRecords, plan: SearchPlan
) -> tuple[Hit, ...]:
    """The hits for the question, except for what is shown anyway and what was said in other branches."""
    file_ids = frozenset(file.id for file in records.files.always_included)
    message_ids = frozenset(message.id for round_ in plan.certain_rounds for message in round_.messages)
    question = records.conversation.question
    most = max(RETRIEVED[model.tier] for model in records.models.values())
    results = await find(
        dependencies.library,
        actor,
        [records.project.id],
        question.content,
        _filters(records, plan),
        limit=min(most, records.project.settings.retrieval_config.max_results) * SPARE,
        excluded_ids=file_ids | message_ids | plan.tree.beside | {question.id},
        with_snippets=False,
        purpose=SearchQuery.PROMPT,
    )
    return results.hits


def _filters(records: TurnRecords, plan: SearchPlan) -> Filters:
    """Whatever the scope, the search covers this conversation and those it branched from."""
    scope, lineage = records.scope, plan.tree.lineage
    return Filters(
        exclude_files=not (scope.files and records.files.listing.count),
        conversations=() if scope.conversations else tuple(sorted(lineage)),
        exclude_conversations=not (scope.conversations or lineage),
    )


def _recall(tx: Tx, actor: Actor, records: TurnRecords, hits: Sequence[Hit]) -> _SearchResults:
    turn = records.turn
    visible, recalled = within_lineage(tx, turn.conversation_id, turn.round_number, hits)
    return _SearchResults(
        visible,
        recalled,
        best_reply_ids(tx, turn, recalled),
        referenced_messages(tx, actor, (round_.question for round_ in recalled)),
    )


def within_lineage(
    tx: Tx, conversation_id: str, before_round: int, hits: Sequence[Hit]
) -> tuple[tuple[Hit, ...], tuple[Round, ...]]:
    """Drops the hits in this conversation's tree that it does not show before a round; hits elsewhere stay.
    Also returns the rounds of the hits that stay.

    Only the newest version of a reply counts, as in the working rounds.
    """
    relatives = branches.relatives(tx, conversation_id) if conversation_id else frozenset()
    own = [hit for hit in hits if hit.location.conversation_id in relatives]
    numbers = {hit.location.round_number or 0 for hit in own}
    rounds = messages.some(tx, conversation_id, {number for number in numbers if number < before_round})
    number_of = {id: number for number, round_ in rounds.items() for id in _current_ids(round_)}
    elsewhere = {hit.chunk_id for hit in hits} - {hit.chunk_id for hit in own}
    visible = tuple(hit for hit in hits if hit.chunk_id in elsewhere or hit.source_id in number_of)
    recalled = {number_of[hit.source_id] for hit in visible if hit.source_id in number_of}
    return visible, tuple(rounds[number] for number in sorted(recalled))


def _current_ids(round_: Round) -> frozenset[str]:
    """Ids of the question and of the newest version of each reply."""
    return frozenset(message.id for message in (round_.question, *round_.replies))
