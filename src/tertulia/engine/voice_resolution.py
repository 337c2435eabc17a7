"""Seats: who is wanted at the table, found and seated. A persona speaks through a model that can answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tertulia.core.errors import Invalid, NotFound, UnknownModel
from tertulia.core.models import Model, Tier
from tertulia.core.personas import Persona
from tertulia.core.tables import VoiceRef
from tertulia.core.thinking import Effort
from tertulia.core.users import Actor
from tertulia.core.voices import HeldSeat, SeatRequest, Voice, assign_seats
from tertulia.engine.requests import available
from tertulia.providers.registry import ProviderRegistry
from tertulia.store import branches, conversations, personas, projects
from tertulia.store.database import Tx

_STRENGTH = tuple(Tier)


@dataclass(frozen=True, slots=True)
class ProjectScope:
    """Where something would be said: in its conversation's project, in the one named, or in the first."""

    conversation_id: str | None
    project_id: str | None = None

    def project(self, tx: Tx, actor: Actor) -> str:
        if self.conversation_id is not None:
            try:
                return conversations.get(tx, actor, self.conversation_id).project_id
            except NotFound:
                if self.project_id is None:
                    raise
        return self.project_id or first_project(tx, actor)


def first_project(tx: Tx, actor: Actor) -> str:
    """The one they began with."""
    seen = projects.visible_to(tx, actor)
    if not seen:
        raise Invalid("You have no project yet. Create one first.")
    return seen[0].id


def seated(
    tx: Tx,
    actor: Actor,
    spot: ProjectScope,
    wanted: Sequence[VoiceRef],
    providers: ProviderRegistry,
    taken: Iterable[Voice] = (),
) -> tuple[Voice, ...]:
    """Each in a seat of its own, the one it has had there before.

    A voice named by model and persona is that persona through that model.
    """
    at_hand = _at_hand(tx, actor, spot, wanted)
    return assign_seats([_wanted(one, at_hand, providers) for one in wanted], taken, _held(tx, actor, spot))


def _held(tx: Tx, actor: Actor, spot: ProjectScope) -> tuple[HeldSeat, ...]:
    """A conversation that is only about to begin has no seats yet."""
    if spot.conversation_id is None:
        return ()
    conversation = conversations.find(tx, actor, spot.conversation_id)
    return branches.seats(tx, conversation) if conversation else ()


def seated_chair(
    tx: Tx,
    actor: Actor,
    spot: ProjectScope,
    wanted: VoiceRef | None,
    table: Sequence[Voice],
    providers: ProviderRegistry,
) -> Voice | None:
    """One of the table, or somebody in a seat of their own beside it; None when nobody is named."""
    if wanted is None:
        return None
    [chair] = seated(tx, actor, spot, (wanted,), providers, table)
    who = (chair.persona_id, chair.model)
    same = next((voice for voice in table if (voice.persona_id, voice.model) == who), chair)
    return same if wanted.effort is None else replace(same, effort=chair.effort)


def _at_hand(tx: Tx, actor: Actor, spot: ProjectScope, wanted: Sequence[VoiceRef]) -> dict[str, Persona]:
    """A project's personas speak in that project alone: what they were told belongs to its members."""
    if all(one.persona_id is None for one in wanted):
        return {}
    return {persona.id: persona for persona in personas.visible_to(tx, actor, spot.project(tx, actor))}


def _wanted(one: VoiceRef, at_hand: dict[str, Persona], providers: ProviderRegistry) -> SeatRequest:
    if one.persona_id is None:
        if one.model is None:
            raise Invalid("A voice is a model or a persona: name one of them.")
        model = available(one.model, providers)
        return SeatRequest(model.key, model.display_name, effort=_checked_effort(one, model))
    persona = at_hand.get(one.persona_id)
    if persona is None:
        raise NotFound("One of the chosen personas does not exist, or you may not see it.")
    model = available(one.model, providers) if one.model else speaking_for(persona, providers)
    character = persona.character
    effort = _checked_effort(one, model) if one.model else model.effort(one.effort)
    effort = effort or model.effort(character.effort)
    return SeatRequest(model.key, character.name, persona.id, persona.version, character.hue, effort)


def _checked_effort(one: VoiceRef, model: Model) -> Effort | None:
    """Whoever names the model knows what it can be told."""
    if one.effort is not None and one.effort not in model.efforts:
        known = ", ".join(model.efforts) or "none"
        raise Invalid(f"{model.display_name} has no thinking setting {one.effort.value!r}. It has: {known}.")
    return one.effort


def speaking_for(persona: Persona, providers: ProviderRegistry) -> Model:
    """The persona's own model; where it cannot answer, the one that comes closest."""
    own = providers.find(persona.character.model)
    if own is not None and providers.is_available(own):
        return own
    at_hand = providers.available()
    if not at_hand:
        raise UnknownModel(
            f"No model is ready to answer as {persona.character.name}. "
            "Models and keys says what each model needs."
        )
    return closest_model(own, at_hand)


def closest_model(own: Model | None, at_hand: Sequence[Model]) -> Model:
    """Who comes closest: of the same tier, else the strongest; the built-in demo only when it is alone."""

    def distance(model: Model) -> tuple[bool, bool, int]:
        is_other = own is None or model.tier is not own.tier
        return model.is_demo, is_other, _STRENGTH.index(model.tier)

    return min(at_hand, key=distance)
