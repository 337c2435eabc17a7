"""Prompt inputs for the tests of this room: built by hand, and random ones for property tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from tertulia.context.prompt_inputs import (
    AttachedText,
    ConversationInputs,
    FileInputs,
    IncludedFile,
    ProjectInputs,
    PromptInputs,
    SearchInputs,
)
from tertulia.core.attachments import Attachment
from tertulia.core.chunks import Hit, Location, Source
from tertulia.core.conversations import Visibility
from tertulia.core.files import FileListing
from tertulia.core.messages import Message, Quote, Role, Round, Status, speaker_of
from tertulia.core.models import Abilities, Model, Tier
from tertulia.core.projects import ContextStrategy
from tertulia.core.voices import SeatRequest, assign_seats

ANNA, BERT, CARA = assign_seats(
    [SeatRequest("x:anna", "Anna"), SeatRequest("x:bert", "Bert"), SeatRequest("y:cara", "Cara")]
)


TABLE = (ANNA, BERT, CARA)


WIDE = Model("x", "anna", "Anna", context_window=200_000, max_output_tokens=4_000, tier=Tier.SMART)


NO_FILES = FileListing()


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


def make_inputs(
    rounds: tuple[Round, ...] = (),
    question: str | Message = "And now?",
    *,
    model: Model = WIDE,
    instructions: str = "",
    persona_instructions: str = "",
    visibility: Visibility = Visibility.OPEN,
    context_strategy: ContextStrategy = ContextStrategy.SMART,
    max_context_tokens: int = 128_000,
    max_output_tokens: int = 4_000,
    max_results: int = 10,
    referenced_messages: tuple[Message, ...] = (),
    branch_rounds: tuple[Round, ...] = (),
    partial_reply: str = "",
    always_included: tuple[IncludedFile, ...] = (),
    file_listing: FileListing = NO_FILES,
    attachment_texts: tuple[AttachedText, ...] = (),
    hits: tuple[Hit, ...] = (),
    recalled_rounds: tuple[Round, ...] = (),
    excluded_ids: frozenset[str] = frozenset(),
    best_reply_ids: frozenset[str] = frozenset(),
) -> PromptInputs:
    """Prompt inputs for Anna's answer to the question; everything else is empty unless given."""
    number = rounds[-1].number + 1 if rounds else 1
    return PromptInputs(
        voice=ANNA,
        model=model,
        max_output_tokens=max_output_tokens,
        project=ProjectInputs("Home", instructions, context_strategy, max_context_tokens),
        conversation=ConversationInputs(
            title="Tea",
            rounds=rounds,
            question=question if isinstance(question, Message) else message(number, None, question),
            visibility=visibility,
            referenced_messages=referenced_messages,
            branch_rounds=branch_rounds,
            best_reply_ids=best_reply_ids,
        ),
        files=FileInputs(always_included, file_listing, attachment_texts),
        search=SearchInputs(hits, recalled_rounds, max_results=max_results),
        persona_instructions=persona_instructions,
        excluded_ids=excluded_ids,
        partial_reply=partial_reply,
    )


def rounds(number: int) -> tuple[Round, ...]:
    return tuple(round_(index) for index in range(1, number + 1))


texts = st.text(min_size=1, max_size=300)


TEXT, PICTURE = "text/plain", "image/png"


@st.composite
def random_rounds(draw) -> tuple[Round, ...]:
    length = draw(st.integers(0, 30))
    rounds_so_far: list[Round] = []
    for number in range(1, length + 1):
        voices = draw(st.lists(st.sampled_from(TABLE), unique=True))
        replies = [message(number, voice, draw(st.text(max_size=200))) for voice in voices]
        question = message(number, None, draw(texts), attachments=draw(random_attachments(number)))
        rounds_so_far.append(Round(number, (draw(with_references(question, rounds_so_far)), *replies)))
    return tuple(rounds_so_far)


@st.composite
def with_references(draw, question: Message, before: Sequence[Round]) -> Message:
    """The question, perhaps with a reply reference and quotes of earlier messages."""
    message_ids = [earlier.id for round_ in before for earlier in round_.messages]
    if not message_ids or not draw(st.booleans()):
        return question
    quotes = st.builds(Quote, st.sampled_from(message_ids), texts)
    reply_to_id = draw(st.one_of(st.none(), st.sampled_from(message_ids)))
    return replace(question, reply_to_id=reply_to_id, quotes=tuple(draw(st.lists(quotes, max_size=2))))


@st.composite
def surviving_messages(draw, rounds: Sequence[Round]) -> tuple[Message, ...]:
    """The messages of the rounds, except up to two deleted ones."""
    messages = tuple(message for round_ in rounds for message in round_.messages)
    ids = [message.id for message in messages]
    deleted_ids = draw(st.sets(st.sampled_from(ids), max_size=2)) if ids else set()
    return tuple(message for message in messages if message.id not in deleted_ids)


@st.composite
def random_attachments(draw, number: int) -> tuple[Attachment, ...]:
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
def random_attachment_texts(draw, rounds: tuple[Round, ...], *more: Attachment) -> tuple[AttachedText, ...]:
    """The texts of the attachments: long, short, empty, or missing because the file is unreadable."""
    attachments = [attachment for round_ in rounds for attachment in round_.question.attachments]
    contents = st.one_of(st.text(max_size=60), st.integers(0, 5000).map(lambda length: "word " * length))
    reasons = st.one_of(st.none(), st.just("Only the first pages were read."))
    return tuple(
        AttachedText(attachment.id, draw(contents), draw(reasons))
        for attachment in (*attachments, *more)
        if not attachment.is_picture and draw(st.integers(0, 9))
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


def hits_in_rounds(rounds: tuple[Round, ...]) -> st.SearchStrategy[Hit]:
    messages = [earlier for round_ in rounds for earlier in round_.messages]
    return st.sampled_from(messages or [message(0, None, "nothing")]).map(
        lambda found: hit(
            f"k{found.id}",
            found.content,
            source_id=found.id,
            conversation_id="c",
            round_number=found.round_number,
        )
    )


@st.composite
def random_inputs(draw) -> PromptInputs:
    tier = draw(st.sampled_from(list(Tier)))
    window = draw(st.integers(900, 20_000))
    earlier_rounds = draw(random_rounds())
    attachments = draw(random_attachments(0))
    files = tuple(
        IncludedFile(f"f{i}", f"a/{i}.md", text)
        for i, text in enumerate(draw(st.lists(st.text(max_size=80), max_size=2)))
    )
    abilities = Abilities(vision=draw(st.booleans()))
    question = message(
        len(earlier_rounds) + 1, None, draw(st.text(min_size=1, max_size=100)), attachments=attachments
    )
    return make_inputs(
        earlier_rounds,
        question=draw(with_references(question, earlier_rounds)),
        referenced_messages=draw(surviving_messages(earlier_rounds)),
        attachment_texts=draw(random_attachment_texts(earlier_rounds, *attachments)),
        model=replace(WIDE, tier=tier, context_window=window, abilities=abilities),
        visibility=draw(st.sampled_from(list(Visibility))),
        best_reply_ids=frozenset(
            reply.id
            for round_ in earlier_rounds
            if draw(st.booleans())
            for reply in round_.replies[draw(st.integers(0, 2)) :][:1]
        ),
        max_output_tokens=200,
        max_context_tokens=draw(st.integers(700, 30_000)),
        always_included=files,
        hits=tuple(draw(st.lists(st.one_of(file_hits, hits_in_rounds(earlier_rounds)), max_size=12))),
        recalled_rounds=earlier_rounds,
    )


@st.composite
def consecutive_turns(draw) -> tuple[PromptInputs, PromptInputs]:
    """Two turns in a row: the question of the first is in the history of the second."""
    history = draw(random_rounds().filter(lambda rounds: len(rounds) > 1))
    model = replace(WIDE, abilities=Abilities(vision=draw(st.booleans())))
    attachments, messages = draw(random_attachment_texts(history)), draw(surviving_messages(history))
    first = make_inputs(
        history[:-1],
        history[-1].question,
        attachment_texts=attachments,
        referenced_messages=messages,
        model=model,
    )
    second = make_inputs(history, attachment_texts=attachments, referenced_messages=messages, model=model)
    return first, second
