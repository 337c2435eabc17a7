"""Test data for the store's tests: accounts, conversations, turns, messages, files."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

from tertulia.core.attachments import Attachment
from tertulia.core.conversations import Conversation, Visibility
from tertulia.core.files import Content, ProjectFile
from tertulia.core.messages import Message, Role, Status, Usage, speaker_of
from tertulia.core.personas import PersonaProfile
from tertulia.core.receipts import Layer, LeftOut, LeftOutReason, Receipt, Segment, SegmentReason
from tertulia.core.sessions import ClientInfo
from tertulia.core.tables import TableSpec, VoiceRef
from tertulia.core.turns import Draft, Purpose, Turn, TurnState
from tertulia.core.users import Actor, ServerRole
from tertulia.core.voices import Voice
from tertulia.store import attachments, conversations, files, messages, projects, sessions, turns, users
from tertulia.store.sql import sql
from tertulia.store.transactions import Tx

CLIENT = ClientInfo("Firefox 140", "Linux", "127.0.0.1")
FIRST = Voice("openai:gpt-4o:0", 1, "GPT-4o", "openai:gpt-4o")
SECOND = Voice("anthropic:opus:0", 2, "Opus", "anthropic:opus")
VOICES = (FIRST, SECOND)
USAGE = Usage(
    input_tokens=120,
    cached_tokens=20,
    output_tokens=40,
    reasoning_tokens=5,
    cost_micros=900,
    latency_ms=1500,
    first_token_ms=200,
)
RECEIPT = Receipt(
    model="openai:gpt-4o",
    budget_tokens=8000,
    segments=(
        Segment(Layer.SYSTEM, "system", "You are one of several.", SegmentReason.INTRODUCTION, 6),
        Segment(
            Layer.ROUNDS,
            "user",
            "Why is the sky blue?",
            SegmentReason.RECENT,
            7,
            round_number=1,
            ends_cacheable=True,
        ),
        Segment(
            Layer.QUESTION,
            "user",
            "And at night?",
            SegmentReason.ASKED_NOW,
            4,
            round_number=2,
            starts_message=False,
        ),
    ),
    left_out=(LeftOut(Layer.ROUNDS, LeftOutReason.OVER_BUDGET, 900, round_number=0),),
)


BAKER = PersonaProfile("The Baker", "🥖", 4, "Answer as if it were five in the morning.", "openai:gpt-4o")
TABLE = TableSpec("Breakfast", "parallel", Visibility.OPEN, (VoiceRef("openai:gpt-4o"),))
CONTENT = Content(hashlib.sha256(b"# Plan\n").hexdigest(), 7, "text/markdown")


def person(tx: Tx, name: str, role: ServerRole = ServerRole.MEMBER) -> Actor:
    """Adds an account and signs it in."""
    user = users.add(tx, name, f"{name.lower()}@example.org", "a hash", role)
    session = sessions.add(tx, user.id, f"token of {name}", CLIENT)
    return Actor(user.id, role, session.id)


def home(tx: Tx, actor: Actor) -> str:
    return projects.visible_to(tx, actor)[0].id


def conversation(tx: Tx, actor: Actor, project_id: str | None = None, **more: Any) -> Conversation:
    return conversations.add(
        tx,
        actor,
        project_id or home(tx, actor),
        mode="parallel",
        table=VOICES,
        visibility=Visibility.OPEN,
        **more,
    )


def turn(
    tx: Tx, actor: Actor, conversation_id: str, state: TurnState = TurnState.RUNNING, **more: Any
) -> Turn:
    """A turn in a new round; not saved."""
    result = Turn(
        id=tx.new_id(),
        conversation_id=conversation_id,
        round_number=turns.next_round(tx, conversation_id),
        purpose=Purpose.ASK,
        mode="parallel",
        table=VOICES,
        visibility=Visibility.OPEN,
        state=state,
        created_by=actor.user_id,
        created_at=tx.now,
    )
    return replace(result, **more)


def opened(tx: Tx, actor: Actor, conversation_id: str, text: str = "Why?", **more: Any) -> Turn:
    """Saves a running turn with its question."""
    running = turn(tx, actor, conversation_id, **more)
    turns.open(tx, running, f"fingerprint of {text}")
    messages.add(tx, question(tx, running, text))
    conversations.changed(tx, conversation_id)
    return running


def question(tx: Tx, turn: Turn, text: str) -> Message:
    return Message(
        id=tx.new_id(),
        conversation_id=turn.conversation_id,
        round_number=turn.round_number,
        turn_id=turn.id,
        speaker="user",
        role=Role.USER,
        content=text,
        status=Status.COMPLETE,
        created_by=turn.created_by,
        created_at=tx.now,
    )


def reply(tx: Tx, turn: Turn, voice: Voice = FIRST, text: str = "Because.", **more: Any) -> Message:
    result = Message(
        id=tx.new_id(),
        conversation_id=turn.conversation_id,
        round_number=turn.round_number,
        turn_id=turn.id,
        speaker=speaker_of(voice.model),
        role=Role.ADVISOR,
        content=text,
        status=Status.COMPLETE,
        created_by=turn.created_by,
        created_at=tx.now,
        voice=voice,
        usage=USAGE,
    )
    return replace(result, **more)


def answered(tx: Tx, actor: Actor, conversation_id: str, text: str = "Why?") -> tuple[Turn, list[Message]]:
    """Saves a finished round: a question and one reply per voice."""
    running = opened(tx, actor, conversation_id, text)
    replies = [reply(tx, running, voice, f"{voice.name} on {text}") for voice in VOICES]
    for message in replies:
        messages.add(tx, message)
    finished = turns.set_state(tx, running.id, TurnState.COMPLETE)
    conversations.changed(tx, conversation_id)
    return finished, replies


def draft(tx: Tx, turn: Turn, voice: Voice = FIRST) -> Draft:
    return Draft(
        id=tx.new_id(),
        turn_id=turn.id,
        conversation_id=turn.conversation_id,
        round_number=turn.round_number,
        voice=voice,
        role=Role.ADVISOR,
        content="",
        thinking="",
        number=0,
        started_at=tx.now,
    )


def content(tx: Tx, written: str, mime_type: str = "text/markdown") -> Content:
    """Saves a small blob, so that files and attachments can refer to it."""
    raw = written.encode()
    result = Content(hashlib.sha256(raw).hexdigest(), len(raw), mime_type)
    tx.execute(_ADD_BLOB, hash=result.hash, size_bytes=result.size_bytes, content=raw, now=tx.now)
    return result


_ADD_BLOB = sql("""
    INSERT INTO blobs (hash, size_bytes, keeping, content, used_at)
    VALUES (:hash, :size_bytes, 'row', :content, :now) ON CONFLICT (hash) DO NOTHING
""")


def file(
    tx: Tx, actor: Actor, path: str = "docs/plan.md", written: str = "# Plan\n", project_id: str | None = None
) -> ProjectFile:
    return files.put(tx, actor, project_id or home(tx, actor), path, content(tx, written))


def many_chunks(tx: Tx, file: ProjectFile, rows: int) -> None:
    """Inserts chunks into PostgreSQL with one statement: common words in all, and one rare word in each."""
    tx.execute(_MANY_CHUNKS, file_id=file.id, project_id=file.project_id, rows=rows)


_MANY_CHUNKS = sql("""
    INSERT INTO content_chunks (
        id, source_type, file_id, project_id, chunk_index, token_count, created_at, location, heading,
        summary, content, words
    )
    SELECT CAST(gen_random_uuid() AS TEXT), 'file', :file_id, :project_id, n, 1, 0, '{}', '', '',
        REPEAT('x', 300), to_tsvector('tertulia', 'all of them and one' || n % 1000)
    FROM generate_series(1, CAST(:rows AS INT)) AS n
""")


def known_rows(tx: Tx) -> int:
    """The planner's estimate of how many chunks PostgreSQL has; -1 before the first ANALYZE."""
    rows = tx.one(sql("SELECT reltuples FROM pg_class WHERE oid = CAST('content_chunks' AS REGCLASS)"))
    return int(rows.reltuples)


def attachment(
    tx: Tx, actor: Actor, name: str = "notes.md", written: str = "# Notes\n", project_id: str | None = None
) -> Attachment:
    return attachments.add(tx, actor, project_id or home(tx, actor), name, content(tx, written))


def said_with(tx: Tx, actor: Actor, conversation_id: str, brought: Attachment) -> Message:
    """Saves a question with an attachment."""
    running = turn(tx, actor, conversation_id)
    turns.open(tx, running, running.id)
    message = replace(question(tx, running, "What is in it?"), attachments=(brought,))
    messages.add(tx, message)
    attachments.send(tx, [brought], message.id)
    conversations.changed(tx, conversation_id)
    return message
