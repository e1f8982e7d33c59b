"""Runs: submit, list, wait for, cancel and retry them."""

import math
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from tsuzuki.model import jsontext
from tsuzuki.model.errors import (
    Conflict,
    Interrupted,
    NotFound,
    TsuzukiError,
    UsageError,
    WaitTimedOut,
)
from tsuzuki.model.idempotency_key import check_key
from tsuzuki.model.job import PRIORITY_MAX, PRIORITY_MIN, Job
from tsuzuki.model.run import NewRun, Run, new_retry
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import Reason, RunState, Trigger
from tsuzuki.services.acting import ActingService
from tsuzuki.services.explain import Explanation, StatusReason, explain, waiting_reasons
from tsuzuki.services.liveness import Liveness
from tsuzuki.services.lookup import job_unknown, key_used, require_job, require_jobs, require_run
from tsuzuki.services.run_views import RunView
from tsuzuki.store import audit, jobs
from tsuzuki.store.jobs import NamedJob
from tsuzuki.store.runs import cancel_requests, moves, run_search, runs, stacks
from tsuzuki.store.runs.run_search import FoundRuns, RunCount
from tsuzuki.store.runs.stacks import RunStack
from tsuzuki.store.sql.database import Connection, Database
from tsuzuki.store.sql.prepared import AnyConnection
from tsuzuki.store.sql.write_hold import LockUser
from tsuzuki.store.wakeups import channels
from tsuzuki.store.wakeups.channels import WakeupChannel

__all__ = [
    "FoundRuns",
    "Request",
    "RunCount",
    "RunFilter",
    "RunStack",
    "RunView",
    "Runs",
    "Submission",
]

WAIT_FIRST_SECONDS = 0.005
WAIT_LONGEST_SECONDS = 0.2
LATE_START_SECONDS = 2.0
"""A run that waits longer than this for its start is late, and the reason can be told."""

STACK_SECONDS_MAX = 3.0
STACK_POLL_SECONDS = 0.05
"""How long and how often to look for the answer of a worker that was asked for a stack."""

DELAY_MAX_SECONDS = 3660 * 86_400


@dataclass(frozen=True, kw_only=True)
class Request:
    """One run to be stored. The same key again gives the same run; with another job or other arguments it is refused
    (`Conflict`)."""

    job: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    idempotency_key: str | None = None
    delay_seconds: float = 0.0
    priority: int | None = None
    concurrency_key: str | None = None


class Submission(NamedTuple):
    """What was stored: the run, and whether it is a new one."""

    run_id: int
    is_new: bool


class StartRequest(NamedTuple):
    """A request, and for whom the run is started."""

    request: Request
    actor: str


class Runs(ActingService):
    def __init__(
        self,
        *,
        database: Database,
        actor: str,
        wake_others: Callable[[Collection[str]], None] = lambda _names: None,
    ) -> None:
        """`wake_others` tells other processes, beside the database, that there is something to look at."""
        self._database = database
        self._actor = actor
        self._liveness = Liveness(database=database)
        self._wake_others = wake_others
        self._wake: Callable[[], None] = lambda: None
        self._jobs: dict[str, Job] = {}

    def wake_by(self, wake: Callable[[], None]) -> None:
        """From now on there is a leader in this process, and this is how to wake it."""
        self._wake = wake

    def submit(
        self, request: Request, *, connection: Connection | None = None, audited: bool = False
    ) -> Submission:
        """Store one run. With a `connection` it becomes part of that transaction. `audited`, for a caller from
        outside: who started a new run is in the audit log, in the same transaction."""
        if connection is None:
            run_id = self._submit_known(request, self._actor if audited else None)
            if run_id is not None:
                self.tell_leader()
                return Submission(run_id=run_id, is_new=True)
        return self.submit_many([request], connection=connection, audited=audited)[0]

    def submit_many(
        self,
        requests: Sequence[Request],
        *,
        connection: Connection | None = None,
        audited: bool = False,
    ) -> list[Submission]:
        """Store many runs at once: all of them, or none. Options are those of `submit`."""
        actors = [self._actor] * len(requests) if audited else []
        if connection is not None:
            self._database.adopt(connection)
            # A job that the caller rolls back must not be remembered: another may get its id.
            return self._submit(connection, requests, actors=actors, remembers=False)
        with self._database.write(user=LockUser(purpose="submit_many()")) as own:
            submissions = self._submit(own, requests, actors=actors)
        self.tell_leader()
        return submissions

    def submit_each(self, wanted: Sequence[StartRequest]) -> list[Run | TsuzukiError]:
        """Store the audited runs of callers that have nothing to do with each other, in one transaction if possible.
        Answers for each the run, or what is wrong with its request."""
        try:
            with self._database.write() as connection:
                submissions = self._submit(
                    connection,
                    [request for request, _ in wanted],
                    actors=[actor for _, actor in wanted],
                )
                found = runs.get_many(connection, [one.run_id for one in submissions])
        except (NotFound, UsageError, Conflict) as problem:
            if len(wanted) == 1:
                return [problem]
            return [answer for one in wanted for answer in self.submit_each([one])]
        self.tell_leader()
        by_id = {run.id: run for run in found}
        return [by_id[one.run_id] for one in submissions]

    def tell_leader(self) -> None:
        """There are new runs, and they are committed."""
        self._wake()
        self._wake_others({WakeupChannel.LEADER})

    def find(self, wanted: RunFilter) -> list[Run]:
        """Runs, newest first, however long it takes to find them."""
        found: list[Run] = []
        before: int | None = wanted.before_id
        while True:
            left = replace(wanted, before_id=before, limit=wanted.limit - len(found))
            page, before = self.search(left)
            found += page
            if before is None:
                return found

    def search(self, wanted: RunFilter) -> FoundRuns:
        """Runs, newest first, as far as they are found in bounded time."""
        with self._database.read() as connection:
            require_jobs(connection, wanted)
            return run_search.search(connection, wanted)

    def count(self, wanted: RunFilter, *, at_most: int) -> int:
        """How many runs there are, however long it takes; counting ends at `at_most`."""
        with self._database.read() as connection:
            return runs.count(connection, wanted, at_most=at_most)

    def counted(self, wanted: RunFilter, *, at_most: int) -> RunCount:
        """How many runs there are, as far as they are counted in bounded time and up to `at_most`."""
        with self._database.read() as connection:
            return run_search.count(connection, wanted, at_most=at_most)

    def search_and_count(self, wanted: RunFilter, *, at_most: int) -> tuple[FoundRuns, RunCount]:
        """The first page of a search, and how many runs there are in all; cheaper than one after the other."""
        with self._database.read() as connection:
            require_jobs(connection, wanted)
            return run_search.search_and_count(connection, wanted, at_most=at_most)

    def live(self, run_ids: Collection[int]) -> set[int]:
        """Those of these runs that have not ended."""
        with self._database.read() as connection:
            found = runs.get_many(connection, sorted(run_ids))
        return {run.id for run in found if not run.state.is_final}

    def get(self, run_id: int) -> RunView:
        with self._database.read() as connection:
            run = require_run(connection, run_id)
            retry = runs.get_retry(connection, run_id)
            return RunView(
                run=run,
                history=runs.history(connection, run_id),
                retried_as=retry.id if retry else None,
                cancel_requested=cancel_requests.of_runs(connection, [run_id]).get(run_id),
            )

    def job_names(self, run_ids: Collection[int]) -> dict[int, str]:
        """The jobs of those of these runs that exist."""
        with self._database.read() as connection:
            return {run.id: run.job_name for run in runs.get_many(connection, sorted(run_ids))}

    def errors(self, run_ids: Collection[int]) -> dict[int, str]:
        """The errors of those of these runs that have one."""
        with self._database.read() as connection:
            found = runs.get_many(connection, sorted(run_ids))
        return {run.id: run.error for run in found if run.error}

    def newest_attempt(self, run_id: int) -> Run | None:
        """The newest retry of a run, or the run itself; None if there is no such run."""
        with self._database.read() as connection:
            run = runs.get(connection, run_id)
            while run is not None and (retry := runs.get_retry(connection, run.id)) is not None:
                run = retry
        return run

    def newest_of_work(self, run_id: int) -> Run:
        """The attempt by which the work of a run succeeded, or else the newest one. Raises `NotFound`."""
        return self.attempts(run_id)[-1]

    def attempts(self, run_id: int) -> list[Run]:
        """A run and its retries, in order, up to the first that succeeded. Raises `NotFound`."""
        with self._database.read() as connection:
            return _attempts(connection, run_id)

    def newest_live(self, job_name: str) -> Run | None:
        """The newest run of a job that has not ended."""
        with self._database.read() as connection:
            return runs.newest_live(connection, require_job(connection, job_name).id)

    def explain(self, run_id: int) -> Explanation:
        """Why a run is where it is, and what must happen for it to go on."""
        with self._database.read() as connection:
            run = require_run(connection, run_id)
            return explain(
                connection, run, now=self._database.now(connection), liveness=self._liveness
            )

    def stack(self, run_id: int) -> RunStack | None:
        """Where the Python function of a run is right now, as its worker tells; None if it executes none, or if the
        answer does not come in `STACK_SECONDS_MAX`."""
        with self._database.read() as connection:
            run = require_run(connection, run_id)
            job = jobs.get(connection, run.job_definition_id)
            is_function = job is not None and job.spec.handler != "command"
            if run.state is not RunState.RUNNING or not is_function:
                return None
            if self._liveness.why_locked(connection) is not None:
                return None  # nobody could be asked
        with self._database.write() as connection:
            stacks.request(connection, run_id)
            channels.notify(connection, channels.holder_of(run))
        self._wake_others({channels.holder_of(run)})
        clock = self._database.clock
        end = clock.monotonic() + STACK_SECONDS_MAX
        while clock.monotonic() < end:
            with self._database.read() as connection:
                if (found := stacks.get(connection, run_id)) is not None:
                    return found
            clock.wait(threading.Event(), STACK_POLL_SECONDS)
        return None

    def waiting_reasons(self, found: Sequence[Run]) -> dict[int, StatusReason]:
        """Why each of these runs that waits does so, in one word and sentence: the first reason of `explain`."""
        with self._database.read() as connection:
            now = self._database.now(connection)
            return waiting_reasons(connection, found, now=now, liveness=self._liveness)

    def cancel(self, run_id: int) -> Run:
        """Stop a run, or never let it start. Never waits for its handler: if that holds the run's row in a transaction,
        or its worker does while it stores log lines, the cancel is requested, the answer shows the run as it is, and it
        is canceled as soon as the row is free.
        Raises `Conflict` if it has ended already."""
        with self._database.write() as connection:
            run = require_run(connection, run_id)
            canceled = moves.cancel(connection, operator=self._actor, runs=[run.ref])
            if not canceled:  # locked, or moved at the same moment; the second try tells
                run = require_run(connection, run_id)
                canceled = moves.cancel(connection, operator=self._actor, runs=[run.ref])
            if not canceled:
                self._request_cancel(connection, run)
            after = {"state": RunState.CANCELED} if canceled else _requested(run)
            self._note(connection, "run.cancel", run, after=after)
            channels.notify(connection, *channels.concerned_by_cancel(run))
        self._wake_others(channels.concerned_by_cancel(run))
        return self.get(run_id).run

    def cancel_work(self, run_id: int) -> Run:
        """Stop a run or the newest retry of it. Raises `Conflict` if the work has ended."""
        while True:
            newest = self.newest_of_work(run_id)
            try:
                return self.cancel(newest.id)
            except Conflict:
                if self.newest_of_work(run_id).id == newest.id:  # it was not retried meanwhile
                    raise

    def _request_cancel(self, connection: Connection, run: Run) -> None:
        """For a run whose row another transaction holds. Raises `Conflict` if it has ended."""
        now = require_run(connection, run.id)
        if now.state.is_final:
            raise _ended(now)
        cancel_requests.add(connection, [run.id], reason=Reason.OPERATOR, requested_by=self._actor)

    def retry(self, run_id: int) -> Submission:
        """Retry a run that ended, as a new one with the same arguments."""
        with self._database.write() as connection:
            run = require_run(connection, run_id)
            if not run.state.is_final:
                raise Conflict(
                    f"run {run_id} has not ended; it is {run.state}",
                    hint=f"Cancel it first, or wait for it: tsuzuki run watch {run_id}",
                    code="run_not_ended",
                )
            cancel_requests.remove(connection, [run_id])
            (new_id,) = runs.create(
                connection, [new_retry(run, scheduled_for=self._database.now(connection))]
            )
            if new_id is None:
                other = runs.get_retry(connection, run_id)
                raise Conflict(
                    f"run {run_id} was already retried as run {other.id if other else '?'}",
                    hint="If that run failed too, retry it instead.",
                    code="run_retried",
                )
            self._note(
                connection, "run.retry", run, after={"state": run.state, "retried_as": new_id}
            )
        self.tell_leader()
        return Submission(run_id=new_id, is_new=True)

    def wait(
        self,
        run_id: int,
        *,
        timeout_seconds: float | None = None,
        follows_retries: bool = False,
        on_change: Callable[[Run], None] = lambda _run: None,
        on_late_start: Callable[[], None] = lambda: None,
        on_look: Callable[[], None] = lambda: None,
        stop: threading.Event | None = None,
    ) -> Run:
        """The run, once it has ended; if it `follows_retries`, the attempt that succeeded or failed for good.
        `on_change` sees it whenever it has moved or progressed; `on_look` is called at each look, before `on_change`;
        `on_late_start` is called once if it has not started after `LATE_START_SECONDS`. `stop` ends the waiting."""
        clock = self._database.clock
        late_at = clock.monotonic() + LATE_START_SECONDS
        end = None if timeout_seconds is None else clock.monotonic() + timeout_seconds
        pause, stop, seen = WAIT_FIRST_SECONDS, stop or threading.Event(), None
        while True:
            with self._database.read() as connection:
                found = _attempts(connection, run_id) if follows_retries else None
                run = found[-1] if found else require_run(connection, run_id)
            on_look()
            for attempt in found or [run]:
                if (
                    seen is None
                    or attempt.id > seen.id
                    or (attempt.id == seen.id and attempt != seen)
                ):
                    seen, pause = attempt, WAIT_FIRST_SECONDS
                    on_change(attempt)
            run_id = run.id
            if run.state.is_final:
                return run
            if run.state is not RunState.RUNNING and clock.monotonic() >= late_at:
                late_at = math.inf
                on_late_start()
            if end is not None and clock.monotonic() >= end:
                raise WaitTimedOut(
                    f"run {run_id} is still {run.state} after {timeout_seconds:g} s",
                    hint=f"The run continues. See why with: tsuzuki run explain {run_id}",
                )
            if clock.wait(stop, pause):
                raise Interrupted(f"stopped waiting for run {run_id}, which is {run.state}")
            pause = min(pause * 1.5, WAIT_LONGEST_SECONDS)

    def _submit_known(self, request: Request, actor: str | None) -> int | None:
        """Store a run of a job that we have seen before: one statement, and one for its start by `actor`. None if the
        request calls for a closer look, because the job has changed or the key has a run, for example; then nothing
        was stored."""
        job = self._jobs.get(request.job)
        if job is None or request.delay_seconds:
            return None
        try:
            wanted = _new_run(request, job, None)
        except UsageError:
            return None
        is_audited = actor is not None
        with (
            self._database.statements() if is_audited else self._database.statement() as connection
        ):
            (run_id,) = runs.create(connection, [wanted], of=job)
            if run_id is not None and actor is not None:
                _note_starts(connection, [(run_id, request.job, actor)])
        return run_id

    def _submit(
        self,
        connection: Connection,
        requests: Sequence[Request],
        *,
        actors: Sequence[str] = (),
        remembers: bool = True,
    ) -> list[Submission]:
        """Store runs. If there are `actors`, one for each request, it is audited who started a new run."""
        found = {name: self._look_up(connection, name) for name in {r.job for r in requests}}
        if remembers:
            self._jobs.update((name, named.job) for name, named in found.items())
        wanted = [_new_run(request, *found[request.job]) for request in requests]
        ids = runs.create(connection, wanted)
        submissions = [
            Submission(run_id=run_id, is_new=True)
            if run_id is not None
            else Submission(run_id=_existing(connection, request, new), is_new=False)
            for request, new, run_id in zip(requests, wanted, ids, strict=True)
        ]
        if actors:
            stored = zip(submissions, requests, actors, strict=True)
            new = [(made.run_id, asked.job, by) for made, asked, by in stored if made.is_new]
            _note_starts(connection, new)
        return submissions

    def _look_up(self, connection: Connection, name: str) -> NamedJob:
        found = jobs.look_up(connection, name, known=self._jobs)
        if found is None:
            raise job_unknown(name, (job.spec.name for job in jobs.find(connection)))
        return found

    def _note(self, connection: Connection, action: str, run: Run, *, after: Any) -> None:
        audit.record(
            connection,
            actor=self._actor,
            action=action,
            object_type="run",
            object_id=str(run.id),
            before={"state": run.state},
            after=after,
        )


def _attempts(connection: Connection, run_id: int) -> list[Run]:
    """A run and its retries. The end of an attempt and its retry are one transaction, so after the end either the retry
    is there or the work has ended."""
    found = [require_run(connection, run_id)]
    while found[-1].state.is_final and found[-1].state is not RunState.SUCCEEDED:
        retry = runs.get_retry(connection, found[-1].id)
        if retry is None:
            break
        found.append(retry)
    return found


def _new_run(request: Request, job: Job, now: datetime | None) -> NewRun:
    """`now` is needed for a delay only."""
    # The same object in all runs of a batch without arguments: it is stored once.
    arguments = job.spec.arguments
    if request.arguments:
        arguments = {**arguments, **request.arguments}
    if arguments:
        jsontext.check(arguments)
    priority = job.spec.priority if request.priority is None else request.priority
    key = request.idempotency_key
    check_key(key)
    if not PRIORITY_MIN <= priority <= PRIORITY_MAX:
        raise UsageError(
            f"priority must be from {PRIORITY_MIN} to {PRIORITY_MAX}, not {priority}",
            hint="Leave it out to use the job's priority.",
        )
    if not 0 <= request.delay_seconds <= DELAY_MAX_SECONDS:
        raise UsageError(
            f"delay must be from 0 to {DELAY_MAX_SECONDS} seconds, not {request.delay_seconds}",
            hint="Leave it out to start the run immediately.",
        )
    return NewRun(
        job_definition_id=job.id,
        trigger=Trigger.MANUAL,
        scheduled_for=now + timedelta(seconds=request.delay_seconds)
        if now and request.delay_seconds
        else now,
        arguments=arguments,
        priority=priority,
        idempotency_key=None if key is None else f"key:{key}",
        concurrency_key=request.concurrency_key or job.spec.key_for(arguments),
        work_key=key,
        defaulted_arguments=None if key is None else _left_to_defaults(request, job),
    )


def _left_to_defaults(request: Request, job: Job) -> list[str] | None:
    return sorted(job.spec.arguments.keys() - request.arguments.keys()) or None


def _existing(connection: Connection, request: Request, new: NewRun) -> int:
    """The run that has the key of this request. Raises `Conflict` if it is not the run that is asked for."""
    run = runs.get_by_key(connection, f"key:{request.idempotency_key}")
    if run is None:
        raise Conflict(
            f"a run with the key {request.idempotency_key!r} is being stored by another process",
            hint="Try again.",
        )
    if run.job_name != request.job or not _is_repeated(connection, run, request, new):
        raise key_used(request.idempotency_key, run)
    return run.id


def _is_repeated(connection: Connection, run: Run, request: Request, new: NewRun) -> bool:
    """Whether a request gives the arguments that the run was requested with, whatever the defaults of the job are by
    now; or asks for a run with the same arguments in all."""
    if jsontext.is_same(run.arguments, new.arguments):
        return True
    defaulted = runs.defaulted_arguments(connection, run.id)
    given = {name: value for name, value in run.arguments.items() if name not in defaulted}
    return jsontext.is_same(given, dict(request.arguments))


def _requested(run: Run) -> dict[str, str]:
    return {"state": run.state, "cancel": "requested"}


def _ended(run: Run) -> Conflict:
    return Conflict(
        f"run {run.id} has already ended: {run.state}",
        hint=f"See: tsuzuki run show {run.id}",
        code="run_ended",
    )


def _note_starts(connection: AnyConnection, started: Iterable[tuple[int, str, str]]) -> None:
    """Record new runs in the audit log, each with its job and under the name of its actor: one statement for each
    actor."""
    by_actor: dict[str, list[audit.Recorded]] = {}
    for run_id, job, actor in started:
        change = audit.Recorded(str(run_id), "run.start", after={"job": job})
        by_actor.setdefault(actor, []).append(change)
    for actor, changes in by_actor.items():
        audit.record_many(connection, changes, actor=actor, object_type="run")
