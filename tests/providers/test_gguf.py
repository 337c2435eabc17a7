"""GGUF header: name and context length are read from a model file, and broken files are refused."""

import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tertulia.providers.client_pool import ClientPool
from tertulia.providers.egress import LOOPBACK_ONLY
from tertulia.providers.gguf import GgufHeader, NotGguf, read_header
from tertulia.providers.limits import Limits
from tertulia.providers.local_models import LocalModels


def string(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def gguf(*facts: bytes) -> bytes:
    return struct.pack("<4sIQQ", b"GGUF", 3, 0, len(facts)) + b"".join(facts) + b"weights"


def text(key: str, value: str) -> bytes:
    return string(key) + struct.pack("<I", 8) + string(value)


def count(key: str, value: int) -> bytes:
    return string(key) + struct.pack("<II", 4, value)


def words(key: str, *values: str) -> bytes:
    return string(key) + struct.pack("<IIQ", 9, 8, len(values)) + b"".join(map(string, values))


def numbers(key: str, *values: int) -> bytes:
    return string(key) + struct.pack("<IIQ", 9, 4, len(values)) + struct.pack(f"<{len(values)}I", *values)


WHOLE = gguf(
    text("general.architecture", "llama"),
    text("general.name", "Tiny Friend"),
    words("tokenizer.ggml.tokens", "a", "b", "c"),
    numbers("tokenizer.ggml.types", 1, 2, 3),
    count("llama.context_length", 2048),
)


def test_name_and_context_length_are_read_among_other_fields(tmp_path: Path) -> None:
    path = tmp_path / "friend.gguf"
    path.write_bytes(WHOLE)
    assert read_header(path) == GgufHeader("Tiny Friend", 2048)


@given(st.binary(max_size=200) | st.integers(0, len(WHOLE)).map(lambda end: WHOLE[:end]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_other_file_is_refused_without_a_crash(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(content)
    try:
        read_header(path)
    except NotGguf:
        return
    assert len(content) >= len(WHOLE) - len(b"weights")


def test_any_gguf_file_in_the_folder_becomes_a_local_model(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "My-Friend.Q8.gguf").write_bytes(WHOLE)
    (folder / "liar.gguf").write_bytes(b"not at all")
    (folder / ".hidden.gguf").write_bytes(WHOLE)
    local_models = LocalModels(tmp_path, ClientPool(Limits(), LOOPBACK_ONLY), {})
    model = local_models.find("builtin:my-friend.q8")
    assert model is not None
    assert (model.display_name, model.context_window, model.is_local) == (
        "Tiny Friend",
        2048,
        True,
    )
    assert local_models.unavailable_reason(model) is None
    assert [key for key in map(str, local_models.models()) if "liar" in key or "hidden" in key] == []


def test_a_missing_folder_gives_no_available_models(tmp_path: Path) -> None:
    local_models = LocalModels(tmp_path / "nowhere", ClientPool(Limits(), LOOPBACK_ONLY), {})
    assert not any(local_models.is_available(model) for model in local_models.models())


def test_a_deleted_model_file_removes_its_model(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    path = folder / "friend.gguf"
    path.write_bytes(WHOLE)
    local_models = LocalModels(tmp_path, ClientPool(Limits(), LOOPBACK_ONLY), {})
    model = local_models.find("builtin:friend")
    assert model is not None
    path.unlink()
    assert local_models.unavailable_reason(model) == "There is no model builtin:friend. Choose another."
    with pytest.raises(NotGguf):
        read_header(path)
