"""Looking up: what the project's files and everything said before hold for a question.

Nothing here may break a turn: what cannot be looked up is left out, and the turn goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tertulia.context.prompt_inputs import IncludedFile
from tertulia.core.chunks import Filters, Hit
from tertulia.core.errors import TertuliaError
from tertulia.core.files import Extracted, ProjectFile
from tertulia.core.messages import Round
from tertulia.core.models import RETRIEVED
from tertulia.core.users import Actor
from tertulia.engine.attachments import read_all
from tertulia.engine.dependencies import Dependencies
from tertulia.engine.files import NOT_READ, text_of
from tertulia.engine.turn_inputs import ProjectContext, SearchResults, TurnInputs, chosen_in, cited
from tertulia.library.search import SearchQuery, find
from tertulia.store import branches, messages
from tertulia.store.database import Tx

SPARE = 3
"""So many times more hits than are shown: some lie in rounds that are shown anyway."""


async def look_up(dependencies: Dependencies, actor: Actor, gathered: TurnInputs) -> TurnInputs:
    """The same, with what was brought along, files and hits."""
    said = (*(round_.question for round_ in gathered.rounds), gathered.question)
    gathered = replace(gathered, attached=await read_all(dependencies, said, gathered.most_bytes))
    at_hand = gathered.at_hand
    found = SearchResults(always=await _whole(dependencies, at_hand), shelf=at_hand.shelf)
    if at_hand.is_worth_searching:
        found = await _searched(dependencies, actor, gathered, found)
    return replace(gathered, looked_up=found)


async def _whole(dependencies: Dependencies, at_hand: ProjectContext) -> tuple[IncludedFile, ...]:
    texts = zip(at_hand.always, at_hand.kept, strict=True)
    return tuple([await _file(dependencies, file, kept) for file, kept in texts])


async def _file(dependencies: Dependencies, file: ProjectFile, kept: Extracted | None) -> IncludedFile:
    if kept is NOT_READ:
        return IncludedFile(file.id, file.path, "", is_over_budget=True)
    try:
        read = kept or await text_of(dependencies, file)
    except TertuliaError as error:
        dependencies.report(error)
        return IncludedFile(file.id, file.path, "", error.message)
    return IncludedFile(file.id, file.path, read.text, read.reason)


async def _searched(
    dependencies: Dependencies, actor: Actor, gathered: TurnInputs, found: SearchResults
) -> SearchResults:
    try:
        found = replace(found, hits=await _hits(dependencies, actor, gathered))
        if any(hit.location.conversation_id in gathered.at_hand.kin.lineage for hit in found.hits):
            return await dependencies.db.read(lambda tx: _within_lineage(tx, actor, gathered, found))
        return found
    except Exception as error:  # noqa: BLE001 - whatever the search did, the question can be answered
        dependencies.report(error)
        return replace(found, hits=(), has_failed=True)


async def _hits(dependencies: Dependencies, actor: Actor, gathered: TurnInputs) -> tuple[Hit, ...]:
    """What is shown anyway is not looked for, nor what was said in a branch beside this one."""
    at_hand = gathered.at_hand
    whole = frozenset(file.id for file in at_hand.always)
    said = frozenset(message.id for round_ in gathered.shown_to_all for message in round_.messages)
    most = max(RETRIEVED[model.tier] for model in gathered.models.values())
    found = await find(
        dependencies.library,
        actor,
        [gathered.project_id],
        gathered.question.content,
        _filters(gathered),
        limit=min(most, gathered.project.settings.retrieval_config.max_results) * SPARE,
        leaving_out=whole | said | at_hand.kin.beside | {gathered.question.id},
        with_snippets=False,
        wanted=SearchQuery.PROMPT,
    )
    return found.hits


def _filters(gathered: TurnInputs) -> Filters:
    """What was said earlier in this conversation, and where it branched off, is found in any case."""
    scope, at_hand = gathered.scope, gathered.at_hand
    return Filters(
        exclude_files=not (scope.files and at_hand.shelf.count),
        conversations=() if scope.conversations else tuple(sorted(at_hand.kin.lineage)),
        exclude_conversations=not (scope.conversations or at_hand.kin.lineage),
    )


def _within_lineage(tx: Tx, actor: Actor, gathered: TurnInputs, found: SearchResults) -> SearchResults:
    turn = gathered.turn
    kept, recalled = within_lineage(tx, turn.conversation_id, turn.round_number, found.hits)
    return replace(
        found,
        hits=kept,
        recalled=recalled,
        chosen=chosen_in(tx, turn, recalled),
        cited=cited(tx, actor, (round_.question for round_ in recalled)),
    )


def within_lineage(
    tx: Tx, conversation_id: str, before_round: int, hits: Sequence[Hit]
) -> tuple[tuple[Hit, ...], tuple[Round, ...]]:
    """Of a conversation's relatives only what it reads before a round, with those rounds; other talk stays.

    A reply that was asked for again is known in its newest version alone, as it is in the working rounds.
    """
    relatives = branches.relatives(tx, conversation_id) if conversation_id else frozenset()
    own = [hit for hit in hits if hit.location.conversation_id in relatives]
    numbers = {hit.location.round_number or 0 for hit in own}
    read = messages.some(tx, conversation_id, {number for number in numbers if number < before_round})
    said = {id: number for number, round_ in read.items() for id in _known(round_)}
    elsewhere = {hit.chunk_id for hit in hits} - {hit.chunk_id for hit in own}
    kept = tuple(hit for hit in hits if hit.chunk_id in elsewhere or hit.source_id in said)
    recalled = {said[hit.source_id] for hit in kept if hit.source_id in said}
    return kept, tuple(read[number] for number in sorted(recalled))


def _known(round_: Round) -> frozenset[str]:
    return frozenset(message.id for message in (round_.question, *round_.replies))
