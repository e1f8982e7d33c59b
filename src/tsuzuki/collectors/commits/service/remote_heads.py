"""Remote heads: where the sources of targets are now, beside what is stored. Nothing is collected or changed.

Sources are asked side by side, each for the price of one request. One that fails or is slow says so for its own
targets and holds up none of the others.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum

from tsuzuki.collectors.commits.queries.projects import Project
from tsuzuki.collectors.commits.queries.targets import TargetState
from tsuzuki.collectors.commits.sources.factory import SourceFactory
from tsuzuki.collectors.commits.sources.source import Absence
from tsuzuki.model.errors import TsuzukiError

ASKED_AT_ONCE = 8
ANSWER_SECONDS = 10.0


class PlannedOutcome(StrEnum):
    """What a collection of a target would find."""

    NEW = "new"
    """Nothing of it is stored yet."""

    MOVED = "moved"
    """The remote head is another one than the stored head."""

    UNDER_WAY = "under_way"
    """An earlier collection of it is not finished, and is continued."""

    SAME = "same"
    """The remote head is the stored head: nothing is new."""

    ABSENT = "absent"
    """The branch, or any commit, is missing at the source."""

    FAILED = "failed"
    """The source refused, or did not answer in time."""

    NOT_ASKED = "not_asked"
    """There are more targets than are asked at once."""


@dataclass(frozen=True, kw_only=True)
class RemoteHead:
    """A target with its stored and its remote head. `problem` says why the source did not tell."""

    project_id: int
    project: str
    branch: str
    stored: str | None
    remote: str | None
    outcome: PlannedOutcome
    problem: str | None = None


def remote_heads(
    states: Sequence[TargetState],
    projects: dict[int, Project],
    *,
    sources: Callable[[], SourceFactory],
    asked_max: int,
) -> list[RemoteHead]:
    """Each target in its order; those behind the first `asked_max` are not asked about."""
    pool = ThreadPoolExecutor(max_workers=ASKED_AT_ONCE, thread_name_prefix="remote-head")
    try:
        asked = [
            pool.submit(_remote, projects[state.target.project_id], state.target.branch, sources)
            for state in states[:asked_max]
        ]
        wait(asked, timeout=ANSWER_SECONDS)
        found = [_told(future) for future in asked]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    skipped = [_Answer(outcome=PlannedOutcome.NOT_ASKED)] * max(len(states) - len(found), 0)
    return [
        _head(state, projects[state.target.project_id], answer)
        for state, answer in zip(states, [*found, *skipped], strict=True)
    ]


@dataclass(frozen=True, kw_only=True)
class _Answer:
    sha: str | None = None
    outcome: PlannedOutcome | None = None
    problem: str | None = None


def _remote(project: Project, branch: str, sources: Callable[[], SourceFactory]) -> _Answer:
    # One factory for each: a source is used by one thread at a time.
    with closing(sources()) as factory, closing(factory.open(project)) as source:
        head = source.head(branch)
    if isinstance(head, Absence):
        return _Answer(outcome=PlannedOutcome.ABSENT)
    return _Answer(sha=head.sha)


def _told(future: "Future[_Answer]") -> _Answer:
    if not future.done():
        return _Answer(
            outcome=PlannedOutcome.FAILED,
            problem=f"no response within {ANSWER_SECONDS:.0f} seconds",
        )
    try:
        return future.result()
    except TsuzukiError as error:
        return _Answer(outcome=PlannedOutcome.FAILED, problem=str(error))


def _head(state: TargetState, project: Project, answer: _Answer) -> RemoteHead:
    return RemoteHead(
        project_id=project.project_id,
        project=project.path,
        branch=state.target.branch,
        stored=state.head,
        remote=answer.sha,
        outcome=answer.outcome or _outcome(state, answer.sha),
        problem=answer.problem,
    )


def _outcome(state: TargetState, remote: str | None) -> PlannedOutcome:
    if state.wanted is not None:
        return PlannedOutcome.UNDER_WAY
    if state.head is None:
        return PlannedOutcome.NEW
    return PlannedOutcome.SAME if state.head == remote else PlannedOutcome.MOVED
