"""The handle of submitted work: its run and all retries of it, until one succeeds or the last one fails for good."""

import asyncio
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from tsuzuki.library.failure import failure_of
from tsuzuki.library.pool import AsyncPool
from tsuzuki.model.clock import SystemClock
from tsuzuki.model.errors import WaitTimedOut
from tsuzuki.model.run import Run
from tsuzuki.model.states import RunState
from tsuzuki.wiring.application import Application

R = TypeVar("R")

POLL_FIRST_SECONDS = 0.01
POLL_LONGEST_SECONDS = 0.25


class WorkProgress(NamedTuple):
    """How far a run is, as it reported by `run.progress`."""

    processed: int
    total: int | None


class Handle(Generic[R]):
    """Submitted work. A failed or lost attempt is not the end of it while a retry follows."""

    # Ten thousand may be made at once: a dict for each costs time, and rounds of the garbage collector.
    __slots__ = ("__weakref__", "_application", "_load", "_pool", "id", "is_new")

    def __init__(
        self,
        run_id: int,
        *,
        is_new: bool,
        application: Callable[[], Application],
        pool: AsyncPool,
        load: Callable[[object], R],
    ) -> None:
        self.id = run_id
        """The id of the first run. A retry is a run with an id of its own."""
        self.is_new = is_new
        """False if an idempotency key gave the run that was submitted with it before."""
        self._application = application
        self._pool = pool
        self._load = load

    def __repr__(self) -> str:
        return f"<Handle of run {self.id}>"

    # --- waiting --------------------------------------------------------------------------------

    def wait(self, *, timeout_seconds: float | None = None) -> Run:
        """The attempt that ended the work, however it did. Raises `WaitTimedOut`; the work continues then."""
        return self._application().runs.wait(
            self.id, timeout_seconds=timeout_seconds, follows_retries=True
        )

    async def wait_async(self, *, timeout_seconds: float | None = None) -> Run:
        """The attempt that ended the work, without blocking the event loop. Raises `WaitTimedOut`."""
        clock = SystemClock()
        end = None if timeout_seconds is None else clock.monotonic() + timeout_seconds
        pause = POLL_FIRST_SECONDS
        while not (run := await self._pool.do(self.info)).state.is_final:
            left = pause if end is None else min(pause, end - clock.monotonic())
            if left <= 0:
                raise WaitTimedOut(
                    f"run {run.id} is still {run.state} after {timeout_seconds:g} s",
                    hint="The run continues. Call handle.explain() to see why it takes so long.",
                )
            await asyncio.sleep(left)
            pause = min(pause * 1.5, POLL_LONGEST_SECONDS)
        return run

    def result(self, *, timeout_seconds: float | None = None) -> R:
        """What the function returned. Raises `RunFailed` if the work failed for good, and `WaitTimedOut`."""
        return self._result_of(self.wait(timeout_seconds=timeout_seconds))

    async def result_async(self, *, timeout_seconds: float | None = None) -> R:
        """What the function returned, without blocking the event loop. Raises `RunFailed` and `WaitTimedOut`."""
        run = await self.wait_async(timeout_seconds=timeout_seconds)
        if run.state is RunState.SUCCEEDED:
            return self._result_of(run)
        return await self._pool.do(self._result_of, run)

    def _result_of(self, run: Run) -> R:
        if run.state is not RunState.SUCCEEDED:
            application = self._application()
            attempts = application.runs.attempts(self.id)
            raise failure_of(run, attempts, application.logs.tail)
        return self._load(run.result)

    # --- reading --------------------------------------------------------------------------------

    def info(self) -> Run:
        """The newest attempt as it is now: state, times, progress, error."""
        return self._application().runs.newest_of_work(self.id)

    def attempts(self) -> list[Run]:
        """All attempts so far, the first one first."""
        return self._application().runs.attempts(self.id)

    def state(self) -> RunState:
        """The state of the newest attempt."""
        return self.info().state

    def progress(self) -> WorkProgress:
        """How far the newest attempt is."""
        run = self.info()
        return WorkProgress(run.progress_processed, run.progress_total)

    def error(self) -> str | None:
        """Why the newest attempt failed; None if it did not."""
        return self.info().error

    def log(self) -> list[str]:
        """The log of the newest attempt, line by line."""
        application = self._application()
        newest = application.runs.newest_of_work(self.id)
        return [line.body for line in application.logs.read_all(newest.id)]

    def explain(self) -> list[str]:
        """Why the work is where it is, the most important reason first."""
        runs = self._application().runs
        return [reason.sentence for reason in runs.explain(runs.newest_of_work(self.id).id).reasons]

    # --- changing -------------------------------------------------------------------------------

    def cancel(self) -> None:
        """Stop the work: the attempt in progress, or the retry that is waiting. Raises `Conflict` if it has ended."""
        self._application().runs.cancel_work(self.id)

    async def cancel_async(self) -> None:
        """Stop the work, without blocking the event loop. Raises `Conflict` if it has ended."""
        await self._pool.do(self.cancel)

    def retry(self) -> None:
        """Retry work that failed for good. The handle then follows the new attempt. Raises `Conflict` if it has not
        ended."""
        runs = self._application().runs
        runs.retry(runs.newest_of_work(self.id).id)
