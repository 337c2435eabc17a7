"""Builds the web interface and carries it in the wheel as tertulia/web."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))
from scripts import node  # the project is not installed yet, so its scripts are reached by path


class WebBuild(BuildHookInterface[BuilderConfig]):
    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        return [node.PACKAGE] if node.is_needed() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # a checkout serves web/build, which `make web` keeps fresh
            return
        web = Path(self.root) / "web"
        build(web)
        build_data["force_include"][str(web / "build")] = "tertulia/web"


def build(web: Path) -> None:
    environment = os.environ | {"PATH": node.search_path()}
    for step in (
        ["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"],
        ["npm", "run", "build", "--silent"],
    ):
        subprocess.run(step, cwd=web, env=environment, check=True)
