"""Serialization: dataclasses to JSON and back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tertulia.core.conversations import Visibility
from tertulia.core.messages import Failure, Message, Role, Status, Thinking, Usage
from tertulia.core.projects import ContextStrategy, ProjectSettings
from tertulia.core.serialization import from_json, from_plain, to_json, to_plain
from tertulia.core.turns import Purpose, Turn, TurnState
from tertulia.core.voices import Voice

voices = st.builds(Voice, st.text(), st.integers(1, 8), st.text(), st.text(), st.none() | st.text())
turns = st.builds(
    Turn, st.text(), st.text(), st.integers(), st.sampled_from(Purpose), st.text(),
    st.lists(voices).map(tuple), st.sampled_from(Visibility), st.sampled_from(TurnState), st.text(),
    st.integers(),
)  # fmt: skip
messages = st.builds(
    Message,
    id=st.text(), conversation_id=st.text(), round_number=st.integers(), turn_id=st.text(), speaker=st.text(),
    role=st.sampled_from(Role), content=st.text(), status=st.sampled_from(Status), created_by=st.text(),
    created_at=st.integers(), voice=st.none() | voices,
    thinking=st.none() | st.builds(Thinking, st.text(), st.floats(0, 1e6)),
    usage=st.none() | st.builds(Usage, *[st.integers()] * 4, st.none(), st.integers(), st.none()),
    failure=st.none() | st.builds(Failure, st.text(), st.text(), st.none() | st.text()),
)  # fmt: skip


@given(turns)
def test_a_turn_survives_a_round_trip_through_json(turn):
    assert from_json(Turn, to_json(turn)) == turn


@given(messages)
def test_a_message_survives_a_round_trip_through_json(message):
    assert from_json(Message, to_json(message)) == message


def test_missing_fields_get_their_default_and_unknown_fields_are_ignored():
    settings = from_plain(
        ProjectSettings, {"context_strategy": "minimal", "retrieval_config": {"chunk_size": 9}, "x": 1}
    )
    assert settings.context_strategy is ContextStrategy.MINIMAL
    assert settings.retrieval_config.chunk_size == 9
    assert settings.retrieval_config.enabled is True


def test_enums_serialize_to_their_values():
    assert to_plain((TurnState.RUNNING, None, 1.5)) == ["running", None, 1.5]
