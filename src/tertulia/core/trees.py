"""Branch trees: a conversation with all its branches, the versions of its questions and replies, and the
difference between two branches.

1 ── 2 ── 3 ── 4      a conversation
     │    └──── 4'    a branch at round 3: it inherits rounds 1 to 3, and nothing is copied
     └── 3'           round 3 asked differently: a branch at round 2, shown as version 2/2 of round 3
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tertulia.core.conversations import Conversation
from tertulia.core.messages import Round

EXCERPT = 120
TITLES_LIMIT = 50
_ENDLESS = 1 << 62


@dataclass(frozen=True, slots=True)
class TreeRound:
    """A round as the branch map draws it."""

    number: int
    question: str
    """The beginning of the question."""
    seats: tuple[int, ...]
    """The seats of the voices that answered."""
    cost_micros: int | None
    """The cost of the replies whose price is known; None if no price is known."""
    created_at: int
    created_by: str


@dataclass(frozen=True, slots=True)
class TreeNode:
    conversation: Conversation
    rounds: tuple[TreeRound, ...]
    """The conversation's own rounds, without inherited ones."""


@dataclass(frozen=True, slots=True)
class Siblings:
    """All versions of one round's question, the oldest first."""

    round_number: int
    conversation_ids: tuple[str, ...]
    """The conversation of each version."""
    index: int
    """The version that this conversation shows, counted from 0."""


@dataclass(frozen=True, slots=True)
class Versions:
    """All versions of one reply in different branches, the oldest first."""

    round_number: int
    conversation_ids: tuple[str, ...]
    message_ids: tuple[str, ...]
    index: int
    """The version that this conversation shows, counted from 0."""


@dataclass(frozen=True, slots=True)
class Tree:
    root_id: str
    nodes: tuple[TreeNode, ...]
    """The root first, then the branches in order of creation."""
    siblings: tuple[Siblings, ...]
    """For the rounds of one conversation: the questions that were also asked differently."""
    versions: tuple[Versions, ...]
    """For the replies of that conversation: those that were regenerated in a branch."""


@dataclass(frozen=True, slots=True)
class DeletionPreview:
    """The extent of deleting a conversation: everything that is deleted with it."""

    conversations: int
    rounds: int
    replies: int
    titles: tuple[str, ...]
    """The titles of the deleted conversations, at most fifty."""


@dataclass(frozen=True, slots=True)
class MessageDeletionPreview:
    """The extent of deleting a message: what is deleted with it, and how many branches inherit it."""

    rounds: int
    replies: int
    """Includes earlier and later versions."""
    branches: int
    """They continue without the message."""


@dataclass(frozen=True, slots=True)
class MessageSummary:
    """The parts of a message that a tree needs."""

    id: str
    conversation_id: str
    round_number: int
    is_question: bool
    excerpt: str
    seat: int | None
    replaces_id: str | None
    cost_micros: int | None
    created_at: int
    created_by: str


# ── drawing the tree


def tree(
    conversation_id: str, conversations: Sequence[Conversation], messages: Sequence[MessageSummary]
) -> Tree:
    """Builds the whole tree, with the versions of the rounds and replies of one of its conversations."""
    index = _TreeIndex({conversation.id: conversation for conversation in conversations}, tuple(messages))
    ordered = sorted(conversations, key=lambda node: (node.parent_id is not None, node.created_at, node.id))
    return Tree(
        root_id=ordered[0].id,
        nodes=tuple(
            TreeNode(conversation, tuple(index.tree_rounds(conversation.id))) for conversation in ordered
        ),
        siblings=tuple(index.siblings(conversation_id)),
        versions=tuple(index.versions(conversation_id)),
    )


@dataclass(frozen=True, slots=True)
class _InheritedRange:
    """The rounds that a lineage inherits from one conversation: up to a round, and of that round perhaps
    only one reply."""

    conversation_id: str
    last: int
    only_id: str | None

    def shows(self, message: MessageSummary) -> bool:
        if message.round_number != self.last or message.is_question:
            return message.round_number <= self.last
        return self.only_id in (None, message.id)


@dataclass(frozen=True)
class _TreeIndex:
    conversations: Mapping[str, Conversation]
    messages: tuple[MessageSummary, ...]

    @cached_property
    def _own(self) -> dict[str, dict[int, list[MessageSummary]]]:
        """The messages of each conversation itself, by round."""
        own: dict[str, dict[int, list[MessageSummary]]] = {id: {} for id in self.conversations}
        for message in sorted(
            self.messages, key=lambda item: (item.round_number, not item.is_question, item.id)
        ):
            own[message.conversation_id].setdefault(message.round_number, []).append(message)
        return own

    def _lineage(self, conversation_id: str) -> Iterator[_InheritedRange]:
        """The conversation and its ancestors, each with the rounds that are inherited from it."""
        inherited = _InheritedRange(conversation_id, _ENDLESS, None)
        while True:
            yield inherited
            conversation = self.conversations[inherited.conversation_id]
            if conversation.parent_id is None:
                return
            inherited = _inherited_from_parent(inherited, conversation, conversation.parent_id)

    def tree_rounds(self, conversation_id: str) -> Iterator[TreeRound]:
        for number, messages in self._own[conversation_id].items():
            first = messages[0]
            question = first if first.is_question else self._question(conversation_id, number)
            costs = [message.cost_micros for message in messages if message.cost_micros is not None]
            yield TreeRound(
                number=number,
                question=question.excerpt if question else "",
                seats=tuple(sorted({message.seat for message in messages if message.seat is not None})),
                cost_micros=sum(costs) if costs else None,
                created_at=first.created_at,
                created_by=first.created_by,
            )

    def _question(self, conversation_id: str, number: int) -> MessageSummary | None:
        for inherited in self._lineage(conversation_id):
            for message in self._own[inherited.conversation_id].get(number, ()):
                if message.is_question and inherited.shows(message):
                    return message
        return None

    # ── versions of a question

    def siblings(self, conversation_id: str) -> Iterator[Siblings]:
        for question in sorted(self._questions(conversation_id), key=lambda message: message.round_number):
            predecessor = self._predecessor(question)
            versions = [
                version
                for version in self._questions_by_round[question.round_number]
                if self._predecessor(version) == predecessor
            ]
            if len(versions) > 1:
                ids = tuple(version.conversation_id for version in versions)
                yield Siblings(question.round_number, ids, versions.index(question))

    def _questions(self, conversation_id: str) -> Iterator[MessageSummary]:
        for inherited in self._lineage(conversation_id):
            for messages in self._own[inherited.conversation_id].values():
                if messages[0].is_question and inherited.shows(messages[0]):
                    yield messages[0]

    @cached_property
    def _questions_by_round(self) -> dict[int, list[MessageSummary]]:
        questions: dict[int, list[MessageSummary]] = {}
        for message in sorted(self.messages, key=lambda item: item.id):
            if message.is_question:
                questions.setdefault(message.round_number, []).append(message)
        return questions

    def _predecessor(self, question: MessageSummary) -> _InheritedRange:
        """The round before a question. Two questions with the same predecessor are versions of one
        another."""
        previous_round = question.round_number - 1
        for inherited in self._lineage(question.conversation_id):
            last = min(inherited.last, previous_round)
            only_id = inherited.only_id if inherited.last <= previous_round else None
            reached = max((n for n in self._own[inherited.conversation_id] if n <= last), default=0)
            if reached:
                return _InheritedRange(
                    inherited.conversation_id, reached, only_id if reached == last else None
                )
        return _InheritedRange("", 0, None)

    # ── versions of a reply

    def versions(self, conversation_id: str) -> Iterator[Versions]:
        lineage = tuple(self._lineage(conversation_id))
        for versions in self._regenerated:
            current = self._shown_version(lineage, versions)
            if current is not None:
                yield Versions(
                    round_number=current.round_number,
                    conversation_ids=tuple(version.conversation_id for version in versions),
                    message_ids=tuple(version.id for version in versions),
                    index=versions.index(current),
                )

    def _shown_version(
        self, lineage: Sequence[_InheritedRange], versions: Sequence[MessageSummary]
    ) -> MessageSummary | None:
        """The version that the conversation shows: the one nearest to it in its lineage."""
        for inherited in lineage:
            for version in versions:
                if version.conversation_id == inherited.conversation_id and inherited.shows(version):
                    return version
        return None

    @cached_property
    def _regenerated(self) -> list[list[MessageSummary]]:
        """Replies with versions in more than one conversation; the newest version of each conversation."""
        groups: dict[str, dict[str, MessageSummary]] = {}
        for message in sorted(self.messages, key=lambda item: item.id):
            if not message.is_question:
                groups.setdefault(self._origin(message), {})[message.conversation_id] = message
        ordered = (sorted(group.values(), key=lambda item: item.id) for group in groups.values())
        return sorted((group for group in ordered if len(group) > 1), key=lambda group: group[0].id)

    def _origin(self, message: MessageSummary) -> str:
        """The id of the reply's first version, even when that version was deleted."""
        while message.replaces_id is not None:
            earlier = self._by_id.get(message.replaces_id)
            if earlier is None:
                return message.replaces_id
            message = earlier
        return message.id

    @cached_property
    def _by_id(self) -> dict[str, MessageSummary]:
        return {message.id: message for message in self.messages}


def _inherited_from_parent(
    inherited: _InheritedRange, conversation: Conversation, parent_id: str
) -> _InheritedRange:
    """The inherited rounds of the parent. The lowest branch point counts; if two branch points keep
    different replies of the same round, no reply of it is inherited."""
    branch_round = conversation.branch_round or 0
    reply_id = conversation.branch_message_id
    if branch_round < inherited.last:
        return _InheritedRange(parent_id, branch_round, reply_id)
    if branch_round == inherited.last and inherited.only_id is None:
        return _InheritedRange(parent_id, branch_round, reply_id)
    if branch_round == inherited.last and reply_id not in (None, inherited.only_id):
        return _InheritedRange(parent_id, branch_round, "")
    return _InheritedRange(parent_id, inherited.last, inherited.only_id)


# ── comparing two branches


@dataclass(frozen=True, slots=True)
class ComparedRound:
    number: int
    left: Round | None
    right: Round | None


@dataclass(frozen=True, slots=True)
class BranchDifference:
    """The rounds and the cost of one branch after the common rounds."""

    rounds: int
    cost_micros: int | None
    """The cost of the replies whose price is known; None if no price is known."""


@dataclass(frozen=True, slots=True)
class Comparison:
    common_rounds: int
    """How many of the first rounds are the same."""
    rounds: tuple[ComparedRound, ...]
    """The later rounds, side by side."""
    left: BranchDifference
    right: BranchDifference


def compare(left: Sequence[Round], right: Sequence[Round]) -> Comparison:
    """Compares two branches of one tree from the first round that differs."""
    lefts, rights = ({round_.number: round_ for round_ in side} for side in (left, right))
    numbers = sorted(lefts.keys() | rights.keys())
    common = 0
    for number in numbers:
        if lefts.get(number) != rights.get(number):
            break
        common = number
    different = [number for number in numbers if number > common]
    return Comparison(
        common_rounds=common,
        rounds=tuple(ComparedRound(number, lefts.get(number), rights.get(number)) for number in different),
        left=_side([lefts[number] for number in different if number in lefts]),
        right=_side([rights[number] for number in different if number in rights]),
    )


def _side(rounds: Sequence[Round]) -> BranchDifference:
    replies = (message for round_ in rounds for message in round_.messages if message.usage)
    costs = [reply.usage.cost_micros for reply in replies if reply.usage]
    known = [cost for cost in costs if cost is not None]
    return BranchDifference(len(rounds), sum(known) if known else None)
