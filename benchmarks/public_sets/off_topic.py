"""Messages that ask nothing of a project, and which half of the questions a figure was chosen on."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

WRITTEN = Path(__file__).with_suffix(".txt")
CODE = "code"


@dataclass(frozen=True, slots=True)
class Message:
    kind: str
    text: str


def messages(*, with_code: bool) -> list[Message]:
    """Without questions about code for a collection of code, where they may well find something."""
    kind = ""
    found = []
    for line in WRITTEN.read_text("utf-8").splitlines():
        if line.startswith("["):
            kind = line.strip("[]")
        elif line and not line.startswith("#") and (with_code or kind != CODE):
            found.append(Message(kind, line))
    return found


def is_held_out(text: str) -> bool:
    """Half of all questions and messages chose the threshold; the other half was not looked at until then."""
    return sha256(text.encode()).digest()[0] % 2 == 1
