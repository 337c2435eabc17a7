"""Ask: one call of one voice within a turn.

assemble (context) ─▶ call the model (providers) ─▶ save: reply, receipt and usage in one transaction
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from tertulia.context.assemble import Assembled, DoesNotFit, assemble
from tertulia.context.budget import output_limit, request_tokens
from tertulia.core.errors import Busy, StorageFull, TertuliaError, UnknownModel
from tertulia.core.events import conversation_topic
from tertulia.core.findings import ParsedReply
from tertulia.core.messages import Failure, Message, ReadReply, Status, Step, Thinking, Usage, speaker_of
from tertulia.core.models import Model, TokenCount, cost_micros
from tertulia.core.passages import Passage
from tertulia.core.reply_parsing import OUTLINE_SCHEMA, as_markdown, parse_reply
from tertulia.core.step_instructions import ANSWER, StepInstructions
from tertulia.core.turns import Draft, RetryNotice
from tertulia.core.voices import Voice
from tertulia.engine.attachments import pictures_of
from tertulia.engine.dependencies import Dependencies
from tertulia.engine.live_turn import LiveReply, LiveTurn
from tertulia.engine.requests import available
from tertulia.engine.sources import source_list
from tertulia.engine.turn_inputs import TurnInputs
from tertulia.providers.interface import (
    Completed,
    ModelRequest,
    ProviderError,
    RetryPending,
    StreamItem,
    TextDelta,
    ThinkingDelta,
)
from tertulia.store import drafts, messages, receipts, turns, usage
from tertulia.store.database import Tx

_NO_OUTLINE = Failure("malformed", "The agreement map could not be read from the summary.")

SAVE_WAITS_S = (0.2, 1.0, 5.0)


@dataclass(frozen=True, slots=True)
class AskOutcome:
    status: Status
    failure: Failure | None = None
    count: TokenCount | None = None


def _failure(end: Completed, *, has_text: bool) -> Failure | None:
    """Why a reply that the provider has ended is not complete; None if it is."""
    if end.finish == "filtered":
        cut = "Stopped by the provider's safety filter."
        declined = "This model declined. Its safety filter stopped the reply."
        return Failure("filtered", cut if has_text else declined, end.reason)
    if end.finish == "length":
        return Failure("length", "The reply reached its length limit.", end.reason)
    if not has_text:
        return Failure("empty", "The model ended without writing a reply.", end.reason)
    if end.is_early:
        return Failure("cut", "The provider ended the reply early.", end.reason)
    return None


class Ask:
    def __init__(
        self,
        dependencies: Dependencies,
        live: LiveTurn,
        inputs: TurnInputs,
        voice: Voice,
        step: StepInstructions = ANSWER,
        replaced: Message | None = None,
    ) -> None:
        self.id = dependencies.new_id()
        self._dependencies = dependencies
        self._live = live
        self._inputs = inputs
        self._voice = voice
        self._step = step
        self._replaced = replaced
        """The reply that this one replaces."""
        self._cancelled: AskOutcome | None = None
        self._calling: asyncio.Task[AskOutcome] | None = None
        self._wait: RetryPending | None = None
        self._model: Model | None = None
        self._assembled: Assembled | None = None
        self._storing_found: asyncio.Task[None] | None = None
        """Stores the search results while the model is called; the end of the reply waits for it."""
        self._began_at = dependencies.monotonic()
        self._first_at: float | None = None
        self._thought_until: float | None = None
        self._reply: LiveReply

    # ── ending early

    def stop(self) -> None:
        """Ends the reply because a person stopped it."""
        self._cancel(AskOutcome(Status.STOPPED))

    def interrupt(self) -> None:
        """Ends the reply because the server shuts down."""
        failure = Failure("restarted", "The server was restarted while this was being written.")
        self._cancel(AskOutcome(Status.INTERRUPTED, failure))

    def retry_now(self) -> None:
        """Ends the wait before a retry."""
        waiting = self._reply.waiting if self._wait else None
        if self._wait and waiting and not self._wait.skipped.is_set():
            self._wait.skipped.set()
            now = replace(waiting, until=self._dependencies.clock())
            self._dependencies.live.set_retry(self._live, self._reply, self.id, now)

    def _cancel(self, outcome: AskOutcome) -> None:
        if self._cancelled is None:
            self._cancelled = outcome
            if self._calling is not None:
                self._calling.cancel()

    # ── running

    async def run(self) -> Message:
        self._reply = self._dependencies.live.start_reply(self._live, self._draft())
        outcome = self._cancelled or await self._call()
        message = self._message(outcome)
        if self._storing_found is not None:
            await self._storing_found
        message = await self._save(message)
        self._dependencies.live.finish_reply(self._live, message)
        return message

    def _draft(self) -> Draft:
        turn = self._live.turn
        return Draft(
            id=self.id,
            turn_id=turn.id,
            conversation_id=turn.conversation_id,
            round_number=turn.round_number,
            voice=self._voice,
            role=self._step.role,
            content=self._partial_reply,
            thinking="",
            number=0,
            started_at=self._dependencies.clock(),
            replaces_id=self._replaced.id if self._replaced else None,
            step=self._step.step,
            read_replies=self._read_replies,
        )

    @property
    def _read_replies(self) -> tuple[ReadReply, ...]:
        return tuple(shown.as_read() for shown in self._step.shown)

    @property
    def _partial_reply(self) -> str:
        return self._inputs.plan.partial_reply(self._replaced)

    async def _call(self) -> AskOutcome:
        """Runs the call in its own task: cancelling the task closes the provider's stream at once."""
        self._calling = asyncio.create_task(self._call_model())
        try:
            return await self._calling
        except asyncio.CancelledError:
            if self._cancelled is None:
                raise
            return self._cancelled

    async def _call_model(self) -> AskOutcome:
        try:
            model = self._model = available(self._voice.model, self._dependencies.providers)
            inputs = self._inputs.prompt_inputs(
                self._voice, model, output_limit(model), self._step, self._partial_reply
            )
            self._assembled = assemble(inputs, self._dependencies.counter(model))
            if self._assembled.found:
                self._storing_found = asyncio.create_task(self._store_found(self._assembled.found))
            prompt = self._assembled.prompt
            pictures = await pictures_of(self._dependencies, prompt)
            call = ModelRequest(
                model,
                prompt,
                output_limit(model),
                schema=self._schema(model),
                pictures=pictures,
                effort=self._assembled.receipt.effort,
            )
            return await self._consume(self._dependencies.providers.stream(call))
        except DoesNotFit as error:
            return AskOutcome(Status.FAILED, Failure("context_length", error.message))
        except UnknownModel as error:
            return AskOutcome(Status.FAILED, Failure("unavailable", error.message))
        except ProviderError as error:
            return self._failed(error)
        except Exception as error:  # noqa: BLE001 - the failure of one voice must not end the others
            incident = self._dependencies.report(error)
            return AskOutcome(
                self._broken_status(),
                Failure(
                    "internal", f"The error is in this server, not at the provider. Incident {incident}."
                ),
            )

    async def _store_found(self, passages: Sequence[Passage]) -> None:
        """Stores the search results to show below the question; a failure must not cost the reply."""
        try:
            turn = await self._dependencies.db.write(
                lambda tx: turns.add_found(tx, self._live.turn.id, passages)
            )
        except TertuliaError as error:
            self._dependencies.report(error)
            return
        if turn is not None:
            self._live.turn = replace(self._live.turn, found=turn.found)

    def _schema(self, model: Model) -> Mapping[str, object] | None:
        """The JSON schema of an outline, if the model supports one."""
        return OUTLINE_SCHEMA if self._step.step is Step.OUTLINE and model.abilities.structured else None

    async def _consume(self, items: AsyncIterator[StreamItem]) -> AskOutcome:
        async with aclosing(items) as stream:  # type: ignore[type-var]
            async for item in stream:
                match item:
                    case TextDelta(text):
                        self._append(text, is_thought=False)
                    case ThinkingDelta(text):
                        self._append(text, is_thought=True)
                    case RetryPending():
                        self._set_retry(item)
                    case Completed():
                        self._append_sources(item)
                        return self._completed(item)
        return AskOutcome(
            self._broken_status(), Failure("cut", "The connection was lost before the reply was complete.")
        )

    def _append(self, text: str, *, is_thought: bool) -> None:
        if self._first_at is None:
            self._first_at = self._dependencies.monotonic()
        if is_thought:
            self._thought_until = self._dependencies.monotonic()
        self._dependencies.live.append_text(self._live, self._reply, self.id, text, is_thought)

    def _set_retry(self, wait: RetryPending) -> None:
        self._wait = wait
        until = self._dependencies.clock() + int(wait.seconds * 1000)
        waiting = RetryNotice(until, wait.attempt, wait.attempts, wait.reason)
        self._dependencies.live.set_retry(self._live, self._reply, self.id, waiting)

    def _append_sources(self, end: Completed) -> None:
        """Appends the pages that the answer of a search model refers to as [1], [2], in their order."""
        if end.sources and self._reply.text and self._step.step is not Step.OUTLINE:
            self._append(source_list(end.sources), is_thought=False)

    def _completed(self, end: Completed) -> AskOutcome:
        failure = _failure(end, has_text=bool(self._reply.text.strip()))
        status = Status.COMPLETE if failure is None else self._broken_status()
        return AskOutcome(status, failure, end.count)

    def _failed(self, error: ProviderError) -> AskOutcome:
        failure = Failure(error.code, error.message, error.detail, error.retry_at)
        return AskOutcome(self._broken_status(), failure)

    def _broken_status(self) -> Status:
        """Interrupted if there is text, which can be continued; failed if there is none."""
        return Status.INTERRUPTED if self._reply.text.strip() else Status.FAILED

    # ── saving

    def _message(self, outcome: AskOutcome) -> Message:
        turn = self._live.turn
        text, findings = self._parse(outcome)
        if self._step.step is Step.OUTLINE and outcome.status is Status.COMPLETE and findings is None:
            outcome = replace(outcome, status=Status.FAILED, failure=_NO_OUTLINE)
        return Message(
            id=self.id,
            conversation_id=turn.conversation_id,
            round_number=turn.round_number,
            turn_id=turn.id,
            speaker=speaker_of(self._voice.model),
            role=self._step.role,
            content=text,
            status=outcome.status,
            created_by=turn.created_by,
            created_at=self._dependencies.clock(),
            voice=self._voice,
            thinking=self._thinking(),
            usage=self._usage(outcome),
            failure=outcome.failure,
            critique_of_id=self._step.critique_of_id,
            replaces_id=self._replaced.id if self._replaced else None,
            step=self._step.step,
            findings=findings,
            read_replies=self._read_replies if self._assembled else (),
        )

    def _parse(self, outcome: AskOutcome) -> tuple[str, ParsedReply | None]:
        """The text and what can be parsed from it. An outline is JSON; its text is made from that."""
        text = self._reply.text
        findings = parse_reply(self._step, text) if outcome.status is Status.COMPLETE else None
        if self._step.step is not Step.OUTLINE:
            return text, findings
        return (as_markdown(findings.outline) if findings and findings.outline else ""), findings

    def _thinking(self) -> Thinking | None:
        text = self._reply.thinking
        if not text or self._thought_until is None:
            return None
        return Thinking(text, round(self._thought_until - self._began_at, 1))

    def _usage(self, outcome: AskOutcome) -> Usage | None:
        """The provider's token count, or an estimate if there is none."""
        if self._assembled is None or self._model is None:
            return None
        model = self._model
        count = outcome.count or self._estimated_count(model)
        return Usage(
            input_tokens=count.input_tokens,
            cached_tokens=count.cached_tokens,
            output_tokens=count.output_tokens,
            reasoning_tokens=count.reasoning_tokens,
            cost_micros=cost_micros(count, model.prices),
            latency_ms=self._ms_since_start(self._dependencies.monotonic()),
            first_token_ms=None if self._first_at is None else self._ms_since_start(self._first_at),
        )

    def _estimated_count(self, model: Model) -> TokenCount:
        if self._first_at is None or self._assembled is None:
            return TokenCount()
        output = self._dependencies.counter(model)(self._reply.text + self._reply.thinking)
        return TokenCount(request_tokens(self._assembled.receipt), output_tokens=output)

    def _ms_since_start(self, moment: float) -> int:
        return round((moment - self._began_at) * 1000)

    async def _save(self, message: Message) -> Message:
        """Retries while the database is busy or the disk is full, since the text is stored nowhere else."""
        for wait_s in SAVE_WAITS_S:
            try:
                return await self._dependencies.db.write(lambda tx: self._write(tx, message))
            except (Busy, StorageFull):
                await asyncio.sleep(wait_s)
        return await self._dependencies.db.write(lambda tx: self._write(tx, message))

    def _write(self, tx: Tx, message: Message) -> Message:
        turns.assert_owned(tx, message.turn_id)  # After a long pause another node may have ended the turn.
        if message.replaces_id is not None:  # Another turn of the round may have replaced it first.
            tx.lock(conversation_topic(message.conversation_id))
            message = replace(message, replaces_id=messages.newest_version(tx, message))
        messages.add(tx, message)
        drafts.remove(tx, message.id)
        if self._assembled is not None and message.usage is not None:
            receipts.save(tx, message.id, message.conversation_id, self._assembled.receipt)
            usage.add(tx, usage.of_reply(message, self._inputs.project_id, self._voice.model))
        return message
