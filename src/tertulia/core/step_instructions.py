"""Step instructions: the task of one voice in one step of a mode, beyond answering the question."""

from __future__ import annotations

from dataclasses import dataclass

from tertulia.core.messages import Message, ReadReply, Role, Step, name_of


@dataclass(frozen=True, slots=True)
class ShownReply:
    """A reply of the same round that a mode lets a voice read, with the name that it is shown under."""

    name: str
    message: Message

    def as_read(self) -> ReadReply:
        voice, name = self.message.voice, name_of(self.message)
        label = "" if self.name == name else self.name
        return ReadReply(self.message.id, voice.seat if voice else 0, name, label)


@dataclass(frozen=True, slots=True)
class StepInstructions:
    step: Step = Step.ANSWER
    role: Role = Role.ADVISOR
    shown: tuple[ShownReply, ...] = ()
    task: str = ""
    """The task in words; the prompt puts it after the question and the replies."""
    critique_of_id: str | None = None


ANSWER = StepInstructions()
"""Answer the question, with no further task."""
