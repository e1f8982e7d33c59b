"""What ticks did, told to the engine's log."""

import logging

from tsuzuki.engine.archivist import Archived
from tsuzuki.engine.journal import is_told, log
from tsuzuki.engine.leader import Led
from tsuzuki.engine.worked import Worked


def counts(done: Led | Archived) -> dict[str, int]:
    """Whatever is not zero."""
    return {key: value for key, value in vars(done).items() if isinstance(value, int) and value}


def tell(worked: Worked) -> None:
    """Each run that ended here, or was taken from us."""
    for task, ending in worked.ended if is_told(logging.INFO) else ():
        log.info(
            "run ended",
            run=task.run.id,
            job=task.job_name,
            state=ending.state.value,
            reason=ending.reason.value if ending.reason else None,
        )
    for task in worked.lost:
        log.warning("run is no longer ours", run=task.run.id, job=task.job_name)
