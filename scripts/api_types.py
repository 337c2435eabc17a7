"""Writes the web's types from the server's API; with --check, says whether they are up to date.

tertulia openapi  →  openapi-typescript  →  web/src/lib/api/schema.d.ts
"""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
TYPES = ROOT / "web" / "src" / "lib" / "api" / "schema.d.ts"
STALE = (
    "web/src/lib/api/schema.d.ts no longer matches the server's API. Run `make types` and commit the result."
)


def main(arguments: list[str]) -> None:
    fresh = types_of(api())
    if arguments != ["--check"]:
        TYPES.parent.mkdir(parents=True, exist_ok=True)
        TYPES.write_text(fresh, encoding="utf-8")
    elif not TYPES.exists() or TYPES.read_text(encoding="utf-8") != fresh:
        sys.exit(STALE)


def api() -> str:
    return run(Path(sys.executable).with_name("tertulia"), "openapi")


def types_of(openapi: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        document = Path(folder) / "openapi.json"
        document.write_text(openapi, encoding="utf-8")
        return run(
            sys.executable, ROOT / "scripts" / "node.py", "npx", "--no", "openapi-typescript", document
        )


def run(*command: str | Path) -> str:
    ended = subprocess.run(command, cwd=ROOT / "web", stdout=subprocess.PIPE, text=True)
    if ended.returncode:
        sys.exit(f"This did not work: {' '.join(map(str, command))}")
    return ended.stdout


if __name__ == "__main__":
    main(sys.argv[1:])
