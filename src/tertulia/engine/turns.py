"""Turns: the commands of a person, from opening a turn to stopping it.

A command checks the request, opens the turn in one transaction (open_turn.py, reopen_round.py,
branching.py) and submits it to the runner (turn_runner.py). From then on the turn runs even when the client
disconnects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tertulia.core.errors import Busy, NotFound, UnknownModel
from tertulia.core.messages import Message
from tertulia.core.turns import Purpose, Turn
from tertulia.core.users import Actor
from tertulia.core.voices import Voice
from tertulia.engine import branching, open_turn, reopen_round
from tertulia.engine.dependencies import Dependencies
from tertulia.engine.node_relay import (
    ConversationsDeleted,
    NodeRelay,
    RelayCommand,
    RetryNowRequest,
    StopRequest,
)
from tertulia.engine.open_turn import OpenedTurn, OpenResult
from tertulia.engine.queue import QueuedTurn
from tertulia.engine.requests import (
    BringBackRequest,
    NewEdit,
    NewSynthesis,
    NewTurn,
    RetryRequest,
    check,
    check_branch_id,
    check_brief,
    check_id,
    fingerprint,
)
from tertulia.engine.turn_runner import TurnRunner
from tertulia.engine.voice_resolution import (
    ProjectScope,
    VoiceFor,
    resolve_chair,
    resolve_voices,
    voice_for_resume,
    voice_for_retry,
)
from tertulia.store import attachments, messages, turns
from tertulia.store.database import Tx
from tertulia.store.transactions import GONE

Opening = Callable[[Tx, str], OpenResult]
"""Opens a turn in a transaction, given the fingerprint of its request."""


@dataclass(frozen=True, slots=True)
class StopTarget:
    turn: Turn
    is_here: bool
    """False while another node runs or queues the turn. True here, and for finished turns."""


class Turns:
    def __init__(
        self,
        dependencies: Dependencies,
        wake_workers: Callable[[], None],
        relay: NodeRelay,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._dependencies = dependencies
        self._relay = relay
        self._runner = TurnRunner(dependencies, wake_workers, sleep)
        self._stopping: set[asyncio.Task[Turn]] = set()
        """The stops that other nodes requested and that are being carried out."""
        relay.on_command(self._on_relay_command)

    # ── opening a turn

    async def open(self, actor: Actor, request: NewTurn) -> OpenedTurn:
        """Opens a round with a new question."""
        check(request)

        def open_in(tx: Tx, request_fingerprint: str) -> OpenResult:
            try:
                scope = ProjectScope(request.conversation_id, request.project_id)
                table, chair = self._resolve(tx, actor, scope, request)
            except (NotFound, UnknownModel):  # A voice may have gone since the request was first sent.
                if duplicate := open_turn.find_duplicate(tx, actor, request.id, request_fingerprint):
                    return duplicate
                raise
            return open_turn.open_round(tx, actor, request, table, request_fingerprint, chair)

        return await self._submit(actor, request, "", open_in)

    async def ask_again(self, actor: Actor, request: NewTurn, asked: Message) -> OpenedTurn:
        """Asks a question of another conversation again, with its attachments."""
        check(request)

        def open_in(tx: Tx, request_fingerprint: str) -> OpenResult:
            scope = ProjectScope(request.conversation_id, request.project_id)
            table, chair = self._resolve(tx, actor, scope, request)
            ids = [attachment.id for attachment in asked.attachments]
            copies = attachments.again(tx, actor, scope.find_project_id(tx, actor), asked, ids)
            return open_turn.open_round(
                tx, actor, replace(request, attachments=copies), table, request_fingerprint, chair
            )

        return await self._submit(actor, request, "", open_in)

    async def edit(self, actor: Actor, conversation_id: str, number: int, request: NewEdit) -> OpenedTurn:
        """Asks the question of a round in other words, in a new branch."""
        check(request.turn_in(conversation_id))
        check_branch_id(request.branch_id)

        def open_in(tx: Tx, request_fingerprint: str) -> OpenResult:
            table, chair = self._resolve(tx, actor, ProjectScope(conversation_id), request)
            return branching.open_edit(
                tx, actor, conversation_id, number, request, table, request_fingerprint, chair
            )

        return await self._submit(actor, request, f"edit:{conversation_id}:{number}", open_in)

    async def bring_back(self, actor: Actor, conversation_id: str, request: BringBackRequest) -> OpenedTurn:
        """Has one voice summarise a branch in the conversation that it left."""
        check_id(request.id)

        def open_in(tx: Tx, request_fingerprint: str) -> OpenResult:
            voice = self._resolve_one(tx, actor, conversation_id, request)
            return branching.open_return(tx, actor, conversation_id, request, voice, request_fingerprint)

        return await self._submit(actor, request, f"return:{conversation_id}", open_in)

    async def resummarise_branch(
        self, actor: Actor, conversation_id: str, asked: Message, request: BringBackRequest
    ) -> OpenedTurn:
        """Summarises in this conversation a branch that was brought back in another one before."""

        def open_in(tx: Tx, request_fingerprint: str) -> OpenResult:
            voice = self._resolve_one(tx, actor, conversation_id, request)
            return branching.open_return_again(
                tx, actor, conversation_id, asked, request.id, voice, request_fingerprint
            )

        return await self._submit(actor, request, f"return:{asked.brings_id}:{conversation_id}", open_in)

    async def synthesise(
        self, actor: Actor, conversation_id: str, number: int, request: NewSynthesis
    ) -> OpenedTurn:
        """Adds a synthesis to a round that was answered before."""
        check_id(request.id)
        check_brief(request.brief)

        def open_in(tx: Tx, request_fingerprint: str) -> OpenResult:
            question = messages.round(tx, conversation_id, number).question
            table = turns.get(tx, actor, question.turn_id).table
            scope = ProjectScope(conversation_id)
            chair = resolve_chair(tx, actor, scope, request.chair, table, self._dependencies.providers)
            return reopen_round.open_synthesis(
                tx, actor, conversation_id, number, request, chair, request_fingerprint
            )

        return await self._submit(actor, request, f"synthesis:{conversation_id}:{number}", open_in)

    async def retry(self, actor: Actor, message_id: str, request: RetryRequest) -> OpenedTurn:
        """Asks the voice of a reply again, or its seat with another model."""
        voice_for = partial(voice_for_retry, request.model, self._dependencies.providers)
        return await self._reopen(actor, message_id, request, Purpose.RETRY, voice_for)

    async def resume(self, actor: Actor, message_id: str, request: RetryRequest) -> OpenedTurn:
        """Continues a reply that broke off."""
        voice_for = partial(voice_for_resume, self._dependencies.providers)
        return await self._reopen(actor, message_id, request, Purpose.CONTINUE, voice_for)

    async def _reopen(
        self, actor: Actor, message_id: str, request: RetryRequest, purpose: Purpose, voice_for: VoiceFor
    ) -> OpenedTurn:
        check_id(request.id)
        check_branch_id(request.branch_id)

        def open_in(tx: Tx, request_fingerprint: str) -> OpenResult:
            return reopen_round.open_retry(
                tx, actor, message_id, request, purpose, voice_for, request_fingerprint
            )

        return await self._submit(
            actor, request, f"{purpose}:{message_id}", open_in, frozenset(request.without)
        )

    async def _submit(
        self,
        actor: Actor,
        request: NewTurn | NewEdit | BringBackRequest | NewSynthesis | RetryRequest,
        target: str,
        open_in: Opening,
        excluded_ids: frozenset[str] = frozenset(),
    ) -> OpenedTurn:
        """Opens the turn and queues it. A request that is sent twice is queued once."""
        if self._runner.is_closing:
            raise Busy("The server is being restarted. Try again in a moment.", retry_after_s=2)
        request_fingerprint = fingerprint(request, target)
        result = await self._dependencies.db.write(lambda tx: open_in(tx, request_fingerprint))
        if result.is_new:
            self._runner.submit(QueuedTurn(result.opened.turn, actor, excluded_ids))
        return result.opened

    def _resolve(
        self, tx: Tx, actor: Actor, scope: ProjectScope, request: NewTurn | NewEdit
    ) -> tuple[tuple[Voice, ...], Voice | None]:
        """The voices that the request names for the table, and the one for the chair."""
        providers = self._dependencies.providers
        table = resolve_voices(tx, actor, scope, request.voices, providers)
        return table, resolve_chair(tx, actor, scope, request.chair, table, providers)

    def _resolve_one(self, tx: Tx, actor: Actor, conversation_id: str, request: BringBackRequest) -> Voice:
        scope = ProjectScope(conversation_id)
        [voice] = resolve_voices(tx, actor, scope, (request.voice,), self._dependencies.providers)
        return voice

    # ── while it runs

    async def wait_until_over(self, actor: Actor, turn: Turn) -> Turn:
        """Waits until the last reply of a turn is stored, whichever node runs it."""
        live = self._dependencies.live.find(turn.id) or self._relay.mirror(turn)
        if live is not None:
            await live.over.wait()
        return await self._dependencies.db.read(lambda tx: turns.get(tx, actor, turn.id))

    async def stop(self, actor: Actor, turn_id: str, reply_id: str | None = None) -> Turn:
        """Stops all voices, or one; a turn that is over stays as it is."""
        target = await self._find(actor, turn_id, reply_id)
        if target.is_here:
            return await self._runner.stop(target.turn, reply_id)
        self._relay.send(StopRequest(turn_id, reply_id))
        return target.turn

    async def retry_now(self, actor: Actor, turn_id: str, reply_id: str | None = None) -> Turn:
        """Ends the wait before a retry at once: for all voices that wait for their provider, or for one."""
        target = await self._find(actor, turn_id, reply_id)
        if target.is_here:
            self._runner.retry_now(turn_id, reply_id)
        else:
            self._relay.send(RetryNowRequest(turn_id, reply_id))
        return target.turn

    def cancel_in(self, conversation_ids: Sequence[str]) -> None:
        """Stops and removes the turns of deleted conversations, on every node."""
        self._runner.cancel_in(conversation_ids)
        self._relay.send(ConversationsDeleted(tuple(conversation_ids)))

    async def close(self) -> None:
        """Interrupts all turns of this node; no further one is opened."""
        await self._runner.close()

    async def _find(self, actor: Actor, turn_id: str, reply_id: str | None) -> StopTarget:
        ended_id = None if self._runner.is_asking(turn_id, reply_id) else reply_id
        return await self._dependencies.db.read(lambda tx: _stop_target(tx, actor, turn_id, ended_id))

    def _on_relay_command(self, command: RelayCommand) -> None:
        """Carries out what a person requested of another node, which has checked the permission."""
        match command:
            case ConversationsDeleted(conversation_ids):
                self._runner.cancel_in(conversation_ids)
            case RetryNowRequest(turn_id, reply_id):
                self._runner.retry_now(turn_id, reply_id)
            case StopRequest(turn_id, reply_id):
                live = self._dependencies.live.find(turn_id)
                if live is not None and live.is_here:
                    task = asyncio.create_task(self._runner.stop(live.turn, reply_id))
                    self._stopping.add(task)
                    task.add_done_callback(self._stopping.discard)


def _stop_target(tx: Tx, actor: Actor, turn_id: str, ended_id: str | None) -> StopTarget:
    """The turn, if the actor may write in its conversation.

    `ended_id` names a reply that nobody is writing now; if it is no reply of this turn, there is no target.
    """
    turn = turns.get(tx, actor, turn_id)
    open_turn.writable(tx, actor, turn.conversation_id)
    is_here = turn.state.is_over or turns.is_here(tx, turn_id)
    if is_here and ended_id is not None and messages.get(tx, actor, ended_id).turn_id != turn.id:
        raise NotFound(GONE)
    return StopTarget(turn, is_here)
