"""The sets, asked: each is brought in as people bring in texts, then every question goes to every method."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.public_sets import sets
from benchmarks.public_sets.bench import FILES, TALK, Answer, Bench
from benchmarks.public_sets.judging import Row, covered, distinct, ranking, shows
from benchmarks.public_sets.sets import Changed, Collection, Issue, Question, Said, Talk
from tertulia.core.chunks import Filters
from tertulia.core.conversations import Visibility
from tertulia.core.messages import Message, Role, Status
from tertulia.core.users import Actor, ServerRole
from tertulia.library.index import of_messages, read_rounds, write_rounds
from tertulia.store import conversations, messages, projects, users
from tertulia.store.database import Tx

# ── conversations


async def locomo(here: Bench) -> list[Row]:
    asked = bring_talks(here)
    await here.ready()
    return await _ranked(here, asked, lambda one: one.source_id, TALK)


def bring_talks(here: Bench) -> list[Asked]:
    """Each session is a conversation, each turn a message of the one who said it."""
    asked = []
    for talk in sets.locomo():
        project_id, ids = here.write(lambda tx, talk=talk: _talk(tx, here.actor, talk))  # type: ignore[misc]
        asked += [Asked(project_id, question, ids) for question in talk.questions]
    return asked


def _talk(tx: Tx, actor: Actor, talk: Talk) -> tuple[str, dict[str, str]]:
    """The project, and the turn's id of each message's id."""
    project_id = projects.add(tx, actor, talk.name).id
    names = dict.fromkeys(one.speaker for one in talk.said)
    people = {name: _person(tx, name, talk) for name in names}
    ids: dict[str, str] = {}
    for session in dict.fromkeys(one.session for one in talk.said):
        spoken = conversations.add(
            tx, actor, project_id, mode="parallel", table=(), visibility=Visibility.OPEN
        )
        said = [one for one in talk.said if one.session == session]
        for number, one in enumerate(said, start=1):
            ids[_say(tx, spoken.id, number, people[one.speaker], one)] = one.id
        _index(tx, spoken.id)
    return project_id, ids


def _person(tx: Tx, name: str, talk: Talk) -> str:
    return users.add(tx, name, f"{name}.{talk.name}@example.org", "", ServerRole.MEMBER).id


def _say(tx: Tx, conversation_id: str, number: int, user_id: str, said: Said) -> str:
    message_id = tx.new_id()
    messages.add(
        tx,
        Message(
            id=message_id,
            conversation_id=conversation_id,
            round_number=number,
            turn_id=message_id,
            speaker="user",
            role=Role.USER,
            content=said.text,
            status=Status.COMPLETE,
            created_by=user_id,
            created_at=said.at_ms,
        ),
    )
    return message_id


def _index(tx: Tx, conversation_id: str) -> None:
    spoken = read_rounds(tx, conversation_id, 1, 1_000)
    assert spoken is not None
    write_rounds(tx, spoken, of_messages(spoken.messages))


# ── documents and functions


async def scifact(here: Bench) -> list[Row]:
    return await _documents(here, sets.scifact())


async def cosqa(here: Bench) -> list[Row]:
    return await _documents(here, sets.cosqa())


async def _documents(here: Bench, collections: Iterable[Collection]) -> list[Row]:
    asked = bring_documents(here, collections)
    await here.ready()
    return await _ranked(here, asked, lambda one: one.title, FILES)


def bring_documents(here: Bench, collections: Iterable[Collection]) -> list[Asked]:
    """Each document is a file."""
    asked = []
    for collection in collections:
        project_id = here.project(collection.name)
        here.add_files(project_id, ((one.path, one.text) for one in collection.documents))
        ids = {one.path: one.id for one in collection.documents}
        asked += [Asked(project_id, question, ids) for question in collection.questions]
    return asked


# ── what has an order


@dataclass(frozen=True, slots=True)
class Asked:
    project_id: str
    question: Question
    ids: Mapping[str, str]
    """What the set calls a text, by what we do."""


async def _ranked(
    here: Bench, asked: Sequence[Asked], ours: Callable[[Answer], str], filters: Filters
) -> list[Row]:
    rows = []
    for method in here.wish.methods:
        judged = []
        for one in here.wish.some(asked):
            found = await here.ask(one.project_id, one.question.text, method, 30, filters)
            judged.append((one.question, distinct(one.ids[ours(answer)] for answer in found)))
        rows.append(Row(method, ranking(judged), here.took_ms()))
    return rows


# ── exact ranges


async def chunkeval(here: Bench) -> list[Row]:
    """How much of the gold characters the first ten chunks hold."""
    project_ids = bring_long_documents(here)
    await here.ready()
    questions = here.wish.some(list(sets.range_questions()))
    rows = []
    for method in here.wish.methods:
        recall, handed = {5: 0.0, 10: 0.0}, 0
        for question in questions:
            found = await here.ask(project_ids[question.document], question.text, method, 10)
            for k in recall:
                recall[k] += covered(question.gold, found[:k])
            handed += sum(one.token_count for one in found)
        figures = {f"{k} chunks": whole / len(questions) for k, whole in recall.items()}
        rows.append(Row(method, figures | {"tokens": handed / len(questions)}, here.took_ms()))
    return rows


def bring_long_documents(here: Bench) -> dict[str, str]:
    """Each in a project of its own; by the name its questions call it."""
    project_ids: dict[str, str] = {}
    for name, document in sets.long_documents():
        project_ids[name] = here.project(name)
        here.add_files(project_ids[name], [(document.path, document.text)])
    return project_ids


# ── code


@dataclass(frozen=True, slots=True)
class Task:
    project_id: str
    issue: Issue
    changed: tuple[Changed, ...]


async def swelite(here: Bench) -> list[Row]:
    tasks = bring_issues(here)
    await here.ready()
    return [await _solved(here, tasks, method) for method in here.wish.methods]


def bring_issues(here: Bench) -> list[Task]:
    """Each issue against every Python file of its project as it was."""
    issues, only = sets.Issues(), here.wish.only
    every = [one for one in issues.every() if not only or any(name in one.id for name in only)]
    return [_task(here, one, issues.files(one)) for one in here.wish.some(every)]


def _task(here: Bench, issue: Issue, texts: Mapping[str, str]) -> Task:
    project_id = here.project(issue.id)
    here.add_files(project_id, ((path, written) for path, written in texts.items() if written.strip()))
    return Task(project_id, issue, sets.changed(issue, texts))


async def _solved(here: Bench, tasks: Sequence[Task], method: str) -> Row:
    at = {1: 0, 5: 0, 10: 0}
    shown: list[bool] = []
    for task in tasks:
        found = await here.ask(task.project_id, task.issue.problem, method, 60)
        ranked = distinct(one.title for one in found)
        for k in at:
            at[k] += task.issue.paths <= set(ranked[:k])
        if task.changed:
            shown.append(all(shows(found[:10], one) for one in task.changed))
    figures = {f"file acc@{k}": hits / len(tasks) for k, hits in at.items()}
    return Row(method, figures | {"func acc@10": sum(shown) / max(1, len(shown))}, here.took_ms())
