"""Whether an ended run is tried again, and as what.

A retry is a new run that names the one it repeats. It is stored in the very transaction that ends the old
one, so no crash can fall between the two, and its key makes it happen once whoever ends the run.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from random import Random

from tsuzuki.model.job import JobSpec
from tsuzuki.model.retry import decide_retry
from tsuzuki.model.run import NewRun, Run, WorkOrder
from tsuzuki.model.states import Reason, RunState, Trigger
from tsuzuki.store import runs
from tsuzuki.store.database import Connection
from tsuzuki.store.leadership import Term


def retry_for(
    run: Run | WorkOrder,
    spec: JobSpec,
    *,
    state: RunState,
    reason: Reason | None,
    now: datetime,
    random: Random,
    losses_max: int,
    retry_after_seconds: float | None = None,
) -> NewRun | None:
    """The run that repeats `run`, now that it ended in `state`; None if it is not repeated."""
    decision = decide_retry(
        spec.retry,
        state=state,
        reason=reason,
        attempt=run.attempt,
        retries_used=run.retries_used,
        losses_max=losses_max,
        random=random,
        retry_after_seconds=retry_after_seconds,
    )
    if decision is None:
        return None
    return NewRun(
        job_definition_id=run.job_definition_id,
        trigger=Trigger.RETRY,
        scheduled_for=now + timedelta(seconds=decision.delay_seconds),
        arguments=run.arguments,
        priority=run.priority,
        idempotency_key=f"retry:{run.id}",
        concurrency_key=run.concurrency_key,
        event_id=run.event_id,
        attempt=run.attempt + 1,
        retries_used=decision.retries_used,
        retry_of=run.id,
        origin_id=run.origin_id or run.id,
    )


def store_retries(
    connection: Connection, retries: Iterable[NewRun | None], *, term: Term | None = None
) -> int:
    """Store what is to be repeated, in the transaction of the ends. Answers how many there are."""
    wanted = [retry for retry in retries if retry is not None]
    return sum(1 for run_id in runs.create(connection, wanted, term=term) if run_id is not None)
