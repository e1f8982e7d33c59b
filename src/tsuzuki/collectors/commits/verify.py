"""Verification of commits: every commit that can be reached from the stored head of a followed branch is stored once.

The ids are those that the source names, and the parents that stored commits name: a server that leaves commits out of
its pages is found out by the second. Commits that a force push left behind cannot be reached, and are not judged.
"""

from collections.abc import Iterator
from contextlib import closing

from tsuzuki.collectors.commits.options import CommitsSection
from tsuzuki.collectors.commits.queries import closure, projects, targets
from tsuzuki.collectors.commits.queries.pages import times_stored
from tsuzuki.collectors.commits.queries.targets import TargetState
from tsuzuki.collectors.commits.sources.factory import SourceFactory
from tsuzuki.collectors.commits.sources.source import Absence, CommitSource
from tsuzuki.model.errors import TsuzukiError
from tsuzuki.model.verification import Comparison, FaultKind, Verified
from tsuzuki.wiring.collector import VerifyContext


def verify(context: VerifyContext) -> Iterator[Verified]:
    """One subject for each followed branch."""
    with context.database.read() as connection:
        found = targets.find(connection)
        by_id = {project.project_id: project for project in projects.find(connection)}
    if not found:
        return
    factory = SourceFactory(
        section=context.section(CommitsSection),
        workspace=context.workspace,
        clock=context.database.clock,
    )
    with closing(factory):
        for state in found:
            project = by_id[state.target.project_id]
            comparison = Comparison(f"{project.path} {state.target.branch}")
            try:
                with closing(factory.open(project)) as source:
                    yield _verified(context, state, source, comparison)
            except TsuzukiError as error:
                yield comparison.result(problem=error.message)


def _verified(
    context: VerifyContext, state: TargetState, source: CommitSource, comparison: Comparison
) -> Verified:
    if state.head is None:
        return comparison.result(problem="not collected yet")
    named = _add_unstored_parents(context, state, state.head, comparison)
    for shas in source.ids(state.head):
        with context.database.read() as connection:
            times = times_stored(connection, state.target, shas)
        for sha in shas:
            if sha not in times and sha not in named:
                comparison.add(FaultKind.MISSING, f"commit {sha} is not stored")
            elif times.get(sha, 1) > 1:
                comparison.add(FaultKind.REPEATED, f"commit {sha} is stored {times[sha]} times")
        comparison.compared += len(shas)
        context.advance(len(shas))
    return comparison.result(note=_note(state, source))


def _add_unstored_parents(
    context: VerifyContext, state: TargetState, head: str, comparison: Comparison
) -> set[str]:
    """Commits that a stored one names as its parent and that are not stored, though the source has them."""
    target = state.target
    with context.database.read() as connection:
        missing = closure.missing_from(connection, target, head)
        missing -= closure.absent(connection, target.project_id, missing)
    for sha in sorted(missing):
        comparison.add(FaultKind.MISSING, f"commit {sha} is not stored")
    return missing


def _note(state: TargetState, source: CommitSource) -> str | None:
    remote = source.head(state.target.branch)
    if isinstance(remote, Absence):
        return "the branch no longer exists at the source"
    if remote.sha != state.head:
        return "the branch has moved since it was collected; newer commits are not compared"
    return None
