"""Assign and start runs on the leader's own worker, in one statement."""

from collections.abc import Mapping, Sequence

from tsuzuki.engine.task import Task
from tsuzuki.model.job import Job
from tsuzuki.model.run import RunRef, WorkOrder
from tsuzuki.store import events
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import moves
from tsuzuki.store.runs.moves import NOTHING
from tsuzuki.store.sql.prepared import AnyConnection


class LocalStart:
    """One round of assigning, as the leader's own worker takes part in it. `worker_id` is None if that
    worker accepts nothing any more."""

    def __init__(self, worker_id: str | None) -> None:
        self.worker_id = worker_id
        self.tasks: list[Task] = []

    def start(
        self,
        connection: AnyConnection,
        runs: Sequence[RunRef],
        *,
        term: Term,
        known: Mapping[int, Job],
        bulk_cancels: int = 0,
    ) -> frozenset[int]:
        """Assign these runs to the worker and start them. `known` has their jobs. Returns which moved: none if a bulk
        cancel was confirmed since they were chosen, when `bulk_cancels` of them were."""
        if not runs or self.worker_id is None:
            return NOTHING
        orders = moves.assign_and_start(
            connection,
            term=term,
            worker_id=self.worker_id,
            runs=runs,
            bulk_cancels=bulk_cancels,
        )
        wanted = [orders[run.id] for run in runs if run.id in orders]
        self.tasks = load_tasks(connection, wanted, known)
        return frozenset(orders)


def load_tasks(
    connection: AnyConnection, orders: Sequence[WorkOrder], known: Mapping[int, Job]
) -> list[Task]:
    """Started runs, with everything that executing them needs."""
    event_ids = [run.event_id for run in orders if run.event_id is not None]
    payloads = events.payloads(connection, event_ids)
    return [
        Task(
            run=run,
            started=run.started,
            spec=known[run.job_definition_id].spec,
            event=payloads.get(run.event_id) if run.event_id is not None else None,
        )
        for run in orders
    ]
