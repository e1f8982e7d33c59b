"""Jobs with runs that wait because no live worker can execute them, and what the workers lack."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import assert_never

from tsuzuki.model.abilities import Lack, Needs
from tsuzuki.model.job import JobSpec
from tsuzuki.model.sentence import CommandLine, Sentence
from tsuzuki.model.worker import StoredWorker
from tsuzuki.store import jobs
from tsuzuki.store.runs import queue, queue_groups
from tsuzuki.store.sql.database import Connection

_NEAREST = (Lack.FUNCTION, Lack.MODULE, Lack.PROGRAM, Lack.KIND)
"""A worker that lacks the function has the module: what the nearest worker lacks is told."""


@dataclass(frozen=True, kw_only=True)
class MissingHandler:
    """What no live worker has, and what to do about it."""

    job: str
    sentence: Sentence
    hint: Sentence


def missing_handler(spec: JobSpec, live_workers: Iterable[StoredWorker]) -> MissingHandler | None:
    """What these workers lack to execute a job; None if one of them can. And None without any that may have it by
    its tags: then the handler is not what is missing."""
    needs = spec.needs
    able = [
        worker
        for worker in live_workers
        if worker.only_job in (None, spec.name) and spec.tags <= worker.tags
    ]
    if not able or any(worker.can_execute(needs) for worker in able):
        return None
    lacks = {worker.abilities.lack(needs) for worker in able if worker.abilities}
    nearest = next(lack for lack in _NEAREST if lack in lacks)
    sentence, hint = _words(nearest, needs)
    return MissingHandler(job=spec.name, sentence=sentence, hint=hint)


def missing_handlers(
    connection: Connection, live_workers: Sequence[StoredWorker]
) -> list[MissingHandler]:
    """Of all jobs with due runs that wait, by the name of the job."""
    lasting = [worker for worker in live_workers if worker.only_run is None]
    if not lasting:
        return []
    live = [job.id for job in queue_groups.live_jobs(connection)]
    lacking = {
        job.id: missing
        for job in jobs.find_handled(connection, live)
        if (missing := missing_handler(job.spec, lasting))
    }
    waiting = queue.jobs_with_due_runs(connection, lacking)
    return [missing for job_id, missing in lacking.items() if job_id in waiting]


def _words(lack: Lack, needs: Needs) -> tuple[Sentence, Sentence]:
    match lack:
        case Lack.KIND:
            return (
                Sentence("No live worker can run jobs of type %(kind)s.", kind=needs.kind),
                Sentence("Install the plug-in on a worker's machine, then restart the worker."),
            )
        case Lack.PROGRAM if needs.program is None:
            return (
                Sentence(
                    "It is not known which program defines the function %(function)s.",
                    function=needs.function,
                ),
                Sentence(
                    "Move the function to a module, or define the job in the program that contains it."
                ),
            )
        case Lack.PROGRAM:
            return (
                Sentence(
                    "The program that defines the job has no live worker: %(program)s.",
                    program=CommandLine(needs.program),
                ),
                Sentence("Start that program; other processes do not have its functions."),
            )
        case Lack.MODULE:
            return (
                Sentence(
                    "No live worker can import the Python package %(package)s.",
                    package=needs.package,
                ),
                Sentence(
                    "Start a worker in the folder that contains the package: %(command)s",
                    command=CommandLine("tsuzuki worker"),
                ),
            )
        case Lack.FUNCTION:
            return (
                Sentence("No live worker could load %(function)s.", function=needs.function),
                Sentence(
                    "See the error of the previous attempt, correct it, then restart the worker."
                ),
            )
        case _:
            assert_never(lack)
