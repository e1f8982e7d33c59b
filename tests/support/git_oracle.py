"""Test oracle: the rows of a history as git itself reports them; every source must give the same."""

import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple


class Row(NamedTuple):
    """In the order of the columns of the `commits` table."""

    sha: str
    author_name: str
    author_email: str
    committed_date_utc: str
    additions: int
    deletions: int


def git(folder: Path, *arguments: str) -> bytes:
    command = ["git", "-C", str(folder), "-c", "safe.directory=*", *arguments]
    return subprocess.run(command, check=True, capture_output=True).stdout


def head(folder: Path, branch: str = "main") -> str:
    return git(folder, "rev-parse", f"refs/heads/{branch}").decode().strip()


def ids(folder: Path, *revisions: str) -> list[str]:
    return git(folder, "rev-list", *revisions, "--").decode().split()


def rows(folder: Path, *revisions: str) -> set[Row]:
    """One call of git per commit: slow, but simple enough to trust."""
    return {_row(folder, sha) for sha in ids(folder, *revisions)}


def parents(folder: Path, *revisions: str) -> set[tuple[str, str]]:
    """Each commit with its parents, one space between."""
    lines = git(folder, "rev-list", "--parents", *revisions, "--").decode().splitlines()
    return {(sha, rest) for sha, _, rest in (line.partition(" ") for line in lines)}


def path_counts(folder: Path, *revisions: str) -> set[tuple[str, str, int, int]]:
    """Commit, path, additions, deletions: one call of git per commit."""
    return {count for sha in ids(folder, *revisions) for count in _path_counts(folder, sha)}


@cache
def _path_counts(folder: Path, sha: str) -> tuple[tuple[str, str, int, int], ...]:
    options = ("-1", "--raw", "--numstat", "-M", "--diff-merges=first-parent", "--format=")
    cells = git(folder, "log", "-z", *options, sha, "--").split(b"\0")
    found = []
    for place, cell in enumerate(cells):
        added, tab, rest = cell.lstrip(b"\n").partition(b"\t")
        if not tab or not (added == b"-" or added.isdigit()):
            continue
        deleted, _, path = rest.partition(b"\t")
        name = _text(path or cells[place + 2])
        numbers = (0 if number == b"-" else int(number) for number in (added, deleted))
        found.append((sha, name, *numbers))
    return tuple(found)


@cache
def _row(folder: Path, sha: str) -> Row:
    options = ("-1", "--numstat", "-M", "--diff-merges=first-parent", "--no-mailmap")
    output = git(folder, "log", *options, "-z", "--format=%an%x00%ae%x00%ct%x00", sha, "--")
    name, email, seconds, changes = output.split(b"\0", 3)
    added = deleted = 0
    for cell in changes.split(b"\0"):
        numbers = cell.strip(b"\n").split(b"\t")
        if len(numbers) >= 3 and numbers[0].isdigit() and numbers[1].isdigit():
            added += int(numbers[0])
            deleted += int(numbers[1])
    moment = datetime.fromtimestamp(int(seconds or 0), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Row(sha, _text(name), _text(email), moment, added, deleted)


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")
