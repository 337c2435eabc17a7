"""Replays: what if this conversation had sat at another table?

A branch is made where the replay begins, and the questions that were asked from there on are asked in it once
more, one after the other, of whom the person wants now. Before each round the price is known; a cap that it
would break ends the replay.
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
"""A replay of more is begun in parts."""
_STOPPED = "Stopped by a person."
_GONE_ON = "Somebody continued this branch. Ask again for the other rounds."
_NOBODY = "The server was restarted, and the person who asked for this may no longer write here."


@dataclass(frozen=True, slots=True)
class NewReplay:
    """What is left out stays as it was in each round."""

    id: str
    """Of the branch, made by the client."""
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
    """None: a price is not known."""
    per_round: tuple[int | None, ...]


class Replays:
    def __init__(self, dependencies: Dependencies, turns_: Turns) -> None:
        self._dependencies = dependencies
        self._turns = turns_
        self._running: dict[str, asyncio.Task[None]] = {}

    async def resume(self) -> None:
        """Goes on with what a server that is no more had begun; where several are, one takes it up."""
        silent_ms = SILENT_MS if self._dependencies.db.is_shared else -1
        found = await self._dependencies.db.read(lambda tx: replays.abandoned(tx, tx.now - silent_ms))
        for replay, request in found:
            if replay.id not in self._running:
                self._start(replay, from_json(NewReplay, request))

    async def close(self) -> None:
        for task in self._running.values():
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    # ── before

    async def estimate(self, actor: Actor, source_id: str, request: NewReplay) -> ReplayEstimate:
        """The questions as they were asked, of whom would be asked now; what they would answer is guessed."""
        asked = await self._dependencies.db.read(
            lambda tx: _seatable(tx, actor, source_id, request, self._dependencies.providers)
        )
        prices = [await self._price(actor, source_id, question, request) for question in asked]
        is_known = all(price is not None for price in prices)
        total = sum(price for price in prices if price is not None) if is_known else None
        return ReplayEstimate(len(asked), total, tuple(prices))

    async def _price(
        self, actor: Actor, source_id: str, asked: SourceQuestion, request: NewReplay
    ) -> int | None:
        setting = asked.setting(request)
        found: Estimate = await estimate(
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
        return found.cost_micros

    # ── during

    async def begin(self, actor: Actor, source_id: str, request: NewReplay) -> ReplayProgress:
        check_branch_id(request.id)
        begun = await self._dependencies.db.write(
            lambda tx: _begin(tx, actor, source_id, request, self._dependencies.providers)
        )
        if begun.is_new:
            self._start(begun.replaying.replay, request)
        return begun.replaying

    def _start(self, replay: Replay, request: NewReplay) -> None:
        task = asyncio.create_task(self._run(replay, request))
        self._running[replay.id] = task
        task.add_done_callback(lambda _: self._running.pop(replay.id, None))

    async def _run(self, replay: Replay, request: NewReplay) -> None:
        try:
            actor = await self._dependencies.db.read(lambda tx: _asker(tx, replay))
            first = await self._mended(actor, replay)
            for number in range(first, replay.to_round + 1):
                if not await self._round(actor, replay, number, request):
                    return
            await self._end(replay, ReplayState.COMPLETE)
        except TertuliaError as error:
            await self._end(replay, ReplayState.STOPPED, error.message)
        except Exception as error:  # noqa: BLE001 - a person who waits is told, whatever it was
            incident = self._dependencies.report(error)
            await self._end(replay, ReplayState.STOPPED, f"Server error. Incident {incident}.")

    async def _mended(self, actor: Actor, replay: Replay) -> int:
        """The next round to ask. One that a crash broke off is first heard to its end."""
        broken = await self._dependencies.db.read(lambda tx: _broken_off(tx, actor, replay))
        if broken is None:
            return replay.done_round + 1
        for reply in broken.replies:
            if reply.status is Status.INTERRUPTED:
                again = RetryRequest(_id_for(replay, reply.id))
                opened = await self._turns.retry(actor, reply.id, again)
                await self._turns.wait_until_over(actor, opened.turn)
        await self._advance(actor, replay, broken.number)
        return broken.number + 1

    async def _round(self, actor: Actor, replay: Replay, number: int, request: NewReplay) -> bool:
        """Whether it goes on after this one."""
        asked = await self._dependencies.db.read(lambda tx: _next(tx, actor, replay.source_id, number))
        if not await self._dependencies.db.read(lambda tx: _is_next(tx, actor, replay, number)):
            await self._end(replay, ReplayState.STOPPED, _GONE_ON)
            return False
        if asked is None:
            await self._dependencies.db.write(lambda tx: _pass_over(tx, replay, number))
            return True
        price = await self._price(actor, replay.id, asked, request)
        now = await self._dependencies.db.read(lambda tx: replays.find(tx, actor, replay.id))
        if now is None or now.state is not ReplayState.RUNNING:
            return False
        if too_much := _over(replay, now.spent_micros, price, number):
            await self._end(replay, ReplayState.STOPPED, too_much)
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
        """One question in the branch, heard to its last word. Asked by two servers, it is one turn."""
        turn_id = _id_for(replay, asked.question.id)
        if asked.turn.purpose is Purpose.SUMMARY:
            told = BringBackRequest(turn_id, setting.voices[0])
            opened = await self._turns.resummarise_branch(actor, replay.id, asked.question, told)
            return await self._turns.wait_until_over(actor, opened.turn)
        kept = await self._dependencies.db.read(
            lambda tx: references.shown_in(tx, actor, replay.id, asked.question)
        )
        new = NewTurn(
            id=turn_id,
            text=asked.question.content,
            voices=setting.voices,
            mode=setting.mode,
            conversation_id=replay.id,
            visibility=setting.visibility,
            reply_to_id=kept.reply_to_id,
            quotes=kept.quotes,
            chair=setting.chair,
            brief=asked.turn.brief,
            is_blind=asked.turn.was_blind and council.get(setting.mode).can_be_blind,
            scope=asked.turn.scope,
        )
        opened = await self._turns.ask_again(actor, new, asked.question)
        return await self._turns.wait_until_over(actor, opened.turn)

    async def stop(self, actor: Actor, conversation_id: str) -> Replay | None:
        """What is being answered is stopped too."""

        def ended(tx: Tx) -> tuple[Replay | None, tuple[Turn, ...]]:
            writable(tx, actor, conversation_id)
            if replays.find(tx, actor, conversation_id) is None:
                return None, ()
            replays.end(tx, conversation_id, ReplayState.STOPPED, _STOPPED)
            return replays.find(tx, actor, conversation_id), turns.waiting_or_running(tx, conversation_id)

        replay, unfinished = await self._dependencies.db.write(ended)
        for turn in unfinished:
            await self._turns.stop(actor, turn.id)
        return replay

    async def _end(self, replay: Replay, state: ReplayState, reason: str = "") -> None:
        await self._dependencies.db.write(lambda tx: replays.end(tx, replay.id, state, reason))


def _asker(tx: Tx, replay: Replay) -> Actor:
    """Whoever began it, as long as they may use this house."""
    user = users.get(tx, replay.created_by)
    if user.suspended:
        raise Conflict(_NOBODY)
    return Actor(user.id, user.role)


def _broken_off(tx: Tx, actor: Actor, replay: Replay) -> Round | None:
    """The round that was being asked, where it stands in the branch already."""
    number = replay.done_round + 1
    if conversations.get(tx, actor, replay.id).round_count != number:
        return None
    here = messages.history(tx, replay.id, before_round=number + 1, rounds=1)
    asked = _find_question(tx, actor, replay.source_id, number)
    is_ours = (
        bool(here) and asked is not None and here[0].question.turn_id == _id_for(replay, asked.question.id)
    )
    return here[0] if is_ours else None


def _id_for(replay: Replay, what: str) -> str:
    """The same turn for the same thing, however often a replay is taken up."""
    return ulid(replay.created_at, sha256(f"{replay.id}:{what}".encode()).digest()[:10])


def _over(replay: Replay, spent_micros: int, price: int | None, number: int) -> str:
    """Why the cap does not allow the next round; empty when it does."""
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
    """A question as it was asked once."""

    question: Message
    turn: Turn

    def setting(self, request: NewReplay) -> ReplaySetting:
        """As it was, but for what the person wants otherwise."""
        voices = request.voices or tuple(map(_wanted, sorted(self.turn.table, key=lambda one: one.seat)))
        if self.turn.purpose is Purpose.SUMMARY:  # one voice tells of a branch, whatever the others do
            return ReplaySetting(voices[:1], self.turn.mode, self.turn.visibility, None)
        mode = request.mode or self.turn.mode
        visibility = request.visibility or self.turn.visibility
        return ReplaySetting(
            voices, mode, visibility, self._chair(request) if council.get(mode).has_chair else None
        )

    def _chair(self, request: NewReplay) -> VoiceRef | None:
        return request.chair or (_wanted(self.turn.chair) if self.turn.chair else None)


def _wanted(voice: Voice) -> VoiceRef:
    return VoiceRef(voice.model, voice.persona_id, voice.effort)


@dataclass(frozen=True, slots=True)
class ReplayCreation:
    replaying: ReplayProgress
    is_new: bool
    """False: this id was sent before, and somebody is at work on it or was."""


def _begin(
    tx: Tx, actor: Actor, source_id: str, request: NewReplay, providers: ProviderRegistry
) -> ReplayCreation:
    """The branch and the replay; sent twice, the same."""
    source = conversations.get(tx, actor, source_id)
    if before := _begun(tx, actor, source_id, request):
        return ReplayCreation(before, is_new=False)
    _seatable(tx, actor, source_id, request, providers)
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


def _begun(tx: Tx, actor: Actor, source_id: str, request: NewReplay) -> ReplayProgress | None:
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


def _seatable(
    tx: Tx, actor: Actor, source_id: str, request: NewReplay, providers: ProviderRegistry
) -> tuple[SourceQuestion, ...]:
    """The questions, when everyone who is to answer them can be seated."""
    source = conversations.get(tx, actor, source_id)
    asked = _questions(tx, actor, source, request)
    scope = ProjectScope(source_id)
    for one in asked:
        setting = one.setting(request)
        council.get(setting.mode).must_seat(len(setting.voices))
        table = resolve_voices(tx, actor, scope, setting.voices, providers)
        resolve_chair(tx, actor, scope, setting.chair, table, providers)
    return asked


def _questions(tx: Tx, actor: Actor, source: Conversation, request: NewReplay) -> tuple[SourceQuestion, ...]:
    if not 1 <= request.from_round <= source.round_count:
        raise Invalid("Choose a round of this conversation to begin at.")
    if source.round_count - request.from_round >= ROUNDS_LIMIT:
        raise Invalid(f"At most {ROUNDS_LIMIT} rounds can be asked again. Begin at a later one.")
    if request.cap_micros is not None and not 0 <= request.cap_micros <= CAP_LIMIT_MICROS:
        raise Invalid("A cap is 0 or more, in millionths of a dollar.")
    numbers = range(request.from_round, source.round_count + 1)
    found = (_find_question(tx, actor, source.id, number) for number in numbers)
    asked = tuple(one for one in found if one is not None)
    if not asked:
        raise Invalid("Nothing is left of these rounds that could be asked again.")
    return asked


def _next(tx: Tx, actor: Actor, source_id: str, number: int) -> SourceQuestion | None:
    if conversations.find(tx, actor, source_id) is None:
        raise Conflict("The conversation whose questions were asked again is gone.")
    return _find_question(tx, actor, source_id, number)


def _is_next(tx: Tx, actor: Actor, replay: Replay, number: int) -> bool:
    """Whether the branch has come so far and no further: else its rounds would not match the others."""
    return conversations.get(tx, actor, replay.id).round_count == number - 1


def _find_question(tx: Tx, actor: Actor, source_id: str, number: int) -> SourceQuestion | None:
    """None for a round that was deleted, or that told of a branch which is gone."""
    here = messages.history(tx, source_id, before_round=number + 1, rounds=1)
    question = here[0].question if here else None
    if question is None or (question.brings_id and not conversations.find(tx, actor, question.brings_id)):
        return None
    return SourceQuestion(question, turns.get(tx, actor, question.turn_id))


def _pass_over(tx: Tx, replay: Replay, number: int) -> None:
    """A round that was deleted is missing in the branch too, so that the others keep their numbers."""
    now = replays.find_running(tx, replay.id)
    if now is not None:
        turns.next_round(tx, replay.id)
        conversations.changed(tx, replay.id)
        replays.advance(tx, replay.id, number, now.spent_micros)
