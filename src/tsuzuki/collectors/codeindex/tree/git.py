"""What git is asked about a tree. It runs no hook, takes no lock and asks no question.

The tree may come with a `.git` that its author wrote. Git obeys its configuration, so what could start a program is
overridden by arguments or refused by the environment, the fetch of a missing object before all. No command here prints
an object, runs a filter or makes a difference of two files. So `objects/info/alternates` may name any other repository:
names and lines come from the files of the working tree, and nothing of the other repository's content is ever shown.
"""

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tsuzuki.collectors.codeindex.tree.endless_files import holds_git_up, would_hold_git_up
from tsuzuki.collectors.codeindex.tree.git_folder import common_folder_of
from tsuzuki.collectors.kit.git_environment import git_environment

SETTINGS = (
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"),
    *("-c", "submodule.recurse=false", "-c", "core.useReplaceRefs=false"),
)
TOP_SECONDS = 10.0
LIST_SECONDS = 60.0
"""After it, the tree is walked."""

HANG_CHECK_SECONDS = 2.0
"""After it, git is killed if it hangs at a file without end, such as a FIFO in place of `.gitignore`."""

_WORKTREE = "worktree "


def git_top(folder: Path) -> Path | None:
    """The top of the working tree that a folder is in; None if there is none, or no git."""
    output = _output(folder, "rev-parse", "--show-toplevel", seconds=TOP_SECONDS)
    if not output:
        return None
    top = Path(os.fsdecode(output.removesuffix(b"\n")))
    # `core.worktree` of a stranger's configuration may name any other folder.
    return top if Path(os.path.realpath(folder)).is_relative_to(top) else None


def git_paths(folder: Path, only: Sequence[str] = (".",)) -> list[str] | None:
    """The files below a folder that git knows or would add, relative to it. A repository of its own in there
    is one path with `/` at its end, a submodule one without. `only` are files and folders. None if git cannot
    tell."""
    return _listed(folder, "-co", only)


class GitListing:
    """The same in a thread: the folder is listed while something else is done."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._paths: list[str] | None = None
        self._thread = threading.Thread(target=self._list, name="list", daemon=True)
        self._thread.start()

    def paths(self) -> list[str] | None:
        self._thread.join()
        return self._paths

    def _list(self) -> None:
        self._paths = git_paths(self._folder)


def git_ignored_paths(folder: Path, only: Sequence[str] = (".",)) -> list[str] | None:
    """What git ignores below a folder. A folder that is ignored as a whole is one path with `/` at its end."""
    return _listed(folder, "-oi", only, "--directory")


def git_ignores(folder: Path) -> bool:
    """Whether a folder as a whole is ignored by the repository around it."""
    return _output(folder, "check-ignore", "-q", ".", seconds=TOP_SECONDS) is not None


def _listed(folder: Path, which: str, only: Sequence[str], *options: str) -> list[str] | None:
    arguments = ["--literal-pathspecs", "ls-files", which, "--exclude-standard", *options, "-z"]
    listed = _output(folder, *arguments, "--", *only, seconds=LIST_SECONDS)
    if listed is None:
        return None
    # Of a merge with conflicts, a path is listed once for each version.
    return list(dict.fromkeys(os.fsdecode(listed).split("\0")[:-1]))


def git_worktrees(folder: Path) -> list[Path]:
    """Every working tree of the repository that a folder is in, that of the folder too. A tree that the repository
    names but that belongs to another one is left out."""
    listed = _output(folder, "worktree", "list", "--porcelain", seconds=TOP_SECONDS) or b""
    lines = os.fsdecode(listed).split("\n")
    found = [Path(line[len(_WORKTREE) :]) for line in lines if line.startswith(_WORKTREE)]
    common = common_folder_of(folder)
    return [one for one in found if common is not None and common_folder_of(one) == common]


class GitUnusable(Exception):
    """There is no git that can answer about this tree."""


@contextmanager
def git_process(
    folder: Path, *arguments: str, seconds: float, locale: str = "C"
) -> Iterator["subprocess.Popen[bytes]"]:
    """A git in a folder, with a pipe for what it prints. It is killed when the block ends, after `seconds`, and
    as soon as it is known to hang. Raises `GitUnusable` if none can be started."""
    program = shutil.which("git")
    if program is None or would_hold_git_up(folder):
        raise GitUnusable
    try:
        process = subprocess.Popen(  # noqa: S603 -- git with our own arguments, no shell
            [program, *SETTINGS, *arguments],
            cwd=folder,
            env={**_read_only_environment(), "LC_ALL": locale},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError as problem:
        raise GitUnusable from problem
    ended = threading.Event()
    watch = threading.Thread(
        target=_kill_if_late, args=(process, folder, seconds, ended), name="git", daemon=True
    )
    with process:
        try:
            watch.start()
            yield process
        finally:
            ended.set()
            process.kill()


def _kill_if_late(
    process: "subprocess.Popen[bytes]", folder: Path, seconds: float, ended: threading.Event
) -> None:
    if ended.wait(HANG_CHECK_SECONDS):
        return
    if holds_git_up(folder, ended.is_set) or not ended.wait(seconds - HANG_CHECK_SECONDS):
        process.kill()


def _read_only_environment() -> dict[str, str]:
    return {
        **git_environment(os.environ),
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
    }


def _output(folder: Path, *arguments: str, seconds: float) -> bytes | None:
    """What git prints; None if it fails, is too slow or hangs."""
    try:
        with git_process(folder, *arguments, seconds=seconds) as process:
            output = process.communicate()[0]
    except GitUnusable:
        return None
    return output if process.returncode == 0 else None
