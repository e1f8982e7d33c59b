"""Repositories for a demo: those of the GitLab, and a small project with source code in a work tree.

Both are made in a folder beside and then renamed, so that a folder by the final name is whole.
"""

import random
import shutil
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path

from tsuzuki.sandbox.gitlab.demo import HOUR, PEOPLE, make_demo
from tsuzuki.sandbox.gitlab.repository import Repository
from tsuzuki.sandbox.gitlab.repository_builder import RepositoryBuilder

PARTS = ("lamp", "tide", "fog_horn", "keeper", "log_book", "signal_code")
VERBS = ("read", "check", "adjust", "record", "report", "reset")
STEP_HOURS_MAX = 400
UNFINISHED = ".unfinished"


def make_gitlab_repositories(folder: Path, *, now: datetime) -> None:
    """Make them, unless they are there."""
    _made_whole(folder, partial(make_demo, end=int(now.timestamp())))


def make_project(folder: Path, *, now: datetime) -> None:
    """Make a work tree with a history of its source code, unless it is there."""
    _made_whole(folder, partial(_project, end=int(now.timestamp())))


def _made_whole(folder: Path, make: Callable[[Path], None]) -> None:
    if folder.exists():
        return
    unfinished = folder.with_name(folder.name + UNFINISHED)
    shutil.rmtree(unfinished, ignore_errors=True)
    make(unfinished)
    unfinished.rename(folder)


def _project(folder: Path, *, end: int) -> None:
    bare = folder.with_name(folder.name + ".git" + UNFINISHED)
    shutil.rmtree(bare, ignore_errors=True)
    _write_history(RepositoryBuilder(bare), end=end)
    Repository(bare).git("clone", "--quiet", "--no-hardlinks", str(bare), str(folder))
    Repository(folder).git("remote", "remove", "origin")
    shutil.rmtree(bare)


def _write_history(make: RepositoryBuilder, *, end: int) -> None:
    chance = random.Random(13)  # noqa: S311 -- the same history each time, not a secret
    now = end - len(PARTS) * len(VERBS) * STEP_HOURS_MAX * HOUR
    written = dict.fromkeys(PARTS, 0)
    make.commit(
        "main", {"README.md": b"# A lighthouse\n"}, author=PEOPLE[0], at=now, message="Start"
    )
    for _ in range(len(PARTS) * len(VERBS)):
        part = chance.choice([part for part in PARTS if written[part] < len(VERBS)])
        written[part] += 1
        now += chance.randrange(STEP_HOURS_MAX // 2 * HOUR, STEP_HOURS_MAX * HOUR)
        make.commit(
            "main",
            {f"lighthouse/{part}.py": _source(part, written[part])},
            author=chance.choice(PEOPLE),
            at=now,
            message=f"Let the {part.replace('_', ' ')} {VERBS[written[part] - 1]}",
        )
    make.write()


def _source(part: str, functions: int) -> bytes:
    """A module with a class and so many methods, which call the one before."""
    name = "".join(word.capitalize() for word in part.split("_"))
    lines = [f'"""The {part.replace("_", " ")} of the lighthouse."""', "", "", f"class {name}:"]
    lines += ["    def __init__(self, level: int = 0) -> None:", "        self.level = level"]
    before = "level"
    for verb in VERBS[:functions]:
        lines += ["", f"    def {verb}(self, amount: int = 1) -> int:"]
        lines += [
            f'        """{verb.capitalize()} it once."""',
            f"        return self.{before} + amount",
        ]
        before = f"{verb}()"
    return "\n".join([*lines, ""]).encode()
