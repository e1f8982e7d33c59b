"""Rescues runs of silent workers: workers without a recent heartbeat, and the runs they hold.

A worker whose process is recorded as dead is detached already, and its runs are failed at once.
A worker that is silent for `worker_ttl_seconds` is detached: it gets no new runs, and runs it had not started
are orphaned and assigned to others. Only after a further grace period, when the worker has by its own rule
stopped everything it ran, are its running runs failed and retried; on SQLite, only if its silence has been on
record for three quarters of that period. A worker that is silent in the database but has a valid heartbeat at the
coordination service is not silent.

Which runs are to be rescued is read before, and they are moved in small batches, so that no write transaction is long.
The move itself has the condition in its WHERE: a worker that came back in between keeps its runs.
"""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from random import Random

from tsuzuki.engine.coordination.protocol import Coordination, NoCoordination, heartbeat_ttl_seconds
from tsuzuki.engine.failures import note_failed
from tsuzuki.engine.leader.silence_notices import SilenceNotices
from tsuzuki.engine.retries import retry_for, store_retries
from tsuzuki.model.job import Job
from tsuzuki.model.losses import died_alone, lost_alone
from tsuzuki.model.run import Run, RunRef
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import Reason, RunState
from tsuzuki.store import jobs, workers
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import moves, rescue
from tsuzuki.store.sql.database import Connection, Database

MayJudge = Callable[[Callable[[], datetime]], bool]
"""Whether workers may be judged by their silence; it is given a function that reads the database's time."""

REMOVED_MAX = 500

NEVER_SILENT_SECONDS = 1e9
"""Instead of the TTL where only recorded deaths count."""

BATCH_MAX = 100
"""Runs that one write transaction orphans or fails."""

BATCH_PAUSE_SECONDS = 0.01
"""Between two of them, so that heartbeats and moves get the write lock of SQLite."""


@dataclass(kw_only=True)
class Rescued:
    """What one tick did."""

    detached: int = 0
    reattached: int = 0
    orphaned: int = 0
    failed: int = 0
    retries: int = 0
    canceled: int = 0

    @property
    def made_work(self) -> bool:
        return bool(self.reattached or self.orphaned or self.retries)


@dataclass(frozen=True, kw_only=True)
class _Round:
    """Under which term and settings one tick works, whether it may judge silence, and of whose losses."""

    term: Term
    settings: EngineSettings
    may_judge: MayJudge
    notice_seconds: float
    lost_alone: Callable[[Connection], frozenset[str]]
    """The workers that were lost alone. Asked in the transaction that uses it: others may have been lost since."""


@dataclass(frozen=True, kw_only=True)
class _Found:
    """What is to be rescued, by what was read."""

    stale: Sequence[Run]
    lost: Sequence[Run]
    removed: Sequence[RunRef]
    jobs: Mapping[int, Job]


class Rescuer:
    def __init__(
        self,
        *,
        database: Database,
        settings: Callable[[], EngineSettings],
        random: Random,
        coordination: Coordination | None = None,
        gives_notice: bool = False,
    ) -> None:
        """`gives_notice`: a worker's silence must be on record for a while before its runs fail as lost. For SQLite,
        where a worker that waits for the write lock reads that record."""
        self._gives_notice = gives_notice
        self._notices = SilenceNotices(database.clock)
        self._database = database
        self._settings = settings
        self._random = random
        self._coordination = coordination or NoCoordination()

    def tick(self, term: Term, *, may_judge: MayJudge = lambda _read_time: True) -> Rescued:
        """One round; one cheap query when there is nothing to rescue. `may_judge` is called inside each
        transaction that uses it. If it is false, no worker is detached and no run is failed for silence; workers with a
        heartbeat are still reattached."""
        rescued = Rescued()
        settings = self._settings()
        with self._database.read() as connection:
            if not self._needs_rescue(connection):
                return rescued
            has_deaths = bool(workers.deaths(connection))
            silent = workers.silent(connection, silent_after_seconds=settings.worker_ttl_seconds)
            now = self._database.now(connection)
        if has_deaths:
            self._rescue_from_dead(term, settings, rescued)
        # Between the two transactions, so that no lock is held while the other service answers.
        live = self._coordination.live_workers(silent)
        sent_at = now - timedelta(seconds=heartbeat_ttl_seconds(settings))
        this = _Round(
            term=term,
            settings=settings,
            may_judge=may_judge,
            notice_seconds=settings.silence_notice_seconds if self._gives_notice else 0.0,
            lost_alone=partial(_silent_alone, settings),
        )
        if self._judge_workers(this, live, sent_at, rescued):
            read_at = self._database.clock.monotonic()
            with self._database.read() as connection:
                if self._gives_notice:
                    self._notices.note(workers.recorded_silences(connection), read_at=read_at)
                found = self._find(connection, this)
            self._rescue(this, found, rescued)
        return rescued

    def _rescue_from_dead(self, term: Term, settings: EngineSettings, rescued: Rescued) -> None:
        """Orphan and fail the runs of workers that are recorded as dead. That judges no silence, so a leader that has
        just begun may do it too."""
        this = _Round(
            term=term,
            settings=replace(settings, worker_ttl_seconds=NEVER_SILENT_SECONDS),
            may_judge=lambda _read_time: True,
            notice_seconds=0.0,
            lost_alone=lambda connection: died_alone(workers.deaths(connection)),
        )
        with self._database.read() as connection:
            dead = workers.deaths(connection).keys()
            found = self._find(connection, this)
        self._rescue_from_workers(
            this,
            replace(
                found,
                stale=[run for run in found.stale if run.assigned_worker_id in dead],
                lost=[run for run in found.lost if run.assigned_worker_id in dead],
            ),
            rescued,
        )

    def _needs_rescue(self, connection: Connection) -> bool:
        settings = self._settings()
        return rescue.needs_rescue(
            connection,
            silent_after_seconds=settings.worker_ttl_seconds,
            max_orphans=settings.max_orphans,
        )

    def _judge_workers(
        self, this: _Round, live: Collection[str], sent_at: datetime, rescued: Rescued
    ) -> bool:
        """Reattach workers that are heard, and detach silent ones if we may judge. Answers whether we may."""
        term, ttl = this.term, this.settings.worker_ttl_seconds
        with self._database.write() as connection:
            workers.reset_future_heartbeats(connection, term=term)
            workers.refresh_heartbeats(connection, term=term, worker_ids=live, sent_at=sent_at)
            rescued.reattached = len(
                workers.reattach_and_confirm(connection, term=term, silent_after_seconds=ttl)
            )
            if not this.may_judge(partial(self._database.now, connection)):
                return False
            rescued.detached = len(
                workers.detach_silent(connection, term=term, silent_after_seconds=ttl)
            )
            if self._gives_notice:
                workers.record_silence(connection, term=term, silent_after_seconds=ttl)
        return True

    def _find(self, connection: Connection, this: _Round) -> _Found:
        settings = this.settings
        lost = rescue.lost(
            connection,
            silent_after_seconds=settings.lost_after_seconds,
            notice_seconds=this.notice_seconds,
        )
        if this.notice_seconds:
            under_notice = self._notices.under_notice(this.notice_seconds)
            lost = [run for run in lost if run.assigned_worker_id not in under_notice]
        return _Found(
            stale=rescue.stale_assignments(
                connection,
                reassign_after_seconds=settings.reassign_after_seconds,
                silent_after_seconds=settings.worker_ttl_seconds,
            ),
            lost=lost,
            removed=rescue.waiting_of_removed_jobs(connection, limit=REMOVED_MAX),
            jobs=_jobs_of(connection, lost),
        )

    # --- the transactions -------------------------------------------------------------------------

    def _rescue(self, this: _Round, found: _Found, rescued: Rescued) -> None:
        """Orphan and fail what was found, then let go of workers that hold nothing any more."""
        if self._rescue_from_workers(this, found, rescued):
            self._fail_orphaned(this, rescued)
            self._settle(this, found.removed, rescued)

    def _rescue_from_workers(self, this: _Round, found: _Found, rescued: Rescued) -> bool:
        """False as soon as we may not judge any more."""
        orphaned: set[int] = set()
        may_go_on = self._in_batches(
            this, found.stale, lambda c, runs: self._orphan(c, this, runs, orphaned)
        ) and self._in_batches(
            this, found.lost, lambda c, runs: self._fail_lost(c, this, runs, found, rescued)
        )
        rescued.orphaned += len(orphaned)
        self._coordination.release(orphaned)
        return may_go_on

    def _in_batches(
        self, this: _Round, runs: Sequence[Run], move: Callable[[Connection, Sequence[Run]], None]
    ) -> bool:
        """One transaction for each batch. False as soon as we may not judge any more."""
        for first in range(0, len(runs), BATCH_MAX):
            if first:
                self._database.clock.wait(threading.Event(), BATCH_PAUSE_SECONDS)
            with self._database.write() as connection:
                if not this.may_judge(partial(self._database.now, connection)):
                    return False
                move(connection, runs[first : first + BATCH_MAX])
        return True

    def _orphan(
        self,
        connection: Connection,
        this: _Round,
        runs: Sequence[Run],
        orphaned: set[int],
    ) -> None:
        orphaned |= moves.orphan(
            connection,
            term=this.term,
            runs=[run.ref for run in runs],
            reassign_after_seconds=this.settings.reassign_after_seconds,
            silent_after_seconds=this.settings.worker_ttl_seconds,
            lost_alone=this.lost_alone(connection),
        )

    def _fail_lost(
        self,
        connection: Connection,
        this: _Round,
        runs: Sequence[Run],
        found: _Found,
        rescued: Rescued,
    ) -> None:
        failed = moves.fail_lost(
            connection,
            term=this.term,
            runs=[run.ref for run in runs],
            silent_after_seconds=this.settings.lost_after_seconds,
            notice_seconds=this.notice_seconds,
        )
        ended = [run for run in runs if run.id in failed]
        self._retry(
            connection,
            this,
            ended,
            Reason.WORKER_LOST,
            found.jobs,
            rescued,
            alone=this.lost_alone(connection),
        )

    def _fail_orphaned(self, this: _Round, rescued: Rescued) -> None:
        """Also those that were orphaned just now."""
        limit = this.settings.max_orphans
        with self._database.read() as connection:
            orphans = rescue.orphans_at_limit(connection, max_orphans=limit)
            of_orphans = _jobs_of(connection, orphans)

        def fail(connection: Connection, runs: Sequence[Run]) -> None:
            failed = moves.fail_orphaned(
                connection, term=this.term, runs=[run.ref for run in runs], max_orphans=limit
            )
            ended = [run for run in runs if run.id in failed]
            self._retry(connection, this, ended, Reason.ORPHAN_LIMIT, of_orphans, rescued)

        self._in_batches(this, orphans, fail)

    def _retry(
        self,
        connection: Connection,
        this: _Round,
        failed: Sequence[Run],
        reason: Reason,
        known: Mapping[int, Job],
        rescued: Rescued,
        *,
        alone: frozenset[str] = frozenset(),
    ) -> None:
        """Count the failed runs, and store their retries in the transaction that failed them."""
        note_failed(connection, failed, reason)
        now = self._database.now(connection)
        rescued.failed += len(failed)
        rescued.retries += store_retries(
            connection,
            (
                retry_for(
                    run,
                    known[run.job_definition_id].spec,
                    state=RunState.FAILED,
                    reason=reason,
                    now=now,
                    random=self._random,
                    losses_max=this.settings.max_orphans,
                    lost_alone=run.assigned_worker_id in alone,
                )
                for run in failed
            ),
            term=this.term,
        )

    def _settle(self, this: _Round, removed: Sequence[RunRef], rescued: Rescued) -> None:
        """Mark workers as gone that hold nothing any more, and cancel what waits for a removed job."""
        settings = this.settings
        # Kept a little longer: others may be found to have been lost together with it.
        gone_after = settings.lost_after_seconds + settings.heartbeat_interval_seconds * 2
        with self._database.write() as connection:
            if this.may_judge(partial(self._database.now, connection)):
                workers.mark_silent_gone(
                    connection, term=this.term, silent_after_seconds=gone_after
                )
            rescued.canceled = len(
                moves.skip(connection, term=this.term, runs=removed, reason=Reason.JOB_DELETED)
            )


def _silent_alone(settings: EngineSettings, connection: Connection) -> frozenset[str]:
    return lost_alone(
        workers.silent_heartbeats(connection, silent_after_seconds=settings.worker_ttl_seconds),
        heartbeat_interval_seconds=settings.heartbeat_interval_seconds,
    )


def _jobs_of(connection: Connection, runs: Sequence[Run]) -> Mapping[int, Job]:
    return jobs.get_many(connection, {run.job_definition_id for run in runs}, known={})
