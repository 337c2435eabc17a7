"""Trees: a conversation with all its branches, what stands beside what in them, and how two of them differ.

1 ── 2 ── 3 ── 4      a conversation
     │    └──── 4'    a branch at round 3: it reads on from there, and nothing is copied
     └── 3'           round 3 asked differently: a branch at round 2, shown beside it as 1/2 and 2/2
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
    """A round as the map of branches draws it."""

    number: int
    question: str
    """Its beginning."""
    seats: tuple[int, ...]
    """Of those who answered."""
    cost_micros: int | None
    """Of the replies whose price is known; None when none has one."""
    created_at: int
    created_by: str


@dataclass(frozen=True, slots=True)
class TreeNode:
    conversation: Conversation
    rounds: tuple[TreeRound, ...]
    """What was said in it and nowhere else."""


@dataclass(frozen=True, slots=True)
class Siblings:
    """One round's question in all its versions, the oldest first."""

    round_number: int
    conversation_ids: tuple[str, ...]
    """Where each of them was asked."""
    index: int
    """Which of them this conversation shows, counted from 0."""


@dataclass(frozen=True, slots=True)
class Versions:
    """One reply as different branches have it, the oldest first."""

    round_number: int
    conversation_ids: tuple[str, ...]
    message_ids: tuple[str, ...]
    index: int
    """Which of them this conversation shows, counted from 0."""


@dataclass(frozen=True, slots=True)
class Tree:
    root_id: str
    nodes: tuple[TreeNode, ...]
    """The root first, then the branches in the order in which they were made."""
    siblings: tuple[Siblings, ...]
    """Of the rounds of one conversation, those whose question was also asked differently."""
    versions: tuple[Versions, ...]
    """Of its replies, those that were asked for again in a branch."""


@dataclass(frozen=True, slots=True)
class Removal:
    """What goes when a conversation is deleted."""

    conversations: int
    rounds: int
    replies: int
    titles: tuple[str, ...]
    """Of those that have one, the first fifty."""


@dataclass(frozen=True, slots=True)
class MessageRemoval:
    """What goes when a message is deleted."""

    rounds: int
    replies: int
    """Earlier and later versions are counted too."""
    branches: int
    """That read it, and will read on without it."""


@dataclass(frozen=True, slots=True)
class Said:
    """A message, as far as a tree is concerned with it."""

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


def tree(conversation_id: str, conversations: Sequence[Conversation], said: Sequence[Said]) -> Tree:
    """All of one tree, with what stands beside the rounds of one of its conversations."""
    grown = _Grown({one.id: one for one in conversations}, tuple(said))
    ordered = sorted(conversations, key=lambda one: (one.parent_id is not None, one.created_at, one.id))
    return Tree(
        root_id=ordered[0].id,
        nodes=tuple(TreeNode(one, tuple(grown.drawn(one.id))) for one in ordered),
        siblings=tuple(grown.siblings(conversation_id)),
        versions=tuple(grown.versions(conversation_id)),
    )


@dataclass(frozen=True, slots=True)
class _Stretch:
    """How far a line reads a conversation on its way up: to a round, of which it may take one reply alone."""

    conversation_id: str
    last: int
    only_id: str | None

    def shows(self, said: Said) -> bool:
        if said.round_number != self.last or said.is_question:
            return said.round_number <= self.last
        return self.only_id in (None, said.id)


@dataclass(frozen=True)
class _Grown:
    conversations: Mapping[str, Conversation]
    said: tuple[Said, ...]

    @cached_property
    def _own(self) -> dict[str, dict[int, list[Said]]]:
        """What was said in each conversation itself, by round."""
        own: dict[str, dict[int, list[Said]]] = {id: {} for id in self.conversations}
        for said in sorted(self.said, key=lambda said: (said.round_number, not said.is_question, said.id)):
            own[said.conversation_id].setdefault(said.round_number, []).append(said)
        return own

    def _line(self, conversation_id: str) -> Iterator[_Stretch]:
        """The conversation and its ancestors, each as far as it is read."""
        stretch = _Stretch(conversation_id, _ENDLESS, None)
        while True:
            yield stretch
            conversation = self.conversations[stretch.conversation_id]
            if conversation.parent_id is None:
                return
            stretch = _above(stretch, conversation, conversation.parent_id)

    def drawn(self, conversation_id: str) -> Iterator[TreeRound]:
        for number, said in self._own[conversation_id].items():
            asked = said[0] if said[0].is_question else self._question(conversation_id, number)
            costs = [one.cost_micros for one in said if one.cost_micros is not None]
            yield TreeRound(
                number=number,
                question=asked.excerpt if asked else "",
                seats=tuple(sorted({one.seat for one in said if one.seat is not None})),
                cost_micros=sum(costs) if costs else None,
                created_at=said[0].created_at,
                created_by=said[0].created_by,
            )

    def _question(self, conversation_id: str, number: int) -> Said | None:
        for stretch in self._line(conversation_id):
            for said in self._own[stretch.conversation_id].get(number, ()):
                if said.is_question and stretch.shows(said):
                    return said
        return None

    # ── the same question, asked differently

    def siblings(self, conversation_id: str) -> Iterator[Siblings]:
        for asked in sorted(self._questions(conversation_id), key=lambda said: said.round_number):
            before = self._standing(asked)
            together = [one for one in self._asked[asked.round_number] if self._standing(one) == before]
            if len(together) > 1:
                ids = tuple(one.conversation_id for one in together)
                yield Siblings(asked.round_number, ids, together.index(asked))

    def _questions(self, conversation_id: str) -> Iterator[Said]:
        for stretch in self._line(conversation_id):
            for said in self._own[stretch.conversation_id].values():
                if said[0].is_question and stretch.shows(said[0]):
                    yield said[0]

    @cached_property
    def _asked(self) -> dict[int, list[Said]]:
        asked: dict[int, list[Said]] = {}
        for said in sorted(self.said, key=lambda said: said.id):
            if said.is_question:
                asked.setdefault(said.round_number, []).append(said)
        return asked

    def _standing(self, asked: Said) -> _Stretch:
        """What a question follows. Two that follow the same are versions of one another."""
        before = asked.round_number - 1
        for stretch in self._line(asked.conversation_id):
            last, only_id = min(stretch.last, before), stretch.only_id if stretch.last <= before else None
            reached = max((n for n in self._own[stretch.conversation_id] if n <= last), default=0)
            if reached:
                return _Stretch(stretch.conversation_id, reached, only_id if reached == last else None)
        return _Stretch("", 0, None)

    # ── the same reply, asked for again in a branch

    def versions(self, conversation_id: str) -> Iterator[Versions]:
        line = tuple(self._line(conversation_id))
        for versions in self._regenerated:
            shown = self._shown(line, versions)
            if shown is not None:
                yield Versions(
                    round_number=shown.round_number,
                    conversation_ids=tuple(one.conversation_id for one in versions),
                    message_ids=tuple(one.id for one in versions),
                    index=versions.index(shown),
                )

    def _shown(self, line: Sequence[_Stretch], versions: Sequence[Said]) -> Said | None:
        """The one nearest to the conversation itself."""
        for stretch in line:
            for said in versions:
                if said.conversation_id == stretch.conversation_id and stretch.shows(said):
                    return said
        return None

    @cached_property
    def _regenerated(self) -> list[list[Said]]:
        """Replies that more than one conversation has a version of; of each its newest."""
        groups: dict[str, dict[str, Said]] = {}
        for said in sorted(self.said, key=lambda said: said.id):
            if not said.is_question:
                groups.setdefault(self._origin(said), {})[said.conversation_id] = said
        found = (sorted(group.values(), key=lambda said: said.id) for group in groups.values())
        return sorted((group for group in found if len(group) > 1), key=lambda group: group[0].id)

    def _origin(self, said: Said) -> str:
        """The id of its first version, whether or not that is still there."""
        while said.replaces_id is not None:
            earlier = self._by_id.get(said.replaces_id)
            if earlier is None:
                return said.replaces_id
            said = earlier
        return said.id

    @cached_property
    def _by_id(self) -> dict[str, Said]:
        return {said.id: said for said in self.said}


def _above(stretch: _Stretch, conversation: Conversation, parent_id: str) -> _Stretch:
    """The lowest branch point on the way decides; where two name different replies, none is left."""
    point = conversation.branch_round or 0
    named = conversation.branch_message_id
    if point < stretch.last:
        return _Stretch(parent_id, point, named)
    if point == stretch.last and stretch.only_id is None:
        return _Stretch(parent_id, point, named)
    if point == stretch.last and named not in (None, stretch.only_id):
        return _Stretch(parent_id, point, "")
    return _Stretch(parent_id, stretch.last, stretch.only_id)


# ── comparing two branches


@dataclass(frozen=True, slots=True)
class ComparedRound:
    number: int
    left: Round | None
    right: Round | None


@dataclass(frozen=True, slots=True)
class Side:
    """What one of the two has beyond what they share."""

    rounds: int
    cost_micros: int | None
    """Of the replies whose price is known; None when none has one."""


@dataclass(frozen=True, slots=True)
class Comparison:
    common_rounds: int
    """So many of the first rounds are the same."""
    rounds: tuple[ComparedRound, ...]
    """Those after, side by side."""
    left: Side
    right: Side


def compare(left: Sequence[Round], right: Sequence[Round]) -> Comparison:
    """Two lines of one tree, from where they part."""
    lefts, rights = ({one.number: one for one in side} for side in (left, right))
    numbers = sorted(lefts.keys() | rights.keys())
    common = 0
    for number in numbers:
        if lefts.get(number) != rights.get(number):
            break
        common = number
    apart = [number for number in numbers if number > common]
    return Comparison(
        common_rounds=common,
        rounds=tuple(ComparedRound(number, lefts.get(number), rights.get(number)) for number in apart),
        left=_side([lefts[number] for number in apart if number in lefts]),
        right=_side([rights[number] for number in apart if number in rights]),
    )


def _side(rounds: Sequence[Round]) -> Side:
    replies = (message for round_ in rounds for message in round_.messages if message.usage)
    costs = [reply.usage.cost_micros for reply in replies if reply.usage]
    known = [cost for cost in costs if cost is not None]
    return Side(len(rounds), sum(known) if known else None)
