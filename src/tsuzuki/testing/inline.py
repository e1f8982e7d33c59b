"""One function, called in the test itself: with a recorded context and a clock that only the test moves."""

import asyncio
import inspect
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from tsuzuki.engine.run_context import RunContext, StopSignal, set_current_run
from tsuzuki.engine.task import Task
from tsuzuki.library.job import Call
from tsuzuki.model import jsontext
from tsuzuki.model.clock import ManualClock
from tsuzuki.model.errors import UsageError
from tsuzuki.model.job import JobSpec
from tsuzuki.model.run import WorkOrder
from tsuzuki.wiring.library import Connection

R = TypeVar("R")

START = datetime(2026, 1, 1, tzinfo=UTC)


class _Record:
    """What a handler did through its context."""

    def __init__(self, connection: Connection | None) -> None:
        self._connection = connection
        self.logged: list[str] = []
        self.progress_reports: list[tuple[int, int | None]] = []

    def log(self, _task: Task, _stream: str, content: str | bytes) -> None:
        self.logged.append(content if isinstance(content, str) else content.decode())

    def has_space(self) -> bool:
        return True

    def wait_for_space(self, seconds: float) -> bool:
        return seconds >= 0

    def progress(self, _task: Task, processed: int, total: int | None) -> None:
        self.progress_reports.append((processed, total))

    def transaction(self, _task: Task) -> AbstractContextManager[Connection]:
        if self._connection is None:
            raise UsageError(
                "this context has no database for run.transaction()",
                hint="Pass one: testing.context(connection=…), or run the job with drain().",
                code="no_test_connection",
            )
        return nullcontext(self._connection)


class RecordedContext(RunContext):
    """A run's context that records what the function does with it. Waiting moves its clock, and takes no time."""

    __test__ = False

    def __init__(self, task: Task, record: _Record, clock: ManualClock) -> None:
        self._record = record
        self._signal = StopSignal()
        self.clock = clock
        super().__init__(task=task, run_io=record, clock=clock, stop_signal=self._signal)

    @property
    def logged(self) -> list[str]:
        """The lines that were logged so far."""
        return self._record.logged

    @property
    def progress_reports(self) -> list[tuple[int, int | None]]:
        """What was reported so far: processed and total."""
        return self._record.progress_reports

    def stop(self) -> None:
        """Ask the function to stop, as a timeout or a cancel does."""
        self._signal.set()


def context(
    *,
    job_name: str = "test",
    arguments: Mapping[str, object] | None = None,
    event: object = None,
    attempt: int = 1,
    idempotency_key: str = "test",
    now: datetime = START,
    connection: Connection | None = None,
) -> RecordedContext:
    """A context to call a function with. `run.transaction()` gives the `connection`, if there is one."""
    order = WorkOrder(
        id=1,
        version=1,
        leader_epoch=1,
        job_definition_id=1,
        scheduled_for=now,
        priority=0,
        arguments=arguments or {},
        attempt=attempt,
        retries_used=attempt - 1,
        losses=0,
        losses_free=0,
        origin_id=None,
        work_key=idempotency_key,
        concurrency_key=None,
        event_id=None,
    )
    task = Task(order, order.started, JobSpec(name=job_name, handler="python"), event)
    return RecordedContext(task, _Record(connection), ManualClock(now))


@dataclass(frozen=True, kw_only=True)
class InlineRun(Generic[R]):
    """What came of a function that was run inline."""

    result: R
    context: RecordedContext

    @property
    def log(self) -> list[str]:
        return self.context.logged


def run_inline(call: Call[R], *, in_context: RecordedContext | None = None) -> InlineRun[R]:
    """Run a job's function in this thread: `run_inline(count_words.call("a b")).result`. Arguments and result go
    through JSON as in a real run. What the function raises is raised here."""
    if call.signature is None:
        raise UsageError(
            f"{call.request.job!r} has no function here",
            hint="Pass `job.call(…)`.",
            code="no_function",
        )
    run = in_context or context(job_name=call.request.job, arguments=call.request.arguments)
    arguments = call.signature.load_arguments(_through_json(call.request.arguments))
    first = [run] if call.signature.takes_context else []

    def called() -> Any:
        set_current_run(run)
        returned = call.signature.function(*first, **arguments) if call.signature else None
        return asyncio.run(_awaited(returned)) if inspect.isawaitable(returned) else returned

    value = copy_context().run(called)
    return InlineRun(
        result=call.load(_through_json(call.signature.dump_result(value))), context=run
    )


async def _awaited(returned: Any) -> Any:
    return await returned


def _through_json(value: Any) -> Any:
    return jsontext.decode(jsontext.encode(value))
