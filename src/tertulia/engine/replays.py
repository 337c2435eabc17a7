"""Replays: repeat the questions of a conversation with other voices, in a branch.

The branch starts at the round before the first repeated question. The questions are asked one after the
other. Before each round its price is estimated; if it would exceed the cap, the replay ends.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from hashlib import sha256

from tertulia import council
from tertulia.core.conversations import Conversation, Visibility
from tertulia.core.errors import Conflict, Invalid, TertuliaError
from tertulia.core.ids import ulid
from tertulia.core.messages import Message, Round, Status
from tertulia.core.replays import Replay, ReplayState
from tertulia.core.serialization import from_json, to_json
from tertulia.core.tables import VoiceRef
from tertulia.core.turns import Purpose, Turn, TurnState
from tertulia.core.users import Actor
from tertulia.core.voices import Voice
from tertulia.engine import references
from tertulia.engine.dependencies import Dependencies
from tertulia.engine.estimates import Estimate, NewEstimate, estimate
from tertulia.engine.open_turn import writable
from tertulia.engine.recovery import SILENT_MS
from tertulia.engine.requests import BringBackRequest, NewTurn, RetryRequest, check_branch_id
from tertulia.engine.turns import Turns
from tertulia.engine.voice_resolution import ProjectScope, resolve_chair, resolve_voices
from tertulia.providers.registry import ProviderRegistry
from tertulia.store import branches, conversations, messages, replays, turns, usage, users
from tertulia.store.database import Tx

CAP_LIMIT_MICROS = 10**15
ROUNDS_LIMIT = 50
"""A longer replay has to be started in parts."""
_STOPPED = "Stopped by a person."
_CONTINUED = "Somebody continued this branch. Ask again for the other rounds."
_NO_ACCESS = "The server was restarted, and the person who asked for this may no longer write here."


@dataclass(frozen=True, slots=True)
class NewReplay:
    """A setting that is not given stays as it was in each round."""

    id: str
    """The id for the branch, made by the client."""
    from_round: int = 1
    voices: tuple[VoiceRef, ...] = ()
    mode: str | None = None
    visibility: Visibility | None = None
    chair: VoiceRef | None = None
    cap_micros: int | None = None


@dataclass(frozen=True, slots=True)
class ReplayProgress:
    conversation: Conversation
    replay: Replay


@dataclass(frozen=True, slots=True)
class ReplayEstimate:
    rounds: int
    cost_micros: int | None
    """None if a price is unknown."""
    per_round: tuple[int | None, ...]


class Replays:
    def __init__(self, dependencies: Dependencies, turns_: Turns) -> None:
        self._dependencies = dependencies
        self._turns = turns_
        self._running: dict[str, asyncio.Task[None]] = {}

    async def resume(self) -> None:
        """Continues the replays of a server that has ended; of several nodes one takes each of them up."""
        silent_ms = SILENT_MS if self._dependencies.db.is_shared else -1
        abandoned = await self._dependencies.db.read(lambda tx: replays.abandoned(tx, tx.now - silent_ms))
        for replay, request in abandoned:
            if replay.id not in self._running:
                self._start(replay, from_json(NewReplay, request))

    async def close(self) -> None:
        for task in self._running.values():
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    # ── the estimate

    async def estimate(self, actor: Actor, source_id: str, request: NewReplay) -> ReplayEstimate:
        """The price of a replay, with expected lengths for the answers."""
        asked = await self._dependencies.db.read(
            lambda tx: _questions_to_repeat(tx, actor, source_id, request, self._dependencies.providers)
        )
        prices = [await self._price(actor, source_id, question, request) for question in asked]
        is_known = all(price is not None for price in prices)
        total = sum(price for price in prices if price is not None) if is_known else None
        return ReplayEstimate(len(asked), total, tuple(prices))

    async def _price(
        self, actor: Actor, source_id: str, asked: SourceQuestion, request: NewReplay
    ) -> int | None:
        setting = asked.setting(request)
        result: Estimate = await estimate(
            self._dependencies,
            actor,
            NewEstimate(
                text=asked.question.content,
                voices=setting.voices,
                conversation_id=source_id,
                visibility=setting.visibility,
                mode=setting.mode,
                chair=setting.chair,
                scope=asked.turn.scope,
            ),
            asked.question,
        )
        return result.cost_micros

    # ── running

    async def begin(self, actor: Actor, source_id: str, request: NewReplay) -> ReplayProgress:
        check_branch_id(request.id)
        creation = await self._dependencies.db.write(
            lambda tx: _begin(tx, actor, source_id, request, self._dependencies.providers)
        )
        if creation.is_new:
            self._start(creation.progress.replay, request)
        return creation.progress

    def _start(self, replay: Replay, request: NewReplay) -> None:
        task = asyncio.create_task(self._run(replay, request))
        self._running[replay.id] = task
        task.add_done_callback(lambda _: self._running.pop(replay.id, None))

    async def _run(self, replay: Replay, request: NewReplay) -> None:
        try:
            actor = await self._dependencies.db.read(lambda tx: _actor_of(tx, replay))
            first = await self._finish_broken_round(actor, replay)
            for number in range(first, replay.to_round + 1):
                if not await self._repeat_round(actor, replay, number, request):
                    return
            await self._end(replay, ReplayState.COMPLETE)
        except TertuliaError as error:
            await self._end(replay, ReplayState.STOPPED, error.message)
        except Exception as error:  # noqa: BLE001 - the person has to learn that the replay ended
            incident = self._dependencies.report(error)
            await self._end(replay, ReplayState.STOPPED, f"Server error. Incident {incident}.")

    async def _finish_broken_round(self, actor: Actor, replay: Replay) -> int:
        """The next round to ask. If a crash interrupted a round, its replies are retried first."""
        broken = await self._dependencies.db.read(lambda tx: _interrupted_round(tx, actor, replay))
        if broken is None:
            return replay.done_round + 1
        for reply in broken.replies:
            if reply.status is Status.INTERRUPTED:
                again = RetryRequest(_id_for(replay, reply.id))
                opened = await self._turns.retry(actor, reply.id, again)
                await self._turns.wait_until_over(actor, opened.turn)
        await self._advance(actor, replay, broken.number)
        return broken.number + 1

    async def _repeat_round(self, actor: Actor, replay: Replay, number: int, request: NewReplay) -> bool:
        """Repeats one round; False if the replay ends with it."""
        asked = await self._dependencies.db.read(lambda tx: _next(tx, actor, replay.source_id, number))
        if not await self._dependencies.db.read(lambda tx: _is_next(tx, actor, replay, number)):
            await self._end(replay, ReplayState.STOPPED, _CONTINUED)
            return False
        if asked is None:
            await self._dependencies.db.write(lambda tx: _skip_round(tx, replay, number))
            return True
        price = await self._price(actor, replay.id, asked, request)
        now = await self._dependencies.db.read(lambda tx: replays.find(tx, actor, replay.id))
        if now is None or now.state is not ReplayState.RUNNING:
            return False
        if reason := _cap_exceeded(replay, now.spent_micros, price, number):
            await self._end(replay, ReplayState.STOPPED, reason)
            return False
        turn = await self._ask(actor, replay, asked, asked.setting(request))
        await self._advance(actor, replay, number)
        if turn.state is TurnState.STOPPED:
            await self._end(replay, ReplayState.STOPPED, _STOPPED)
        return turn.state is not TurnState.STOPPED

    async def _advance(self, actor: Actor, replay: Replay, number: int) -> None:
        spent = await self._dependencies.db.read(lambda tx: usage.of_conversation(tx, actor, replay.id))
        await self._dependencies.db.write(
            lambda tx: replays.advance(tx, replay.id, number, spent.cost_micros)
        )

    async def _ask(self, actor: Actor, replay: Replay, asked: SourceQuestion, setting: ReplaySetting) -> Turn:
        """Asks one question in the branch and waits for its end. If two nodes ask it, it is one turn."""
        turn_id = _id_for(replay, asked.question.id)
        if asked.turn.purpose is Purpose.SUMMARY:
            summary = BringBackRequest(turn_id, setting.voices[0])
            opened = await self._turns.resummarise_branch(actor, replay.id, asked.question, summary)
            return await self._turns.wait_until_over(actor, opened.turn)
        visible = await self._dependencies.db.read(
            lambda tx: references.visible_references(tx, actor, replay.id, asked.question)
        )
        new = NewTurn(
            id=turn_id,
            text=asked.question.content,
            voices=setting.voices,
            mode=setting.mode,
            conversation_id=replay.id,
            visibility=setting.visibility,
            reply_to_id=visible.reply_to_id,
            quotes=visible.quotes,
            chair=setting.chair,
            brief=asked.turn.brief,
            is_blind=asked.turn.was_blind and council.get(setting.mode).can_be_blind,
            scope=asked.turn.scope,
        )
        opened = await self._turns.ask_again(actor, new, asked.question)
        return await self._turns.wait_until_over(actor, opened.turn)

    async def stop(self, actor: Actor, conversation_id: str) -> Replay | None:
        """Stops the replay and the turn that is running."""

        def end(tx: Tx) -> tuple[Replay | None, tuple[Turn, ...]]:
            writable(tx, actor, conversation_id)
            if replays.find(tx, actor, conversation_id) is None:
                return None, ()
            replays.end(tx, conversation_id, ReplayState.STOPPED, _STOPPED)
            return replays.find(tx, actor, conversation_id), turns.waiting_or_running(tx, conversation_id)

        replay, unfinished = await self._dependencies.db.write(end)
        for turn in unfinished:
            await self._turns.stop(actor, turn.id)
        return replay

    async def _end(self, replay: Replay, state: ReplayState, reason: str = "") -> None:
        await self._dependencies.db.write(lambda tx: replays.end(tx, replay.id, state, reason))


def _actor_of(tx: Tx, replay: Replay) -> Actor:
    """The person who started the replay, unless they are suspended."""
    user = users.get(tx, replay.created_by)
    if user.suspended:
        raise Conflict(_NO_ACCESS)
    return Actor(user.id, user.role)


def _interrupted_round(tx: Tx, actor: Actor, replay: Replay) -> Round | None:
    """The round after the last complete one, if the branch has it already."""
    number = replay.done_round + 1
    if conversations.get(tx, actor, replay.id).round_count != number:
        return None
    rounds = messages.history(tx, replay.id, before_round=number + 1, rounds=1)
    asked = _find_question(tx, actor, replay.source_id, number)
    if not rounds or asked is None:
        return None
    is_of_replay = rounds[0].question.turn_id == _id_for(replay, asked.question.id)
    return rounds[0] if is_of_replay else None


def _id_for(replay: Replay, message_id: str) -> str:
    """The id of the turn that repeats a message; the same each time the replay is continued."""
    return ulid(replay.created_at, sha256(f"{replay.id}:{message_id}".encode()).digest()[:10])


def _cap_exceeded(replay: Replay, spent_micros: int, price: int | None, number: int) -> str:
    """Why the cap does not allow the next round; empty if it does."""
    if replay.cap_micros is None:
        return ""
    if price is None:
        return f"The price of round {number} is not known, so the cap could not be kept."
    return f"Round {number} would have gone over the cap." if spent_micros + price > replay.cap_micros else ""


@dataclass(frozen=True, slots=True)
class ReplaySetting:
    voices: tuple[VoiceRef, ...]
    mode: str
    visibility: Visibility
    chair: VoiceRef | None


@dataclass(frozen=True, slots=True)
class SourceQuestion:
    """A question of the source conversation, with the turn that opened its round."""

    question: Message
    turn: Turn

    def setting(self, request: NewReplay) -> ReplaySetting:
        """The setting of the round, with what the request changes."""
        voices = request.voices or tuple(map(_ref_to, sorted(self.turn.table, key=lambda voice: voice.seat)))
        if self.turn.purpose is Purpose.SUMMARY:  # One voice summarises a branch.
            return ReplaySetting(voices[:1], self.turn.mode, self.turn.visibility, None)
        mode = request.mode or self.turn.mode
        visibility = request.visibility or self.turn.visibility
        return ReplaySetting(
            voices, mode, visibility, self._chair(request) if council.get(mode).has_chair else None
        )

    def _chair(self, request: NewReplay) -> VoiceRef | None:
        return request.chair or (_ref_to(self.turn.chair) if self.turn.chair else None)


def _ref_to(voice: Voice) -> VoiceRef:
    return VoiceRef(voice.model, voice.persona_id, voice.effort)


@dataclass(frozen=True, slots=True)
class ReplayCreation:
    progress: ReplayProgress
    is_new: bool
    """False if the same request was sent before."""


def _begin(
    tx: Tx, actor: Actor, source_id: str, request: NewReplay, providers: ProviderRegistry
) -> ReplayCreation:
    """Adds the branch and the replay; a request that is sent twice adds them once."""
    source = conversations.get(tx, actor, source_id)
    if progress := _find_duplicate(tx, actor, source_id, request):
        return ReplayCreation(progress, is_new=False)
    _questions_to_repeat(tx, actor, source_id, request, providers)
    branch = branches.add(
        tx, actor, source_id, at_round=request.from_round - 1, id=request.id, title=_title(source)
    )
    replay = Replay(
        id=branch.id,
        source_id=source_id,
        from_round=request.from_round,
        to_round=source.round_count,
        done_round=request.from_round - 1,
        cap_micros=request.cap_micros,
        spent_micros=0,
        state=ReplayState.RUNNING,
        reason="",
        created_by=actor.user_id,
        created_at=tx.now,
    )
    replays.add(tx, replay, to_json(request))
    return ReplayCreation(ReplayProgress(branch, replay), is_new=True)


def _find_duplicate(tx: Tx, actor: Actor, source_id: str, request: NewReplay) -> ReplayProgress | None:
    branch = conversations.find(tx, actor, request.id)
    if branch is None:
        return None
    replay = replays.find(tx, actor, request.id)
    if replay is None or replay.created_by != actor.user_id:
        raise Conflict("There is already a conversation with this id. Make a new id and try again.")
    if (replay.source_id, replays.request(tx, replay.id)) != (source_id, to_json(request)):
        raise Conflict("This id was already used for another replay. Make a new id and try again.")
    return ReplayProgress(branch, replay)


def _title(source: Conversation) -> str:
    return f"Asked again: {source.title}"[:200] if source.title else "Asked again"


def _questions_to_repeat(
    tx: Tx, actor: Actor, source_id: str, request: NewReplay, providers: ProviderRegistry
) -> tuple[SourceQuestion, ...]:
    """The questions; raises an error unless the voices of each can be seated."""
    source = conversations.get(tx, actor, source_id)
    questions = _questions(tx, actor, source, request)
    scope = ProjectScope(source_id)
    for question in questions:
        setting = question.setting(request)
        council.get(setting.mode).must_seat(len(setting.voices))
        table = resolve_voices(tx, actor, scope, setting.voices, providers)
        resolve_chair(tx, actor, scope, setting.chair, table, providers)
    return questions


def _questions(tx: Tx, actor: Actor, source: Conversation, request: NewReplay) -> tuple[SourceQuestion, ...]:
    if not 1 <= request.from_round <= source.round_count:
        raise Invalid("Choose a round of this conversation to begin at.")
    if source.round_count - request.from_round >= ROUNDS_LIMIT:
        raise Invalid(f"At most {ROUNDS_LIMIT} rounds can be asked again. Begin at a later one.")
    if request.cap_micros is not None and not 0 <= request.cap_micros <= CAP_LIMIT_MICROS:
        raise Invalid("A cap is 0 or more, in millionths of a dollar.")
    numbers = range(request.from_round, source.round_count + 1)
    found = (_find_question(tx, actor, source.id, number) for number in numbers)
    questions = tuple(question for question in found if question is not None)
    if not questions:
        raise Invalid("Nothing is left of these rounds that could be asked again.")
    return questions


def _next(tx: Tx, actor: Actor, source_id: str, number: int) -> SourceQuestion | None:
    if conversations.find(tx, actor, source_id) is None:
        raise Conflict("The conversation whose questions were asked again is gone.")
    return _find_question(tx, actor, source_id, number)


def _is_next(tx: Tx, actor: Actor, replay: Replay, number: int) -> bool:
    """Whether the branch has no further rounds yet; a person may have continued it."""
    return conversations.get(tx, actor, replay.id).round_count == number - 1


def _find_question(tx: Tx, actor: Actor, source_id: str, number: int) -> SourceQuestion | None:
    """The question of a round; None if it was deleted, or if it summarised a branch that was deleted."""
    here = messages.history(tx, source_id, before_round=number + 1, rounds=1)
    question = here[0].question if here else None
    if question is None or (question.brings_id and not conversations.find(tx, actor, question.brings_id)):
        return None
    return SourceQuestion(question, turns.get(tx, actor, question.turn_id))


def _skip_round(tx: Tx, replay: Replay, number: int) -> None:
    """Skips the number of a deleted round, so that later rounds keep the numbers of the source."""
    now = replays.find_running(tx, replay.id)
    if now is not None:
        turns.next_round(tx, replay.id)
        conversations.changed(tx, replay.id)
        replays.advance(tx, replay.id, number, now.spent_micros)
