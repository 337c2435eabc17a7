"""Builds the web interface and carries it in the wheel as tertulia/web."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent / "scripts"))
import node


class WebBuild(BuildHookInterface):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # a checkout serves web/build, which `make web` keeps fresh
            return
        web = Path(self.root) / "web"
        self.app.display_info("Building the web interface…")
        build_web(web)
        build_data["force_include"][str(web / "build")] = "tertulia/web"


def build_web(web: Path) -> None:
    environment = os.environ | {"PATH": node.search_path()}
    for step in (["npm", "ci", "--no-audit", "--no-fund"], ["npm", "run", "build"]):
        subprocess.run(step, cwd=web, env=environment, check=True)
