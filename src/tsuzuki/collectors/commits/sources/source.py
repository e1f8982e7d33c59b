"""The interface of every source of commits, a GitLab or the git program.

A range is fixed at both ends by commit ids, so its pages cannot shift while they are read. A source
answers or raises; it never waits and never retries by itself: the collection does, because only it
knows the other targets of the same host and whether the run was asked to stop. A source is
used by one thread at a time.

Every failure is one of `outward.errors`, whose messages never hold a token or an e-mail address. A pause that a
host asks for holds for all its targets.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeAlias

from tsuzuki.outward.errors import SourceUnavailable

IDS_MAX = 5_000

PathCount: TypeAlias = tuple[str, int, int]
"""A path, and what a commit added to and deleted from it; a renamed file counts under its new path. A plain
tuple, which the garbage collector does not look at again."""


class Commit(NamedTuple):
    """One commit as it is stored; a tuple, because a history has a million of them.

    `additions` and `deletions` are those of the diff to the first parent with renames found, as
    GitLab counts them; a binary file counts as nothing.
    """

    sha: str
    author_name: str
    author_email: str
    committed_date_utc: str
    """ISO-8601 to the second, `2024-02-29T23:59:59Z`: as text it sorts by time."""
    additions: int
    deletions: int
    parents: str = ""
    """Their ids with one space between; empty for a commit without parents."""
    paths: Sequence[PathCount] = ()
    """Adds up to the counts above; empty if the source cannot tell."""


class Absence(StrEnum):
    """Why there is no head to collect from, though the repository itself answered."""

    NO_BRANCH = "no_branch"
    EMPTY_REPOSITORY = "empty_repository"


@dataclass(frozen=True, kw_only=True)
class Head:
    """Where a branch is now, with what the same answer told about the project."""

    sha: str
    is_default: bool | None = None
    """Whether it is the branch the project starts at; None if the source does not say."""
    path: str | None = None
    """The project's full path today, which is how a renamed project is noticed."""


class Lineage(StrEnum):
    """What a former head is to the head of today."""

    ANCESTOR = "ancestor"
    """The branch only grew."""
    REWRITTEN = "rewritten"
    """The branch was pushed by force: some of what it had is no longer on it."""
    RESET = "reset"
    """The branch was put back to an earlier commit of its own: nothing on it is new."""
    UNKNOWN = "unknown"
    """The former head is no longer in the repository."""


@dataclass(frozen=True, kw_only=True)
class Range:
    """The commits reachable from `new` and not from `old`; all of them if `old` is None."""

    old: str | None
    new: str
    since: datetime | None = None
    """Only without `old`: what is older was collected before. A source for which a whole history is
    dear may leave it out; one that has it at hand gives everything."""


@dataclass(frozen=True, kw_only=True)
class CommitPage:
    """Some commits of a range. What was stored up to here is not asked for again after a crash:
    `mark`, which only the source can read, leads to the page that follows."""

    commits: Sequence[Commit]
    mark: str
    is_last: bool
    date_notes: Mapping[str, str] = field(default_factory=dict)
    """By commit id, for dates that could not be stored as they are: what was there and what is stored."""


class RangeLost(SourceUnavailable):
    """The source can no longer walk this range. One that was begun earlier is given up."""

    code = "range_lost"


class CommitSource(Protocol):
    """One project. Every method may raise a `SourceFailed`."""

    def head(self, branch: str) -> Head | Absence:
        """Where the branch is now, for the price of one request."""
        ...

    def default_branch(self) -> str | None:
        """The branch the project starts at; None if it has none yet."""
        ...

    def why_default(self) -> str:
        """How the default branch is known, in words that follow its name."""
        ...

    def branches(self) -> Iterator[str]:
        """The name of every branch."""
        ...

    def lineage(self, old: str, new: str) -> Lineage:
        """What the former head `old` is to `new`, which is a head of today."""
        ...

    def mailmap(self, head: str) -> bytes:
        """The file `.mailmap` at the top of the tree of this commit; empty if there is none."""
        ...

    def pages(self, wanted: Range, *, mark: str | None = None) -> Iterator[CommitPage]:
        """The pages of a range: all, or those behind `mark`. The last one says so, and comes even if
        nothing is in it. Closing the iterator ends all it has started."""
        ...

    def ids(self, head: str) -> Iterator[Sequence[str]]:
        """The ids of all commits that can be reached from a head, in lists of at most `IDS_MAX`."""
        ...

    def close(self) -> None:
        """Give back connections and processes."""
        ...


def can_go_on(source: CommitSource, stored: Range, head: str) -> bool:
    """Whether the source still has both ends of a range that was started."""
    ends = {stored.old, stored.new} - {None, head}
    return all(source.lineage(end, head) is not Lineage.UNKNOWN for end in ends if end)
