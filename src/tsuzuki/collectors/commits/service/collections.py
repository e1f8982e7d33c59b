"""Collections: started, taken over, retried, cancelled and looked at.

A collection that is asked for here and the run of the engine that works on it are stored in one
transaction; the schema lets one collection run at a time, and a second request is told which.
One that was left by a crash is taken over: its former run is cancelled first, so it can write no more.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tsuzuki.collectors.commits.collect import select_targets
from tsuzuki.collectors.commits.queries import completions, ledger, reports
from tsuzuki.collectors.commits.queries.completions import Completing
from tsuzuki.collectors.commits.queries.reports import InWork, Result, Summary
from tsuzuki.collectors.commits.queries.targets import Target
from tsuzuki.collectors.commits.service.audit import record_change
from tsuzuki.collectors.commits.tables import ResultStatus
from tsuzuki.model.errors import Conflict, NotFound
from tsuzuki.model.job import PRIORITY_MAX
from tsuzuki.model.run import Run, RunRef, retry_key
from tsuzuki.model.states import Reason, RunState
from tsuzuki.services.runs import Request
from tsuzuki.store import jobs
from tsuzuki.store.runs import cancel_requests, moves, runs
from tsuzuki.store.sql.database import Connection
from tsuzuki.store.wakeups import channels
from tsuzuki.wiring.collector import ServiceContext

__all__ = [
    "JOB",
    "CollectionView",
    "Collections",
    "Result",
    "ResultStatus",
    "StartedCollection",
    "Summary",
]

JOB = "commits-by-hand"
"""The job whose runs are asked for here; jobs of the file have names of their own."""

JOB_BODY = {"type": "commits", "description": "Collections started by people", "max_retries": 3}
PENDING_SECONDS = 10.0
"""How long a collection that no run works on yet counts as started by another process."""


@dataclass(frozen=True, kw_only=True)
class StartedCollection:
    """A collection that is under way. `is_takeover`: another process had started it."""

    collection_id: str
    job_run_id: int
    total_targets: int
    is_takeover: bool = False


@dataclass(frozen=True, kw_only=True)
class CollectionView:
    """One collection with the result of every target."""

    summary: Summary
    retry_of: str | None
    job_run_id: int | None
    results: list[Result]


@dataclass(frozen=True, kw_only=True)
class CollectionProgress:
    """How far a collection is at this moment."""

    summary: Summary
    in_work: list[InWork]
    completing: list[Completing]
    new_commits: int
    job_run_state: RunState | None
    """Of the run that works on it, or will: a failed one that is retried is not meant."""
    error: str | None


class Collections:
    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._database = context.database

    def start(
        self, references: Sequence[str] = (), *, branch: str | None = None
    ) -> StartedCollection:
        """Start a collection of all targets, or of some; or take over one that was left.

        Raises `Conflict` with the running one's id if a run works on it.
        """
        self._define_job()
        with self._database.write() as connection:
            left = self._left_or_refused(connection)
            if left is not None:
                return self._taken_over(connection, left)
            wanted = select_targets(connection, references, branch=branch)
            if not wanted:
                raise NotFound(
                    "nothing to collect",
                    hint="Follow a branch first: tsuzuki commits add-target PROJECT [BRANCH]",
                    code="no_targets",
                )
            return self._start(connection, wanted)

    def retry(self, reference: str) -> StartedCollection:
        """A new collection of what failed, or was left pending, in an earlier one."""
        self._define_job()
        with self._database.write() as connection:
            collection_id = self._id_of(connection, reference)
            left = self._left_or_refused(connection)
            if left is not None:
                return self._taken_over(connection, left)
            wanted = ledger.targets_of(
                connection, collection_id, [ResultStatus.FAILED, ResultStatus.PENDING]
            )
            if not wanted:
                raise Conflict(
                    f"every target of {collection_id} has succeeded",
                    hint="There is nothing to retry.",
                    code="nothing_failed",
                )
            return self._start(connection, wanted, retry_of=collection_id)

    def cancel(self, reference: str | None = None) -> Summary:
        """Stop the running collection. Finished results are kept, the rest stays pending."""
        with self._database.write() as connection:
            self._settle_canceled(connection)
            running = ledger.running(connection)
            collection_id = self._id_of(connection, reference) if reference else running
            if collection_id is None or collection_id != running:
                raise Conflict(
                    f"collection {collection_id} has already ended"
                    if collection_id
                    else "no collection is running",
                    hint="See: tsuzuki commits runs",
                    code="not_running",
                )
            ledger.cancel(connection, collection_id, now=self._database.now(connection))
            self._cancel_owner(connection, collection_id)
            record_change(connection, self._context, "commits.cancel", collection_id)
            (summary,) = reports.summaries(connection, collection_id=collection_id)
            return summary

    def summaries(self, *, after: str | None = None, limit: int = 20) -> list[Summary]:
        """Collections, the newest first, from behind the one with the id `after` on."""
        self._look_after()
        with self._database.read() as connection:
            return reports.summaries(connection, after=after, limit=limit)

    def count(self) -> int:
        """How many collections there are."""
        with self._database.read() as connection:
            return reports.count(connection)

    def show(self, reference: str) -> CollectionView:
        self._look_after()
        with self._database.read() as connection:
            collection_id = self._id_of(connection, reference)
            (summary,) = reports.summaries(connection, collection_id=collection_id)
            owner = ledger.owner(connection, collection_id)
            return CollectionView(
                summary=summary,
                retry_of=owner.retry_of if owner else None,
                job_run_id=owner.job_run_id if owner else None,
                results=reports.results(connection, collection_id),
            )

    def progress(self, collection_id: str) -> CollectionProgress:
        self._look_after()
        with self._database.read() as connection:
            (summary,) = reports.summaries(connection, collection_id=collection_id)
            run = self._newest_run(connection, collection_id)
            return CollectionProgress(
                summary=summary,
                in_work=reports.in_work(connection, collection_id),
                completing=completions.in_work(connection, collection_id),
                new_commits=reports.new_commits(connection, collection_id),
                job_run_state=run.state if run else None,
                error=run.error if run else None,
            )

    # --- inside ---------------------------------------------------------------------------------

    def _start(
        self, connection: Connection, wanted: Sequence[Target], *, retry_of: str | None = None
    ) -> StartedCollection:
        collection_id = ledger.new_id()
        now = self._database.now(connection)
        opened = ledger.open_collection(
            connection, collection_id, wanted, job_run_id=0, now=now, retry_of=retry_of
        )
        if opened is None:
            raise already_running(ledger.running(connection))
        job_run_id = self._submit(connection, collection_id)
        return StartedCollection(
            collection_id=collection_id, job_run_id=job_run_id, total_targets=len(wanted)
        )

    def _submit(self, connection: Connection, collection_id: str) -> int:
        request = Request(
            job=JOB, arguments={"collection_id": collection_id}, priority=PRIORITY_MAX
        )
        submission = self._context.runs.submit(request, connection=connection)
        ledger.set_owner(connection, collection_id, job_run_id=submission.run_id)
        record_change(connection, self._context, "commits.collect", collection_id)
        return submission.run_id

    def _left_or_refused(self, connection: Connection) -> str | None:
        """A running collection that no run works on any more. Raises `Conflict` if one does."""
        self._settle_canceled(connection)
        running = ledger.running(connection)
        if running is None:
            return None
        run = self._newest_run(connection, running)
        if run is not None and self._context.liveness.is_worked_on(
            connection, run, fresh_seconds=PENDING_SECONDS
        ):
            raise already_running(running)
        return running

    def _taken_over(self, connection: Connection, collection_id: str) -> StartedCollection:
        """Give a collection that was left to a new run; the former one can write no more."""
        self._cancel_owner(connection, collection_id)
        job_run_id = self._submit(connection, collection_id)
        (summary,) = reports.summaries(connection, collection_id=collection_id)
        return StartedCollection(
            collection_id=collection_id,
            job_run_id=job_run_id,
            total_targets=summary.total_targets,
            is_takeover=True,
        )

    def _newest_run(self, connection: Connection, collection_id: str) -> Run | None:
        """The run of the engine that works on a collection, or the newest retry of it."""
        owner = ledger.owner(connection, collection_id)
        run = runs.get(connection, owner.job_run_id) if owner else None
        while run is not None and run.state.is_final:
            retry = runs.get_by_key(connection, retry_key(run.id))
            if retry is None:
                break
            run = retry
        return run

    def _cancel_owner(self, connection: Connection, collection_id: str) -> None:
        run = self._newest_run(connection, collection_id)
        if run is not None and not run.state.is_final:
            ref = RunRef(id=run.id, version=run.version)
            if not moves.cancel(connection, operator=self._context.actor, runs=[ref]):
                cancel_requests.add(
                    connection,
                    [run.id],
                    reason=Reason.OPERATOR,
                    requested_by=self._context.actor,
                )
            channels.notify(connection, *channels.concerned_by_cancel(run))

    def _look_after(self) -> None:
        """A collection whose run was cancelled with `tsuzuki run cancel` is cancelled too."""
        with self._database.read() as connection:
            running = ledger.running(connection)
            if running is None or not self._is_canceled(connection, running):
                return
        with self._database.write() as connection:
            self._settle_canceled(connection)

    def _settle_canceled(self, connection: Connection) -> None:
        running = ledger.running(connection)
        if running is not None and self._is_canceled(connection, running):
            ledger.cancel(connection, running, now=self._database.now(connection))

    def _is_canceled(self, connection: Connection, collection_id: str) -> bool:
        run = self._newest_run(connection, collection_id)
        return run is not None and run.state is RunState.CANCELED

    def _define_job(self) -> None:
        with self._database.read() as connection:
            found = jobs.get_by_name(connection, JOB)
        if found is None:
            self._context.jobs.define(JOB, JOB_BODY)
        elif not found.spec.enabled:
            raise Conflict(
                f"job {JOB!r} is disabled",
                hint=f"Enable it with: tsuzuki job enable {JOB}",
                code="job_disabled",
            )

    def _id_of(self, connection: Connection, reference: str) -> str:
        found = reports.ids_beginning(connection, reference)
        if len(found) == 1:
            return found[0]
        raise NotFound(
            f"there is no collection {reference!r}"
            if not found
            else f"more than one collection begins with {reference!r}",
            hint="See: tsuzuki commits runs",
            code="collection_unknown",
        )


def already_running(collection_id: str | None) -> Conflict:
    return Conflict(
        f"a collection is already running: {collection_id}",
        hint="Watch it with: tsuzuki commits watch. Cancel it with: tsuzuki commits cancel",
        code="already_running",
    )
