"""Turn inputs: what the voices of a turn may be shown, complete with texts and search results.

read_turn (turn_records.py) ─▶ retrieve (context_retrieval.py) ─▶ TurnInputs ─▶ one PromptInputs for each ask
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tertulia.context.prompt_inputs import (
    ConversationInputs,
    FileInputs,
    ProjectInputs,
    PromptInputs,
    SearchInputs,
)
from tertulia.core.messages import Message
from tertulia.core.models import Model
from tertulia.core.step_instructions import ANSWER, StepInstructions
from tertulia.core.turns import Turn
from tertulia.core.voices import Voice
from tertulia.council.plan import TurnPlan
from tertulia.engine.turn_records import TurnRecords


@dataclass(frozen=True, slots=True)
class TurnInputs:
    records: TurnRecords
    conversation: ConversationInputs
    files: FileInputs
    search: SearchInputs

    @property
    def turn(self) -> Turn:
        return self.records.turn

    @property
    def plan(self) -> TurnPlan:
        return self.records.plan

    @property
    def question(self) -> Message:
        return self.conversation.question

    @property
    def models(self) -> Mapping[str, Model]:
        return self.records.models

    @property
    def project_id(self) -> str:
        return self.records.project.id

    def prompt_inputs(
        self,
        voice: Voice,
        model: Model,
        max_output_tokens: int,
        step: StepInstructions = ANSWER,
        partial_reply: str = "",
    ) -> PromptInputs:
        """The inputs of one ask."""
        project = self.records.project
        profile = self.records.personas.get(voice.id)
        return PromptInputs(
            voice=voice,
            model=model,
            max_output_tokens=max_output_tokens,
            project=ProjectInputs(
                project.name,
                project.instructions,
                project.settings.context_strategy,
                project.settings.max_context_tokens,
            ),
            conversation=self.conversation,
            files=self.files,
            search=self.search,
            persona_instructions=profile.instructions if profile else "",
            excluded_ids=self.records.excluded_ids,
            step=step,
            partial_reply=partial_reply,
            style=self.turn.style,
        )
