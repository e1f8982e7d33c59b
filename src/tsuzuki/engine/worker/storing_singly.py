"""Stores output and ends run by run, after the transaction for all of them has failed.

One value that the database refuses must not keep the ends of all other runs from being stored. The run that it
belongs to gets something in its place: a notice in its log for lines, a failure for a success. If not even that can
be stored, the cause is not this run: then nothing is replaced, and what it has is tried again later.
"""

from collections.abc import Callable, Iterable
from datetime import datetime

from tsuzuki.engine.log import log
from tsuzuki.engine.worker.finishing import EndedRun
from tsuzuki.engine.worker.output_buffer import BufferedOutput
from tsuzuki.engine.worker.step import WorkerStep
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.states import Reason, RunState
from tsuzuki.store.logs import LogLine

ERROR_CHARACTERS_MAX = 500

Store = Callable[[BufferedOutput, list[EndedRun]], WorkerStep]
"""Stores output and ends in one transaction."""


def store_singly(
    store: Store, left: dict[int, BufferedOutput], ends: Iterable[EndedRun], *, now: datetime
) -> WorkerStep:
    """What is stored leaves `left`, where output is by run. The step has the problem that is not of one run."""
    step = WorkerStep()
    ended = {one.run_id: one for one in ends}
    for run_id in sorted({*left, *ended}):
        try:
            _store_run(store, step, left.get(run_id), ended.get(run_id), now)
            left.pop(run_id, None)
        except Unreachable as problem:
            step.problem = problem
            break
        except Exception as problem:  # noqa: BLE001 -- the other runs must go on; the loop raises it
            step.problem = problem
    return step


def _store_run(
    store: Store,
    step: WorkerStep,
    output: BufferedOutput | None,
    end: EndedRun | None,
    now: datetime,
) -> None:
    """The output first, in a transaction of its own: an end that is refused must not take the log with it."""
    if output is not None:
        try:
            step.add(store(output, []))
        except Unreachable:
            raise
        except Exception as problem:  # noqa: BLE001 -- whatever the driver says about the values
            step.add(store(_notice(output, problem, now), []))
            step.replaced += 1
            _log("run output could not be stored and is lost", output.run_ids, problem)
    if end is None or end.run_id in step.locked:
        return
    try:
        step.add(store(BufferedOutput(), [end]))
    except Unreachable:
        raise
    except Exception as problem:  # noqa: BLE001 -- whatever the driver says about the values
        step.add(store(BufferedOutput(), [_without_values(end, problem)]))
        step.replaced += 1
        _log("run end could not be stored as reported", [end.run_id], problem)


def _notice(output: BufferedOutput, problem: Exception, now: datetime) -> BufferedOutput:
    """In place of one run's lines. Its progress is left out too."""
    if not output.lines:
        return BufferedOutput()
    run, first = output.lines[0]
    body = f"{len(output.lines)} lines could not be stored: {_words(problem)}"
    return BufferedOutput(lines=[(run, LogLine(seq=first.seq, at=now, stream="log", body=body))])


def _without_values(ended: EndedRun, problem: Exception) -> EndedRun:
    """Without its result, and with another error. A success is a failure then; other ends stay what they are."""
    error = f"the run's end could not be stored: {_words(problem)}"
    end = ended.end._replace(result=None, error=error)
    if end.state is RunState.SUCCEEDED:
        end = end._replace(state=RunState.FAILED, reason=Reason.HANDLER_FAILED)
    return ended._replace(end=end)


def _words(problem: Exception) -> str:
    """The first line of what the driver says. Those that follow may have values in them."""
    cause = getattr(problem, "orig", None) or problem
    first = next(iter(str(cause).strip().splitlines()), "")
    return (first or type(cause).__name__)[:ERROR_CHARACTERS_MAX]


def _log(message: str, run_ids: Iterable[int], problem: Exception) -> None:
    log.error(message, runs=sorted(run_ids), error=_words(problem))
