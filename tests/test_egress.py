"""The application of the tests calls no other machine: a forgotten network call is an error."""

from __future__ import annotations

import ast
from contextlib import aclosing
from pathlib import Path

import pytest

from tertulia.core.errors import CannotStart
from tertulia.core.prompts import Prompt, PromptMessage
from tertulia.providers.interface import ModelRequest
from tests.test_tests import trees
from tests.world import running

ELSEWHERE = "https://198.51.100.7"
"""An address that is reserved for documentation."""
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY")
MODELS = ("openai:gpt-4o", "openai:o3-pro", "anthropic:claude-sonnet-5-5", "google:gemini-2.5-pro")
"""One model of each dialect."""


async def test_the_application_of_the_tests_refuses_to_call_another_machine(tmp_path: Path) -> None:
    addresses = {f"{name}_BASE_URL": ELSEWHERE for name in ("OPENAI", "ANTHROPIC", "GOOGLE")}
    embeddings = f'{{"base_url": "{ELSEWHERE}/v1", "model": "m", "dimensions": 8}}'
    environ = dict.fromkeys(KEYS, "a key") | addresses | {"TERTULIA_EMBEDDINGS": embeddings}
    prompt = Prompt("", (PromptMessage("user", "Hello?"),))
    async with running(tmp_path, environ) as world:
        providers = world.tertulia.providers
        for key in MODELS:
            model = providers.find(key)
            assert model is not None
            with pytest.raises(CannotStart, match=ELSEWHERE):
                async with aclosing(providers.stream(ModelRequest(model, prompt, 10))) as items:
                    await anext(items)
        with pytest.raises(CannotStart, match=ELSEWHERE):
            await world.tertulia.dependencies.library.embedder.embed(["a walnut"])


def test_no_test_runs_the_application_with_the_open_policy() -> None:
    """Whoever builds a part of the application has to name a policy, so a test can only name this one."""
    names = {
        f"{path}: {name}"
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "tertulia.providers.egress"
        for name in (alias.name for alias in node.names)
    }
    assert names, "the tests name a policy"
    assert {name for name in names if name.endswith((": OPEN", ": Egress"))} == set()


def test_no_test_starts_the_server_by_its_open_command() -> None:
    commands = {
        path
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value == "serve"
    }
    refused_by_the_command_line = {"cli/test_commands.py", Path(__file__).name}
    assert commands <= refused_by_the_command_line, "tests/loopback_server.py starts a server"
