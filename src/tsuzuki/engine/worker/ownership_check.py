"""The check whether runs that execute here are still ours, and not to be canceled; made with each poll of a worker.

A run is lost when an operator canceled it, when the leader replaced it, or when the leader failed it because
this worker was silent. The worker then stops it, and writes nothing for it. If its handler held its row at that moment,
the cancel is only requested: the worker stops it, and stores that it was canceled.
"""

from collections.abc import Sequence

from tsuzuki.engine.outcome import StopCause
from tsuzuki.engine.task import Task
from tsuzuki.model.states import Reason
from tsuzuki.store.runs import cancel_requests, ownership
from tsuzuki.store.sql.database import Connection


def to_stop(
    connection: Connection, tasks: Sequence[Task], *, worker_id: str
) -> list[tuple[Task, StopCause]]:
    """Those of the tasks that are to be stopped, each with the cause."""
    believed = [task.started for task in tasks]
    if not believed or ownership.owns_exactly(connection, worker_id=worker_id, runs=believed):
        return []
    owned = ownership.still_owned(connection, worker_id=worker_id, runs=believed)
    requested = cancel_requests.of_runs(connection, owned)
    causes = {
        run_id: StopCause.REPLACED if one.reason is Reason.REPLACED else StopCause.CANCELED
        for run_id, one in requested.items()
    }
    causes |= {run.id: StopCause.FENCED for run in believed if run.id not in owned}
    return [(task, causes[task.started.id]) for task in tasks if task.started.id in causes]
