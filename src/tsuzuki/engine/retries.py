"""Retries: whether an ended run is retried, and storing the run that retries it.

A retry is a new run that names the one it retries. It is stored in the transaction that ends the old one, so
no crash can fall between the two, and its idempotency key makes it happen once, whichever process ends the run.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from random import Random

from tsuzuki.model.abilities import COMMAND_KIND
from tsuzuki.model.errors import ScheduleError
from tsuzuki.model.job import JobSpec
from tsuzuki.model.losses import Losses
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.retry import LOSSES, decide_retry
from tsuzuki.model.run import NewRun, Run, WorkOrder, new_retry
from tsuzuki.model.states import Reason, RunState
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import runs
from tsuzuki.store.sql.database import Connection


def retry_for(  # noqa: PLR0913 -- each is a fact about the run that ended
    run: Run | WorkOrder,
    spec: JobSpec,
    *,
    state: RunState,
    reason: Reason | None,
    now: datetime,
    random: Random,
    losses_max: int,
    lost_alone: bool = False,
    retry_after_seconds: float | None = None,
) -> NewRun | None:
    """The retry of `run`, now that it ended in `state`; None if there is none."""
    decision = decide_retry(
        spec.retry,
        state=state,
        reason=reason,
        retries_used=run.retries_used,
        losses=Losses(counted=run.losses, free=run.losses_free),
        losses_max=losses_max,
        random=random,
        lost_alone=lost_alone,
        may_be_elsewhere=spec.handler != COMMAND_KIND,
        retry_after_seconds=retry_after_seconds,
        next_tick_seconds=_next_tick_seconds(spec, now) if reason in LOSSES else None,
    )
    if decision is None:
        return None
    return new_retry(
        run,
        scheduled_for=now + timedelta(seconds=decision.delay_seconds),
        retries_used=decision.retries_used,
        losses=decision.losses,
    )


def _next_tick_seconds(spec: JobSpec, now: datetime) -> float | None:
    """Until the next tick that an unfinished run holds; None if it holds none."""
    if spec.concurrency_policy is ConcurrencyPolicy.ALLOW:
        return None
    try:
        return next(((due - now).total_seconds() for due in spec.next_due(now, 1)), None)
    except ScheduleError:  # one that this machine cannot read must not keep the run from ending
        return None


def store_retries(
    connection: Connection, retries: Iterable[NewRun | None], *, term: Term | None = None
) -> int:
    """Store the retries, in the transaction of the ends. Returns how many are new."""
    wanted = [retry for retry in retries if retry is not None]
    return sum(1 for run_id in runs.create(connection, wanted, term=term) if run_id is not None)
