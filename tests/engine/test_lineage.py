"""Lineage: after any changes to a tree, each branch reads what a copy of its rounds would hold."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tertulia.core.chunks import Hit, Location, Source
from tertulia.core.messages import Message, Role, Round
from tertulia.core.users import Actor
from tertulia.engine.context_retrieval import within_lineage
from tertulia.store import branches, conversations, messages, trees
from tertulia.store.database import Database, Tx
from tests.store.samples import VOICES, conversation, person, question, reply, turn


@dataclass(eq=False)
class Copied:
    """A conversation as if branches were copies: everything that it shows, by round."""

    id: str
    source: Copied | None = None
    """The conversation that it branched from."""
    at: int = 0
    only_id: str | None = None
    rounds: dict[int, list[Message]] = field(default_factory=dict)
    count: int = 0

    @property
    def said(self) -> list[Message]:
        return [message for said in self.rounds.values() for message in said]

    def has_said(self, by_round: int) -> bool:
        return any(one.conversation_id == self.id and one.round_number <= by_round for one in self.said)

    def takes(self, message: Message) -> bool:
        """Whether a new message of its source belongs to a round that it copied."""
        if message.round_number == self.at and message.role is not Role.USER:
            return self.only_id in (None, message.id)
        return message.round_number <= self.at

    def keep(self, message: Message) -> None:
        said = self.rounds.setdefault(message.round_number, [])
        said.append(message)
        said.sort(key=lambda one: (one.role is not Role.USER, one.id))


class Forest:
    """The store and the copies; each change is made to both."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.actor: Actor = db.write_now(lambda tx: person(tx, f"P{tx.new_id()}"))
        self.all = [Copied(db.write_now(lambda tx: conversation(tx, self.actor)).id)]

    # ── what people do

    def ask(self, to: Copied) -> None:
        def say(tx: Tx) -> list[Message]:
            asked = turn(tx, self.actor, to.id)
            return [question(tx, asked, "?"), *(reply(tx, asked, voice) for voice in VOICES)]

        said = self.db.write_now(say)
        to.count += 1
        for message in said:
            self._say(to, message)

    def branch(self, of: Copied, at: int, taken: Message | None = None) -> Copied:
        made = self.db.write_now(
            lambda tx: branches.add(
                tx, self.actor, of.id, at_round=at, message_id=taken.id if taken else None
            )
        )
        source, only_id = of, taken.id if taken else None
        while source.source and at <= source.at and not source.has_said(at):
            only_id = source.only_id if only_id is None and at == source.at else only_id
            source = source.source
        copy = Copied(made.id, source, at, only_id, count=at)
        for message in of.said:
            if message.round_number < at or message.round_number == at and (
                taken is None or message.role is Role.USER or message is taken
            ):  # fmt: skip
                copy.keep(message)
        self.all.append(copy)
        return copy

    def edit(self, of: Copied, number: int) -> None:
        self.ask(self.branch(of, number - 1))

    def answer_again(self, here: Copied, first: Message) -> None:
        """Retries a reply of the last round, which replaces it in the same conversation."""
        new = self.db.write_now(lambda tx: replace(first, id=tx.new_id(), replaces_id=first.id))
        self._say(here, replace(new, conversation_id=here.id))

    def conclude(self, here: Copied, number: int) -> None:
        """Adds a synthesis to any round, even an inherited one."""
        first = here.rounds[number][0]
        new = self.db.write_now(
            lambda tx: replace(first, id=tx.new_id(), role=Role.SYNTHESIS, voice=VOICES[0])
        )
        self._say(here, replace(new, conversation_id=here.id))

    def remove(self, message: Message) -> None:
        self.db.write_now(lambda tx: trees.remove_message(tx, self.actor, message.id))
        gone = {message.id} if message.role is Role.USER else self._versions(message)
        for copy in self.all:
            said = copy.rounds.get(message.round_number, [])
            is_whole = message.role is Role.USER and any(one.id == message.id for one in said)
            left = [one for one in said if not is_whole and one.id not in gone]
            copy.rounds[message.round_number] = left
            if not left:
                del copy.rounds[message.round_number]

    def remove_all(self, of: Copied) -> None:
        self.db.write_now(lambda tx: conversations.remove(tx, self.actor, of.id))
        gone = {of}
        while more := {one for one in self.all if one.source in gone} - gone:
            gone |= more
        self.all = [one for one in self.all if one not in gone]

    def _say(self, to: Copied, message: Message) -> None:
        self.db.write_now(lambda tx: messages.add(tx, message))
        readers = [to]
        for reader in readers:
            reader.keep(message)
            readers += [one for one in self.all if one.source is reader and one.takes(message)]

    def _versions(self, message: Message) -> set[str]:
        here = next(one for one in self.all if one.id == message.conversation_id)
        own = [one for one in here.said if one.conversation_id == here.id]
        family, size = {message.id}, 0
        while size != len(family):
            size = len(family)
            family |= {one.id for one in own if one.replaces_id in family}
            family |= {one.replaces_id for one in own if one.id in family and one.replaces_id}
        return {one.id for one in own if one.id in family}

    # ── what must hold

    def check(self, here: Copied, first: int, before: int) -> None:
        def look(tx: Tx) -> None:
            window = messages.history(tx, here.id, before_round=before, rounds=before - first)
            assert _by_number(window) == {n: said for n, said in here.rounds.items() if first <= n < before}
            page = messages.page(tx, self.actor, here.id, limit=100)
            assert (_by_number(page.rounds), page.next_before) == (here.rounds, None)
            self._check_recall(tx, here, before)
            kin = branches.tree_membership(tx, here.id)
            assert kin.lineage >= {here.id, *(message.conversation_id for message in here.said)}
            assert kin.lineage.isdisjoint(kin.beside)
            assert kin.lineage | kin.beside == branches.relatives(tx, here.id)
            for message in here.said:
                seen = {one.id for one in self.all if message in one.said} - {message.conversation_id}
                assert {heir.id for heir in messages.inheriting_branches(tx, message)} == seen

        self.db.read_now(look)

    def _check_recall(self, tx: Tx, here: Copied, before: int) -> None:
        """Of all messages of the tree, a turn recalls those that its own copy holds before that turn."""
        everything = {message.id: message for copy in self.all for message in copy.said}
        hits = tuple(map(_hit, everything.values()))
        kept, recalled = within_lineage(tx, here.id, before, hits)
        rounds = [Round(n, tuple(said)) for n, said in sorted(here.rounds.items()) if n < before]
        known = {one.id for round_ in rounds for one in (round_.question, *round_.replies)}
        assert {hit.source_id for hit in kept} == known
        assert list(recalled) == rounds


def _by_number(rounds: tuple[Round, ...]) -> dict[int, list[Message]]:
    return {round_.number: list(round_.messages) for round_ in rounds}


def _hit(message: Message) -> Hit:
    where = Location(conversation_id=message.conversation_id, round_number=message.round_number)
    return Hit(
        message.id, Source.MESSAGE, message.id, "", "", where, message.content, "", (), 1.0, (), "", "", 1, 0
    )  # fmt: skip


ACTS = ["ask", "ask", "branch", "branch", "edit", "again", "again", "conclude", "remove", "cut"]


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_branches_read_and_recall_as_if_their_rounds_were_copied(db: Database, data: st.DataObject) -> None:
    forest = Forest(db)
    forest.ask(forest.all[0])
    for _ in range(data.draw(st.integers(1, 16))):
        here = data.draw(st.sampled_from(forest.all))
        act(forest, here, data)
        if not forest.all:
            return
    for here in forest.all:
        first, before = sorted((data.draw(st.integers(1, 7)), data.draw(st.integers(1, 7))))
        forest.check(here, first, before)


def act(forest: Forest, here: Copied, data: st.DataObject) -> None:
    replies = [one for one in here.said if one.role is not Role.USER]
    match data.draw(st.sampled_from(ACTS)):
        case "branch":
            at = data.draw(st.integers(0, here.count))
            forest.branch(here, at, data.draw(st.sampled_from([None, *here.rounds.get(at, [])])))
        case "edit" if here.rounds:
            forest.edit(here, data.draw(st.sampled_from(sorted(here.rounds))))
        case "again" if replies:
            chosen = data.draw(st.sampled_from(replies))
            there = here if chosen.round_number == here.count else forest.branch(here, chosen.round_number)
            forest.answer_again(there, chosen)
        case "conclude" if here.rounds:
            forest.conclude(here, data.draw(st.sampled_from(sorted(here.rounds))))
        case "remove" if here.said:
            forest.remove(data.draw(st.sampled_from(here.said)))
        case "cut":
            forest.remove_all(here)
        case _:
            forest.ask(here)
