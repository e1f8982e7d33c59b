"""One giving out of work by a leader, seen from the worker of its own process."""

from collections.abc import Mapping, Sequence

from tsuzuki.engine.task import Task
from tsuzuki.model.job import Job
from tsuzuki.model.run import RunRef, WorkOrder
from tsuzuki.store import events, moves
from tsuzuki.store.leadership import Term
from tsuzuki.store.line import Sender
from tsuzuki.store.moves import NOTHING


class Taking:
    """`worker_id` is who takes what is given; None if it takes nothing any more."""

    def __init__(self, worker_id: str | None) -> None:
        self.worker_id = worker_id
        self.tasks: list[Task] = []

    def begin(
        self,
        connection: Sender,
        runs: Sequence[RunRef],
        *,
        term: Term,
        known: Mapping[int, Job],
    ) -> frozenset[int]:
        """Take these runs and begin them at once. `known` has their jobs. Answers which of them took."""
        if not runs or self.worker_id is None:
            return NOTHING
        begun = moves.assign_and_start(connection, term=term, worker_id=self.worker_id, runs=runs)
        wanted = [begun[run.id] for run in runs if run.id in begun]
        self.tasks = tasks_of(connection, wanted, known)
        return frozenset(begun)


def tasks_of(
    connection: Sender, begun: Sequence[WorkOrder], known: Mapping[int, Job]
) -> list[Task]:
    """What was begun, with all that executing it needs."""
    event_ids = [run.event_id for run in begun if run.event_id is not None]
    payloads = events.payloads(connection, event_ids)
    return [
        Task(
            run=run,
            started=run.started,
            spec=known[run.job_definition_id].spec,
            event=payloads.get(run.event_id) if run.event_id is not None else None,
        )
        for run in begun
    ]
