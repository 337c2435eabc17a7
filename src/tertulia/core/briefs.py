"""Briefs: what one voice is asked for in one step of a mode, beyond answering the question."""

from __future__ import annotations

from dataclasses import dataclass

from tertulia.core.messages import Message, ReadReply, Role, Step, name_of


@dataclass(frozen=True, slots=True)
class Shown:
    """A reply of the same round that a mode lets a voice read, under the name it is shown by."""

    name: str
    message: Message

    def as_read(self) -> ReadReply:
        voice, name = self.message.voice, name_of(self.message)
        label = "" if self.name == name else self.name
        return ReadReply(self.message.id, voice.seat if voice else 0, name, label)


@dataclass(frozen=True, slots=True)
class Brief:
    step: Step = Step.ANSWER
    role: Role = Role.ADVISOR
    shown: tuple[Shown, ...] = ()
    task: str = ""
    """What to do, said after the question and all that is shown."""
    critique_of_id: str | None = None


ANSWER = Brief()
"""The question, and nothing beyond it."""
