"""Conversation routes: list, read by page, rename, pin, archive, delete."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from tertulia.core.blind import anonymised_turn
from tertulia.core.conversations import Conversation, clean_title
from tertulia.core.events import conversation_topic, project_topic
from tertulia.core.messages import Round
from tertulia.core.turns import Draft, Turn
from tertulia.core.users import Actor
from tertulia.core.votes import Vote
from tertulia.server.access import CurrentActor, InjectedApp
from tertulia.server.responses import json_response, large_json_response, no_content
from tertulia.store import blind, conversations, events, messages, turns, votes
from tertulia.store.database import Tx

router = APIRouter(tags=["conversations"])

FIRST_PAGE = 5
Limit = Annotated[int, Query(ge=1, le=100)]


@dataclass(frozen=True, slots=True)
class ConversationList:
    items: tuple[Conversation, ...]
    next: str | None
    cursor: int
    """The last event of the project's topic that this response includes."""


@dataclass(frozen=True, slots=True)
class ConversationPage:
    conversation: Conversation
    rounds: tuple[Round, ...]
    next_before: int | None
    turns: tuple[Turn, ...]
    """The turns of these rounds, then the queued and running ones."""
    drafts: tuple[Draft, ...]
    votes: tuple[Vote, ...]
    """The votes on the rounds of this page."""
    cursor: int


@dataclass(frozen=True, slots=True)
class OlderRounds:
    rounds: tuple[Round, ...]
    next_before: int | None
    turns: tuple[Turn, ...]
    votes: tuple[Vote, ...]


@dataclass(frozen=True, slots=True)
class NewTitle:
    title: str


@dataclass(frozen=True, slots=True)
class Pin:
    pinned: bool


@dataclass(frozen=True, slots=True)
class Archive:
    archived: bool


@router.get("/api/conversations", response_model=ConversationList)
async def list_conversations(
    tertulia: InjectedApp,
    actor: CurrentActor,
    project_id: str,
    limit: Limit = 50,
    cursor: str | None = None,
    archived: bool = False,
) -> Response:
    def read(tx: Tx) -> ConversationList:
        number = events.last_number(tx, project_topic(project_id))
        page = conversations.page(tx, actor, project_id, limit=limit, cursor=cursor, archived=archived)
        return ConversationList(page.items, page.next, number)

    return json_response(await tertulia.db.read(read))


@router.get("/api/conversations/{conversation_id}", response_model=ConversationPage)
async def get_conversation(
    tertulia: InjectedApp, actor: CurrentActor, request: Request, conversation_id: str
) -> Response:
    """The last rounds, the replies that are being written, and the cursor from which to follow."""
    page = await tertulia.db.read(lambda tx: _page(tx, actor, conversation_id))
    running = tertulia.live.running_in(conversation_id)
    drafts = (draft for live in running for draft in live.drafts())
    done = {message.id for round_ in page.rounds for message in round_.messages}
    return large_json_response(
        request, replace(page, drafts=tuple(draft for draft in drafts if draft.id not in done))
    )


@router.get("/api/conversations/{conversation_id}/messages", response_model=OlderRounds)
async def list_messages(
    tertulia: InjectedApp,
    actor: CurrentActor,
    request: Request,
    conversation_id: str,
    before: Annotated[int | None, Query(ge=1, le=1 << 31)] = None,
    limit: Limit = FIRST_PAGE,
) -> Response:
    """A page of older rounds."""

    def read(tx: Tx) -> OlderRounds:
        page = messages.page(tx, actor, conversation_id, before=before, limit=limit)
        round_votes = votes.of_rounds(tx, actor, conversation_id, page.rounds)
        round_turns = tuple(map(anonymised_turn, turns.of_rounds(tx, page.rounds)))
        return OlderRounds(blind.as_told(tx, page.rounds), page.next_before, round_turns, round_votes)

    return large_json_response(request, await tertulia.db.read(read))


@router.put("/api/conversations/{conversation_id}/title", response_model=Conversation)
async def rename_conversation(
    tertulia: InjectedApp, actor: CurrentActor, conversation_id: str, new: NewTitle
) -> Response:
    title = clean_title(new.title)
    return json_response(
        await tertulia.db.write(lambda tx: conversations.rename(tx, actor, conversation_id, title))
    )


@router.put("/api/conversations/{conversation_id}/pinned", response_model=Conversation)
async def pin_conversation(
    tertulia: InjectedApp, actor: CurrentActor, conversation_id: str, new: Pin
) -> Response:
    return json_response(
        await tertulia.db.write(lambda tx: conversations.set_pinned(tx, actor, conversation_id, new.pinned))
    )


@router.put("/api/conversations/{conversation_id}/archived", response_model=Conversation)
async def archive_conversation(
    tertulia: InjectedApp, actor: CurrentActor, conversation_id: str, new: Archive
) -> Response:
    return json_response(
        await tertulia.db.write(
            lambda tx: conversations.set_archived(tx, actor, conversation_id, new.archived)
        )
    )


@router.delete("/api/conversations/{conversation_id}", status_code=204)
async def remove_conversation(tertulia: InjectedApp, actor: CurrentActor, conversation_id: str) -> Response:
    """Deletes a conversation with its branches, and stops running replies."""
    removed_ids = await tertulia.db.write(lambda tx: conversations.remove(tx, actor, conversation_id))
    tertulia.turns.cancel_in(removed_ids)
    tertulia.wake_workers()
    return no_content()


def _page(tx: Tx, actor: Actor, conversation_id: str) -> ConversationPage:
    """The page without drafts, whose newest text is in memory."""
    cursor = events.last_number(tx, conversation_topic(conversation_id))
    conversation = conversations.get(tx, actor, conversation_id)
    page = messages.page(tx, actor, conversation_id, limit=FIRST_PAGE)
    unfinished = turns.waiting_or_running(tx, conversation_id)
    finished = tuple(turn for turn in turns.of_rounds(tx, page.rounds) if turn.state.is_over)
    round_votes = votes.of_rounds(tx, actor, conversation_id, page.rounds)
    page_turns = tuple(map(anonymised_turn, finished + unfinished))
    rounds = blind.as_told(tx, page.rounds)
    return ConversationPage(conversation, rounds, page.next_before, page_turns, (), round_votes, cursor)
