"""The check whether runs that execute here are still ours; made with each poll of a worker.

A run is lost when an operator canceled it, when the leader replaced it, or when the leader failed it because
this worker was silent. The worker then stops it, and writes nothing for it.
"""

from collections.abc import Sequence

from tsuzuki.engine.task import Task
from tsuzuki.store.runs import ownership
from tsuzuki.store.sql.database import Connection


def lost_of(connection: Connection, tasks: Sequence[Task], *, worker_id: str) -> list[Task]:
    """Those of the tasks that are not this worker's any more."""
    believed = [task.started for task in tasks]
    if not believed or ownership.owns_exactly(connection, worker_id=worker_id, runs=believed):
        return []
    owned = ownership.still_owned(connection, worker_id=worker_id, runs=believed)
    return [task for task in tasks if task.started.id not in owned]
