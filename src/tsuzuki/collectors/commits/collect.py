"""Execute a collection in the engine: start it or take it over, process pending targets, complete it.

One row says that a collection is running and which run executes it, whether the handler or a command started it. A
run that finds a collection left by a crash continues with its pending targets.
"""

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import timedelta
from functools import partial
from typing import Any

from tsuzuki.collectors.commits.attempts import BranchAttempts
from tsuzuki.collectors.commits.branch import BranchCollection
from tsuzuki.collectors.commits.collection_context import CollectionContext
from tsuzuki.collectors.commits.options import CommitsSection
from tsuzuki.collectors.commits.queries import ledger, projects, reports, targets
from tsuzuki.collectors.commits.queries.named_projects import named_projects
from tsuzuki.collectors.commits.queries.targets import Target
from tsuzuki.collectors.commits.sources.factory import THIS_MACHINE, SourceFactory, host_of
from tsuzuki.collectors.commits.sources.host_pool import HostPool, HostTask
from tsuzuki.collectors.commits.sources.rate_gate import RateGate
from tsuzuki.collectors.commits.sources.source import CommitSource
from tsuzuki.collectors.commits.tables import ResultStatus
from tsuzuki.engine.run_context import RunContext
from tsuzuki.store.runs import runs
from tsuzuki.store.sql.database import Connection, Database
from tsuzuki.wiring.collector import CollectorContext


def collect(collector_context: CollectorContext, run: RunContext) -> dict[str, Any]:
    """The handler: continue every target, or those this run was asked for."""
    collection_id = _start_or_take_over(collector_context, run)
    if collection_id is None:
        return {"nothing_begun": True}
    section = collector_context.section(CommitsSection)
    clock = collector_context.database.clock
    pool = HostPool(
        run=run, clock=clock, name="commits", threads_of=partial(_threads_of, section=section)
    )
    sources = SourceFactory(
        section=section,
        workspace=collector_context.workspace,
        clock=clock,
        stopping=pool.stopping,
    )
    pending = _Pending(collector_context.database, run, collection_id)
    with closing(sources):
        pool.work(pending.by_host(section, pool, sources))
    with run.transaction() as connection:
        ledger.complete(connection, collection_id, now=collector_context.database.clock.now())
        (summary,) = reports.summaries(connection, collection_id=collection_id)
        brought = reports.new_commits(connection, collection_id)
    return {
        "collection_id": collection_id,
        "targets": summary.total_targets,
        "success": summary.success_count,
        "failed": summary.failed_count,
        "new_commits": brought,
    }


def _threads_of(host: str, *, section: CommitsSection) -> int:
    size = section.concurrency_per_host
    return min(size, os.cpu_count() or 1) if host == THIS_MACHINE else size


def _start_or_take_over(collector_context: CollectorContext, run: RunContext) -> str | None:
    """The collection this run works on, which is ours from here on; None if another run does."""
    asked = run.arguments.get("collection_id")
    with run.transaction() as connection:
        found = str(asked) if asked else ledger.running(connection)
        if found is None:
            return _start(collector_context, run, connection)
        is_over = found != ledger.running(connection)
        if is_over or has_unfinished_run(connection, found, but=run.id):
            run.log(f"collection {found} {'has ended' if is_over else 'is already running'}")
            return None
        ledger.set_owner(connection, found, job_run_id=run.id)
        return found


def _start(
    collector_context: CollectorContext, run: RunContext, connection: Connection
) -> str | None:
    wanted = select_targets(connection, run.options.get("projects") or ())
    return ledger.open_collection(
        connection,
        ledger.new_id(),
        wanted,
        job_run_id=run.id,
        now=collector_context.database.clock.now(),
    )


def has_unfinished_run(
    connection: Connection, collection_id: str, *, but: int | None = None
) -> bool:
    """Whether a run of the engine, other than `but`, has the collection and has not ended."""
    owner = ledger.owner(connection, collection_id)
    if owner is None or owner.job_run_id == but:
        return False
    found = runs.get(connection, owner.job_run_id)
    return found is not None and not found.state.is_final


def select_targets(
    connection: Connection, references: Sequence[str], *, branch: str | None = None
) -> list[Target]:
    """The targets a person means: all that are followed, or those of some projects."""
    targets.add_targets_with_commits(connection)
    followed = [state.target for state in targets.find(connection)]
    if references:
        wanted = {
            project.project_id
            for text in references
            for project in named_projects(connection, text)
        }
        followed = [target for target in followed if target.project_id in wanted]
    if branch is not None:
        followed = [target for target in followed if target.branch == branch]
    return followed


class _Pending:
    """The targets that are left, and how many are done."""

    def __init__(self, database: Database, run: RunContext, collection_id: str) -> None:
        self._database = database
        self._run = run
        self._run_id = collection_id
        with database.read() as connection:
            self._targets = ledger.targets_of(connection, collection_id, [ResultStatus.PENDING])
            (summary,) = reports.summaries(connection, collection_id=collection_id)
            self._projects = {p.project_id: p for p in projects.find(connection)}
        self._total = summary.total_targets
        self._done = summary.total_targets - len(self._targets)
        self._lock = threading.Lock()
        run.progress(self._done, self._total)

    def by_host(
        self, section: CommitsSection, pool: HostPool, sources: SourceFactory
    ) -> dict[str, list[HostTask]]:
        """What is to be done, by the host whose pauses it shares."""
        attempts = BranchAttempts(run=self._run, pool=pool, section=section)
        context = CollectionContext(
            run=self._run,
            collection_id=self._run_id,
            database=self._database,
            overlap=timedelta(seconds=section.overlap),
            stopping=pool.stopping,
        )
        found: dict[str, list[HostTask]] = {}
        for target in self._targets:
            project = self._projects[target.project_id]
            branch, source = (
                BranchCollection(context, project, target),
                partial(sources.open, project),
            )
            task = partial(self._collect, attempts, branch, source)
            found.setdefault(host_of(project), []).append(task)
        return found

    def _collect(
        self,
        attempts: BranchAttempts,
        branch: BranchCollection,
        source: Callable[[], CommitSource],
        gate: RateGate,
    ) -> None:
        attempts.collect(branch, source, gate)
        with self._lock:
            self._done += 1
            self._run.progress(self._done, self._total)
