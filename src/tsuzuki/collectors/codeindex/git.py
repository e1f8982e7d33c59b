"""What git is asked about a tree. It runs no hook, takes no lock and asks no question."""

import os
import shutil
import subprocess
from pathlib import Path

from tsuzuki.collectors.kit.git_environment import git_environment

SETTINGS = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
TOP_SECONDS = 10.0
LIST_SECONDS = 600.0


def git_top(folder: Path) -> Path | None:
    """The top of the working tree that a folder is in; None if there is none, or no git."""
    output = _output(folder, "rev-parse", "--show-toplevel", seconds=TOP_SECONDS)
    return Path(os.fsdecode(output.removesuffix(b"\n"))) if output else None


def git_paths(folder: Path) -> list[str] | None:
    """The files below a folder that git knows or would add, relative to it. A repository of its own in there
    is one path with `/` at its end, a submodule one without. None if git cannot tell."""
    listed = _output(
        folder, "ls-files", "-co", "--exclude-standard", "-z", "--", ".", seconds=LIST_SECONDS
    )
    if listed is None:
        return None
    # Of a merge with conflicts, a path is listed once for each version.
    return list(dict.fromkeys(os.fsdecode(listed).split("\0")[:-1]))


def quiet_environment() -> dict[str, str]:
    """That of a git which only reads."""
    return {**git_environment(os.environ), "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}


def _output(folder: Path, *arguments: str, seconds: float) -> bytes | None:
    program = shutil.which("git")
    if program is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603 -- git with our own arguments, no shell
            [program, *SETTINGS, *arguments],
            cwd=folder,
            env=quiet_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
