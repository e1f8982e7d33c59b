"""Makes a small project with source code and a git history, always the same one, every name invented."""

import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tsuzuki.collectors.kit.git_environment import git_environment

PARTS = ("lamp", "tide", "fog_horn", "keeper", "log_book", "signal_code")
VERBS = ("read", "check", "adjust", "record", "report", "reset")
PEOPLE = (
    "Aiko Mori <aiko@example.org>",
    "Ben Okafor <ben@example.org>",
    "Clara Lindqvist <clara@example.org>",
    "田中 大輔 <daisuke@example.jp>",
)
BRANCH = "main"
HOUR_SECONDS = 3600
STEP_HOURS_MAX = 400


@dataclass(frozen=True, kw_only=True)
class _Change:
    """One file of the project as a person left it."""

    message: str
    path: str
    text: str
    author: str
    at: int

    def write(self, folder: Path) -> None:
        path = folder / self.path
        path.parent.mkdir(exist_ok=True)
        path.write_text(self.text, encoding="utf-8")


def make_project(folder: Path, *, end: int) -> None:
    """Make a git work tree whose history ends not long before `end`; without git, only its files."""
    folder.mkdir(parents=True)
    history = list(_history(end))
    if shutil.which("git") is None:
        for change in history:
            change.write(folder)
        return
    _git(folder, "init", "--quiet", "--initial-branch", BRANCH)
    _git(folder, "fast-import", "--quiet", given=b"".join(map(_commit, history)))
    _git(folder, "reset", "--quiet", "--hard", BRANCH)


def _git(folder: Path, *arguments: str, given: bytes = b"") -> None:
    environment = {
        **git_environment(os.environ),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    subprocess.run(  # noqa: S603 -- git with our own arguments, no shell
        ["git", *arguments],  # noqa: S607 -- the one on the PATH
        cwd=folder,
        env=environment,
        input=given,
        check=True,
        capture_output=True,
    )


def _history(end: int) -> Iterator[_Change]:
    chance = random.Random(13)  # noqa: S311 -- the same history each time, not a secret
    at = end - len(PARTS) * len(VERBS) * STEP_HOURS_MAX * HOUR_SECONDS
    written = dict.fromkeys(PARTS, 0)
    yield _Change(
        message="Start", path="README.md", text="# A lighthouse\n", author=PEOPLE[0], at=at
    )
    for _ in range(len(PARTS) * len(VERBS)):
        part = chance.choice([part for part in PARTS if written[part] < len(VERBS)])
        written[part] += 1
        at += chance.randrange(STEP_HOURS_MAX // 2 * HOUR_SECONDS, STEP_HOURS_MAX * HOUR_SECONDS)
        yield _Change(
            message=f"Let the {part.replace('_', ' ')} {VERBS[written[part] - 1]}",
            path=f"lighthouse/{part}.py",
            text=_source(part, written[part]),
            author=chance.choice(PEOPLE),
            at=at,
        )


def _commit(change: _Change) -> bytes:
    """The commit, as `git fast-import` reads it."""
    lines = [
        f"commit refs/heads/{BRANCH}",
        f"author {change.author} {change.at} +0000",
        f"committer {change.author} {change.at} +0000",
        _data(change.message),
        f"M 100644 inline {change.path}",
        _data(change.text),
    ]
    return "\n".join([*lines, ""]).encode()


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}"


def _source(part: str, methods: int) -> str:
    """A module with a class, each of whose methods calls the one before."""
    name = "".join(word.capitalize() for word in part.split("_"))
    lines = [f'"""The {part.replace("_", " ")} of the lighthouse."""', "", "", f"class {name}:"]
    lines += ["    def __init__(self, level: int = 0) -> None:", "        self.level = level"]
    before = "level"
    for verb in VERBS[:methods]:
        lines += ["", f"    def {verb}(self, amount: int = 1) -> int:"]
        lines += [
            f'        """{verb.capitalize()} it once."""',
            f"        return self.{before} + amount",
        ]
        before = f"{verb}()"
    return "\n".join([*lines, ""])
