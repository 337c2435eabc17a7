"""Voice resolution: from the models and personas that a request names to voices in seats.

A persona speaks through its own model or, if that cannot answer, through the closest one that can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from tertulia.core.errors import Invalid, NotFound, UnknownModel
from tertulia.core.messages import Message
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

VoiceFor = Callable[[Message, Sequence[Voice]], Voice]
"""The voice that retries or continues a reply, given the voices in the other seats of its round."""

_STRENGTH = tuple(Tier)


@dataclass(frozen=True, slots=True)
class ProjectScope:
    """The project of a request: its conversation's, or the one it names, or the actor's first."""

    conversation_id: str | None
    project_id: str | None = None

    def find_project_id(self, tx: Tx, actor: Actor) -> str:
        if self.conversation_id is not None:
            try:
                return conversations.get(tx, actor, self.conversation_id).project_id
            except NotFound:
                if self.project_id is None:
                    raise
        return self.project_id or first_project_id(tx, actor)


def first_project_id(tx: Tx, actor: Actor) -> str:
    """The oldest project that the actor can see."""
    visible = projects.visible_to(tx, actor)
    if not visible:
        raise Invalid("You have no project yet. Create one first.")
    return visible[0].id


# ── the table and the chair


def resolve_voices(
    tx: Tx,
    actor: Actor,
    scope: ProjectScope,
    refs: Sequence[VoiceRef],
    providers: ProviderRegistry,
    present: Iterable[Voice] = (),
) -> tuple[Voice, ...]:
    """Seats the voices; each gets the seat that it has had in the conversation, if it is free.

    A reference that names a model and a persona stands for that persona through that model.
    """
    visible = _visible_personas(tx, actor, scope, refs)
    requests = [_seat_request(ref, visible, providers) for ref in refs]
    return assign_seats(requests, present, _held_seats(tx, actor, scope))


def resolve_chair(
    tx: Tx,
    actor: Actor,
    scope: ProjectScope,
    ref: VoiceRef | None,
    table: Sequence[Voice],
    providers: ProviderRegistry,
) -> Voice | None:
    """The voice in the chair: one of the table, or another one in a seat beside it; None if none is named."""
    if ref is None:
        return None
    [chair] = resolve_voices(tx, actor, scope, (ref,), providers, table)
    identity = (chair.persona_id, chair.model)
    at_table = next((voice for voice in table if (voice.persona_id, voice.model) == identity), chair)
    return at_table if ref.effort is None else replace(at_table, effort=chair.effort)


def _held_seats(tx: Tx, actor: Actor, scope: ProjectScope) -> tuple[HeldSeat, ...]:
    """The seats of the conversation; none if this request begins it."""
    if scope.conversation_id is None:
        return ()
    conversation = conversations.find(tx, actor, scope.conversation_id)
    return branches.seats(tx, conversation) if conversation else ()


def _visible_personas(
    tx: Tx, actor: Actor, scope: ProjectScope, refs: Sequence[VoiceRef]
) -> Mapping[str, Persona]:
    """The personas that may speak here, by id. A project's personas speak in that project only, since their
    instructions belong to its members."""
    if all(ref.persona_id is None for ref in refs):
        return {}
    project_id = scope.find_project_id(tx, actor)
    return {persona.id: persona for persona in personas.visible_to(tx, actor, project_id)}


def _seat_request(ref: VoiceRef, visible: Mapping[str, Persona], providers: ProviderRegistry) -> SeatRequest:
    if ref.persona_id is None:
        if ref.model is None:
            raise Invalid("A voice is a model or a persona: name one of them.")
        model = available(ref.model, providers)
        return SeatRequest(model.key, model.display_name, effort=_checked_effort(ref, model))
    persona = visible.get(ref.persona_id)
    if persona is None:
        raise NotFound("One of the chosen personas does not exist, or you may not see it.")
    return _persona_request(ref, persona, providers)


def _persona_request(ref: VoiceRef, persona: Persona, providers: ProviderRegistry) -> SeatRequest:
    profile = persona.character
    model = available(ref.model, providers) if ref.model else model_for_persona(persona, providers)
    effort = _checked_effort(ref, model) if ref.model else model.effort(ref.effort)
    return SeatRequest(
        model.key,
        profile.name,
        persona.id,
        persona.version,
        profile.hue,
        effort or model.effort(profile.effort),
    )


def _checked_effort(ref: VoiceRef, model: Model) -> Effort | None:
    """The thinking effort, which must fit a model that the request itself names."""
    if ref.effort is not None and ref.effort not in model.efforts:
        known = ", ".join(model.efforts) or "none"
        raise Invalid(f"{model.display_name} has no thinking setting {ref.effort.value!r}. It has: {known}.")
    return ref.effort


def model_for_persona(persona: Persona, providers: ProviderRegistry) -> Model:
    """The persona's own model or, if it cannot answer, the closest one that can."""
    own = providers.find(persona.character.model)
    if own is not None and providers.is_available(own):
        return own
    candidates = providers.available()
    if not candidates:
        raise UnknownModel(
            f"No model is ready to answer as {persona.character.name}. "
            "Models and keys says what each model needs."
        )
    return closest_model(own, candidates)


def closest_model(own: Model | None, candidates: Sequence[Model]) -> Model:
    """A model of the same tier, or else the strongest; the built-in demo only if there is no other."""

    def distance(model: Model) -> tuple[bool, bool, int]:
        is_other_tier = own is None or model.tier is not own.tier
        return model.is_demo, is_other_tier, _STRENGTH.index(model.tier)

    return min(candidates, key=distance)


# ── a reply once more


def voice_for_retry(
    model_key: str | None, providers: ProviderRegistry, reply: Message, others: Sequence[Voice]
) -> Voice:
    """The voice of the reply, or its seat with another model."""
    assert reply.voice is not None
    model = available(model_key or reply.voice.model, providers)
    if model_key in (None, reply.voice.model):
        return reply.voice
    request = SeatRequest(model.key, model.display_name, effort=model.effort(reply.voice.effort))
    return _with_model(reply.voice, request, others)


def voice_for_resume(providers: ProviderRegistry, reply: Message, others: Sequence[Voice]) -> Voice:
    """The voice of the reply, if its model can answer."""
    assert reply.voice is not None
    available(reply.voice.model, providers)
    return reply.voice


def _with_model(voice: Voice, request: SeatRequest, others: Sequence[Voice]) -> Voice:
    """The same seat with another model; numbered, if that model sits in another seat too.

    A persona keeps its identity and speaks through the other model.
    """
    if voice.persona_id is not None:
        return replace(voice, model=request.model, effort=request.effort)
    used_ids = {other.id for other in others}
    nth = next(n for n in count() if f"{request.model}:{n}" not in used_ids)
    name = request.name if nth == 0 else f"{request.name} {nth + 1}"
    return replace(voice, id=f"{request.model}:{nth}", model=request.model, name=name, effort=request.effort)
