"""Rescues runs of silent workers: workers without a recent heartbeat, and the runs they hold.

A worker that is silent for `worker_ttl_seconds` is detached: it gets no new runs, and runs it had not started
are orphaned and assigned to others. Only after a further grace period, when the worker has by its own rule
stopped everything it ran, are its running runs failed and retried. A worker that is silent in the database but
has a valid heartbeat at the coordination service is not silent.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from tsuzuki.engine.coordination.protocol import Coordination, NoCoordination, heartbeat_ttl_seconds
from tsuzuki.engine.failures import note_failed
from tsuzuki.engine.retries import retry_for, store_retries
from tsuzuki.model.job import Job
from tsuzuki.model.losses import lost_alone
from tsuzuki.model.run import Run, RunRef
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import Reason, RunState
from tsuzuki.store import jobs, workers
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import moves, rescue
from tsuzuki.store.sql.database import Connection, Database

REMOVED_MAX = 500


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


class Rescuer:
    def __init__(
        self,
        *,
        database: Database,
        settings: Callable[[], EngineSettings],
        random: Random,
        coordination: Coordination | None = None,
    ) -> None:
        self._database = database
        self._settings = settings
        self._random = random
        self._coordination = coordination or NoCoordination()

    def tick(
        self, term: Term, *, may_judge: Callable[[datetime], bool] = lambda _now: True
    ) -> Rescued:
        """One round; one cheap query when there is nothing to rescue. `may_judge` is called with the
        database's time, inside the transaction that uses it. If it is false, no worker is detached and no
        run is failed for silence; workers with a heartbeat are still reattached."""
        rescued = Rescued()
        settings = self._settings()
        ttl = settings.worker_ttl_seconds
        with self._database.read() as connection:
            if not self._needs_rescue(connection):
                return rescued
            silent = workers.silent(connection, silent_after_seconds=ttl)
            read_at = self._database.now(connection)
        # Between the two transactions, so that no lock is held while the other service answers.
        live = self._coordination.live_workers(silent)
        sent_at = read_at - timedelta(seconds=heartbeat_ttl_seconds(settings))
        with self._database.write() as connection:
            workers.reset_future_heartbeats(connection, term=term)
            workers.refresh_heartbeats(connection, term=term, worker_ids=live, sent_at=sent_at)
            rescued.reattached = len(
                workers.reattach_and_confirm(connection, term=term, silent_after_seconds=ttl)
            )
            if not may_judge(self._database.now(connection)):
                return rescued
            rescued.detached = len(
                workers.detach_silent(connection, term=term, silent_after_seconds=ttl)
            )
            suspects = rescue.suspects(connection, silent_after_seconds=ttl)
            alone = self._lost_alone(connection, settings)
            orphaned = self._orphan(connection, term, suspects, settings, alone)
            self._fail_lost(connection, term, suspects, settings, alone, rescued)
            self._fail_orphaned(connection, term, settings, rescued)
            # Kept a little longer: others may be found to have been lost together with it.
            gone_after = settings.lost_after_seconds + settings.heartbeat_interval_seconds * 2
            workers.mark_silent_gone(connection, term=term, silent_after_seconds=gone_after)
            removed = rescue.waiting_of_removed_jobs(connection, limit=REMOVED_MAX)
            rescued.canceled = len(
                moves.skip(connection, term=term, runs=removed, reason=Reason.JOB_DELETED)
            )
        rescued.orphaned = len(orphaned)
        self._coordination.release(orphaned)
        return rescued

    def _needs_rescue(self, connection: Connection) -> bool:
        settings = self._settings()
        return rescue.needs_rescue(
            connection,
            silent_after_seconds=settings.worker_ttl_seconds,
            max_orphans=settings.max_orphans,
        )

    def _lost_alone(self, connection: Connection, settings: EngineSettings) -> frozenset[str]:
        return lost_alone(
            workers.silent_heartbeats(connection, silent_after_seconds=settings.worker_ttl_seconds),
            heartbeat_interval_seconds=settings.heartbeat_interval_seconds,
        )

    def _orphan(
        self,
        connection: Connection,
        term: Term,
        suspects: Sequence[Run],
        settings: EngineSettings,
        alone: frozenset[str],
    ) -> frozenset[int]:
        return moves.orphan(
            connection,
            term=term,
            runs=_refs(suspects, RunState.ASSIGNED),
            reassign_after_seconds=settings.reassign_after_seconds,
            silent_after_seconds=settings.worker_ttl_seconds,
            lost_alone=alone,
        )

    def _fail_lost(
        self,
        connection: Connection,
        term: Term,
        suspects: Sequence[Run],
        settings: EngineSettings,
        alone: frozenset[str],
        rescued: Rescued,
    ) -> None:
        failed_ids = moves.fail_lost(
            connection,
            term=term,
            runs=_refs(suspects, RunState.RUNNING),
            silent_after_seconds=settings.lost_after_seconds,
        )
        failed = [run for run in suspects if run.id in failed_ids]
        rescued.failed += len(failed)
        rescued.retries += self._retry(connection, term, failed, Reason.WORKER_LOST, alone=alone)

    def _fail_orphaned(
        self, connection: Connection, term: Term, settings: EngineSettings, rescued: Rescued
    ) -> None:
        orphans = rescue.orphans_at_limit(connection, max_orphans=settings.max_orphans)
        failed_ids = moves.fail_orphaned(
            connection,
            term=term,
            runs=_refs(orphans, RunState.ORPHANED),
            max_orphans=settings.max_orphans,
        )
        failed = [run for run in orphans if run.id in failed_ids]
        rescued.failed += len(failed)
        rescued.retries += self._retry(connection, term, failed, Reason.ORPHAN_LIMIT)

    def _retry(
        self,
        connection: Connection,
        term: Term,
        failed: Sequence[Run],
        reason: Reason,
        *,
        alone: frozenset[str] = frozenset(),
    ) -> int:
        note_failed(connection, failed, reason)
        definitions: dict[int, Job] = jobs.get_many(
            connection, {run.job_definition_id for run in failed}, known={}
        )
        now = self._database.now(connection)
        return store_retries(
            connection,
            (
                retry_for(
                    run,
                    definitions[run.job_definition_id].spec,
                    state=RunState.FAILED,
                    reason=reason,
                    now=now,
                    random=self._random,
                    losses_max=self._settings().max_orphans,
                    lost_alone=run.assigned_worker_id in alone,
                )
                for run in failed
            ),
            term=term,
        )


def _refs(runs: Sequence[Run], state: RunState) -> list[RunRef]:
    return [run.ref for run in runs if run.state is state]
