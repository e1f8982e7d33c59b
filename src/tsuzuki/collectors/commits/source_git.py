"""Commits out of a repository on this machine, read by the git program.

    git log --shortstat -M --diff-merges=first-parent

gives per commit the sums that `--numstat` gives per file: insertions and deletions of the diff to the
first parent with renames found, binary files as nothing. Options of the user's that would change them
are overruled. A range is read from a stream; a page is what came in a while. Its mark is how many commits
came before, and the last of them: git walks a fixed range in one order, and if it ever did not, the
range would be read from its beginning and the unique key would keep each commit once.
"""

import re
from collections.abc import Generator, Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path

from tsuzuki.collectors.commits.git_program import Git, GitOutput, GitProcess
from tsuzuki.collectors.commits.source import Absence, Commit, Head, Lineage, Page, Range
from tsuzuki.collectors.kit.errors import (
    RateLimited,
    SourceFailed,
    SourceRefused,
    SourceUnavailable,
)

PAGE_SECONDS_MAX = 0.5
RATE_LIMIT_SECONDS = 60.0

_FORMAT = "%x00%H%n%cd%n%an%n%ae"
_LOG = (
    "log",
    "--shortstat",
    "-M",
    "--diff-merges=first-parent",
    f"--format=tformat:{_FORMAT}",
    "--date=format-local:%Y-%m-%dT%H:%M:%SZ",
    "--encoding=UTF-8",
    "--no-color",
    "--no-ext-diff",
    "--no-mailmap",
    "--no-show-signature",
    "--no-textconv",
    "--diff-algorithm=default",
    "--ignore-submodules=none",
)
_RECORD = re.compile(
    r"\x00([0-9a-f]{40,64})\n([^\n]*)\n([^\n]*)\n([^\n]*)\n"
    r"(?:\n? \d+ files? changed(?:, (\d+) insertions?\(\+\))?(?:, (\d+) deletions?\(-\))?\n)?"
)


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
        refs = self._heads(f"refs/heads/{branch}")
        if f"refs/heads/{branch}" in refs:
            return Head(sha=refs[f"refs/heads/{branch}"])
        return Absence.NO_BRANCH if self._heads("refs/heads/") else Absence.EMPTY_REPOSITORY

    def default_branch(self) -> str | None:
        answer = self._git.ask(self._folder, "symbolic-ref", "--quiet", "HEAD")
        if answer.code not in (0, 1):
            raise refusal(answer)
        name = answer.output.decode("utf-8", "replace").strip()
        return name.removeprefix("refs/heads/") or None

    def lineage(self, old: str, new: str) -> Lineage:
        answer = self._git.ask(self._folder, "merge-base", "--is-ancestor", old, new)
        match answer.code:
            case 0:
                return Lineage.ANCESTOR
            case 1:
                return Lineage.REWRITTEN
            case _ if not self.has(old):
                return Lineage.UNKNOWN
            case _:
                raise refusal(answer)

    def has(self, sha: str) -> bool:
        """Whether the repository holds a commit."""
        return self._git.ask(self._folder, "cat-file", "-e", f"{sha}^{{commit}}").code == 0

    def pages(self, wanted: Range, *, mark: str | None = None) -> Iterator[Page]:
        self._require_whole()
        done, last = _read_mark(mark)
        with closing(self._commits(wanted, skip=max(done - 1, 0))) as batches:
            rest = _behind(last, batches) if done else []
            if rest is not None:
                yield from self._paged(chain([rest], batches), done)
                return
        yield from self.pages(wanted)

    def close(self) -> None:
        """Nothing is held between two questions."""

    def _paged(self, batches: Iterator[list[Commit]], done: int) -> Iterator[Page]:
        commits: list[Commit] = []
        began = self._clock.monotonic()
        mark = ""
        for batch in batches:
            commits += batch
            late = self._clock.monotonic() - began >= PAGE_SECONDS_MAX
            while len(commits) >= self._page_commits_max or (late and commits):
                page, commits = (
                    commits[: self._page_commits_max],
                    commits[self._page_commits_max :],
                )
                done += len(page)
                mark = f"{done}:{page[-1].sha}"
                yield Page(commits=page, mark=mark, is_last=False)
                began, late = self._clock.monotonic(), False
        done += len(commits)
        mark = f"{done}:{commits[-1].sha}" if commits else mark
        yield Page(commits=commits, mark=mark, is_last=True)

    def _commits(self, wanted: Range, *, skip: int) -> Generator[list[Commit], None, None]:
        """The range in small lists, as git gives it."""
        ends = [wanted.new] if wanted.old is None else [wanted.new, f"^{wanted.old}"]
        command = [*_LOG, f"--skip={skip}", *ends, "--"]
        with self._git.started(self._folder, command) as process:
            yield from read_commits(process)
            if process.end() != 0:
                raise refusal(GitOutput(code=process.end(), output=b"", stderr=process.stderr()))

    def _heads(self, pattern: str) -> dict[str, str]:
        answer = self._git.ask(
            self._folder, "for-each-ref", "--format=%(objectname) %(refname)", pattern
        )
        if answer.code != 0:
            raise refusal(answer)
        return parse_refs(answer.output)

    def _require_whole(self) -> None:
        answer = self._git.ask(self._folder, "rev-parse", "--is-shallow-repository")
        if answer.code != 0:
            raise refusal(answer)
        if answer.output.strip() == b"true":
            raise SourceRefused(
                "the repository is a shallow clone: its oldest commits would look like the first ones",
                hint="Complete it with: git fetch --unshallow",
                code="shallow_clone",
            )


def _behind(last: str, batches: Iterator[list[Commit]]) -> list[Commit] | None:
    """The first commits behind `last`, with which the stream must begin; None if it does not."""
    first = next((batch for batch in batches if batch), [])
    return first[1:] if first and first[0].sha == last else None


def read_commits(process: GitProcess) -> Iterator[list[Commit]]:
    """Commits out of the stream of `git log`; each record is whole when the next one has begun."""
    rest = b""
    for piece in process.pieces():
        whole, separator, tail = piece.rpartition(b"\0")
        if not separator:
            rest += piece
            continue
        yield parse_commits(rest + whole)
        rest = separator + tail
    yield parse_commits(rest)


def parse_commits(text: bytes) -> list[Commit]:
    """The commits of some whole records."""
    found = _RECORD.findall(text.decode("utf-8", "replace"))
    if len(found) != text.count(b"\0"):
        raise SourceRefused("git wrote something that is not a commit", code="git_output")
    return [
        Commit(sha, name, email, date, int(added or 0), int(deleted or 0))
        for sha, date, name, email, added, deleted in found
    ]


def parse_refs(output: bytes) -> dict[str, str]:
    """`<sha> <name>` lines as a mapping from name to sha."""
    lines = output.decode("utf-8", "surrogateescape").splitlines()
    return {
        name: sha for sha, _, name in (line.replace("\t", " ").partition(" ") for line in lines)
    }


def _read_mark(mark: str | None) -> tuple[int, str]:
    count, _, sha = (mark or "0:").partition(":")
    return (int(count), sha) if sha else (0, "")


# --- what stderr means ----------------------------------------------------------------------------

_MEANINGS: tuple[tuple[str, type[SourceFailed], str, str], ...] = (
    (
        "dubious ownership",
        SourceRefused,
        "the repository belongs to another user, so git does not trust it (dubious ownership)",
        "If you do: git config --global --add safe.directory <path>",
    ),
    (
        "not a git repository",
        SourceRefused,
        "this is not a git repository",
        "Is the path right?",
    ),
    ("could not read username", SourceRefused, "the server asks for a name and password", ""),
    ("authentication failed", SourceRefused, "the server refused the name and password", ""),
    ("permission denied", SourceRefused, "access is denied", ""),
    ("returned error: 401", SourceRefused, "the server refused the name and password", ""),
    ("returned error: 403", SourceRefused, "the server does not permit it", ""),
    ("returned error: 404", SourceRefused, "there is no such repository on the server", ""),
    ("returned error: 429", RateLimited, "the server asks for a pause", ""),
    ("repository not found", SourceRefused, "there is no such repository on the server", ""),
    (
        "does not appear to be a git repository",
        SourceRefused,
        "there is no repository at this URL",
        "",
    ),
    ("not allowed", SourceRefused, "this protocol is not allowed", "Use https, ssh or a path."),
)
_PASSING = (
    "could not resolve",
    "connection refused",
    "connection reset",
    "connection timed out",
    "operation timed out",
    "timed out",
    "early eof",
    "unexpected disconnect",
    "hung up",
    "rpc failed",
    "returned error: 5",
    "failed to connect",
    "couldn't connect",
    "empty reply",
    "cannot lock ref",
)


def refusal(answer: GitOutput) -> SourceFailed:
    """What a failed git means for the collection."""
    said = answer.stderr
    lower = said.lower()
    for sign, kind, words, hint in _MEANINGS:
        if sign in lower:
            return kind(
                words,
                hint=hint or None,
                retry_after_seconds=RATE_LIMIT_SECONDS if kind is RateLimited else None,
            )
    if any(sign in lower for sign in _PASSING):
        return SourceUnavailable(f"git could not reach the repository: {said}")
    if answer.code < 0:
        return SourceUnavailable(f"git was ended by signal {-answer.code}")
    return SourceRefused(
        f"git cannot read the repository: {said or f'exit code {answer.code}'}",
        hint="Look at it with: git fsck",
        code="git_failed",
    )
