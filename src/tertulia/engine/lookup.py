"""Looking up: what the project's files and everything said before hold for a question.

Nothing here may break a turn: what cannot be looked up is left out, and the turn goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tertulia.context.budget import tier_for, window_start
from tertulia.context.material import FileText
from tertulia.core.chunks import Hit, Source
from tertulia.core.errors import TertuliaError
from tertulia.core.files import Extracted, ProjectFile, Shelf
from tertulia.core.messages import Round
from tertulia.core.models import RETRIEVED, WORKING_ROUNDS
from tertulia.core.users import Actor
from tertulia.engine.attachments import read_all
from tertulia.engine.files import text_of, texts_kept
from tertulia.engine.gather import Gathered, LookedUp, chosen_in
from tertulia.engine.means import Means
from tertulia.library.search import find
from tertulia.store import chunks, conversations, files, messages
from tertulia.store.database import Tx

SPARE = 3
"""So many times more hits than are shown: some lie in rounds that are shown anyway."""


async def look_up(means: Means, actor: Actor, gathered: Gathered) -> Gathered:
    """The same, with what was brought along, files and hits."""
    said = (*(round_.question for round_ in gathered.rounds), gathered.question)
    gathered = replace(gathered, attached=await read_all(means, said))
    try:
        return replace(gathered, looked_up=await _looked_up(means, actor, gathered))
    except TertuliaError as error:
        means.report(error)
        return gathered


async def _looked_up(means: Means, actor: Actor, gathered: Gathered) -> LookedUp:
    project_id = gathered.project_id
    always, kept_texts, shelf = await means.db.read(lambda tx: _on_the_shelf(tx, project_id))
    whole = await _whole(means, always, kept_texts)
    hits = await _hits(means, actor, gathered, frozenset(file.id for file in always))
    kept, recalled, chosen = await means.db.read(lambda tx: _within_lineage(tx, gathered, hits))
    return LookedUp(whole, shelf, kept, recalled, chosen)


def _on_the_shelf(
    tx: Tx, project_id: str
) -> tuple[tuple[ProjectFile, ...], tuple[Extracted | None, ...], Shelf]:
    always = files.always_included(tx, project_id)
    return always, texts_kept(tx, always), files.shelf(tx, project_id)


async def _whole(
    means: Means, always: Sequence[ProjectFile], kept: Sequence[Extracted | None]
) -> tuple[FileText, ...]:
    """None of a file without text; its place in the list says that it is there."""
    read = [text or await text_of(means, file) for file, text in zip(always, kept, strict=True)]
    return tuple(
        FileText(file.id, file.path, one.text) for file, one in zip(always, read, strict=True) if one.text
    )


async def _hits(means: Means, actor: Actor, gathered: Gathered, known: frozenset[str]) -> tuple[Hit, ...]:
    """Skipped where nothing could be found that is not shown anyway."""
    config = gathered.project.settings.retrieval_config
    shown = _shown_to_all(gathered)
    first = min((round_.number for round_ in shown), default=gathered.turn.round_number)
    conversation_id, project_id = gathered.turn.conversation_id, gathered.project_id
    if not config.enabled or not config.max_results:
        return ()
    if not await means.db.read(lambda tx: chunks.has_outside(tx, project_id, conversation_id, first)):
        return ()
    said = frozenset(message.id for round_ in shown for message in round_.messages)
    beside = await means.db.read(lambda tx: conversations.beside(tx, conversation_id))
    most = max(RETRIEVED[model.tier] for model in gathered.models.values())
    found = await find(
        means.library,
        actor,
        [project_id],
        gathered.question.content,
        limit=min(most, config.max_results) * SPARE,
        leaving_out=known | said | beside | {gathered.question.id},
    )
    return found.hits


def _shown_to_all(gathered: Gathered) -> tuple[Round, ...]:
    """The rounds that even the voice with the smallest window is shown."""
    history = gathered.turn.round_number - 1
    strategy = gathered.project.settings.context_strategy
    working = min(WORKING_ROUNDS[tier_for(model, strategy)] for model in gathered.models.values())
    first = window_start(history, working) + 1
    return tuple(round_ for round_ in gathered.rounds if round_.number >= first)


def _within_lineage(
    tx: Tx, gathered: Gathered, hits: tuple[Hit, ...]
) -> tuple[tuple[Hit, ...], tuple[Round, ...], frozenset[str]]:
    turn = gathered.turn
    kept, recalled = within_lineage(tx, turn.conversation_id, turn.round_number, hits)
    return kept, recalled, chosen_in(tx, turn, recalled)


def within_lineage(
    tx: Tx, conversation_id: str, before_round: int, hits: Sequence[Hit]
) -> tuple[tuple[Hit, ...], tuple[Round, ...]]:
    """Of a conversation's relatives only what it reads before a round, with those rounds; other talk stays.

    A reply that was asked for again is known in its newest version alone, as it is in the working rounds.
    """
    relatives = conversations.relatives(tx, conversation_id) if conversation_id else frozenset()
    kept: list[Hit] = []
    recalled: dict[int, Round] = {}
    read: dict[int, tuple[Round, ...]] = {}
    for hit in hits:
        where = hit.location
        if hit.source_type is Source.FILE or where.conversation_id not in relatives:
            kept.append(hit)
            continue
        number = where.round_number or 0
        if number >= before_round:
            continue
        if number not in read:
            read[number] = messages.history(tx, conversation_id, before_round=number + 1, rounds=1)
        inherited = read[number]
        if any(hit.source_id in _known(round_) for round_ in inherited):
            recalled.update((round_.number, round_) for round_ in inherited)
            kept.append(hit)
    return tuple(kept), tuple(recalled[number] for number in sorted(recalled))


def _known(round_: Round) -> frozenset[str]:
    return frozenset(message.id for message in (round_.question, *round_.replies))
