"""Runs `tertulia serve` for the tests: the settings of the environment, and no call to another machine."""

import os
import sys
from pathlib import Path

from tertulia import settings
from tertulia.cli import print_error
from tertulia.cli.serve import run
from tertulia.core.errors import TertuliaError
from tertulia.providers.egress import LOOPBACK_ONLY

SCRIPT = ("-P", str(Path(__file__)))
"""The arguments for the Python that runs it. `-P` keeps this folder out of the import path."""

if __name__ == "__main__":
    try:
        run(settings.read(os.environ), os.environ, LOOPBACK_ONLY)
    except TertuliaError as error:
        print_error(error)
        sys.exit(1)
