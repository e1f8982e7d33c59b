"""Following many branches at once: those of a project that match a pattern, or of every project.

A project is asked for its branches once, one project after the other. What it matches is followed in one
transaction, so that a command which is ended and repeated goes on with the projects that are left. One
project's failure does not stop the others; a host that does not answer is not asked for its other projects.
"""

import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TypeAlias

from tsuzuki.collectors.commits.options import CommitsSection
from tsuzuki.collectors.commits.queries import targets
from tsuzuki.collectors.commits.queries.projects import NewProject, Project
from tsuzuki.collectors.commits.queries.targets import Target
from tsuzuki.collectors.commits.service.audit import record_change
from tsuzuki.collectors.commits.sources.factory import THIS_MACHINE, SourceFactory, host_of
from tsuzuki.model.errors import NotFound, UsageError
from tsuzuki.model.suggestion import did_you_mean
from tsuzuki.outward.errors import RateLimited, SourceFailed, SourceUnavailable
from tsuzuki.store.sql.database import Connection
from tsuzuki.wiring.collector import ServiceContext

PAUSE_SECONDS = 60.0
"""The pause after a rate limit that names no time."""


Tell: TypeAlias = Callable[[int, int, str | None], None]
"""Gets the number of projects done and in all, and for which pause it is being waited."""


def tell_nothing(_done: int, _total: int, _waiting_for: str | None) -> None:
    """For a caller that shows no progress."""


class TargetOutcome(StrEnum):
    """What became of a branch, or of a project of which no branch was meant."""

    ADDED = "added"
    WOULD_ADD = "would_add"
    """In a dry run."""
    PRESENT = "present"
    """It was a target before."""
    NO_MATCH = "no_match"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class TargetAddition:
    """What became of one branch. `project_id` is None of a project that a dry run did not store."""

    project_id: int | None
    project: str
    branch: str | None
    outcome: TargetOutcome
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class BranchSelection:
    """Which branches of a project are meant: those whose name matches one of the patterns, in which `*`
    stands for any characters; the default branch if there is no pattern."""

    patterns: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        return " or ".join(repr(pattern) for pattern in self.patterns)

    def __post_init__(self) -> None:
        if not all(self.patterns):
            raise UsageError("empty pattern", hint="For example: 'release/*'")


class TargetAdditions:
    """Adds targets, or in a dry run only tells what it would add."""

    def __init__(
        self,
        context: ServiceContext,
        sources: SourceFactory,
        selection: BranchSelection,
        *,
        dry_run: bool,
        tell: Tell = tell_nothing,
    ) -> None:
        self._context = context
        self._sources = sources
        self._selection = selection
        self._dry_run = dry_run
        self._tell = tell
        self._done = 0
        self._total = 1
        self._pause_seconds_left = context.section(CommitsSection).rate_limit_patience

    def of_one(self, project: NewProject) -> list[TargetAddition]:
        """Raises if nothing matches, or the source fails."""
        names, matching = self._look(project)
        if not matching and not self._selection.patterns:
            raise UsageError(
                f"{project.path} has no default branch yet", hint="Name the branch to follow."
            )
        if not matching:
            first = self._selection.patterns[0]
            raise NotFound(
                f"no branch of {project.path} matches {self._selection.words}",
                hint=did_you_mean(first, names)
                + f"It has {len(names)} branches; '*' matches any characters.",
                code="branch_unknown",
            )
        return self.follow(project, matching)

    def of_all(self, found: Sequence[Project]) -> list[TargetAddition]:
        """The same of every project, with an outcome in place of an error."""
        additions: list[TargetAddition] = []
        silent: dict[str, str] = {}
        self._total = len(found)
        for done, project in enumerate(found):
            self._done = done
            self._tell(done, self._total, None)
            host = host_of(project)
            if host in silent:
                additions.append(_without_branch(project, TargetOutcome.FAILED, silent[host]))
                continue
            try:
                additions += self._of(project)
            except SourceFailed as problem:
                additions.append(_without_branch(project, TargetOutcome.FAILED, problem.message))
                if isinstance(problem, SourceUnavailable) and host != THIS_MACHINE:
                    silent[host] = f"not requested because of an earlier failure: {problem.message}"
        return additions

    def _of(self, project: Project) -> list[TargetAddition]:
        _names, matching = self._look(project)
        if matching:
            return self.follow(project, matching)
        wanted = self._selection.words
        reason = f"no branch matches {wanted}" if wanted else "it has no default branch yet"
        return [_without_branch(project, TargetOutcome.NO_MATCH, reason)]

    def _look(self, project: NewProject) -> tuple[list[str], list[str]]:
        """The names of the branches, and which of them are meant. Waits when the host asks for it."""
        while True:
            try:
                return self._ask(project)
            except RateLimited as limit:
                seconds = limit.retry_after_seconds or PAUSE_SECONDS
                self._pause_seconds_left -= seconds
                if self._pause_seconds_left < 0:
                    raise
                self._tell(self._done, self._total, limit.message)
                self._context.database.clock.wait(threading.Event(), seconds)

    def _ask(self, project: NewProject) -> tuple[list[str], list[str]]:
        with closing(self._sources.open_new(project)) as source:
            if not self._selection.patterns:
                default = source.default_branch()
                names = [default] if default else []
                return names, names
            names = list(source.branches())
        patterns = self._selection.patterns
        return names, [
            name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)
        ]

    def follow(self, project: NewProject, names: Sequence[str]) -> list[TargetAddition]:
        """Follow these branches in one transaction. A dry run writes nothing."""
        if not isinstance(project, Project):
            return [_addition(project, name, TargetOutcome.WOULD_ADD) for name in names]
        database = self._context.database
        with database.read() if self._dry_run else database.write() as connection:
            followed = {state.target for state in targets.find(connection)}
            outcomes = {name: self._outcome(project, name, followed) for name in names}
            for name, outcome in outcomes.items():
                if outcome is TargetOutcome.ADDED:
                    self._add(connection, project, name)
        return [_addition(project, name, outcome) for name, outcome in outcomes.items()]

    def _outcome(self, project: Project, name: str, followed: Collection[Target]) -> TargetOutcome:
        if not _is_text(name):
            return TargetOutcome.FAILED
        if Target(project.project_id, name) in followed:
            return TargetOutcome.PRESENT
        return TargetOutcome.WOULD_ADD if self._dry_run else TargetOutcome.ADDED

    def _add(self, connection: Connection, project: Project, name: str) -> None:
        is_default = not self._selection.patterns
        targets.follow(connection, Target(project.project_id, name), is_default=is_default)
        record_change(connection, self._context, "commits.target.add", f"{project.path} {name}")


def _addition(project: NewProject, branch: str, outcome: TargetOutcome) -> TargetAddition:
    return TargetAddition(
        project_id=project.project_id if isinstance(project, Project) else None,
        project=project.path,
        branch=branch.encode("utf-8", "replace").decode(),
        outcome=outcome,
        reason="its name is not UTF-8" if outcome is TargetOutcome.FAILED else None,
    )


def _without_branch(project: Project, outcome: TargetOutcome, reason: str) -> TargetAddition:
    return TargetAddition(
        project_id=project.project_id,
        project=project.path,
        branch=None,
        outcome=outcome,
        reason=reason,
    )


def _is_text(name: str) -> bool:
    """Whether a database can store the name."""
    return not any("\ud800" <= letter <= "\udfff" for letter in name)
