"""A real repository, asked through the git program: once per page, never once per commit.

A commit id fixes all that is asked about it, so commits and the lists of ranges between ids are
remembered; branches never are.
"""

import os
import re
import subprocess
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from .object_view import object_view

GIT_SECONDS_MAX = 120.0
COMMITS_REMEMBERED = 50_000
LISTS_REMEMBERED = 8
FULL_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")

FIELDS = ("%H", "%P", "%an", "%ae", "%ad", "%cn", "%ce", "%cd", "%s", "%B")
FORMAT = "--format=tformat:" + "%x00".join(FIELDS) + "%x00"
BRANCH_FORMAT = "%(objectname) %(if)%(HEAD)%(then)%(HEAD)%(else)-%(end) %(refname:lstrip=2)"
STATS = ("--shortstat", "-M", "--diff-merges=first-parent", "--no-ext-diff", "--no-textconv")

ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C.UTF-8",
}
"""Nothing of the person's own git changes an answer; a folder of another user may be served."""

T = TypeVar("T")


class GitFailed(Exception):
    """The git program could not answer: the repository is broken."""


@dataclass(frozen=True, kw_only=True)
class GitCommit:
    sha: str
    parents: tuple[str, ...]
    author_name: str
    author_email: str
    authored_at: str
    committer_name: str
    committer_email: str
    committed_at: str
    title: str
    message: str
    additions: int | None
    """None if the counts were not asked for."""
    deletions: int | None


@dataclass(frozen=True, kw_only=True)
class Branch:
    name: str
    sha: str
    is_default: bool


@dataclass(frozen=True, kw_only=True)
class CommitWalk:
    """Which commits a listing holds, and in which order."""

    revisions: Sequence[str]
    """Full ids, one that is to be left out with `^` before it; or `--all`."""

    options: Sequence[str] = ()
    path: str | None = None

    @property
    def is_fixed(self) -> bool:
        return all(FULL_ID.fullmatch(revision.lstrip("^")) for revision in self.revisions)


@dataclass
class Remembered(Generic[T]):
    """The values asked for last, up to a number of them."""

    size: int
    _values: OrderedDict[object, T] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, key: object) -> T | None:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: object, value: T) -> None:
        with self._lock:
            self._values[key] = value
            if len(self._values) > self.size:
                self._values.popitem(last=False)


class Repository:
    """One repository in a folder, bare or with a work tree."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._commits: Remembered[GitCommit] = Remembered(COMMITS_REMEMBERED)
        self._lists: Remembered[list[str]] = Remembered(LISTS_REMEMBERED)
        self._walking = threading.Lock()

    def default_branch(self) -> str | None:
        return self._line("symbolic-ref", "--quiet", "--short", "HEAD")

    def set_default_branch(self, name: str) -> None:
        self.git("symbolic-ref", "HEAD", f"refs/heads/{name}")

    def is_empty(self) -> bool:
        return not self.git("for-each-ref", "--count=1", "--format=%(refname)", "refs/heads")

    def branch(self, name: str) -> Branch | None:
        return next((found for found in self.branches(name) if found.name == name), None)

    def branches(self, name: str | None = None) -> list[Branch]:
        """Every branch by name, whether or not its head can be read; `name` spares git the others."""
        below = f"refs/heads/{name}" if name else "refs/heads"
        text = self.git("for-each-ref", f"--format={BRANCH_FORMAT}", below)
        rows = (line.split(" ", 2) for line in text.decode(errors="replace").split("\n")[:-1])
        found = [Branch(name=row[2], sha=row[0], is_default=row[1] == "*") for row in rows]
        return sorted(found, key=lambda branch: branch.name)

    def resolve(self, revision: str) -> str | None:
        """The commit a name stands for; a full id stands for itself, there or not."""
        if FULL_ID.fullmatch(revision):
            return revision
        return self._line(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"
        )

    def holds(self, sha: str) -> bool:
        return self._line("rev-parse", "--verify", "--quiet", f"{sha}^{{commit}}") is not None

    def _holds_all(self, revisions: Sequence[str]) -> bool:
        """Whether what was remembered could be read again: a commit may have been pruned since."""
        given = "\n".join(revision.lstrip("^") for revision in revisions).encode()
        return b"missing" not in self.git("cat-file", "--batch-check", given=given)

    def merge_base(self, shas: Sequence[str]) -> str | None:
        return self._line("merge-base", *shas)

    def listing(self, walk: CommitWalk) -> list[str]:
        """The ids of a walk; nothing if one of its ends is not there, which is what GitLab says."""
        if not walk.is_fixed:
            return self._walk(walk)
        key = (tuple(walk.revisions), tuple(walk.options), walk.path)
        with self._walking:  # so that many clients asking for one range cost one walk
            found = self._lists.get(key)
            if found is None or not self._holds_all(walk.revisions):
                found = self._walk(walk)
                self._lists.put(key, found)
        return found

    def _walk(self, walk: CommitWalk) -> list[str]:
        paths = ["--", walk.path] if walk.path else ["--"]
        try:
            text = self.git("rev-list", *walk.options, *walk.revisions, *paths)
        except GitFailed:
            return []
        return text.decode().split()

    def commits(self, shas: Sequence[str], *, stats: bool) -> list[GitCommit]:
        """The commits of these ids, in this order, with one call of git for those not remembered."""
        known = {sha: self._commits.get((sha, stats)) for sha in shas}
        missing = [sha for sha, commit in known.items() if commit is None]
        if missing:
            for commit in self._read(missing, stats=stats):
                self._commits.put((commit.sha, stats), commit)
                known[commit.sha] = commit
        return [found for sha in shas if (found := known[sha])]

    def _read(self, shas: Sequence[str], *, stats: bool) -> Iterable[GitCommit]:
        options = STATS if stats else ("--no-patch",)
        # Raw dates: git refuses to write some of those it can read, and all the others with them.
        command = ("log", "--no-walk=unsorted", "--stdin", "--no-mailmap", "--date=raw", FORMAT)
        place = self.git(
            "rev-parse", "--path-format=absolute", "--show-object-format", "--git-path", "objects"
        )
        object_format, objects = os.fsdecode(place).removesuffix("\n").split("\n", 1)
        with object_view(objects, object_format) as environment:
            given = "\n".join(shas).encode()
            output = self._run((*command, *options), given, lambda code: code == 0, environment)
        return parse_log(output, stats=stats)

    def blob(self, sha: str, path: str) -> tuple[str, bytes] | None:
        """The id and the content of a file in a commit; None if there is no such file."""
        blob_id = self._line("rev-parse", "--verify", "--quiet", f"{sha}:{path}")
        if blob_id is None or self._line("cat-file", "-t", blob_id) != "blob":
            return None
        return blob_id, self.git("cat-file", "blob", blob_id)

    def last_change(self, sha: str, path: str) -> str | None:
        """The last commit up to `sha` that changed a file."""
        return self._line("rev-list", "-1", sha, "--", path)

    def changed_paths(self, old: str, new: str) -> bytes:
        return self.git("diff", "--raw", "-z", "-M", "--no-abbrev", old, new)

    def _line(self, *arguments: str) -> str | None:
        """One line of an answer; None if git says no with its exit code 1."""
        return self._run(arguments, b"", lambda code: code in (0, 1)).decode().strip("\n") or None

    def git(self, *arguments: str, given: bytes = b"") -> bytes:
        return self._run(arguments, given, lambda code: code == 0)

    def _run(
        self,
        arguments: Sequence[str],
        given: bytes,
        accepts: Callable[[int], bool],
        environment: Mapping[str, str] | None = None,
    ) -> bytes:
        try:
            done = subprocess.run(  # noqa: S603 -- a fixed program, its arguments a list
                ["git", "-C", self.folder, *arguments],  # noqa: S607 -- the git on the path
                input=given,
                capture_output=True,
                check=False,
                timeout=GIT_SECONDS_MAX,
                env={**os.environ, **ENVIRONMENT, **(environment or {})},
            )
        except subprocess.TimeoutExpired as problem:
            raise GitFailed(f"git {arguments[0]} took too long") from problem
        if not accepts(done.returncode):
            raise GitFailed(f"git {arguments[0]}: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout


def parse_log(output: bytes, *, stats: bool) -> Iterable[GitCommit]:
    """Read what `FORMAT` wrote. No field can hold a NUL; what stands between the last field of a
    commit and the id of the next one is the line of its counts."""
    *cells, tail = output.split(b"\0")
    width = len(FIELDS)
    for start in range(0, len(cells), width):
        row = [cell.decode(errors="replace") for cell in cells[start : start + width]]
        following = cells[start + width] if start + width < len(cells) else tail
        counts = _counts(following.rpartition(b"\n")[0]) if stats else (None, None)
        yield GitCommit(
            sha=row[0].rpartition("\n")[2],
            parents=tuple(row[1].split()),
            author_name=row[2],
            author_email=row[3],
            authored_at=row[4],
            committer_name=row[5],
            committer_email=row[6],
            committed_at=row[7],
            title=row[8],
            message=row[9],
            additions=counts[0],
            deletions=counts[1],
        )


def _counts(line: bytes) -> tuple[int, int]:
    """` 3 files changed, 5 insertions(+), 2 deletions(-)`; a side that is nought is left out."""
    found = {kind: int(number) for number, kind in re.findall(rb"(\d+) (insertion|deletion)", line)}
    return found.get(b"insertion", 0), found.get(b"deletion", 0)
