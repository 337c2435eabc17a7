"""The first page of a long conversation: as cheap with ten thousand messages as with a thousand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import uvloop

from benchmarks import client
from benchmarks.client import Caller
from benchmarks.figures import Figure, tell
from benchmarks.stage import Person, Stage, stage
from benchmarks.words import sentence
from tertulia.app import new_id
from tertulia.core.conversations import Visibility
from tertulia.core.messages import Message, Role, Status, Usage, speaker_of
from tertulia.core.voices import SeatRequest, Voice, assign_seats
from tertulia.store import conversations, messages, turns
from tertulia.store.database import Database, Tx

SIZES = (1_000, 10_000)
VOICES = 3
RUNS = 5
PAGES = 100
ROUNDS_AT_ONCE = 250


async def main() -> None:
    long: dict[int, str] = {size: new_id() for size in SIZES}

    def prepare(db: Database, people: Sequence[Person]) -> None:
        for size, conversation_id in long.items():
            _fill(db, people[0], conversation_id, size)

    async with stage(["burst-1"], prepare=prepare) as here:
        caller = await Caller.connect(here.tertulia.port)
        for conversation_id in long.values():
            await _read(here, caller, conversation_id)
        runs = [
            [await _read(here, caller, conversation_id) for conversation_id in long.values()]
            for _ in range(RUNS)
        ]
    pages = [_middle(pages) for pages in zip(*runs, strict=True)]
    rows = [
        (f"{size} messages", page.wall_ms, page.cpu_ms, page.kb)
        for size, page in zip(SIZES, pages, strict=True)
    ]
    figures = [
        Figure("first page, wall", max(page.wall_ms for page in pages), "ms", 15),
        Figure("first page, CPU", max(page.cpu_ms for page in pages), "ms", 15, is_cpu=True),
        Figure("first page, size", max(page.kb for page in pages), "kB", 80),
        Figure("ten times as long", pages[1].cpu_ms / pages[0].cpu_ms, "× the CPU", 1.2),
    ]
    tell("long_conversation", ("ms wall", "ms CPU", "kB"), rows, figures, here.pulse)


@dataclass(frozen=True, slots=True)
class Page:
    wall_ms: float
    cpu_ms: float
    kb: float


def _middle(pages: Sequence[Page]) -> Page:
    return Page(*(median(getattr(page, name) for page in pages) for name in ("wall_ms", "cpu_ms", "kb")))


async def _read(here: Stage, caller: Caller, conversation_id: str) -> Page:
    path = f"/api/conversations/{conversation_id}"
    request = client.get(here.tertulia.port, path, here.people[0].cookie)
    before = here.tertulia.cpu_s()
    answers = [await caller.ask(request) for _ in range(PAGES)]
    cpu = here.tertulia.cpu_s() - before
    rounds = answers[0].json()["rounds"]
    assert [len(round_["messages"]) for round_ in rounds] == [VOICES + 1] * 5, answers[0].data
    wall = median(answer.whole_s for answer in answers)
    return Page(wall * 1000, cpu * 1000 / PAGES, len(answers[0].data) / 1000)


def _fill(db: Database, person: Person, conversation_id: str, size: int) -> None:
    table = assign_seats(SeatRequest(f"bench:model-{number}", f"Model {number}") for number in range(VOICES))
    db.write_now(
        lambda tx: conversations.add(
            tx, person.actor, person.project_id, id=conversation_id, mode="parallel", table=table,
            visibility=Visibility.OPEN,
        )
    )  # fmt: skip
    rounds = size // (VOICES + 1)
    for begin in range(0, rounds, ROUNDS_AT_ONCE):
        count = min(ROUNDS_AT_ONCE, rounds - begin)
        db.write_now(lambda tx, count=count: _say(tx, person, conversation_id, table, count))  # type: ignore[misc]


def _say(tx: Tx, person: Person, conversation_id: str, table: Sequence[Voice], rounds: int) -> None:
    for _ in range(rounds):
        number = turns.next_round(tx, conversation_id)
        for voice in (None, *table):
            messages.add(tx, _message(tx, person, conversation_id, number, voice))


def _message(tx: Tx, person: Person, conversation_id: str, number: int, voice: Voice | None) -> Message:
    """A question of a sentence or two; a reply of 250 words."""
    seed = number * (VOICES + 1) + (voice.seat if voice else 0)
    return Message(
        id=tx.new_id(),
        conversation_id=conversation_id,
        round_number=number,
        turn_id=tx.new_id(),
        speaker="user" if voice is None else speaker_of(voice.model),
        role=Role.USER if voice is None else Role.ADVISOR,
        content=sentence(20 if voice is None else 250, seed),
        status=Status.COMPLETE,
        created_by=person.actor.user_id,
        created_at=tx.now,
        voice=voice,
        usage=None if voice is None else Usage(900, 0, 320, 0, None, 2100, 180),
    )


if __name__ == "__main__":
    uvloop.run(main())
