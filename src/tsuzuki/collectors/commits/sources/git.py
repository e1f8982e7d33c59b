"""Commits out of a repository on this machine, read by the git program.

    git log -z --numstat -M --diff-merges=first-parent

gives per commit and file the insertions and deletions of the diff to the first parent with renames found,
binary files as nothing; a commit's own counts are their sums. It is read through a bare view, in which no
configuration and no attributes can change them. A range is read from a stream; a page is what came in a
while, or so many commits or files. Its mark is how many commits came before, and the last of them: git walks
a fixed range in one order, and if it ever did not, the range would be read from its beginning and the unique
key would keep each commit once.
"""

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from tsuzuki.collectors.commits.git.errors import refusal
from tsuzuki.collectors.commits.git.log import LOG, read_commits
from tsuzuki.collectors.commits.git.program import Git, GitOutput, GitProcess
from tsuzuki.collectors.commits.git.view import ObjectStore, bare_view
from tsuzuki.collectors.commits.people.mailmap import MAILMAP
from tsuzuki.collectors.commits.sources.source import (
    IDS_MAX,
    Absence,
    Commit,
    CommitPage,
    Head,
    Lineage,
    Range,
)
from tsuzuki.outward.errors import SourceRefused

PAGE_SECONDS_MAX = 0.5
PAGE_PATHS_MAX = 50_000
"""A page ends with the commit that reaches it, so a history of large commits takes no more memory."""

_FILE_MODES = ("100644", "100755")
_HEADS = "refs/heads/"
_PROMISOR = r"^(remote\..*\.promisor|extensions\.partialclone)$"
_ORIGIN_HEAD = "refs/remotes/origin/HEAD"
_REF_FORMAT = "%(objectname)%00%(HEAD)%00%(refname)%00%(symref)"


@dataclass(frozen=True, kw_only=True)
class _Refs:
    """Some branches with their heads; which one is checked out; where `origin/HEAD` leads."""

    heads: dict[str, str]
    checked_out: str | None = None
    origin_default: str | None = None


class GitSource:
    """One repository on this machine."""

    def __init__(
        self,
        *,
        folder: Path,
        git: Git,
        page_commits_max: int,
    ) -> None:
        self._folder = folder
        self._git = git
        self._clock = git.clock
        self._page_commits_max = page_commits_max

    def head(self, branch: str) -> Head | Absence:
        refs = self._refs(f"{_HEADS}{branch}", _ORIGIN_HEAD)
        if branch in refs.heads:
            return Head(sha=refs.heads[branch], is_default=self._is_default(branch, refs))
        return Absence.NO_BRANCH if self._refs(_HEADS).heads else Absence.EMPTY_REPOSITORY

    def default_branch(self) -> str | None:
        """The branch that `origin/HEAD` leads to, if it is here; else the one that is checked out."""
        origin = self._origin_default()
        if origin is not None:
            return origin
        answer = self._git.ask(self._folder, "symbolic-ref", "--quiet", "HEAD")
        if answer.code not in (0, 1):
            raise refusal(answer)
        name = answer.output.decode("utf-8", "replace").removesuffix("\n")
        return name.removeprefix(_HEADS) or None

    def why_default(self) -> str:
        if self._origin_default() is not None:
            return "target of origin/HEAD"
        if self._is_bare():
            return "HEAD of the repository"
        return "checked out, because origin/HEAD does not lead to a branch here"

    def branches(self) -> Iterator[str]:
        yield from self._refs(_HEADS).heads

    def _origin_default(self) -> str | None:
        refs = self._refs(_HEADS, _ORIGIN_HEAD)
        return refs.origin_default if refs.origin_default in refs.heads else None

    def _is_default(self, branch: str, refs: _Refs) -> bool | None:
        """None if only the work tree could say: what a person has checked out is not a default."""
        if refs.origin_default == branch:
            return True
        if refs.origin_default is not None and self._origin_default() is not None:
            return False
        if self._is_bare():
            return refs.checked_out == branch
        return None

    def _is_bare(self) -> bool:
        return self._folder.name != ".git" and not (self._folder / ".git").exists()

    def lineage(self, old: str, new: str) -> Lineage:
        answer = self._git.ask(self._folder, "merge-base", "--is-ancestor", old, new)
        match answer.code:
            case 0:
                return Lineage.ANCESTOR
            case 1 if self._is_ancestor(new, old):
                return Lineage.RESET
            case 1:
                return Lineage.REWRITTEN
            case _ if not self.has(old):
                return Lineage.UNKNOWN
            case _:
                raise refusal(answer)

    def _is_ancestor(self, old: str, new: str) -> bool:
        return self._git.ask(self._folder, "merge-base", "--is-ancestor", old, new).code == 0

    def has(self, sha: str) -> bool:
        """Whether the repository holds a commit."""
        return self._git.ask(self._folder, "cat-file", "-e", f"{sha}^{{commit}}").code == 0

    def mailmap(self, head: str) -> bytes:
        listed = self._git.ask(self._folder, "ls-tree", "--full-tree", head, "--", MAILMAP)
        if listed.code != 0:
            raise refusal(listed)
        mode, _, rest = listed.output.decode("ascii", "replace").partition(" blob ")
        if mode not in _FILE_MODES:
            return b""  # none, or a link, which git does not follow
        answer = self._git.ask(self._folder, "cat-file", "blob", rest.partition("\t")[0])
        if answer.code != 0:
            raise refusal(answer)
        return answer.output

    def pages(self, wanted: Range, *, mark: str | None = None) -> Iterator[CommitPage]:
        objects = self._whole()
        done, last = _read_mark(mark)
        notes: dict[str, str] = {}
        with closing(self._commits(wanted, objects, notes, skip=max(done - 1, 0))) as batches:
            rest = _behind(last, batches) if done else []
            if rest is not None:
                yield from self._paged(chain([rest], batches), done, notes)
                return
        yield from self.pages(wanted)

    def ids(self, head: str) -> Iterator[Sequence[str]]:
        with (
            bare_view(self._whole()) as (view, environment),
            self._git.started(view, ["rev-list", head, "--"], environment=environment) as process,
        ):
            rest = b""
            for piece in self._whole_output(process):
                *lines, rest = (rest + piece).split(b"\n")
                for first in range(0, len(lines), IDS_MAX):
                    yield [line.decode("ascii") for line in lines[first : first + IDS_MAX]]

    def close(self) -> None:
        """Nothing is held between two questions."""

    def _paged(
        self, batches: Iterator[list[Commit]], done: int, notes: dict[str, str]
    ) -> Iterator[CommitPage]:
        commits: list[Commit] = []
        paths = 0
        started = self._clock.monotonic()
        mark = ""
        for batch in batches:
            commits += batch
            paths += _path_count(batch)
            is_late = self._clock.monotonic() - started >= PAGE_SECONDS_MAX
            while commits and (is_late or self._is_page(len(commits), paths)):
                count = self._page_length(commits)
                page, commits = commits[:count], commits[count:]
                paths -= _path_count(page)
                done += len(page)
                mark = f"{done}:{page[-1].sha}"
                yield CommitPage(
                    commits=page, mark=mark, is_last=False, date_notes=_notes_of(page, notes)
                )
                started, is_late = self._clock.monotonic(), False
        done += len(commits)
        mark = f"{done}:{commits[-1].sha}" if commits else mark
        yield CommitPage(
            commits=commits, mark=mark, is_last=True, date_notes=_notes_of(commits, notes)
        )

    def _is_page(self, commit_count: int, path_count: int) -> bool:
        return commit_count >= self._page_commits_max or path_count >= PAGE_PATHS_MAX

    def _page_length(self, commits: list[Commit]) -> int:
        """How many of the first commits are a page: all, unless they are more than one."""
        path_count = 0
        for number, commit in enumerate(commits, 1):
            path_count += len(commit.paths)
            if self._is_page(number, path_count):
                return number
        return len(commits)

    def _commits(
        self, wanted: Range, objects: ObjectStore, notes: dict[str, str], *, skip: int
    ) -> Generator[list[Commit], None, None]:
        """The range in small lists, as git gives it; `notes` gets what was wrong with a date."""
        ends = [wanted.new] if wanted.old is None else [wanted.new, f"^{wanted.old}"]
        command = [*LOG, f"--skip={skip}", *ends, "--"]
        with (
            bare_view(objects) as (view, environment),
            self._git.started(view, command, environment=environment) as process,
        ):
            yield from read_commits(self._whole_output(process), notes)

    def _whole_output(self, process: GitProcess) -> Iterator[bytes]:
        """What git writes. If it fails, the last commit it wrote of may not be whole: this raises first."""
        yield from process.pieces()
        if process.end() != 0:
            if self._is_partial():
                raise SourceRefused(
                    "the repository is a partial clone: some files of its commits were not fetched",
                    hint="Complete it with: git fetch --refetch --no-filter",
                    code="partial_clone",
                )
            raise refusal(GitOutput(code=process.end(), output=b"", stderr=process.stderr()))

    def _is_partial(self) -> bool:
        """Whether some objects were left to be fetched when they are needed, which a collection never does."""
        return self._git.ask(self._folder, "config", "--get-regexp", _PROMISOR).code == 0

    def _refs(self, *patterns: str) -> _Refs:
        answer = self._git.ask(self._folder, "for-each-ref", f"--format={_REF_FORMAT}", *patterns)
        if answer.code != 0:
            raise refusal(answer)
        return _read_refs(answer.output)

    def _whole(self) -> ObjectStore:
        """Where its objects are. A shallow clone is refused."""
        answer = self._git.ask(
            self._folder,
            "rev-parse",
            "--path-format=absolute",
            "--is-shallow-repository",
            "--show-object-format",
            "--git-path",
            "objects",
        )
        if answer.code != 0:
            raise refusal(answer)
        is_shallow, object_format, folder = os.fsdecode(answer.output).split("\n", 2)
        if is_shallow == "true":
            raise SourceRefused(
                "the repository is a shallow clone: its oldest commits would be taken for the "
                "first ones",
                hint="Complete it with: git fetch --unshallow",
                code="shallow_clone",
            )
        return ObjectStore(folder=folder.removesuffix("\n"), object_format=object_format)


def _path_count(commits: Sequence[Commit]) -> int:
    return sum(len(commit.paths) for commit in commits)


def _behind(last: str, batches: Iterator[list[Commit]]) -> list[Commit] | None:
    """The first commits behind `last`, with which the stream must begin; None if it does not."""
    first = next((batch for batch in batches if batch), [])
    return first[1:] if first and first[0].sha == last else None


def _notes_of(page: list[Commit], notes: dict[str, str]) -> dict[str, str]:
    return (
        {commit.sha: notes[commit.sha] for commit in page if commit.sha in notes} if notes else {}
    )


def _read_refs(output: bytes) -> _Refs:
    """A name may hold any character but control characters, so lines end with a newline only."""
    heads: dict[str, str] = {}
    checked_out = origin_default = None
    for line in output.decode("utf-8", "surrogateescape").split("\n")[:-1]:
        sha, mark, name, leads_to = line.split("\0")
        if name == _ORIGIN_HEAD:
            origin_default = leads_to.removeprefix("refs/remotes/origin/")
            continue
        heads[name.removeprefix(_HEADS)] = sha
        if mark == "*":
            checked_out = name.removeprefix(_HEADS)
    return _Refs(heads=heads, checked_out=checked_out, origin_default=origin_default)


def parse_refs(output: bytes) -> dict[str, str]:
    """`<sha> <name>` lines as a mapping from name to sha."""
    lines = output.decode("utf-8", "surrogateescape").split("\n")[:-1]
    return {
        name: sha for sha, _, name in (line.replace("\t", " ").partition(" ") for line in lines)
    }


def _read_mark(mark: str | None) -> tuple[int, str]:
    count, _, sha = (mark or "0:").partition(":")
    return (int(count), sha) if sha else (0, "")
