"""Client state: applies live items by the same rules as the web's `live/apply.ts`.

event      the next number of a followed topic: `changed` stores a value in its table, `removed` deletes it
draft      a running reply so far                  delta    more text for it, if it follows the last delta
waiting    the reply waits before a retry          reset    the client must load the topic again
gone       the topic is no longer visible          signed_out   nothing is visible

Python and the web both replay `tests/vectors/events/`, so the two cannot disagree.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

NOUNS = ("user", "session", "project", "person", "conversation", "message", "turn")
Item = dict[str, Any]


@dataclass
class Device:
    cursors: dict[str, int] = field(default_factory=dict)
    tables: dict[str, dict[str, Any]] = field(default_factory=lambda: {noun: {} for noun in NOUNS})
    drafts: dict[str, Any] = field(default_factory=dict)
    wishes: list[Item] = field(default_factory=list)
    """The requests that would complete its state again."""

    @classmethod
    def from_state(cls, state: Item) -> Device:
        state = deepcopy(state)
        return cls(state["cursors"], state["tables"], state["drafts"])

    @property
    def state(self) -> Item:
        return {"cursors": self.cursors, "tables": self.tables, "drafts": self.drafts}

    def take(self, *items: Item) -> None:
        for item in items:
            if wish := self._wish(item):
                self.wishes.append(wish)
            self._apply(item)

    def _wish(self, item: Item) -> Item | None:
        cursor = self.cursors.get(item.get("place", ""), None)
        match item["type"]:
            case "event" if cursor is not None and item["number"] > cursor + 1:
                return {"follow": item["place"]}
            case "delta" if (draft := self.drafts.get(item["id"])) and item["after"] > draft["number"]:
                return {"follow": f"conversation:{draft['conversation_id']}"}
            case "following" if cursor is not None and item["number"] > cursor:
                return {"refetch": item["place"]}
            case "reset":
                return {"refetch": item["place"]}
        return None

    def _apply(self, item: Item) -> None:
        match item["type"]:
            case "event":
                self._take_event(item)
            case "draft":
                self._take_draft(item["value"])
            case "delta":
                self._take_delta(item)
            case "waiting" if item["id"] in self.drafts:
                self.drafts[item["id"]] |= {"waiting": item["value"]}
            case "reset":
                self.cursors.pop(item["place"], None)
            case "gone":
                self._forget(item["place"])
            case "signed_out":
                self.cursors, self.drafts = {}, {}
                self.tables = {noun: {} for noun in NOUNS}

    def _take_event(self, event: Item) -> None:
        if self.cursors.get(event["place"]) != event["number"] - 1:
            return
        self.cursors[event["place"]] = event["number"]
        table = self.tables.get(event["noun"], {})
        if event["kind"] == "changed":
            table[event["id"]] = event["value"]
        else:
            table.pop(event["id"], None)
        if event["noun"] == "message":  # The message takes over from its draft.
            self.drafts.pop(event["id"], None)

    def _take_draft(self, draft: Item) -> None:
        current = self.drafts.get(draft["id"])
        if draft["id"] not in self.tables["message"] and not (
            current and current["number"] > draft["number"]
        ):
            self.drafts[draft["id"]] = dict(draft)

    def _take_delta(self, delta: Item) -> None:
        draft = self.drafts.get(delta["id"])
        if draft is None or delta["after"] != draft["number"] or delta["number"] <= draft["number"]:
            return
        draft["number"] = delta["number"]
        draft["content"] += delta.get("text", "")
        draft["thinking"] += delta.get("thinking", "")

    def _forget(self, place: str) -> None:
        """Removes a topic and everything that is visible only through it."""
        self.cursors.pop(place, None)
        kind, _, id = place.partition(":")
        if kind == "project":
            self.tables["project"].pop(id, None)
            inside = {c["id"] for c in self.tables["conversation"].values() if c["project_id"] == id}
        else:
            inside = {id} if kind == "conversation" else set()
        for noun in ("message", "turn"):
            self.tables[noun] = _without_conversations(self.tables[noun], inside)
        self.drafts = _without_conversations(self.drafts, inside)
        for conversation_id in inside:
            self.tables["conversation"].pop(conversation_id, None)


def _without_conversations(table: dict[str, Any], inside: set[str]) -> dict[str, Any]:
    return {id: value for id, value in table.items() if value["conversation_id"] not in inside}
