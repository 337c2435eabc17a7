"""What prompts are made of in these tests: by hand, and at random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from tertulia.context.material import AttachedText, FileText, Material
from tertulia.core.attachments import Attachment
from tertulia.core.chunks import Hit, Location, Source
from tertulia.core.conversations import Visibility
from tertulia.core.messages import Message, Quote, Role, Round, Status, speaker_of
from tertulia.core.models import Abilities, Model, Tier
from tertulia.core.projects import ContextStrategy
from tertulia.core.voices import Wanted, seat

ANNA, BERT, CARA = seat([Wanted("x:anna", "Anna"), Wanted("x:bert", "Bert"), Wanted("y:cara", "Cara")])


TABLE = (ANNA, BERT, CARA)


WIDE = Model("x", "anna", "Anna", context_window=200_000, max_output_tokens=4_000, tier=Tier.SMART)


def count(text: str) -> int:
    return len(text) // 4 + 1


def message(number: int, voice=None, content: str = "", **more) -> Message:
    return Message(
        id=f"m{number}{voice.name if voice else ''}{more.get('replaces_id') or ''}",
        conversation_id="c",
        round_number=number,
        turn_id=f"t{number}",
        speaker=speaker_of(voice.model) if voice else "user",
        role=Role.ADVISOR if voice else Role.USER,
        content=content,
        status=more.pop("status", Status.COMPLETE),
        created_by="u",
        created_at=number,
        voice=voice,
        **more,
    )


def round_(number: int, question: str | None = None, voices=TABLE) -> Round:
    replies = [message(number, voice, f"{voice.name} says {number}") for voice in voices]
    return Round(number, (message(number, None, question or f"question {number}"), *replies))


def material(rounds: tuple[Round, ...] = (), question: str | Message = "And now?", **more) -> Material:
    number = len(rounds) + 1 if not rounds else rounds[-1].number + 1
    asked = question if isinstance(question, Message) else message(number, None, question)
    given = {
        "voice": ANNA,
        "model": WIDE,
        "project_name": "Home",
        "instructions": "",
        "conversation_title": "Tea",
        "rounds": rounds,
        "question": asked,
        "visibility": Visibility.OPEN,
        "context_strategy": ContextStrategy.SMART,
        "max_context_tokens": 128_000,
        "max_output_tokens": 4_000,
    }
    return Material(**(given | more))


def rounds(many: int) -> tuple[Round, ...]:
    return tuple(round_(number) for number in range(1, many + 1))


texts = st.text(min_size=1, max_size=300)


TEXT, PICTURE = "text/plain", "image/png"


@st.composite
def conversations(draw) -> tuple[Round, ...]:
    many = draw(st.integers(0, 30))
    made: list[Round] = []
    for number in range(1, many + 1):
        voices = draw(st.lists(st.sampled_from(TABLE), unique=True))
        replies = [message(number, voice, draw(st.text(max_size=200))) for voice in voices]
        question = message(number, None, draw(texts), attachments=draw(brought_along(number)))
        made.append(Round(number, (draw(referring(question, made)), *replies)))
    return tuple(made)


@st.composite
def referring(draw, question: Message, before: Sequence[Round]) -> Message:
    """The question as it is, or about something that was said before."""
    said = [one.id for round_ in before for one in round_.messages]
    if not said or not draw(st.booleans()):
        return question
    quotes = st.builds(Quote, st.sampled_from(said), texts)
    replied = draw(st.one_of(st.none(), st.sampled_from(said)))
    return replace(question, reply_to_id=replied, quotes=tuple(draw(st.lists(quotes, max_size=2))))


@st.composite
def still_there(draw, made: Sequence[Round]) -> tuple[Message, ...]:
    """What was said, but for what was deleted since."""
    said = tuple(one for round_ in made for one in round_.messages)
    gone = draw(st.sets(st.sampled_from([one.id for one in said]), max_size=2)) if said else set()
    return tuple(one for one in said if one.id not in gone)


@st.composite
def brought_along(draw, number: int) -> tuple[Attachment, ...]:
    kinds = draw(st.one_of(st.just([]), st.lists(st.sampled_from([TEXT, PICTURE]), max_size=3)))
    sides = st.one_of(st.none(), st.integers(1, 9000))
    return tuple(
        Attachment(
            f"a{number}.{i}",
            f"{number}-{i}",
            kind,
            draw(st.integers(1, 6_000_000)),
            f"hash {number}.{i}",
            draw(sides) if kind == PICTURE else None,
            draw(sides) if kind == PICTURE else None,
        )
        for i, kind in enumerate(kinds)
    )


@st.composite
def read_from(draw, made: tuple[Round, ...], *more: Attachment) -> tuple[AttachedText, ...]:
    """What the attachments hold: much, little, nothing, or nobody could read them."""
    brought = [one for round_ in made for one in round_.question.attachments]
    held = st.one_of(st.text(max_size=60), st.integers(0, 5000).map(lambda long: "word " * long))
    reasons = st.one_of(st.none(), st.just("Only the first pages were read."))
    return tuple(
        AttachedText(one.id, draw(held), draw(reasons))
        for one in (*brought, *more)
        if not one.is_picture and draw(st.integers(0, 9))
    )


def hit(chunk_id: str, content: str, score: float = 0.5, **where) -> Hit:
    source = Source.FILE if "path" in where else Source.MESSAGE
    source_id = where.pop("source_id", chunk_id)
    return Hit(
        chunk_id,
        source,
        source_id,
        "p",
        "Other talk",
        Location(**where),
        content,
        "",
        (),
        score,
        (),
        "",
        "",
        0,
        0,
    )


file_hits = st.builds(
    lambda i, text, score: hit(f"k{i}", text, score, path=f"x/{i}.py", start_line=1, end_line=9),
    st.integers(0, 50), st.text(max_size=200), st.floats(0, 1),
)  # fmt: skip


def round_hits(made: tuple[Round, ...]) -> st.SearchStrategy[Hit]:
    said = [m for r in made for m in r.messages] or [message(0, None, "nothing")]
    return st.sampled_from(said).map(
        lambda m: hit(f"k{m.id}", m.content, source_id=m.id, conversation_id="c", round_number=m.round_number)
    )


@st.composite
def materials(draw) -> Material:
    tier = draw(st.sampled_from(list(Tier)))
    window = draw(st.integers(900, 20_000))
    made = draw(conversations())
    asked = draw(brought_along(0))
    files = tuple(
        FileText(f"f{i}", f"a/{i}.md", text)
        for i, text in enumerate(draw(st.lists(st.text(max_size=80), max_size=2)))
    )
    abilities = Abilities(vision=draw(st.booleans()))
    question = message(len(made) + 1, None, draw(st.text(min_size=1, max_size=100)), attachments=asked)
    return material(
        made,
        question=draw(referring(question, made)),
        cited=draw(still_there(made)),
        attached=draw(read_from(made, *asked)),
        model=replace(WIDE, tier=tier, context_window=window, abilities=abilities),
        visibility=draw(st.sampled_from(list(Visibility))),
        chosen=frozenset(
            reply.id
            for one in made
            if draw(st.booleans())
            for reply in one.replies[draw(st.integers(0, 2)) :][:1]
        ),
        max_output_tokens=200,
        max_context_tokens=draw(st.integers(700, 30_000)),
        always=files,
        hits=tuple(draw(st.lists(st.one_of(file_hits, round_hits(made)), max_size=12))),
        recalled=made,
    )


@st.composite
def talks(draw) -> tuple[Material, Material]:
    """Two turns, one after the other: the question of the first is history in the second."""
    made = draw(conversations().filter(lambda made: len(made) > 1))
    model = replace(WIDE, abilities=Abilities(vision=draw(st.booleans())))
    attached, cited = draw(read_from(made)), draw(still_there(made))
    return (
        material(made[:-1], made[-1].question, attached=attached, cited=cited, model=model),
        material(made, attached=attached, cited=cited, model=model),
    )
